import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Date;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.Trigger;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/** Quartz with its JDBC store on PostgreSQL, acquiring as many triggers at once as it has threads. */
public final class Main {
    private static final String TABLES = "org/quartz/impl/jdbcjobstore/tables_postgres.sql";
    private static final JobDetail JOB = JobBuilder.newJob(Noop.class).withIdentity("noop").storeDurably().build();

    /** Each trigger is a job of its own to this bench; its name is the number. */
    public static final class Noop implements Job {
        @Override
        public void execute(JobExecutionContext context) {
            Trigger trigger = context.getTrigger();
            Peer.started(Long.parseLong(trigger.getKey().getName()), trigger.getJobDataMap().getLongFromString("meant"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Peer.read(arguments[0]);
        switch (Peer.text("do")) {
            case "prepare" -> prepare();
            case "work" -> work();
            default -> left();
        }
    }

    private static Scheduler scheduler() throws Exception {
        var given = new Properties();
        given.putAll(Map.of(
            "org.quartz.scheduler.instanceName", "noop",
            "org.quartz.scheduler.batchTriggerAcquisitionMaxCount", "" + Peer.number("batchTriggerAcquisitionMaxCount"),
            "org.quartz.threadPool.threadCount", "" + Peer.number("threads"),
            "org.quartz.jobStore.class", "org.quartz.impl.jdbcjobstore.JobStoreTX",
            "org.quartz.jobStore.driverDelegateClass", "org.quartz.impl.jdbcjobstore.PostgreSQLDelegate",
            "org.quartz.jobStore.dataSource", "bench",
            "org.quartz.jobStore.useProperties", "true",
            "org.quartz.jobStore.acquireTriggersWithinLock", "true",
            "org.quartz.jobStore.misfireThreshold", "" + Peer.number("misfireThresholdMs")));
        given.putAll(Map.of(
            "org.quartz.dataSource.bench.provider", "hikaricp",
            "org.quartz.dataSource.bench.driver", "org.postgresql.Driver",
            "org.quartz.dataSource.bench.URL", Peer.jdbcUrl(),
            "org.quartz.dataSource.bench.maxConnections", "" + Peer.number("connections")));
        return new StdSchedulerFactory(given).getScheduler();
    }

    private static Trigger trigger(long n, long meant, Date due) {
        return TriggerBuilder.newTrigger().withIdentity(Long.toString(n)).forJob(JOB)
            .usingJobData("meant", Long.toString(meant)).startAt(due).build();
    }

    private static void prepare() throws Exception {
        try (Connection connection = DriverManager.getConnection(Peer.jdbcUrl());
             var statement = connection.createStatement();
             var tables = Main.class.getClassLoader().getResourceAsStream(TABLES)) {
            statement.execute(new String(tables.readAllBytes()));
        }
        long jobs = Peer.number("jobs"), size = Peer.number("enqueueBatch");
        Date due = Peer.has("at_us") ? new Date(Peer.number("at_us") / 1000) : new Date();
        Scheduler scheduler = scheduler();
        scheduler.addJob(JOB, true);
        for (long from = 0; from < jobs; from += size) {
            Set<Trigger> batch = new HashSet<>();
            for (long n = from; n < Math.min(jobs, from + size); n++) batch.add(trigger(n, 0, due));
            scheduler.scheduleJobs(Map.of(JOB, batch), true);
        }
        scheduler.shutdown();
        Peer.answer("prepared", jobs);
    }

    private static void work() throws Exception {
        Scheduler scheduler = scheduler();
        Peer.answer("began_us", Peer.nowUs());
        scheduler.start();
        if (Peer.has("rate")) {
            Peer.offer(jobs -> {
                for (long[] job : jobs) scheduler.scheduleJob(trigger(job[0], job[1], new Date()));
            });
        }
        Peer.waitUntilTold();
        scheduler.shutdown(true);
        Peer.answer("stopped", true);
    }

    private static void left() throws Exception {
        try (Connection connection = DriverManager.getConnection(Peer.jdbcUrl());
             var query = connection.prepareStatement("select count(*) from qrtz_triggers")) {
            Peer.counting(() -> {
                try (var rows = query.executeQuery()) {
                    rows.next();
                    return rows.getLong(1);
                }
            });
        }
    }
}
