//! The contract: every family with its type, labels and meaning, in the order in which they are written.

pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// From a due time to a start, in seconds.
pub const START_BOUNDS: &[f64] = &[0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];
pub const DURATION_BOUNDS: &[f64] = &[0.1, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 3600.0];
pub const COMMIT_BOUNDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];
pub const BATCH_BOUNDS: &[f64] = &[1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 4096.0];

const JOB: &[&str] = &["namespace", "job_name"];
const QUEUE: &[&str] = &["namespace", "queue"];
const WORKER: &[&str] = &["worker"];

const fn family(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family {
        name,
        kind,
        labels,
        help,
    }
}

use Kind::{Counter, Gauge, Histogram};

pub const FAMILIES: &[Family] = &[
    family(
        "drumtower_runs_ended_total",
        Counter,
        &["namespace", "job_name", "outcome"],
        "Runs that ended: completed, failed or cancelled.",
    ),
    family(
        "drumtower_unfired_total",
        Counter,
        JOB,
        "Times at which ranges of unfired times were recorded or grew.",
    ),
    family(
        "drumtower_breaker_changes_total",
        Counter,
        &["namespace", "job_name", "change"],
        "Times at which the circuit breaker of a job opened, also again, or closed.",
    ),
    family(
        "drumtower_run_start_delay_seconds",
        Histogram,
        JOB,
        "From when a run was due to the start of its first attempt, by the worker's clock.",
    ),
    family(
        "drumtower_run_duration_seconds",
        Histogram,
        JOB,
        "How long the last attempt of a run took.",
    ),
    family(
        "drumtower_run_cpu_seconds_total",
        Counter,
        JOB,
        "CPU time that runs took.",
    ),
    family(
        "drumtower_run_peak_memory_bytes",
        Gauge,
        JOB,
        "The most memory that the last ended run of the job held.",
    ),
    family(
        "drumtower_run_last_failed",
        Gauge,
        JOB,
        "1 when the last run of the job that ended failed, else 0.",
    ),
    family(
        "drumtower_worker_up",
        Gauge,
        WORKER,
        "1 while the worker is connected and heard of.",
    ),
    family(
        "drumtower_worker_state",
        Gauge,
        &["worker", "state"],
        "1 for the state that the worker is in: online, busy, maintenance, offline or faulty.",
    ),
    family(
        "drumtower_worker_capacity",
        Gauge,
        WORKER,
        "Weight that the worker takes at once.",
    ),
    family(
        "drumtower_worker_running_weight",
        Gauge,
        WORKER,
        "Weight that runs on the worker, by its last heartbeat.",
    ),
    family(
        "drumtower_worker_attempts",
        Gauge,
        WORKER,
        "Attempts that the worker holds, by the server's books.",
    ),
    family(
        "drumtower_worker_losses",
        Gauge,
        WORKER,
        "How often workers of this name were lost within the last ten minutes.",
    ),
    family(
        "drumtower_worker_cpu_ratio",
        Gauge,
        WORKER,
        "CPU in use on the worker's machine, from 0 to 1.",
    ),
    family(
        "drumtower_worker_memory_used_bytes",
        Gauge,
        WORKER,
        "Memory in use on the worker's machine.",
    ),
    family(
        "drumtower_worker_memory_bytes",
        Gauge,
        WORKER,
        "Memory of the worker's machine.",
    ),
    family(
        "drumtower_worker_disk_used_bytes",
        Gauge,
        WORKER,
        "Space in use on the worker's disk.",
    ),
    family(
        "drumtower_worker_disk_bytes",
        Gauge,
        WORKER,
        "Size of the worker's disk.",
    ),
    family(
        "drumtower_worker_network_received_bytes_per_second",
        Gauge,
        WORKER,
        "What the worker's machine receives.",
    ),
    family(
        "drumtower_worker_network_sent_bytes_per_second",
        Gauge,
        WORKER,
        "What the worker's machine sends.",
    ),
    family(
        "drumtower_worker_clock_offset_seconds",
        Gauge,
        WORKER,
        "The worker's clock minus the server's.",
    ),
    family("drumtower_workers", Gauge, &["state"], "Workers by state."),
    family(
        "drumtower_queue_waiting_runs",
        Gauge,
        QUEUE,
        "Runs of the queue that wait for a place or for a worker.",
    ),
    family(
        "drumtower_queue_running_attempts",
        Gauge,
        QUEUE,
        "Attempts that hold a place of the queue.",
    ),
    family(
        "drumtower_build_info",
        Gauge,
        &["version"],
        "Always 1; the label is the server's version.",
    ),
    family(
        "drumtower_uptime_seconds",
        Gauge,
        &[],
        "Time since the server started.",
    ),
    family(
        "drumtower_ready",
        Gauge,
        &[],
        "1 while changes can be committed, as /readyz says.",
    ),
    family(
        "drumtower_runs_made_total",
        Counter,
        &[],
        "Runs that were made.",
    ),
    family(
        "drumtower_scheduling_delay_seconds",
        Histogram,
        &[],
        "From when a run was due to when it was first given to a worker, by the server's clock.",
    ),
    family(
        "drumtower_commits_total",
        Counter,
        &[],
        "Commits that became durable.",
    ),
    family(
        "drumtower_commit_failures_total",
        Counter,
        &[],
        "Commits that found no room or no answer and were sent again.",
    ),
    family(
        "drumtower_commit_seconds",
        Histogram,
        &[],
        "How long commits took, the sync to disk included.",
    ),
    family(
        "drumtower_commit_rows",
        Histogram,
        &[],
        "How many rows commits wrote.",
    ),
    family(
        "drumtower_clock_ahead_of_database_seconds",
        Gauge,
        &[],
        "How far the server's clock is ahead of that of the database it shares with others.",
    ),
    family(
        "drumtower_queue_depth",
        Gauge,
        &["priority"],
        "Runs that wait in memory for a worker.",
    ),
    family(
        "drumtower_live_runs",
        Gauge,
        &[],
        "Runs that have not ended.",
    ),
    family(
        "drumtower_parked_runs",
        Gauge,
        &[],
        "Runs that have not ended and wait in the store only, for room in memory or for their time.",
    ),
    family(
        "drumtower_jobs_in_memory",
        Gauge,
        &[],
        "Jobs that are due soon, have runs, or were asked for lately.",
    ),
    family(
        "drumtower_inbox_depth",
        Gauge,
        &[],
        "Messages that wait for the engine.",
    ),
    family(
        "drumtower_refused_requests_total",
        Counter,
        &["code"],
        "Requests that were answered with a problem, by its code.",
    ),
    family("drumtower_store_bytes", Gauge, &[], "Size of the database."),
    family(
        "drumtower_wal_bytes",
        Gauge,
        &[],
        "Size of the database's write-ahead log.",
    ),
    family("drumtower_log_bytes", Gauge, &[], "Size of kept output."),
    family(
        "drumtower_disk_free_bytes",
        Gauge,
        &[],
        "Space that is free for the data directory.",
    ),
    family(
        "drumtower_disk_bytes",
        Gauge,
        &[],
        "Size of the file system of the data directory.",
    ),
    family(
        "drumtower_backups_total",
        Counter,
        &["outcome"],
        "Backups that the server made or failed to make: made or failed.",
    ),
    family(
        "drumtower_backup_last_success_timestamp_seconds",
        Gauge,
        &[],
        "When the last backup that the server made was begun, since 1970.",
    ),
    family(
        "drumtower_tokens",
        Gauge,
        &[],
        "Tokens that are good, the machine's own not counted.",
    ),
    family(
        "drumtower_change_streams",
        Gauge,
        &[],
        "Open streams of changes.",
    ),
    family(
        "drumtower_facts_missed_total",
        Counter,
        &[],
        "Changes that these figures missed because the server was too busy to count them.",
    ),
    family(
        "drumtower_notifications_total",
        Counter,
        &["channel", "state"],
        "Messages about jobs that were delivered, failed or were dropped.",
    ),
    family(
        "drumtower_notifications_pending",
        Gauge,
        &[],
        "Messages about jobs that are not delivered yet.",
    ),
    family(
        "process_resident_memory_bytes",
        Gauge,
        &[],
        "Memory that the server holds.",
    ),
    family(
        "process_cpu_seconds_total",
        Counter,
        &[],
        "CPU time that the server took.",
    ),
    family(
        "process_start_time_seconds",
        Gauge,
        &[],
        "When the server started, since 1970.",
    ),
];
