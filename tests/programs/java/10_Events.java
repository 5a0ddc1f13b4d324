package org.example.events;

import java.util.*;
import java.util.function.Consumer;

/* A bus of events. The file has CRLF line ends,
 * and its last comment is not followed by one. */
public class Events {

    private final Map<Class, List<Consumer<Event> > > listeners = new IdentityHashMap<>();
    private final Queue<Event> queue = new LinkedList<>();
    private volatile boolean running;

    public void on(Class kind, Consumer<Event> listener) {
        listeners.computeIfAbsent(kind, k -> new ArrayList<>()).add(listener);
    }

    public synchronized void post(Event event) {
        queue.add(event);
        if (!running) {
            drain();
        }
    }

    private void drain() {
        running = true;
        try {
            while (!queue.isEmpty()) {
                dispatch(queue.remove());
            }
        } finally {
            running = false;
        }
    }

    private void dispatch(Event event) {
        List<Consumer<Event> > interested = listeners.get(event.getClass());

        if (interested == null) {
            // nobody listens: "*/" may stand in a line comment
            return;
        }
        interested.forEach(listener -> {
            try {
                listener.accept(event);
            } catch (RuntimeException e) {
                post(new Failure(event, e.getMessage()));
            }
        });
    }

    static abstract_ make() { return new abstract_(); }

    public static void main(String[] args) {
        Events bus = new Events();
        bus.on(Click.class, e -> System.out.println("click " + ((events.Click) e).x + "," + ((events.Click) e).y));
        bus.on(Failure.class, e -> { throw new Error("\t→ " + e); });
        bus.post(new Click(3, 4));
        bus.post(new Key('ß', 1 == 1));
        bus.post(new Key('\uFFFd', false));
    }
}

abstract class Event {
    final long time = System.currentTimeMillis();
    int priority() { return 0; }
}

class Click extends Event {
    final int x, y;
    Click(int x, int y) { super(); this.x = x; this.y = y; }
}

class Key extends Event {
    final char key; final boolean down;
    Key(char key, boolean down) { this.key = key; this.down = down; }
    int priority() { return down ? 1 : 2; }
}

class Failure extends Event {
    final Event cause;
    final String text;

    Failure(Event cause, String text) {
        this.cause = cause;
        this.text = text == null || text.isEmpty() ? "?" : text;
    }
}

class abstract_ { } /* end **/