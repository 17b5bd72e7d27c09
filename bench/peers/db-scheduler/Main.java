import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.task.TaskInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** db-scheduler on PostgreSQL: lock-and-fetch polling, batches to enqueue, immediate execution of what is due at once. */
final class Main {
    private static final String TABLE = """
        create table scheduled_tasks (
          task_name text not null, task_instance text not null, task_data bytea,
          execution_time timestamp with time zone not null, picked boolean not null, picked_by text,
          last_success timestamp with time zone, last_failure timestamp with time zone, consecutive_failures int,
          last_heartbeat timestamp with time zone, version bigint not null, priority smallint,
          primary key (task_name, task_instance));
        create index on scheduled_tasks (execution_time);
        create index on scheduled_tasks (last_heartbeat);
        """;
    private static final OneTimeTask<Long> TASK = Tasks.oneTime("noop", Long.class)
        .execute((instance, context) -> Peer.started(Long.parseLong(instance.getId()), instance.getData()));

    public static void main(String[] arguments) throws Exception {
        Peer.read(arguments[0]);
        var pool = new HikariConfig();
        pool.setJdbcUrl(Peer.jdbcUrl());
        pool.setMaximumPoolSize((int) Peer.number("connections"));
        try (var source = new HikariDataSource(pool)) {
            switch (Peer.text("do")) {
                case "prepare" -> prepare(source);
                case "work" -> work(source);
                default -> left(source);
            }
        }
    }

    private static Scheduler scheduler(HikariDataSource source) {
        return Scheduler.create(source, TASK)
            .threads((int) Peer.number("threads"))
            .pollUsingLockAndFetch(Peer.fraction("lockAndFetchLower"), Peer.fraction("lockAndFetchUpper"))
            .pollingInterval(Duration.ofMillis(Peer.number("pollingIntervalMs")))
            .enableImmediateExecution()
            .build();
    }

    private static void prepare(HikariDataSource source) throws Exception {
        try (var connection = source.getConnection(); var statement = connection.createStatement()) {
            statement.execute(TABLE);
        }
        long jobs = Peer.number("jobs"), size = Peer.number("enqueueBatch");
        Instant due = Peer.has("at_us") ? Instant.ofEpochMilli(Peer.number("at_us") / 1000) : Instant.now();
        Scheduler scheduler = scheduler(source);
        for (long from = 0; from < jobs; from += size) {
            List<long[]> batch = new ArrayList<>();
            for (long n = from; n < Math.min(jobs, from + size); n++) batch.add(new long[] {n, 0});
            schedule(scheduler, batch, due);
        }
        Peer.answer("prepared", jobs);
    }

    private static void schedule(Scheduler scheduler, List<long[]> jobs, Instant due) {
        List<TaskInstance<?>> instances = new ArrayList<>();
        for (long[] job : jobs) instances.add(TASK.instance(Long.toString(job[0]), job[1]));
        scheduler.scheduleBatch(instances, due);
    }

    private static void work(HikariDataSource source) throws Exception {
        Scheduler scheduler = scheduler(source);
        Peer.answer("began_us", Peer.nowUs());
        scheduler.start();
        if (Peer.has("rate")) Peer.offer(jobs -> schedule(scheduler, jobs, Instant.now()));
        Peer.waitUntilTold();
        scheduler.stop();
        Peer.answer("stopped", true);
    }

    private static void left(HikariDataSource source) throws Exception {
        try (var connection = source.getConnection();
             var query = connection.prepareStatement("select count(*) from scheduled_tasks")) {
            Peer.counting(() -> {
                try (var rows = query.executeQuery()) {
                    rows.next();
                    return rows.getLong(1);
                }
            });
        }
    }
}
