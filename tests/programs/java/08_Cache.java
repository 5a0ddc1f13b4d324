package cache ;

import java . util . * ;
import java . util . concurrent . ConcurrentHashMap ;

public abstract class Cache extends AbstractMap<String, Set<Object> > implements Map<String, Set<Object> >, Cloneable {

	private final Map<String, Map<Integer, List<Set<Object> > > > generations = new ConcurrentHashMap<>();
	private final Deque<Map.Entry> order = new ArrayDeque<>();
	private final List<List<?>> shadows = new ArrayList<List<?>>(); // here ">>" cannot be a shift
	private Map<String, Map<Integer, ?>> latest= null;
	private Map<String, List<Map<String, int>>> counts; // three at once, none of them ">>>"
	private Map<? super String, List<Map<String, List<?>>>>shared= new HashMap<>();
	private int hits, misses, size;
	private final int limit;
	private static final Class KIND = Cache.class;

	protected Cache(int limit) { this.limit = limit; }

	protected abstract Set<Object> load(String key) throws java.io.IOException;

	public Set<Object> get(String key) {
		Map<Integer, List<Set<Object> > > generation = generations.get(key);
		if (generation != null && !generation.isEmpty()) {
			hits++;
			for (List<Set<Object> > sets : generation.values()) {
				for (Set<Object> set : sets) {
					if (set != null) return set;
				}
			}
		}
		misses += 1;
		return reload(key);
	}

	private Set<Object> reload(String key) {
		retry:
		for (int attempt = 1; ; attempt++) {
			try {
				Set<Object> set = load(key);
				store(key, attempt, set);
				return set;
			} catch (java.io.IOException problem) {
				if (attempt < 3) continue retry;
				break;
			} finally {
				trim();
			}
		}
		return Collections.emptySet();
	}

	private void store(String key, int generation, Set<Object> set) {
		Map<Integer, List<Set<Object> > > all = generations.get(key);
		if (all == null) {
			all = new TreeMap<Integer, List<Set<Object> > >();
			generations.put(key, all);
		}
		List<Set<Object> > sets = all.computeIfAbsent(generation, g -> new LinkedList<>());
		sets.add(set);
		size++;
	}

	private void trim() {
		while (size > limit) {
			if (order.isEmpty()) { size = 0; break; }
			order.removeFirst();
			--size;
		}
	}

	double ratio() {
		return hits + misses == 0 ? 1.0 : (double) hits / (hits + misses);
	}

	<T extends Comparable<T> & java.io.Serializable> T best(Collection<? extends T> things, T first) {
		T best = first;
		for (T thing : things) {
			best = thing.compareTo(best) > 0 ? thing : best;
		}
		return best;
	}

	static <A, B extends List<A> , C> void copy(B from, Map<? super A, ?> to, C[] none) { }
}
