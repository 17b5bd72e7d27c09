//! What a backup costs the commits that go on meanwhile, by the ways SQLite offers.
//!
//! Fills a store, then commits at a steady pace while each way makes its copy:
//! `cargo run --release -p drumtower-store --example backup_under_load -- [MILLIONS]`

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{
    Counters, Member, NamespaceName, Run, RunId, RunState, SegmentId, SessionId,
};
use drumtower_store::conformance::sample;
use drumtower_store::sqlite::backup::{self, Reason, Request};
use drumtower_store::sqlite::{self, FILE, Options, Writer};
use drumtower_store::{Commit, Store};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

const JOBS: u64 = 1_000;
const FILL: u64 = 2_000;
const PACED: u64 = 100;
const PACE: Duration = Duration::from_millis(10);
const QUIET: Duration = Duration::from_secs(5);

struct Load {
    writer: Writer,
    session: SessionId,
    seq: u64,
    made: u64,
    before: Vec<Run>,
    counters: Counters,
}

impl Load {
    /// Inserts some runs, finishes those of the commit before, and says how long the commit took.
    fn commit(&mut self, runs: u64) -> Duration {
        let batch: Vec<Run> = (self.made..self.made + runs).map(made).collect();
        let ended = self.before.drain(..).collect::<Vec<_>>();
        self.counters.created += runs;
        self.counters.completed += ended.len() as u64;
        let inserts = batch.iter().cloned();
        let inserts = inserts.map(|run| RunChange::Insert(Box::new(sample::running(run))));
        let finishes = ended
            .into_iter()
            .map(|run| RunChange::Finish(Box::new(sample::ended(run, RunState::Completed, 40))));
        self.seq += 1;
        let mut changes = ChangeSet {
            session: self.session,
            seq: self.seq,
            extend_ms: 3_000,
            ..sample::runs(inserts.chain(finishes))
        };
        let key = (SegmentId(7), NamespaceName::default());
        changes.counters.insert(key, self.counters);
        let begun = Instant::now();
        let done = self.writer.commit(&changes).expect("it commits");
        assert_eq!(done, Commit::Done);
        (self.made, self.before) = (self.made + runs, batch);
        begun.elapsed()
    }
}

fn made(number: u64) -> Run {
    let ms = (number / 20) as i64;
    let mut run = sample::run(ms, 0, sample::job_id(number % JOBS));
    run.id = RunId(sample::raw_id(ms, 7, number % 4_096));
    run
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let millions: f64 = millions.unwrap_or(1.0);
    let directory = tempfile::tempdir_in(".").expect("a directory is made");
    let data = directory.path().join("data");
    let mut load = open(&data);
    for _ in 0..(millions * 1e6) as u64 / FILL {
        load.commit(FILL);
    }
    let megabytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len()) >> 20;
    println!("{} MB in the store", megabytes(&data.join(FILE)));
    println!(
        "{PACED} runs inserted and finished every {} ms\n",
        PACE.as_millis()
    );
    let target = directory.path().join("copy.db");
    let ways: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("nothing", &|| std::thread::sleep(QUIET)),
        ("VACUUM INTO", &|| vacuum(&data, &target)),
        ("one step", &|| copy(&data, &target, -1)),
        ("steps, one snapshot", &|| copy(&data, &target, 256)),
        ("backup::make", &|| make(&data, directory.path())),
    ];
    for (name, way) in ways {
        let log = data.join(format!("{FILE}-wal"));
        let done = AtomicBool::new(false);
        let (mut took, mut longest_log) = (Vec::new(), 0);
        let seconds = std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                let begun = Instant::now();
                way();
                done.store(true, Ordering::Relaxed);
                begun.elapsed().as_secs_f64()
            });
            let mut next = Instant::now();
            while !done.load(Ordering::Relaxed) {
                took.push(load.commit(PACED));
                longest_log = longest_log.max(megabytes(&log));
                next += PACE;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            working.join().expect("it ends")
        });
        took.sort();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "{name:>20}: {seconds:5.1} s, {} commits: p50 {:.1} p99 {:.1} p99.9 {:.1} slowest {:.1} ms; log {longest_log} MB, copy {} MB",
            took.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            megabytes(&target)
        );
        let _ = std::fs::remove_file(&target);
    }
}

fn open(data: &Path) -> Load {
    let (mut writer, _) = sqlite::open(data, Options::default()).expect("it opens");
    let session = writer.begin_session(&Member::alone("server-1"), 3_000);
    let session = session.expect("a session begins");
    let jobs = (0..JOBS).map(|n| sample::job_row(n, "default", &format!("job-{n}")));
    let changes = ChangeSet {
        session,
        seq: 1,
        ..sample::new_jobs(jobs)
    };
    assert_eq!(writer.commit(&changes).expect("it commits"), Commit::Done);
    Load {
        writer,
        session,
        seq: 1,
        made: 0,
        before: Vec::new(),
        counters: Counters::default(),
    }
}

fn reading(data: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    Connection::open_with_flags(data.join(FILE), flags).expect("it opens")
}

fn vacuum(data: &Path, target: &Path) {
    let target = target.to_str().expect("a path is text");
    let done = reading(data).execute("VACUUM INTO ?1", [target]);
    done.expect("it is copied");
}

fn copy(data: &Path, target: &Path, pages: i32) {
    let from = reading(data);
    let mut to = Connection::open(target).expect("it opens");
    to.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))
        .and_then(|()| to.pragma_update(None, "synchronous", "OFF"))
        .and_then(|()| from.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema"))
        .expect("it is ready");
    let backup = Backup::new(&from, &mut to).expect("it begins");
    while backup.step(pages).expect("it goes on") != StepResult::Done {}
    drop(backup);
    drop(to);
    let file = std::fs::File::open(target).expect("it is there");
    file.sync_all().expect("it is synced");
}

fn make(data: &Path, directory: &Path) {
    let request = Request {
        data: data.to_owned(),
        directory: directory.join("backups"),
        reason: Reason::Asked,
        logs: false,
    };
    backup::make(&request, &mut |_| std::ops::ControlFlow::Continue(())).expect("it is made");
}
