//! The tables. Each migration only expands: an older server of the allowed range can still write after it.
//!
//! Rows are found by time-ordered integer keys. Indexes exist where a row moves rarely or where few rows are in it; none is
//! on the finished runs, which are many.

/// What SQLite keeps at offset 68 of the file: `DRUM`.
pub const APPLICATION_ID: i32 = 0x4452_554d;

/// The statements of each schema version, from 1.
pub const MIGRATIONS: &[&[&str]] = &[
    VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7,
];

/// The schema version that this program writes.
pub const KNOWN: u32 = MIGRATIONS.len() as u32;

/// The oldest schema version whose servers may write to a store of version [`KNOWN`]. A server of version 1 knows nothing
/// of calendars: it would fire on days that they exclude. One of version 2 knows nothing of the audit log: what it changes
/// would not be in it. One of version 3 knows nothing of what runs have had since: it would write them without it. One of
/// version 5 knows nothing of jobs that run after others: it could not read them.
pub const OLDEST_SERVER: u32 = 6;

const VERSION_1: &[&str] = &[
    "CREATE TABLE meta(
       one INTEGER PRIMARY KEY CHECK (one = 1),
       cluster TEXT NOT NULL,
       schema_version INTEGER NOT NULL,
       oldest_server INTEGER NOT NULL,
       segment_count INTEGER NOT NULL,
       tz_version TEXT NOT NULL,
       created INTEGER NOT NULL)",
    // Session ids are never reused, not even after the greatest row is gone.
    "CREATE TABLE session(
       id INTEGER PRIMARY KEY AUTOINCREMENT,
       server TEXT NOT NULL,
       seq INTEGER NOT NULL,
       expires INTEGER NOT NULL,
       revoked INTEGER NOT NULL)",
    "CREATE TABLE segment(
       id INTEGER PRIMARY KEY,
       owner INTEGER NOT NULL,
       epoch INTEGER NOT NULL,
       id_mark INTEGER NOT NULL)",
    "WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 1023)
     INSERT INTO segment SELECT n, 0, 0, 0 FROM number",
    "CREATE TABLE job(
       id INTEGER PRIMARY KEY,
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       deleted INTEGER NOT NULL,
       body BLOB NOT NULL)",
    "CREATE UNIQUE INDEX job_by_name ON job(namespace, name) WHERE deleted = 0",
    "CREATE TABLE job_version(
       job INTEGER NOT NULL,
       version INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(job, version)) WITHOUT ROWID",
    "CREATE TABLE schedule(
       job INTEGER PRIMARY KEY,
       fired_through INTEGER NOT NULL,
       next_nominal INTEGER,
       next_due INTEGER,
       fires INTEGER NOT NULL)",
    "CREATE INDEX schedule_by_due ON schedule(next_due) WHERE next_due IS NOT NULL",
    "CREATE TABLE unfired(
       job INTEGER NOT NULL,
       first INTEGER NOT NULL,
       last INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(job, first)) WITHOUT ROWID",
    "CREATE INDEX unfired_by_last ON unfired(last)",
    // Runs that have not ended. `scheduled` is 1 for those made by a schedule.
    "CREATE TABLE run(
       id INTEGER PRIMARY KEY,
       job INTEGER NOT NULL,
       scheduled INTEGER NOT NULL,
       parked TEXT,
       body BLOB NOT NULL)",
    "CREATE INDEX run_parked ON run(parked) WHERE parked IS NOT NULL",
    "CREATE INDEX run_scheduled ON run(job) WHERE scheduled = 1",
    "CREATE TABLE payload_params(run INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE payload_result(run INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    // Finished runs, one table for each retention class, keyed by a number that grows with each finish.
    "CREATE TABLE history_1d(fin INTEGER PRIMARY KEY, id INTEGER NOT NULL, job INTEGER NOT NULL, verdict INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE history_7d(fin INTEGER PRIMARY KEY, id INTEGER NOT NULL, job INTEGER NOT NULL, verdict INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE history_30d(fin INTEGER PRIMARY KEY, id INTEGER NOT NULL, job INTEGER NOT NULL, verdict INTEGER NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE history_keep(fin INTEGER PRIMARY KEY, id INTEGER NOT NULL, job INTEGER NOT NULL, verdict INTEGER NOT NULL, body BLOB NOT NULL)",
    // Where each class stands: the next finish number, and how far its buckets are written.
    "CREATE TABLE class(
       id INTEGER PRIMARY KEY,
       bucket_rows INTEGER NOT NULL,
       next_fin INTEGER NOT NULL,
       bucket INTEGER NOT NULL,
       id_done INTEGER NOT NULL,
       job_done INTEGER NOT NULL)",
    "CREATE TABLE bucket(
       class INTEGER NOT NULL,
       number INTEGER NOT NULL,
       least INTEGER NOT NULL,
       greatest INTEGER NOT NULL,
       PRIMARY KEY(class, number)) WITHOUT ROWID",
    "CREATE TABLE id_chunk(
       class INTEGER NOT NULL,
       bucket INTEGER NOT NULL,
       first INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(class, bucket, first)) WITHOUT ROWID",
    "CREATE TABLE posting(
       class INTEGER NOT NULL,
       bucket INTEGER NOT NULL,
       job INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(class, bucket, job)) WITHOUT ROWID",
    // Runs that did not complete, by job: few, and what people look for.
    "CREATE TABLE failed(
       job INTEGER NOT NULL,
       id INTEGER NOT NULL,
       PRIMARY KEY(job, id)) WITHOUT ROWID",
    "CREATE TABLE rollup(
       minute INTEGER NOT NULL,
       job INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(minute, job)) WITHOUT ROWID",
    // How far the roll-ups are written.
    "CREATE TABLE rollup_state(one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL)",
    "CREATE TABLE counter(
       segment INTEGER NOT NULL,
       namespace TEXT NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(segment, namespace)) WITHOUT ROWID",
    "CREATE TABLE idempotency(
       n INTEGER PRIMARY KEY,
       hash BLOB NOT NULL,
       fingerprint BLOB NOT NULL,
       run INTEGER NOT NULL,
       created INTEGER NOT NULL)",
    // Where the keys stand: the next row's number, and how far their buckets are written.
    "CREATE TABLE key_state(
       one INTEGER PRIMARY KEY CHECK (one = 1),
       bucket_rows INTEGER NOT NULL,
       next INTEGER NOT NULL,
       bucket INTEGER NOT NULL,
       done INTEGER NOT NULL)",
    "CREATE TABLE key_bucket(number INTEGER PRIMARY KEY, filter BLOB NOT NULL)",
    "CREATE TABLE key_chunk(
       bucket INTEGER NOT NULL,
       first INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(bucket, first)) WITHOUT ROWID",
    "CREATE TABLE token(id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE pruned(
       namespace TEXT PRIMARY KEY,
       completed INTEGER NOT NULL,
       failed INTEGER NOT NULL,
       cancelled INTEGER NOT NULL) WITHOUT ROWID",
];

const VERSION_2: &[&str] = &[
    "ALTER TABLE schedule ADD COLUMN paused_through INTEGER",
    "CREATE TABLE calendar(
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       version INTEGER NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(namespace, name, version))",
    // Derived from the current definitions of the jobs that are not deleted.
    "CREATE TABLE calendar_user(
       namespace TEXT NOT NULL,
       calendar TEXT NOT NULL,
       job INTEGER NOT NULL,
       PRIMARY KEY(namespace, calendar, job)) WITHOUT ROWID",
    "CREATE INDEX calendar_user_by_job ON calendar_user(job)",
    "CREATE TABLE sweep(cause TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
];

const VERSION_3: &[&str] = &[
    // An empty namespace is that of the whole installation.
    "CREATE TABLE setting(
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(namespace, name)) WITHOUT ROWID",
    "CREATE TABLE audit_log(id INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX audit_log_by_name ON audit_log(name)",
];

const VERSION_4: &[&str] = &[
    // What runs can go on from.
    "CREATE TABLE checkpoint(run INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL)",
    // Locks that are held; one that is not has no row.
    "CREATE TABLE lock(
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(namespace, name)) WITHOUT ROWID",
    "CREATE TABLE queue(
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(namespace, name)) WITHOUT ROWID",
    // How far rates have been used; one that has not been for long has no row.
    "CREATE TABLE rate(gate TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    // Workers that get nothing new; an empty namespace means every worker of the name.
    "CREATE TABLE drain(
       name TEXT NOT NULL,
       namespace TEXT NOT NULL,
       body BLOB NOT NULL,
       PRIMARY KEY(name, namespace)) WITHOUT ROWID",
    // By when a parked run must start; NULL for all others.
    "ALTER TABLE run ADD COLUMN start_by INTEGER",
    "CREATE INDEX run_start_by ON run(start_by) WHERE start_by IS NOT NULL",
    // Runs that failed for good, whole: `params` and `result` where they are too large for the body.
    "CREATE TABLE dead_letter(
       run INTEGER PRIMARY KEY,
       job INTEGER NOT NULL,
       namespace TEXT NOT NULL,
       died INTEGER NOT NULL,
       reason TEXT NOT NULL,
       body BLOB NOT NULL,
       params TEXT,
       result TEXT)",
    "CREATE INDEX dead_letter_by_death ON dead_letter(died)",
    // What a run is to its job's overlap, where that is not what its origin says.
    "ALTER TABLE run ADD COLUMN overlap TEXT",
    "CREATE INDEX run_by_overlap ON run(job, overlap) WHERE overlap IS NOT NULL",
    "CREATE TABLE breaker(job INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    // `open` is 1 while the engine has anything to do for it; `ended` is when it came to its last state.
    "CREATE TABLE backfill(
       id INTEGER PRIMARY KEY,
       namespace TEXT NOT NULL,
       job INTEGER NOT NULL,
       state INTEGER NOT NULL,
       open INTEGER NOT NULL,
       ended INTEGER,
       step INTEGER NOT NULL,
       body BLOB NOT NULL)",
    "CREATE INDEX backfill_open ON backfill(id) WHERE open = 1",
    "CREATE INDEX backfill_by_end ON backfill(ended) WHERE open = 0",
];

const VERSION_5: &[&str] = &[
    // Where other servers reach the one whose session it is, and what program it runs.
    "ALTER TABLE session ADD COLUMN address TEXT",
    "ALTER TABLE session ADD COLUMN version TEXT NOT NULL DEFAULT ''",
    // How many a namespace has is counted now and then, without reading the rows.
    "CREATE INDEX dead_letter_by_namespace ON dead_letter(namespace, died)",
    "CREATE INDEX backfill_by_namespace ON backfill(namespace, ended) WHERE open = 0",
];

const VERSION_6: &[&str] = &[
    // Derived from the current definitions of the jobs that are not deleted.
    "CREATE TABLE follower(
       namespace TEXT NOT NULL,
       name TEXT NOT NULL,
       job INTEGER NOT NULL,
       PRIMARY KEY(namespace, name, job)) WITHOUT ROWID",
    "CREATE INDEX follower_by_job ON follower(job)",
    // What has come of the jobs that a job runs after.
    "CREATE TABLE waits(job INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    // Ends that followers have to be told of.
    "CREATE TABLE ending(run INTEGER PRIMARY KEY, body BLOB NOT NULL)",
];

const VERSION_7: &[&str] = &[
    // How long workers go on by what the session granted; at most so long before it was written down.
    "ALTER TABLE session ADD COLUMN lease INTEGER NOT NULL DEFAULT 300000",
];
