import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The protocol of the peers for Java: tasks come as JSON in the first argument, answers leave as lines of JSON. */
final class Peer {
    interface Sender { void send(List<long[]> jobs) throws Exception; }
    interface Counter { long count() throws Exception; }

    private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));
    private static String task;
    private static FileOutputStream starts;

    static void read(String json) throws IOException {
        task = json;
        starts = new FileOutputStream(text("starts"), true);
    }

    /** The harness writes plain numbers and strings without escapes, under names that occur once. */
    private static Matcher find(String key, String value) {
        Matcher found = Pattern.compile("\"" + key + "\": " + value).matcher(task);
        return found.find() ? found : null;
    }

    static boolean has(String key) { return find(key, "") != null; }
    static long number(String key) { return Long.parseLong(find(key, "(-?\\d+)").group(1)); }
    static double fraction(String key) { return Double.parseDouble(find(key, "(-?[\\d.]+)").group(1)); }
    static String text(String key) { return find(key, "\"([^\"]*)\"").group(1); }

    static String jdbcUrl() {
        URI uri = URI.create(text("url"));
        String[] user = uri.getUserInfo().split(":");
        return "jdbc:postgresql://" + uri.getHost() + ":" + uri.getPort() + uri.getPath()
            + "?user=" + user[0] + "&password=" + user[1];
    }

    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    static synchronized void answer(String key, Object value) {
        System.out.println("{\"" + key + "\": " + value + "}");
        System.out.flush();
    }

    /** Called by the handler in its first line: which job it is and when it was meant to be enqueued. */
    static void started(long n, long meant) {
        String line = String.format("%9d %16d %16d%n", n, meant, nowUs());
        try {
            starts.write(line.getBytes());
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Offers `rate` jobs a second in an open loop: what is due on a tick is one call, eight are under way at most. */
    static void offer(Sender sender) throws InterruptedException {
        long rate = number("rate"), total = rate * number("seconds"), begin = nowUs() + 1_000_000;
        var room = new Semaphore(8);
        var failed = new AtomicLong();
        var pool = Executors.newFixedThreadPool(8);
        for (long next = 0; next < total; Thread.sleep(4)) {
            if (!room.tryAcquire()) continue;
            List<long[]> due = new ArrayList<>();
            for (long now = nowUs(); next < total && begin + next * 1_000_000 / rate <= now; next++) {
                due.add(new long[] {next, begin + next * 1_000_000 / rate});
            }
            pool.execute(() -> {
                try {
                    if (!due.isEmpty()) sender.send(due);
                } catch (Exception error) {
                    failed.addAndGet(due.size());
                    error.printStackTrace();
                } finally {
                    room.release();
                }
            });
        }
        pool.shutdown();
        pool.awaitTermination(60, TimeUnit.SECONDS);
        answer("offered", total - failed.get());
    }

    /** Returns when the harness closes our input. */
    static void waitUntilTold() throws IOException {
        while (INPUT.readLine() != null) { }
    }

    /** Answers each line of our input with how many jobs are not done, by the peer's own books. */
    static void counting(Counter counter) throws Exception {
        while (INPUT.readLine() != null) {
            System.out.println("{\"left\": " + counter.count() + ", \"at_us\": " + nowUs() + "}");
            System.out.flush();
        }
    }

    private Peer() { }
}
