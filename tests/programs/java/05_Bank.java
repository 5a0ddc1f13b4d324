package org.example.bank;

import java.io.*;
import java.util.HashMap;

interface Account extends Comparable<Account>, Serializable {
    int LIMIT = 50000, FREE = 0;
    String BANK = "Sparkasse “Süd”";

    long balance();
    void deposit(long cents) throws BankException;
    <T extends Number> T convert(T rate, Class<T> kind);
}

abstract class Base implements Account {
    protected long cents;
    private static int created;

    static {
        created = 0;
        System.loadLibrary("bank");
    }

    static native int random(int bound);

    abstract String name();

    public synchronized long balance() { return cents; }

    public void deposit(long amount) throws BankException {
        if (amount <= 0)
            throw new BankException("Betrag: " + amount);
        else if (amount > LIMIT)
            throw new BankException("zu viel");
        else
            synchronized (this) {
                cents += amount;
            }
    }

    strictfp_like helper() { return null; }

    public int compareTo(Account other) {
        return other instanceof Base ? (int) (cents - ((org.example.bank.Base) other).cents) : -1;
    }
}

class BankException extends Exception {
    BankException(String message) {
        super(message);
    }

    BankException(String message, Throwable cause) {
        super(message);
        initCause(cause);
    }
}

class strictfp_like { }

public class Bank {
    private final HashMap<String, Account> accounts = new HashMap<String, Account>();

    public void transfer(String from, String to, long cents) throws BankException {
        Account source = find(from), target = find(to);
        boolean done = false;
        try {
            source.deposit(-cents);
            target.deposit(+cents);
            done = true;
        } catch (BankException e) {
            throw new BankException("from " + from + " to " + to, e);
        } catch (RuntimeException e) {
            e.printStackTrace();
        } finally {
            if (!done) log("failed: " + cents / 100 + "." + cents % 100);
        }
    }

    private Account find(String number) throws BankException {
        Account account = accounts.get(number);
        if (account == null) { throw new BankException(number); }
        return account;
    }

    private void log(String line) {
        try {
            try { System.err.println(line); } finally { System.err.flush(); }
        } catch (Exception ignored) { /* nothing helps now */ }
    }

    static char grade(int points) {
        char grade;
        switch (points / 10) {
            case 10:
            case 9: { grade = 'A'; break; }
            case 8: grade = 'B'; break;
            case 7: grade = 'C'; break;
            default: grade = 'F';
        }
        switch (grade) { case 'A': case 'B': }
        switch (grade) { }
        return grade;
    }
}
;
