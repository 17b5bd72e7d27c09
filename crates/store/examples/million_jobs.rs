//! What a store of a million jobs costs: opening it, reading ahead, listing, firing, and the memory of it all.
//!
//! `cargo run --release -p drumtower-store --example million_jobs -- [JOBS] [DIRECTORY]`. A directory that is given keeps
//! the store, and the next call with it skips the filling.

use std::path::Path;
use std::time::Instant;

use drumtower_core::change::{ChangeSet, RunChange, ScheduleChange};
use drumtower_core::model::{
    CalendarName, CalendarRef, Counters, JobId, JobRecord, JobRow, Member, NamespaceName, Origin,
    Run, RunId, RunState, ScheduleRow, SegmentId, SegmentSet, SessionId, WallMs,
};
use drumtower_store::conformance::sample::{self, T0};
use drumtower_store::sqlite::{self, FILE, Options, Reader, Writer};
use drumtower_store::{Commit, JobFilter, Read, Store};

const JOBS_A_COMMIT: u64 = 1_000;
const WINDOW: usize = 2_000;
const PERIOD_MS: i64 = 3_600_000;
const LAPS: usize = 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let jobs: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let kept = arguments.next();
    let scratch = tempfile::tempdir_in(".").expect("a directory is made");
    let directory = kept.as_deref().map_or(scratch.path(), Path::new);
    if !directory.join(FILE).exists() {
        fill(directory, jobs);
    }
    let begun = Instant::now();
    let (writer, reader) = sqlite::open(directory, Options::default()).expect("the store opens");
    println!("opened in {:.1} ms", ms(begun));
    memory("after opening");
    reads(&reader, jobs);
    memory("after reading");
    fires(writer, &reader);
    memory("after firing");
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

fn row(number: u64) -> JobRow {
    let segment = SegmentId((scattered(number) % 1_024) as u16);
    let id = sample::raw_id(-10_000_000 + (number / 4) as i64, segment.0, number % 4_096);
    JobRow {
        id: JobId(id),
        segment,
        ..sample::job_row(0, "default", &format!("job-{number:07}"))
    }
}

/// Jobs of several kinds, due evenly over one period; one in a hundred uses a calendar.
fn new_jobs(numbers: std::ops::Range<u64>) -> ChangeSet {
    let mut changes = sample::new_jobs(numbers.clone().map(row));
    for number in numbers {
        let id = row(number).id;
        let due = T0.plus((scattered(number) % PERIOD_MS as u64) as i64);
        if let Some(change) = changes.schedules.get_mut(&id) {
            (change.row.next_nominal, change.row.next_due) = (Some(due), Some(due));
        }
        let Some(version) = changes.versions.get_mut(&(id, 1)) else {
            continue;
        };
        let mut kind = serde_json::json!([{"every": "1h"}]);
        if number % 2 == 0 {
            kind = serde_json::json!([{"cron": "17 * * * mon-fri", "timezone": "Europe/Berlin"}]);
        }
        version.spec.schedule = serde_json::from_value(kind).expect("a sample is valid");
        version.spec.description = "one of a million jobs, as its owner describes it".to_owned();
        if number % 100 == 0 {
            let uses = serde_json::json!({"only": ["workdays"]});
            version.spec.calendar = serde_json::from_value(uses).expect("a sample is valid");
        }
    }
    changes
}

fn begin(writer: &mut Writer) -> SessionId {
    writer
        .begin_session(&Member::alone("server-1"), 3_000)
        .expect("a session begins")
}

fn fill(directory: &Path, jobs: u64) {
    let (mut writer, _reader) =
        sqlite::open(directory, Options::default()).expect("the store opens");
    let session = begin(&mut writer);
    let begun = Instant::now();
    for seq in 1..=jobs.div_ceil(JOBS_A_COMMIT) {
        let numbers = (seq - 1) * JOBS_A_COMMIT..(seq * JOBS_A_COMMIT).min(jobs);
        commit(&mut writer, session, seq, new_jobs(numbers));
    }
    writer.close().expect("it closes");
    let size = std::fs::metadata(directory.join(FILE)).map_or(0, |file| file.len());
    println!(
        "{jobs} jobs made in {:.1} s, {} bytes each",
        begun.elapsed().as_secs_f64(),
        size / jobs.max(1)
    );
}

fn commit(writer: &mut Writer, session: SessionId, seq: u64, changes: ChangeSet) -> Took {
    let changes = ChangeSet {
        session,
        seq,
        extend_ms: 3_000,
        ..changes
    };
    let (outcome, took) = timed(|| writer.commit(&changes));
    assert_eq!(outcome.expect("it commits"), Commit::Done);
    took
}

/// Milliseconds on the clock, and of them on a processor.
struct Took {
    wall: f64,
    busy: f64,
}

/// Linux counts a thread's nanoseconds on a processor, which other work on the machine does not change; 0 elsewhere.
fn busy_ms() -> f64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let busy = counts.split(' ').next().and_then(|text| text.parse().ok());
    busy.unwrap_or(0.0) / 1e6
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let (begun, busy) = (Instant::now(), busy_ms());
    let answer = work();
    let wall = ms(begun);
    let busy = busy_ms() - busy;
    (answer, Took { wall, busy })
}

/// The least, middle and greatest of some times.
fn spread(what: &str, took: &[Took]) {
    let of = |part: fn(&Took) -> f64| {
        let mut times: Vec<f64> = took.iter().map(part).collect();
        times.sort_by(f64::total_cmp);
        let (middle, most) = (times[times.len() / 2], times[times.len() - 1]);
        format!("{:.2} / {middle:.2} / {most:.2} ms", times[0])
    };
    println!(
        "{what}: {}; of it busy {}",
        of(|took| took.wall),
        of(|took| took.busy)
    );
}

/// Each page begins where the one before ended.
fn pages<C>(what: &str, mut page: impl FnMut(Option<C>) -> (usize, Option<C>)) {
    let (mut took, mut found, mut after) = (Vec::new(), 0, None);
    for _ in 0..LAPS {
        let ((rows, next), lap) = timed(|| page(after));
        took.push(lap);
        found += rows;
        after = next;
        if after.is_none() {
            break;
        }
    }
    spread(
        &format!("{what}, {} rows a page", found / took.len()),
        &took,
    );
}

fn place(records: &[JobRecord]) -> Option<(WallMs, JobId)> {
    let last = records.last()?;
    Some((last.schedule.next_due?, last.row.id))
}

fn reads(reader: &Reader, jobs: u64) {
    let late = T0.plus(100 * PERIOD_MS);
    pages("jobs due", |after| {
        let rows = reader
            .jobs_due(&SegmentSet::ALL, late, after, WINDOW)
            .expect("they are read");
        (rows.len(), place(&rows))
    });
    let middle = row(jobs / 2).id;
    pages("jobs by id", |after| {
        let rows = reader
            .jobs_by_id(&SegmentSet::ALL, after.or(Some(middle)), 1_000)
            .expect("they are read");
        (rows.len(), rows.last().map(|job| job.row.id))
    });
    let calendar = CalendarRef {
        namespace: NamespaceName::default(),
        name: CalendarName::new("workdays").expect("a sample name is valid"),
    };
    pages("jobs of a calendar", |after| {
        let rows = reader
            .calendar_users(&SegmentSet::ALL, &calendar, after, 500)
            .expect("they are read");
        (rows.len(), rows.last().map(|job| job.row.id))
    });
    pages("jobs listed", |after| {
        let filter = JobFilter::default();
        let page = reader
            .jobs(&filter, after.as_ref(), 100)
            .expect("they are read");
        (page.jobs.len(), page.next)
    });
    let nobody = JobFilter {
        labels: vec![("team".to_owned(), "nobody".to_owned())],
        ..JobFilter::default()
    };
    pages("jobs listed by a label that none has", |after| {
        let page = reader
            .jobs(&nobody, after.as_ref(), 100)
            .expect("they are read");
        (page.jobs.len(), page.next)
    });
}

/// Fires the jobs that are due next, a window at a time, and ends their runs in the commit after.
fn fires(mut writer: Writer, reader: &Reader) {
    let session = begin(&mut writer);
    let (mut seq, mut number) = (0, u64::from(std::process::id()) << 24);
    let (mut read, mut fire, mut finish) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LAPS {
        let (due, lap) =
            timed(|| reader.jobs_due(&SegmentSet::ALL, WallMs(i64::MAX), None, WINDOW));
        let due = due.expect("they are read");
        read.push(lap);
        let runs: Vec<Run> = due
            .iter()
            .map(|job| {
                number += 1;
                fired(job, number)
            })
            .collect();
        let mut set = sample::runs(
            runs.iter()
                .cloned()
                .map(|run| RunChange::Insert(Box::new(run))),
        );
        set.schedules = due.iter().map(moved).collect();
        set.counters = counters(&due);
        seq += 1;
        fire.push(commit(&mut writer, session, seq, set));
        let ended = runs
            .into_iter()
            .map(|run| RunChange::Finish(Box::new(sample::ended(run, RunState::Completed, 40))));
        let mut set = sample::runs(ended);
        set.counters = counters(&due);
        seq += 1;
        finish.push(commit(&mut writer, session, seq, set));
    }
    let sum = |part: fn(&Took) -> f64| -> f64 {
        let total: f64 = fire.iter().chain(&finish).map(part).sum();
        total * 1e3 / (LAPS * WINDOW) as f64
    };
    spread("jobs due while firing", &read);
    spread("a window of fires", &fire);
    spread("their ends", &finish);
    println!(
        "a fire with its end: {:.1} µs, of it busy {:.1} µs",
        sum(|took| took.wall),
        sum(|took| took.busy)
    );
    writer.close().expect("it closes");
}

fn fired(job: &JobRecord, number: u64) -> Run {
    let at = job.schedule.next_due.unwrap_or(T0);
    let mut run = sample::run(at.since(T0), 0, job.row.id);
    run.id = RunId(sample::raw_id(
        at.since(T0),
        job.row.segment.0,
        number % 4_096,
    ));
    (run.origin, run.nominal) = (Origin::Schedule, Some(at));
    run
}

fn moved(job: &JobRecord) -> (JobId, ScheduleChange) {
    let at = job.schedule.next_due.unwrap_or(T0);
    let next = Some(at.plus(PERIOD_MS));
    let row = ScheduleRow {
        fired_through: at,
        next_nominal: next,
        next_due: next,
        fires: job.schedule.fires + 1,
        ..job.schedule.clone()
    };
    let expected = Some(job.schedule.fired_through);
    (job.row.id, ScheduleChange { expected, row })
}

fn counters(due: &[JobRecord]) -> std::collections::BTreeMap<(SegmentId, NamespaceName), Counters> {
    let of = |job: &JobRecord| {
        let counters = Counters {
            created: job.schedule.fires + 1,
            completed: job.schedule.fires,
            failed: 0,
            cancelled: 0,
        };
        ((job.row.segment, job.row.namespace.clone()), counters)
    };
    due.iter().map(of).collect()
}

fn memory(when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |key: &str| {
        let line = status.lines().find(|line| line.starts_with(key));
        let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        value.unwrap_or(0) / 1_024
    };
    println!(
        "resident {when}: {} MB, at most {} MB",
        line("VmRSS:"),
        line("VmHWM:")
    );
}
