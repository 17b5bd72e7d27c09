//! Random change sets, legal and not, on memory and on a database: the same answers, the same rows.
//!
//! Which of the runs that are too old are gone is for SQLite as the model has it. PostgreSQL drops partitions and goes by
//! creation, so there such runs are left out of what is compared, and only the sum of what is there and what went holds.
//!
//! `DRUMTOWER_SEED=n` repeats one history; `DRUMTOWER_LONG=1` tries more and longer ones.

mod generate;

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{JobId, JobName, JobRecord, Origin, Run, RunState, SegmentSet, WallMs};
use drumtower_store::conformance::{SESSION_MS, all_runs, sample};
use drumtower_store::memory::Memory;
use drumtower_store::sqlite::{self, Options, Reader, Writer};
use drumtower_store::{
    AuditFilter, BackfillFilter, Commit, Error, JobFilter, LetterFilter, Read, RunFilter, Store,
};
use generate::{Generator, Random};
use tempfile::TempDir;

/// A database under test.
trait Subject {
    fn store(&mut self) -> &mut dyn Store;
    fn read(&mut self) -> &dyn Read;
    fn reopen(&mut self);
    /// Whether retention removes the very rows that it removes from the model.
    fn prunes_alike(&self) -> bool;
}

#[cfg(feature = "postgres")]
mod on_postgres {
    use std::time::Duration;

    use drumtower_store::postgres::{self, Options, Reader, Target, Writer};
    use drumtower_testpg::Cluster;

    use super::*;

    pub struct Postgres {
        opened: Option<(Writer, Reader)>,
        options: Options,
        target: Target,
    }

    impl Postgres {
        pub fn new(random: &mut Random) -> Self {
            let url = Cluster::shared().database().expect("a database is made");
            let mut store = Self {
                opened: None,
                options: Options {
                    rollup_rows: 1 + random.below(60),
                    rollups_a_commit: 1 + random.below(9) as usize,
                    prune_every: Duration::ZERO,
                    ..Options::default()
                },
                target: url.parse().expect("an address"),
            };
            store.reopen();
            store
        }
    }

    impl Subject for Postgres {
        fn store(&mut self) -> &mut dyn Store {
            &mut self.opened.as_mut().expect("the store is open").0
        }

        fn read(&mut self) -> &dyn Read {
            &self.opened.as_ref().expect("the store is open").1
        }

        fn reopen(&mut self) {
            self.opened = None;
            let opened = postgres::open(&self.target, self.options.clone());
            self.opened = Some(opened.expect("the store opens"));
        }

        fn prunes_alike(&self) -> bool {
            false
        }
    }

    #[test]
    fn postgres_is_the_model() {
        many_histories(&|random| Box::new(Postgres::new(random)));
    }
}

struct Sqlite {
    opened: Option<(Writer, Reader)>,
    options: Options,
    directory: TempDir,
}

impl Sqlite {
    fn new(random: &mut Random) -> Self {
        let options = Options {
            bucket_rows: 1 + random.below(40),
            rollup_rows: 1 + random.below(60),
            blobs_a_commit: 1 + random.below(9) as usize,
            checkpoint_pages: 1 + random.below(200) as u32,
            ..Options::default()
        };
        let mut store = Self {
            opened: None,
            options,
            directory: TempDir::new().expect("a directory is made"),
        };
        store.reopen();
        store
    }
}

impl Subject for Sqlite {
    fn store(&mut self) -> &mut dyn Store {
        &mut self.opened.as_mut().expect("the store is open").0
    }

    fn read(&mut self) -> &dyn Read {
        &self.opened.as_ref().expect("the store is open").1
    }

    fn reopen(&mut self) {
        self.opened = None;
        self.opened = Some(
            sqlite::open(self.directory.path(), self.options.clone()).expect("the store opens"),
        );
    }

    fn prunes_alike(&self) -> bool {
        true
    }
}

fn kind(outcome: &Result<Commit, Error>) -> &'static str {
    match outcome {
        Ok(Commit::Done) => "done",
        Ok(Commit::Fenced) => "fenced",
        Err(Error::Invariant(_)) => "invariant",
        Err(_) => "another error",
    }
}

/// Every row that can be read, in a form that can be compared.
fn rows(read: &dyn Read, now: WallMs, generator: &Generator, alike: bool) -> Vec<String> {
    let stays = |run: &Run| {
        let age = run.retention.age_ms();
        alike || !run.state.is_terminal() || age.is_none_or(|age| now.since(run.created) < age)
    };
    let mut all = Vec::new();
    let mut put = |what: &str, rows: String| all.push(format!("{what}: {rows}"));
    put(
        "segments",
        format!("{:?}", read.segments().expect("it is read")),
    );
    put(
        "counters",
        format!("{:?}", read.counters().expect("it is read")),
    );
    if alike {
        put(
            "pruned",
            format!("{:?}", read.pruned().expect("it is read")),
        );
    } else {
        put("there or pruned", format!("{:?}", there_or_pruned(read)));
    }
    put(
        "tokens",
        format!("{:?}", read.tokens().expect("it is read")),
    );
    put(
        "locks",
        format!("{:?}", read.locks(None, None, 1000).expect("they are read")),
    );
    put(
        "queues",
        format!("{:?}", read.queues().expect("they are read")),
    );
    put(
        "rates",
        format!("{:?}", read.rates().expect("they are read")),
    );
    put(
        "drains",
        format!("{:?}", read.drains().expect("they are read")),
    );
    let mut after = None;
    loop {
        let page = read
            .parked_starts(&SegmentSet::ALL, now.plus(1_000), after, 3)
            .expect("it is read");
        let last = page.runs.last();
        after = last.and_then(|run| Some((run.start_by?, run.id)));
        put("starts", format!("{page:?}"));
        if page.runs.len() < 3 {
            break;
        }
    }
    put(
        "settings",
        format!("{:?}", read.settings().expect("it is read")),
    );
    for name in [None, Some("job-1".to_owned())] {
        let filter = AuditFilter {
            name,
            ..AuditFilter::default()
        };
        let page = read.audit(&filter, None, 99_999).expect("it is read");
        put("audit", format!("{page:?}"));
    }
    let letters = read.letters(&LetterFilter::default(), None, 99_999);
    put("letters", format!("{:?}", letters.expect("it is read")));
    for open in [false, true] {
        let filter = BackfillFilter {
            open,
            ..BackfillFilter::default()
        };
        let backfills = read.backfills(&filter, None, 99_999);
        put("backfills", format!("{:?}", backfills.expect("it is read")));
    }
    put(
        "due",
        format!(
            "{:?}",
            read.jobs_due(&SegmentSet::ALL, now.plus(1 << 40), None, 99_999)
                .expect("it is read")
        ),
    );
    put(
        "active",
        format!(
            "{:?}",
            read.active_runs(&SegmentSet::ALL, None, 99_999)
                .expect("it is read")
        ),
    );
    for parked in read.parked_keys(&SegmentSet::ALL).expect("it is read") {
        let runs = read
            .parked_runs(&SegmentSet::ALL, &parked.key, None, 99_999)
            .expect("it is read");
        assert_eq!(runs.len() as u64, parked.runs);
        put("parked", format!("{} {runs:?}", parked.key));
    }
    let minutes = (now.0 / 60_000 - 100_000, now.0 / 60_000 + 100_000);
    put(
        "rollups",
        format!(
            "{:?}",
            read.rollups(None, minutes.0, minutes.1)
                .expect("it is read")
        ),
    );
    for job in generator.jobs() {
        put("job", format!("{:?}", read.job(job).expect("it is read")));
        for key in [None, Some("1")] {
            let live = read.live_runs(job, key, 999).expect("they are read");
            put("live", format!("{live:?}"));
        }
        put(
            "rollups",
            format!(
                "{:?}",
                read.rollups(Some(job), minutes.0, minutes.1)
                    .expect("it is read")
            ),
        );
        put(
            "unfired",
            format!(
                "{:?}",
                read.unfired(job, WallMs(0), now.plus(1 << 40), 999)
                    .expect("it is read")
            ),
        );
    }
    for (hash, at) in generator.keys() {
        put("key", format!("{:?}", read.idempotency(&hash, now)));
        if alike {
            put("old key", format!("{:?}", read.idempotency(&hash, at)));
        }
    }
    put("jobs", format!("{:?}", list_jobs(read)));
    put("by id", format!("{:?}", jobs_by_id(read)));
    let meta = read.meta().expect("it is read");
    put("time zones", meta.tz_version);
    put(
        "sweeps",
        format!("{:?}", read.sweeps().expect("it is read")),
    );
    put(
        "calendars",
        format!("{:?}", read.calendars().expect("it is read")),
    );
    let endings = read.endings(&SegmentSet::ALL, 999);
    put("endings", format!("{:?}", endings.expect("it is read")));
    for n in 0..8 {
        let (of, name) = (
            sample::namespace("default"),
            JobName::new(&format!("job-{n}")),
        );
        let name = name.expect("a name");
        let jobs = read.followers(&SegmentSet::ALL, &of, &name, None, 999);
        put(
            "followers",
            format!("{name} {:?}", jobs.expect("it is read")),
        );
    }
    for calendar in generator.calendars() {
        let versions = read.calendar_versions(&calendar).expect("it is read");
        let users = read.calendar_users(&SegmentSet::ALL, &calendar, None, 999);
        let users = users.expect("it is read");
        put("calendar", format!("{calendar:?} {versions:?} {users:?}"));
    }
    for filter in filters(generator) {
        let mut runs = all_runs(read, &filter, 13);
        runs.retain(stays);
        put("runs", format!("{filter:?} {runs:?}"));
    }
    for id in generator.runs() {
        let run = read.run(id).expect("it is read");
        if !alike && !run.as_ref().is_some_and(stays) {
            continue;
        }
        put("run", format!("{run:?}"));
        let checkpoint = read.checkpoint(id).expect("it is read");
        let body = checkpoint.as_ref().map(|it| it.body.to_vec());
        put("checkpoint", format!("{checkpoint:?} {body:?}"));
    }
    all
}

/// Finished runs by namespace and state, whether they are there or retention took them.
fn there_or_pruned(read: &dyn Read) -> BTreeMap<String, [u64; 3]> {
    let mut counts = BTreeMap::<String, [u64; 3]>::new();
    for row in read.pruned().expect("it is read") {
        let counts = counts.entry(row.namespace.to_string()).or_default();
        *counts = [row.completed, row.failed, row.cancelled];
    }
    for run in all_runs(read, &RunFilter::default(), 500) {
        let place = match run.state {
            RunState::Completed => 0,
            RunState::Failed => 1,
            RunState::Cancelled => 2,
            _ => continue,
        };
        counts.entry(run.namespace.to_string()).or_default()[place] += 1;
    }
    counts
}

fn list_jobs(read: &dyn Read) -> Vec<JobId> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = read
            .jobs(&JobFilter::default(), after.as_ref(), 7)
            .expect("it is read");
        all.extend(page.jobs.iter().map(|job| job.row.id));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn jobs_by_id(read: &dyn Read) -> Vec<JobRecord> {
    let mut all: Vec<JobRecord> = Vec::new();
    loop {
        let after = all.last().map(|job| job.row.id);
        let page = read
            .jobs_by_id(&SegmentSet::ALL, after, 4)
            .expect("it is read");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn filters(generator: &Generator) -> Vec<RunFilter> {
    let mut filters = vec![
        RunFilter::default(),
        RunFilter {
            namespace: Some(sample::namespace("team-b")),
            ..RunFilter::default()
        },
        RunFilter {
            states: vec![RunState::Cancelled, RunState::Pending],
            ..RunFilter::default()
        },
    ];
    for job in generator.jobs() {
        filters.push(RunFilter {
            job: Some(job),
            ..RunFilter::default()
        });
        filters.push(RunFilter {
            job: Some(job),
            states: vec![RunState::Failed],
            ..RunFilter::default()
        });
        filters.push(RunFilter {
            job: Some(job),
            states: vec![RunState::Completed],
            ..RunFilter::default()
        });
        filters.push(RunFilter {
            job: Some(job),
            origin: Some(Origin::Schedule),
            ..RunFilter::default()
        });
    }
    filters
}

type Make<'a> = &'a dyn Fn(&mut Random) -> Box<dyn Subject>;

fn history(make: Make<'_>, seed: u64, steps: usize) -> BTreeMap<&'static str, usize> {
    let mut random = Random(seed);
    let mut subject = make(&mut random);
    let alike = subject.prunes_alike();
    let mut memory = Memory::new();
    let reader = memory.reader();
    let mut generator = Generator::new(Random(seed ^ 0x5eed));
    let mut counts = BTreeMap::<&str, usize>::new();
    for step in 0..steps {
        if generator.wants_session() {
            let server = drumtower_core::model::Member::alone("server-1");
            let session = memory
                .begin_session(&server, SESSION_MS)
                .expect("a session begins");
            assert_eq!(
                session,
                subject
                    .store()
                    .begin_session(&server, SESSION_MS)
                    .expect("a session begins")
            );
            generator.begin(session);
        }
        let changes = generator.changes();
        let expected = memory.commit(&changes);
        let outcome = subject.store().commit(&changes);
        *counts.entry(kind(&expected)).or_default() += 1;
        assert_eq!(
            kind(&outcome),
            kind(&expected),
            "seed {seed} step {step}: {outcome:?}, {expected:?}\n{changes:?}"
        );
        generator.settle(&changes, matches!(expected, Ok(Commit::Done)));
        if random.below(9) == 0 {
            subject.reopen();
        }
        if random.below(12) == 0 || step + 1 == steps {
            let now = generator.now();
            let (found, wanted) = (
                rows(subject.read(), now, &generator, alike),
                rows(&reader, now, &generator, alike),
            );
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found, wanted, "seed {seed} step {step}");
            }
            assert_eq!(found.len(), wanted.len());
        }
        let live = |store: &mut dyn Store| {
            let rows = store.live_sessions().expect("they are read");
            rows.iter().map(|row| (row.id, row.seq)).collect::<Vec<_>>()
        };
        assert_eq!(
            live(subject.store()),
            live(&mut memory),
            "seed {seed} step {step}"
        );
    }
    println!("seed {seed}: {counts:?}");
    assert!(
        counts["done"] * 2 > steps,
        "most sets are taken: {counts:?}"
    );
    counts
}

#[test]
fn sqlite_is_the_model() {
    many_histories(&|random| Box::new(Sqlite::new(random)));
}

fn many_histories(make: Make<'_>) {
    let long = std::env::var_os("DRUMTOWER_LONG").is_some();
    if let Some(seed) = std::env::var("DRUMTOWER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        history(make, seed, 300);
        return;
    }
    let mut kinds = BTreeSet::new();
    for seed in 0..if long { 100 } else { 5 } {
        kinds.extend(history(make, seed, if long { 600 } else { 120 }).into_keys());
    }
    assert_eq!(
        kinds.len(),
        3,
        "the generator makes sets of each kind: {kinds:?}"
    );
}
