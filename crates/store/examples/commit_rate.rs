//! How many runs a second a store takes through their life, and what they cost on disk.
//!
//! Each commit inserts a batch of assigned runs and finishes the batch before it, synced as in production:
//! `cargo run --release -p drumtower-store --example commit_rate -- [MILLIONS] [JOBS] [BATCH] [keys]`
//!
//! With `--features postgres` and DRUMTOWER_STORE=postgres it starts a PostgreSQL server in the working directory and measures
//! that; with the address of a database, that one.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{IdempotencyEntry, IdempotencyHash, Member, Run, RunId, RunState};
use drumtower_store::conformance::sample::{self, T0};
use drumtower_store::sqlite::{FILE, Options};
use drumtower_store::{Address, Commit, Opened, Read, RunFilter};
use drumtower_testpg::{Cluster, Purpose};
use tempfile::TempDir;

const RUNS_A_SECOND: u64 = 23_148;

/// A store to measure, and what ends with it.
struct Subject {
    address: Address,
    directory: TempDir,
    cluster: Option<Cluster>,
}

impl Subject {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(".").expect("a directory is made");
        let wanted = std::env::var("DRUMTOWER_STORE").unwrap_or_else(|_| "sqlite".to_owned());
        let cluster = (wanted == "postgres").then(|| {
            let here = std::env::current_dir().expect("a directory");
            Cluster::start_below(&here, Purpose::Bench, &[]).expect("a server")
        });
        let wanted = match &cluster {
            Some(cluster) => cluster.database().expect("a database"),
            None => wanted,
        };
        Self {
            address: wanted.parse().expect("a store"),
            directory,
            cluster,
        }
    }

    fn open(&self) -> Opened {
        let opened = self.address.open(self.directory.path(), Options::default());
        opened.expect("the store opens")
    }

    /// What lies on disk, with its indexes.
    fn bytes(&self) -> u64 {
        match &self.cluster {
            Some(cluster) => {
                let sizes = "SELECT relname, pg_total_relation_size(oid), pg_indexes_size(oid) FROM pg_class
                             WHERE relnamespace = 'drumtower'::regnamespace AND relkind = 'r' AND pg_total_relation_size(oid) > 1000000
                             ORDER BY 2 DESC";
                println!("{}", cluster.sql("test_0", sizes).expect("sizes"));
                let all = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                           WHERE relnamespace = 'drumtower'::regnamespace AND relkind = 'r'";
                let all = cluster.sql("test_0", all).expect("a size");
                all.parse().expect("a number")
            }
            None => std::fs::metadata(self.directory.path().join(FILE)).map_or(0, |it| it.len()),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: f64| {
        let given = arguments.next().and_then(|text| text.parse::<f64>().ok());
        given.unwrap_or(default)
    };
    let (millions, jobs, batch_runs) =
        (number(1.0), number(1_000.0) as u64, number(2_000.0) as u64);
    let keys = std::env::args().any(|argument| argument == "keys");
    let subject = Subject::new();
    let (mut writer, reader) = subject.open();
    let session = writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins");
    let begins = i64::try_from(since_epoch_ms()).unwrap_or(0) - T0.0;
    let commits = (millions * 1e6) as u64 / batch_runs;
    let (mut before, mut slowest): (Vec<Run>, f64) = (Vec::new(), 0.0);
    let begun = Instant::now();
    let mut lap = Instant::now();
    let mut took = Vec::new();
    for seq in 1..=commits {
        let batch: Vec<Run> = (0..batch_runs)
            .map(|n| made(begins, seq * batch_runs + n, jobs, keys))
            .collect();
        let inserts = batch
            .iter()
            .cloned()
            .map(|run| RunChange::Insert(Box::new(sample::running(run))));
        let finishes = before
            .drain(..)
            .map(|run| RunChange::Finish(Box::new(sample::ended(run, RunState::Completed, 40))));
        let mut changes = ChangeSet {
            session,
            seq,
            extend_ms: 3_000,
            ..sample::runs(inserts.chain(finishes))
        };
        if keys {
            changes.keys = batch.iter().map(entry).collect();
        }
        let commit = Instant::now();
        assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
        took.push(commit.elapsed().as_secs_f64() * 1e3);
        slowest = slowest.max(commit.elapsed().as_secs_f64() * 1e3);
        before = batch;
        if seq % 100 == 0 {
            took.sort_by(f64::total_cmp);
            let (p50, p99) = (took[took.len() / 2], took[took.len() * 99 / 100]);
            let busy: f64 = took.drain(..).sum();
            let rate = 100.0 * batch_runs as f64 / busy * 1e3;
            println!(
                "{:>9} runs: {rate:>8.0}/s in commit, p50 {p50:.1} p99 {p99:.1} slowest {slowest:.1} ms, lap {:.1} s",
                seq * batch_runs,
                lap.elapsed().as_secs_f64()
            );
            (slowest, lap) = (0.0, Instant::now());
        }
    }
    println!(
        "{} runs in {:.1} s",
        commits * batch_runs,
        begun.elapsed().as_secs_f64()
    );
    looks(reader.as_ref(), begins, jobs);
    writer.close().expect("it closes");
    let finished = (commits - 1) * batch_runs;
    println!("{} bytes a finished run", subject.bytes() / finished);
    drop((writer, reader));
    let opening = Instant::now();
    let opened = subject.open();
    println!("opened in {:.0} ms", opening.elapsed().as_secs_f64() * 1e3);
    drop(opened);
}

fn since_epoch_ms() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis()
}

fn made(begins: i64, number: u64, jobs: u64, keys: bool) -> Run {
    let ms = begins + (number * 1_000 / RUNS_A_SECOND) as i64;
    let job = sample::job_id(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % jobs);
    let segment = (job.0 % 1_024) as u16;
    let mut run = sample::run(ms, 0, job);
    run.id = RunId(sample::raw_id(ms, segment, number % 4_096));
    run.idempotency_key = keys.then(|| format!("order-{number:012}"));
    run
}

fn entry(run: &Run) -> (IdempotencyHash, IdempotencyEntry) {
    let key = run.idempotency_key.as_deref().unwrap_or_default();
    let hash = IdempotencyHash::of("default", "job", key);
    (
        hash,
        IdempotencyEntry {
            hash,
            fingerprint: hash,
            run: run.id,
            created: run.created,
        },
    )
}

fn looks(reader: &dyn Read, begins: i64, jobs: u64) {
    let timed = |what: &str, look: &dyn Fn(u64) -> usize| {
        let begun = Instant::now();
        let found: usize = (0..200).map(look).sum();
        println!(
            "{what}: {:.2} ms, {found} found",
            begun.elapsed().as_secs_f64() * 1e3 / 200.0
        );
    };
    timed("latest 50 of a job", &|n| {
        let filter = RunFilter {
            job: Some(sample::job_id(n % jobs)),
            ..RunFilter::default()
        };
        reader
            .runs(&filter, None, 50)
            .expect("they are read")
            .runs
            .len()
    });
    timed("latest 50 of all", &|_| {
        reader
            .runs(&RunFilter::default(), None, 50)
            .expect("they are read")
            .runs
            .len()
    });
    timed("a run by id", &|n| {
        let run = made(begins, 10_000 + n * 997, jobs, false);
        usize::from(reader.run(run.id).expect("it is read").is_some())
    });
    let minute = (T0.0 + begins) / 60_000;
    timed("roll-ups of a job", &|n| {
        reader
            .rollups(Some(sample::job_id(n % jobs)), minute, minute + 60)
            .expect("they are read")
            .len()
    });
}
