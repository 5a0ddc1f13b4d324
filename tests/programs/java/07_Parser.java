package org.example.parser;

import java.util.List;
import java.util.ArrayList;
import org.example.text.Tokenizer;
import org.example.text.*;

/**
 * Recursive descent for expressions.
 * <pre>
 *   sum     = product (("+" | "-") product)*
 *   product = factor (("*" | "/") factor)*      // left to right
 *   factor  = NUMBER | "-" factor | "(" sum ")"
 * </pre>
 **/
public class Parser {
    private final List<String> tokens;
    private int next;
    private boolean trace = System.getenv("TRACE") != null;

    public Parser(List<String> tokens) {
        this.tokens = tokens;
    }

    public Node parse() throws ParseException {
        Node node = sum();
        if (next != tokens.size()) {
            throw error("end of text");
        }
        return node;
    }

    private Node sum() throws ParseException {
        Node left = product();
        while (is("+") || is("-")) {
            String sign = tokens.get(next++);
            Node right = product();
            left = new Binary(sign, left, right);
        }
        return left;
    }

    private Node product() throws ParseException {
        Node left = factor();
        while (is("*") || is("/")) {
            String sign = tokens.get(next++);
            left = new Binary(sign, left, factor());
        }
        return left;
    }

    private Node factor() throws ParseException {
        if (trace) System.err.println("factor at " + next);
        if (is("-")) {
            next++;
            return new Minus(factor());
        }
        if (is("(")) {
            next++;
            Node inner = sum();
            if (!is(")")) throw error("\")\"");
            next++;
            return inner;
        }
        if (next >= tokens.size()) throw error("a number");
        try {
            return new Leaf(Double.parseDouble(tokens.get(next++)));
        } catch (NumberFormatException e) {
            next -= 1;
            throw error("a number");
        }
    }

    private boolean is(String text) {
        return next < tokens.size() && tokens.get(next).equals(text);
    }

    private ParseException error(String expected) {
        String found = next < tokens.size() ? tokens.get(next) : "nothing";
        return new ParseException("expected " + expected + ", found \u201c" + found + "\u201d", next);
    }
}

interface Node { double value(); }

class Leaf implements Node {
    private final double number;
    Leaf(double number) { this.number = number; }
    public double value() { return number; }
}

class Minus implements Node {
    private final Node inner;
    Minus(Node inner) { this.inner = inner; }
    public double value() { return -inner.value(); }
}

class Binary implements Node {
    private final String sign;
    private final Node left, right;

    Binary(String sign, Node left, Node right) {
        this.sign = sign; this.left = left; this.right = right;
    }

    public double value() {
        double a = left.value(), b = right.value();
        switch (sign.charAt(0)) {
            case '+': return a + b;
            case '-': return a - b;
            case '*': return a * b;
            case '/': return a / b;
            default: throw new IllegalStateException(sign);
        }
    }
}

class ParseException extends Exception {
    final int place;

    ParseException(String message, int place) {
        super(message);
        this.place = place;
    }
}
