//! How many runs a second the embedded store takes through their life, and what they cost on disk.
//!
//! Each commit inserts a batch of assigned runs and finishes the batch before it, synced as in production:
//! `cargo run --release -p drumtower-store --example commit_rate -- [MILLIONS] [JOBS] [keys]`

use std::path::Path;
use std::time::Instant;

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{Actor, IdempotencyEntry, IdempotencyHash, Run, RunId, RunState};
use drumtower_store::conformance::sample::{self, T0};
use drumtower_store::sqlite::{self, FILE, Options};
use drumtower_store::{Commit, Read, RunFilter, Store};

const BATCH: u64 = 2_000;
const RUNS_A_SECOND: u64 = 23_148;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let millions: f64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let jobs: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000);
    let keys = arguments.next().as_deref() == Some("keys");
    let directory = tempfile::tempdir_in(".").expect("a directory is made");
    let (mut writer, reader) =
        sqlite::open(directory.path(), Options::default()).expect("the store opens");
    let session = writer
        .begin_session(&Actor::new("server-1"), 3_000)
        .expect("a session begins");
    let commits = (millions * 1e6) as u64 / BATCH;
    let (mut before, mut slowest): (Vec<Run>, f64) = (Vec::new(), 0.0);
    let begun = Instant::now();
    let mut lap = Instant::now();
    let mut took = Vec::new();
    for seq in 1..=commits {
        let batch: Vec<Run> = (0..BATCH)
            .map(|n| made(seq * BATCH + n, jobs, keys))
            .collect();
        let inserts = batch
            .iter()
            .cloned()
            .map(|run| RunChange::Insert(sample::running(run)));
        let finishes = before
            .drain(..)
            .map(|run| RunChange::Finish(sample::ended(run, RunState::Completed, 40)));
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
            let rate = 100.0 * BATCH as f64 / busy * 1e3;
            println!(
                "{:>9} runs: {rate:>8.0}/s in commit, p50 {p50:.1} p99 {p99:.1} slowest {slowest:.1} ms, lap {:.1} s",
                seq * BATCH,
                lap.elapsed().as_secs_f64()
            );
            (slowest, lap) = (0.0, Instant::now());
        }
    }
    println!(
        "{} runs in {:.1} s",
        commits * BATCH,
        begun.elapsed().as_secs_f64()
    );
    looks(&reader, jobs);
    writer.close().expect("it closes");
    let finished = (commits - 1) * BATCH;
    println!(
        "{} bytes a finished run",
        bytes(directory.path()) / finished
    );
    drop((writer, reader));
    let opening = Instant::now();
    let opened = sqlite::open(directory.path(), Options::default()).expect("the store opens");
    println!("opened in {:.0} ms", opening.elapsed().as_secs_f64() * 1e3);
    drop(opened);
}

fn made(number: u64, jobs: u64, keys: bool) -> Run {
    let ms = number * 1_000 / RUNS_A_SECOND;
    let job = sample::job_id(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % jobs);
    let segment = (job.0 % 1_024) as u16;
    let mut run = sample::run(ms as i64, 0, job);
    run.id = RunId(sample::raw_id(ms as i64, segment, number % 4_096));
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

fn looks(reader: &impl Read, jobs: u64) {
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
        let run = made(BATCH + n * 997, jobs, false);
        usize::from(reader.run(run.id).expect("it is read").is_some())
    });
    let minute = T0.0 / 60_000;
    timed("roll-ups of a job", &|n| {
        reader
            .rollups(Some(sample::job_id(n % jobs)), minute, minute + 60)
            .expect("they are read")
            .len()
    });
}

fn bytes(directory: &Path) -> u64 {
    std::fs::metadata(directory.join(FILE)).map_or(0, |file| file.len())
}
