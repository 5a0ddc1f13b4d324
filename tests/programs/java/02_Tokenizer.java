package org.example.text;

public final class Tokenizer {
    public static final int END = 0, WORD = 1, NUMBER = 2, TEXT = 3, SIGN = 4;

    private final String input;
    private int position, line = 1, column = 1;

    public Tokenizer(String input) { this.input = input; }

    private char peek() {
        return position < input.length() ? input.charAt(position) : '\0';
    }

    private char next() {
        char c = peek();
        position++;
        if (c == '\n') {
            line++;
            column = 1;
        } else {
            column++;
        }
        return c;
    }

    public Token read() throws SyntaxError {
        skip();
        int start = position;
        char c = next();
        switch (c) {
            case '\0':
                return new Token(END, "");
            case '"':
            case '\'':
                return text(c, start);
            case '+': case '-': case '*': case '/':
            case '(': case ')': case '[': case ']':
            case '{': case '}': case ',': case ';':
                return new Token(SIGN, "" + c);
            default:
                if (Character.isDigit(c)) return number(start);
                if (Character.isLetter(c) || c == '_' || c == '\u00e4' || c == 'é') return word(start);
                throw new SyntaxError("line " + line + ", column " + column + ": \"" + c + "\"");
        }
    }

    private void skip() {
        while (true) {
            char c = peek();
            if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
                next();
            } else if (c == '#') {
                do next(); while (peek() != '\n' && peek() != '\0');
            } else {
                return;
            }
        }
    }

    private Token number(int start) {
        while (Character.isDigit(peek())) next();
        if (peek() == '.') {
            next();
            while (Character.isDigit(peek())) { next(); }
        }
        return new Token(NUMBER, input.substring(start, position));
    }

    private Token word(int start) {
        while (Character.isLetterOrDigit(peek()) || peek() == '_')
            next();
        return new Token(WORD, input.substring(start, position));
    }

    private Token text(char quote, int start) throws SyntaxError {
        StringBuilder builder = new StringBuilder();
        for (;;) {
            char c = next();
            if (c == quote) break;
            if (c == '\0') throw new SyntaxError("unfinished text from " + start);
            if (c != '\\') {
                builder.append(c);
                continue;
            }
            switch (next()) {
                case 'n': builder.append('\n'); break;
                case 't': builder.append('\t'); break;
                case '\\': builder.append('\\'); break;
                case '0': builder.append("\0\7\12\101\377"); break;
                default:
            }
        }
        return new Token(TEXT, builder.toString());
    }
}

class SyntaxError extends Exception {
    SyntaxError(String message) { super(message); }
}

class Token {
    final int kind; final String text;
    Token(int kind, String text) { this.kind = kind; this.text = text; }
    public String toString() { return kind + ":\"" + text + "\""; }
}
