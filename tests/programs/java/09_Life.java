import java.util.Random;

public class Life {
    static final int WIDTH = 40, HEIGHT = 12;
    private boolean[][] board = new boolean[HEIGHT][WIDTH];
    private int generation;

    Life(long seed) {
        Random random = new Random(seed);
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                board[y][x] = random.nextInt(100) < 35;
            }
        }
    }

    int neighbours(int y, int x) {
        int count = 0;
        for (int dy = -1; dy <= 1; dy++) {
            for (int dx = -1; dx <= 1; dx++) {
                if (dy == 0 && dx == 0) {
                    continue;
                }
                int row = (y + dy + HEIGHT) % HEIGHT;
                int column = (x + dx + WIDTH) % WIDTH;
                if (board[row][column]) {
                    count++;
                }
            }
        }
        return count;
    }

    void step() {
        boolean[][] next = new boolean[HEIGHT][WIDTH];
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                switch (neighbours(y, x)) {
                    case 2:
                        next[y][x] = board[y][x];
                        break;
                    case 3:
                        next[y][x] = true;
                        break;
                    default:
                        next[y][x] = false;
                }
        board = next;
        generation++;
    }

    public String toString() {
        StringBuilder text = new StringBuilder("— " + generation + " —\n");
        for (boolean[] row : board) {
            for (boolean cell : row) {
                text.append(cell ? '█' : '·');
            }
            text.append('\n');
        }
        return text.toString();
    }

    boolean isDead() {
        for (boolean[] row : board)
            for (boolean cell : row)
                if (cell)
                    return false;
        return true;
    }

    public static void main(String[] args) {
        Life life = new Life(args.length > 0 ? Long.parseLong(args[0]) : 42);
        for (int i = 0; i < 100 && !life.isDead(); i++) {
            System.out.print(life);
            life.step();
            try {
                Thread.sleep(100);
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        // System.out.println("/* not a comment inside */");
        System.out.println("/* not a comment either */ // nor this");
    }
}
