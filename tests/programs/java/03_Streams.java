import java.util.*;
import java.util.function.*;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/* Lambdas in all places where they may stand. */
public class Streams {

    static Function<Integer, Integer> twice = x -> x * 2;
    static Supplier<List<String> > fresh = () -> new ArrayList<>();
    static BiFunction<Integer, Integer, Integer> plus = (a, b) -> a + b;
    static Function<Integer, Function<Integer, Integer> > curried = a -> b -> a - b;
    static Runnable nothing = () -> { };

    public static <T, R> List<R> map(List<T> values, Function<? super T, ? extends R> f) {
        List<R> results = new ArrayList<>(values.size());
        for (T value : values) {
            results.add(f.apply(value));
        }
        return results;
    }

    public static <T> Predicate<T> not(Predicate<T> p) {
        return x -> !p.test(x);
    }

    public static <K extends Comparable<K> , V> Comparator<Map.Entry> byKey() {
        return (left, right) -> {
            int order = left.hashCode() - right.hashCode();
            if (order == 0) {
                return 0;
            }
            return order < 0 ? -1 : +1;
        };
    }

    static String summary(List<String> words) {
        return words.stream()
            .filter(w -> w.length() > 3 && !w.startsWith("x"))
            .map(w -> w.substring(0, 1).toUpperCase() + w.substring(1))
            .sorted((a, b) -> b.compareTo(a))
            .collect(Collectors.joining(", ", "[", "]"));
    }

    static int squares(int n) {
        return IntStream.range(0, n)
            .filter(i -> i % 2 == 1)
            .map(i -> i * i)
            .sum();
    }

    void each(Iterable<?> things, Consumer<Object> consumer) {
        for (Object thing : things) consumer.accept(thing);
    }

    static Map<Boolean, List<Integer> > split(List<Integer> numbers, IntPredicate p) {
        Map<Boolean, List<Integer> > parts = new TreeMap<>();
        parts.put(true, new LinkedList<>());
        parts.put(false, new LinkedList<>());
        numbers.forEach(n -> parts.get(p.test(n)).add(n));
        return parts;
    }

    public static void main(String[] args) throws Exception {
        List<Integer> numbers = Arrays.asList(3, 1, 4, 1, 5, 9, 2, 6);
        List<Integer> doubled = map(numbers, twice);
        var total = doubled.stream().reduce(0, (a, b) -> a + b);
        System.out.println(total); // 62
        System.out.println(split(numbers, n -> n > 3));
        Thread thread = new Thread(() -> {
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                return;
            }
            System.out.println("geweckt ☕");
        });
        thread.start();
        thread.join();
        new Streams().each(numbers, o -> System.out.print(o + " "));
        run(nothing, () -> System.out.println("fertig"), () -> { int i = 1; i++; });
        if (plus.apply(2, 3) != curried.apply(7).apply(2)) throw new AssertionError();
    }

    static void run(Runnable a, Runnable b, Runnable c) {
        a.run(); b.run(); c.run();
    }
}
