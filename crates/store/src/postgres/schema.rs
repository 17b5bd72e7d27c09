//! The tables. Each migration only expands: an older server of the allowed range can still write after it.
//!
//! What is right for SQLite is right here: rows are found by time-ordered integer keys, and nothing random is written on
//! the hot path. Three things differ. Finished runs lie in native partitions by creation, which retention drops whole; their
//! index by job begins with the quarter of an hour in which a run was made, so that only its newest part is written to.
//! Long payloads are columns, which the database itself moves out of the row. And several servers write at once, so nothing
//! is derived in the memory of one of them alone, but for roll-ups, which have a journal.
//!
//! Text that may hold any character is `bytea`, because `text` holds no zero.

/// Where all of it lies in the database.
pub const SCHEMA: &str = "drumtower";

/// The statements of each schema version, from 1.
pub const MIGRATIONS: &[&[&str]] = &[VERSION_1, VERSION_2, VERSION_3];

/// The schema version that this program writes.
pub const KNOWN: u32 = MIGRATIONS.len() as u32;

/// The oldest schema version whose servers may write to a store of version [`KNOWN`]. One of version 1 cannot read a run that
/// says whose files its output lies in, nor a job that runs after others; one of version 2 does not say which segments belong
/// together.
pub const OLDEST_SERVER: u32 = 3;

/// How many bits of milliseconds a partition of each class is long: 70 minutes, 9 hours, 37 hours, 12 days. About two dozen
/// partitions of each class live at a time.
pub const PARTITION_BITS: [u32; 4] = [22, 25, 27, 30];

/// How many bits of an id are below its creation in milliseconds.
pub const BELOW_MS: u32 = 22;

/// The newest part of the index by job is of runs that were made within these bits of an id: 262 seconds.
pub const BUCKET_BITS: u32 = 40;

const VERSION_1: &[&str] = &[
    "CREATE TABLE meta(
       one smallint PRIMARY KEY CHECK (one = 1),
       cluster text NOT NULL,
       schema_version integer NOT NULL,
       oldest_server integer NOT NULL,
       segment_count integer NOT NULL,
       tz_version text NOT NULL,
       created bigint NOT NULL,
       peer_key bytea NOT NULL)",
    // One row a life of a server, written by each of its commits: room in the page keeps it where it is.
    "CREATE TABLE session(
       id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       server text NOT NULL,
       address text,
       version text NOT NULL,
       seq bigint NOT NULL,
       expires bigint NOT NULL,
       revoked boolean NOT NULL) WITH (fillfactor = 10)",
    "CREATE TABLE segment(
       id smallint PRIMARY KEY,
       owner bigint NOT NULL,
       epoch bigint NOT NULL,
       id_mark bigint NOT NULL) WITH (fillfactor = 20)",
    "INSERT INTO segment SELECT n, 0, 0, 0 FROM generate_series(0, 1023) n",
    "CREATE TABLE job(
       id bigint PRIMARY KEY,
       segment smallint NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       deleted boolean NOT NULL,
       version integer NOT NULL,
       body bytea NOT NULL)",
    "CREATE UNIQUE INDEX job_by_name ON job(namespace, name) WHERE NOT deleted",
    "CREATE TABLE job_version(
       job bigint NOT NULL,
       version integer NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(job, version))",
    "CREATE TABLE schedule(
       job bigint PRIMARY KEY,
       segment smallint NOT NULL,
       fired_through bigint NOT NULL,
       next_nominal bigint,
       next_due bigint,
       fires bigint NOT NULL,
       paused_through bigint) WITH (fillfactor = 80)",
    "CREATE INDEX schedule_by_due ON schedule(next_due, job) WHERE next_due IS NOT NULL",
    "CREATE TABLE unfired(
       job bigint NOT NULL,
       first bigint NOT NULL,
       last bigint NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(job, first))",
    "CREATE INDEX unfired_by_last ON unfired(last, job, first)",
    // Runs that have not ended. `params` and `result` where they are too large for the body.
    "CREATE TABLE run(
       id bigint PRIMARY KEY,
       job bigint NOT NULL,
       start_by bigint,
       segment smallint NOT NULL,
       scheduled boolean NOT NULL,
       parked bytea,
       overlap bytea,
       body bytea NOT NULL,
       params bytea,
       result bytea) WITH (fillfactor = 80)",
    "CREATE INDEX run_parked ON run(parked, id) WHERE parked IS NOT NULL",
    "CREATE INDEX run_scheduled ON run(job) WHERE scheduled",
    "CREATE INDEX run_start_by ON run(start_by, id) WHERE start_by IS NOT NULL",
    "CREATE INDEX run_by_overlap ON run(job, overlap) WHERE overlap IS NOT NULL",
    "CREATE TABLE checkpoint(run bigint PRIMARY KEY, number bigint NOT NULL, body bytea NOT NULL)",
    // Each a name and a class; the partitions are made ahead by `partition_make`.
    "CREATE TABLE history_1d(id bigint NOT NULL, job bigint NOT NULL, verdict smallint NOT NULL, body bytea NOT NULL, params bytea, result bytea, PRIMARY KEY(id)) PARTITION BY RANGE (id)",
    "CREATE TABLE history_7d(id bigint NOT NULL, job bigint NOT NULL, verdict smallint NOT NULL, body bytea NOT NULL, params bytea, result bytea, PRIMARY KEY(id)) PARTITION BY RANGE (id)",
    "CREATE TABLE history_30d(id bigint NOT NULL, job bigint NOT NULL, verdict smallint NOT NULL, body bytea NOT NULL, params bytea, result bytea, PRIMARY KEY(id)) PARTITION BY RANGE (id)",
    "CREATE TABLE history_keep(id bigint NOT NULL, job bigint NOT NULL, verdict smallint NOT NULL, body bytea NOT NULL, params bytea, result bytea, PRIMARY KEY(id)) PARTITION BY RANGE (id)",
    // By job, within 262 seconds of creation; by two seconds last, so that runs of a job that were made together share
    // one entry.
    "CREATE INDEX history_1d_by_job ON history_1d((id >> 40), job, ((id >> 33)::integer))",
    "CREATE INDEX history_7d_by_job ON history_7d((id >> 40), job, ((id >> 33)::integer))",
    "CREATE INDEX history_30d_by_job ON history_30d((id >> 40), job, ((id >> 33)::integer))",
    "CREATE INDEX history_keep_by_job ON history_keep((id >> 40), job, ((id >> 33)::integer))",
    // Runs that did not complete: few, and what people look for.
    "CREATE INDEX history_1d_failed ON history_1d(job, id) WHERE verdict <> 0",
    "CREATE INDEX history_7d_failed ON history_7d(job, id) WHERE verdict <> 0",
    "CREATE INDEX history_30d_failed ON history_30d(job, id) WHERE verdict <> 0",
    "CREATE INDEX history_keep_failed ON history_keep(job, id) WHERE verdict <> 0",
    // What no partition takes: runs that ended after their partition was dropped, or of a clock that is far off.
    "CREATE TABLE history_1d_rest PARTITION OF history_1d DEFAULT",
    "CREATE TABLE history_7d_rest PARTITION OF history_7d DEFAULT",
    "CREATE TABLE history_30d_rest PARTITION OF history_30d DEFAULT",
    "CREATE TABLE history_keep_rest PARTITION OF history_keep DEFAULT",
    // `lower` and `upper` bound the ids of a partition.
    "CREATE TABLE history_partition(
       class smallint NOT NULL,
       lower bigint NOT NULL,
       upper bigint NOT NULL,
       PRIMARY KEY(class, lower))",
    // How many runs of a class, made in the time of one partition, are in the history: what its end adds to `pruned`. A row
    // for each session, so that servers do not wait for each other.
    "CREATE TABLE history_tally(
       class smallint NOT NULL,
       lower bigint NOT NULL,
       session bigint NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       completed bigint NOT NULL,
       failed bigint NOT NULL,
       cancelled bigint NOT NULL,
       PRIMARY KEY(class, lower, session, namespace)) WITH (fillfactor = 50)",
    "CREATE TABLE pruned(
       namespace text COLLATE \"C\" PRIMARY KEY,
       completed bigint NOT NULL,
       failed bigint NOT NULL,
       cancelled bigint NOT NULL)",
    // A row for each range that a session closed; they are added up when they are read.
    "CREATE TABLE rollup(
       minute bigint NOT NULL,
       job bigint NOT NULL,
       session bigint NOT NULL,
       seq bigint NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(minute, job, session, seq))",
    // What a session's commits add to the roll-ups and no row of them tells yet.
    "CREATE TABLE rollup_journal(
       session bigint NOT NULL,
       seq bigint NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(session, seq))",
    "ALTER TABLE rollup_journal ALTER COLUMN body SET STORAGE EXTERNAL",
    // Of the journal up to `seq`, the keys up to (`minute`, `job`) are written.
    "CREATE TABLE rollup_state(
       session bigint PRIMARY KEY,
       seq bigint NOT NULL,
       minute bigint,
       job bigint)",
    "CREATE TABLE counter(
       segment smallint NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(segment, namespace)) WITH (fillfactor = 50)",
    // Six hours of keys share a part of the index, so that only the newest part is written to.
    "CREATE TABLE idempotency(
       n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
       part bigint NOT NULL,
       hash bytea NOT NULL,
       fingerprint bytea NOT NULL,
       run bigint NOT NULL,
       created bigint NOT NULL)",
    "CREATE INDEX idempotency_by_hash ON idempotency(part, hash)",
    "CREATE TABLE token(id bigint PRIMARY KEY, body bytea NOT NULL)",
    "CREATE TABLE calendar(
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       version bigint NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(namespace, name, version))",
    // Derived from the current definitions of the jobs that are not deleted.
    "CREATE TABLE calendar_user(
       namespace text COLLATE \"C\" NOT NULL,
       calendar text COLLATE \"C\" NOT NULL,
       job bigint NOT NULL,
       PRIMARY KEY(namespace, calendar, job))",
    "CREATE INDEX calendar_user_by_job ON calendar_user(job)",
    "CREATE TABLE sweep(cause text COLLATE \"C\" PRIMARY KEY, body bytea NOT NULL)",
    // An empty namespace is that of the whole installation.
    "CREATE TABLE setting(
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(namespace, name))",
    "CREATE TABLE audit_log(id bigint PRIMARY KEY, name bytea NOT NULL, body bytea NOT NULL)",
    "CREATE INDEX audit_log_by_name ON audit_log(name, id)",
    // Locks that are held; one that is not has no row.
    "CREATE TABLE lock(
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(namespace, name))",
    "CREATE TABLE queue(
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(namespace, name))",
    // How far rates have been used; one that has not been for long has no row.
    "CREATE TABLE rate(gate bytea PRIMARY KEY, body bytea NOT NULL)",
    // Workers that get nothing new; an empty namespace means every worker of the name.
    "CREATE TABLE drain(
       name text COLLATE \"C\" NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       PRIMARY KEY(name, namespace))",
    // Runs that failed for good, whole: `params` and `result` where they are too large for the body.
    "CREATE TABLE dead_letter(
       run bigint PRIMARY KEY,
       job bigint NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       died bigint NOT NULL,
       reason text COLLATE \"C\" NOT NULL,
       body bytea NOT NULL,
       params bytea,
       result bytea)",
    "CREATE INDEX dead_letter_by_death ON dead_letter(died, run)",
    "CREATE TABLE breaker(job bigint PRIMARY KEY, body bytea NOT NULL)",
    // `open` while the engine has anything to do for it; `ended` is when it came to its last state.
    "CREATE TABLE backfill(
       id bigint PRIMARY KEY,
       segment smallint NOT NULL,
       namespace text COLLATE \"C\" NOT NULL,
       job bigint NOT NULL,
       state smallint NOT NULL,
       open boolean NOT NULL,
       ended bigint,
       step bigint NOT NULL,
       body bytea NOT NULL)",
    "CREATE INDEX backfill_open ON backfill(id) WHERE open",
    "CREATE INDEX backfill_by_end ON backfill(ended, id) WHERE NOT open",
    // The role that runs may not make tables; these do it for their owner. A partition is made beside the table and then
    // attached, which stops nobody from reading or writing. False when runs that belong into it lie in the rest already.
    "CREATE FUNCTION partition_make(class_ smallint, lower_ bigint, upper_ bigint) RETURNS boolean
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = drumtower, pg_temp AS $$
     DECLARE
       parent text := (ARRAY['history_1d', 'history_7d', 'history_30d', 'history_keep'])[class_ + 1];
       child text := parent || '_' || lower_;
     BEGIN
       IF EXISTS (SELECT FROM history_partition WHERE class = class_ AND lower < upper_ AND upper > lower_) THEN
         RETURN true;
       END IF;
       EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', child, parent);
       EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, child, lower_, upper_);
       INSERT INTO history_partition VALUES (class_, lower_, upper_);
       RETURN true;
     EXCEPTION WHEN check_violation THEN
       RETURN false;
     END $$",
    // Ends a partition, with the checkpoints of its runs that did not complete.
    "CREATE FUNCTION partition_drop(class_ smallint, lower_ bigint) RETURNS boolean
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = drumtower, pg_temp AS $$
     DECLARE
       parent text := (ARRAY['history_1d', 'history_7d', 'history_30d', 'history_keep'])[class_ + 1];
       child text := parent || '_' || lower_;
     BEGIN
       EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent);
       DELETE FROM history_partition WHERE class = class_ AND lower = lower_;
       IF NOT FOUND THEN
         RETURN false;
       END IF;
       EXECUTE format('DELETE FROM checkpoint USING %I AS gone WHERE gone.verdict <> 0 AND gone.id = checkpoint.run', child);
       EXECUTE format('DROP TABLE %I', child);
       WITH gone AS (DELETE FROM history_tally WHERE class = class_ AND lower = lower_ RETURNING *)
       INSERT INTO pruned SELECT namespace, sum(completed), sum(failed), sum(cancelled) FROM gone GROUP BY namespace
         HAVING sum(completed) + sum(failed) + sum(cancelled) > 0
         ON CONFLICT (namespace) DO UPDATE SET completed = pruned.completed + excluded.completed,
           failed = pruned.failed + excluded.failed, cancelled = pruned.cancelled + excluded.cancelled;
       RETURN true;
     END $$",
    "REVOKE ALL ON FUNCTION partition_make(smallint, bigint, bigint), partition_drop(smallint, bigint) FROM PUBLIC",
];

const VERSION_2: &[&str] = &[
    // Derived from the current definitions of the jobs that are not deleted.
    "CREATE TABLE follower(
       namespace text COLLATE \"C\" NOT NULL,
       name text COLLATE \"C\" NOT NULL,
       job bigint NOT NULL,
       PRIMARY KEY(namespace, name, job))",
    "CREATE INDEX follower_by_job ON follower(job)",
    // What has come of the jobs that a job runs after.
    "CREATE TABLE waits(job bigint PRIMARY KEY, body bytea NOT NULL)",
    // Ends that followers have to be told of.
    "CREATE TABLE ending(run bigint PRIMARY KEY, body bytea NOT NULL)",
    // Where the server keeps the output of runs, and when it first owned anything.
    "ALTER TABLE session ADD COLUMN home bigint",
    "ALTER TABLE session ADD COLUMN took bigint",
    // Raised by each commit that changes tokens or settings.
    "ALTER TABLE meta ADD COLUMN definitions bigint NOT NULL DEFAULT 0",
];

const VERSION_3: &[&str] = &[
    // Segments that one server must have together, because jobs of them share something. What the jobs of an older version
    // share is not looked up: all of theirs stay together.
    "CREATE TABLE tie(segment smallint PRIMARY KEY)",
    "INSERT INTO tie SELECT DISTINCT ((id >> 12) & 1023)::smallint FROM job",
    // Where somebody follows a job that is yet to be made, nobody here can say where that one will lie.
    "INSERT INTO tie SELECT segment FROM generate_series(0, 1023) AS segment
       WHERE EXISTS (SELECT 1 FROM follower WHERE NOT EXISTS (
         SELECT 1 FROM job WHERE job.namespace = follower.namespace AND job.name = follower.name AND NOT job.deleted))
       ON CONFLICT DO NOTHING",
    // How long workers go on by what the session granted; at most so long before it was written down.
    "ALTER TABLE session ADD COLUMN lease bigint NOT NULL DEFAULT 300000",
];
