package org.example.inventory;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An inventory: items by name, and the places where they lie.
 *
 * <p>Nested type arguments are closed with a blank between: the lexer takes ">>" for a shift.
 */
public class Inventory {
    private static final int LIMIT = 1000;
    private static final double TAX = 0.19;

    private final Map<String, List<Map<Place, Integer> > > stock = new HashMap<>();
    private final List<List<String> > log = new ArrayList<List<String> >();
    protected transient volatile int changes;

    public Inventory() {
        super();
        this.changes = 0;
    }

    public Inventory(int capacity) throws IllegalArgumentException {
        this();
        if (capacity < 0 || capacity > LIMIT) {
            throw new IllegalArgumentException("capacity: " + capacity);
        }
    }

    public void add(String name, Place place, int count) {
        if (!stock.containsKey(name)) {
            stock.put(name, new ArrayList<>());
        }
        List<Map<Place, Integer> > rows = stock.get(name);
        Map<Place, Integer> row = new HashMap<>();
        row.put(place, count);
        rows.add(row);
        changes++;
        note("add", name, "" + count);
    }

    private void note(String what, String name, String more) {
        List<String> line = new ArrayList<>();
        line.add(what);
        line.add(name);
        line.add(more);
        log.add(line);
    }

    public int count(String name) {
        int total = 0;
        List<Map<Place, Integer> > rows = stock.get(name);
        if (rows == null) return 0;
        for (Map<Place, Integer> row : rows) {
            for (Integer value : row.values()) {
                total += value;
            }
        }
        return total;
    }

    // names in order, with their counts
    public List<String> report() {
        List<String> names = new ArrayList<>(stock.keySet());
        Collections.sort(names, (a, b) -> count(b) - count(a));
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < names.size(); i++) {
            String name = names.get(i);
            lines.add((i + 1) + ".\t" + name + "\t" + count(name));
        }
        return lines;
    }

    public double price(String name, double net) {
        double gross = net * (1 + TAX);
        return count(name) == 0 ? 0.0 : gross / 1.0;
    }

    public static void main(String[] arguments) {
        Inventory inventory = new Inventory(10);
        inventory.add("Äpfel", new Place("Köln", 3), 120);
        inventory.add("筆", new Place("東京", 1), 7);
        for (String line : inventory.report()) System.out.println(line);
    }
}

class Place {
    String city;
    int shelf;

    Place(String city, int shelf) {
        this.city = city;
        this.shelf = shelf;
    }
}

/**
 * A move of items from one place to another; it knows how to undo itself.
 */
class Move {
    private final Inventory inventory;
    private final Place from;
    private final Place to;
    private final String name;
    private final int count;
    private boolean done = false;

    Move(Inventory inventory, Place from, Place to, String name, int count) {
        this.inventory = inventory;
        this.from = from;
        this.to = to;
        this.name = name;
        this.count = count;
    }

    void run() throws MoveException {
        if (done) {
            throw new MoveException("twice: " + this);
        }
        inventory.add(name, from, -count);
        inventory.add(name, to, count);
        done = true;
    }

    void undo() {
        if (!done) {
            return;
        }
        inventory.add(name, to, -count);
        inventory.add(name, from, count);
        done = false;
    }

    public String toString() {
        return count + " × " + name + ": " + from.city + " → " + to.city;
    }
}

class MoveException extends Exception {
    MoveException(String message) { super(message); }
}
