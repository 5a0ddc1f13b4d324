package org.example.math;

public class Matrix {
    private final int rows;
    private final int columns;
    private final double[][] cells;

    static final int[][] IDENTITY = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    static final float half = (float) 0.5;
    static final byte[] EMPTY = {};
    static final String names[] = {"a", "b" + "c", null};

    public Matrix(int rows, int columns) {
        this.rows = rows;
        this.columns = columns;
        this.cells = new double[rows][columns];
    }

    public double get(int i, int j) { return cells[i][j]; }

    public void set(int i, int j, double x) { cells[i][j] = x; }

    public Matrix times(Matrix other) {
        if (columns != other.rows)
            throw new ArithmeticException(rows + "x" + columns + " * " + other.rows + "x" + other.columns);
        Matrix product = new Matrix(rows, other.columns);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < other.columns; ++j) {
                double sum = 0.0;
                for (int k = 0; k < columns; k += 1) sum += cells[i][k] * other.cells[k][j];
                product.cells[i][j] = sum;
            }
        return product;
    }

    public Matrix transposed() {
        Matrix result = new Matrix(columns, rows);
        int i = 0;
        while (i < rows) {
            int j = 0;
            do {
                result.cells[j][i] = this.cells[i][j++];
            } while (j < columns);
            i++;
        }
        return result;
    }

    public double determinant() {
        double[][] a = new double[rows][rows];
        for (int i = 0; i < rows; i++) {
            a[i] = (double[]) cells[i].clone();
        }
        double sign = 1.0, product = 1.0;
        columns:
        for (int c = 0; c < rows; c++) {
            int pivot = c;
            for (int r = c + 1; r < rows; r++) {
                if (Math.abs(a[r][c]) > Math.abs(a[pivot][c])) pivot = r;
            }
            if (a[pivot][c] == 0) {
                product = 0;
                break columns;
            }
            if (pivot != c) {
                double[] row = a[pivot];
                a[pivot] = a[c];
                a[c] = row;
                sign = -sign;
            }
            product *= a[c][c];
            for (int r = c + 1; r < rows; r++) {
                double factor = a[r][c] / a[c][c];
                if (factor == 0) continue columns;
                for (int k = c; k < rows; k++) a[r][k] -= factor * a[c][k];
            }
        }
        return sign * product;
    }

    static long power(long base, int exponent) {
        long result = 1;
        for (; exponent != 0; exponent >>>= 1) {
            if ((exponent & 1) == 1) result *= base;
            base *= base;
        }
        return result;
    }

    int hash() {
        int h = 17;
        for (double[] row : cells)
            for (double x : row) h = 31 * h + (int) x ^ (h >>> 16) ^ ~h << 3 | h >> 7 & 255;
        return h;
    }
}