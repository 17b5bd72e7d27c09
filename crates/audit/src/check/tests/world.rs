//! A small world that keeps every promise: one job that fires every ten seconds and one that was triggered three times.

use std::collections::BTreeMap;

use drumtower_core::change::{BackfillChange, ChangeSet, JobChange, RunChange, ScheduleChange};
use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, BackfillRow, CalendarVersion, Counters, Fence,
    JobId, JobRow, JobSpec, JobVersion, Member, NamespaceName, Origin, ProcessId, Reason,
    Retention, Run, RunId, RunState, ScheduleRow, SegmentId, Standing, Transition, Unfired,
    UnfiredReason, WallMs, WorkerName,
};
use drumtower_store::memory::Memory;
use drumtower_store::{Commit, Store};

use crate::check::{Options, Report, check};
use crate::journal::{Journal, Outcome, Record, files};

/// 2026-01-01T00:00:00Z, and so a multiple of ten seconds.
pub const START: WallMs = WallMs(1_767_225_600_000);
/// The scheduled job, then the triggered one.
pub const JOBS: [JobId; 2] = [JobId(1), JobId(2)];
const STEP_MS: i64 = 10_000;

pub struct World {
    pub rows: Vec<JobRow>,
    pub versions: Vec<JobVersion>,
    pub fired_through: WallMs,
    /// Of the scheduled job.
    pub next_due: Option<WallMs>,
    /// Added to the counted fires.
    pub fires_off: i64,
    pub calendars: Vec<CalendarVersion>,
    /// Eight of the schedule, at steps 1 to 6, 9 and 10; then the three that were triggered.
    pub runs: Vec<Run>,
    /// Steps 7 and 8.
    pub unfired: Vec<Unfired>,
    pub backfills: Vec<BackfillRow>,
    pub records: Vec<Record>,
    pub counters: BTreeMap<(SegmentId, NamespaceName), Counters>,
    /// Added to the counted completions.
    pub miscount: u64,
    pub options: Options,
}

pub fn step(number: i64) -> WallMs {
    START.plus(number * STEP_MS)
}

fn actor() -> Actor {
    Actor::new("test")
}

pub fn version(
    job: JobId,
    number: u32,
    created: WallMs,
    schedule: serde_json::Value,
) -> JobVersion {
    let name = if job == JOBS[0] { "a" } else { "b" };
    let manifest = serde_json::json!({
        "kind": "Job", "name": name, "schedule": schedule, "task": {"handler": {"name": "h"}}
    });
    let spec: JobSpec = serde_json::from_value(manifest).expect("a manifest");
    JobVersion {
        job,
        version: number,
        spec,
        created,
        actor: actor(),
    }
}

impl World {
    pub fn calm() -> Self {
        let rows = JOBS.map(|id| JobRow {
            id,
            namespace: NamespaceName::default(),
            name: if id == JOBS[0] { "a" } else { "b" }
                .parse()
                .expect("a name"),
            segment: SegmentId(0),
            version: 1,
            revision: 1,
            paused: None,
            deleted: false,
            created: START,
            updated: START,
            actor: actor(),
        });
        let every = serde_json::json!([{"every": "10s"}]);
        let mut world = Self {
            rows: rows.into(),
            versions: vec![
                version(JOBS[0], 1, START, every),
                version(JOBS[1], 1, START, serde_json::json!([])),
            ],
            fired_through: step(10),
            next_due: Some(step(11)),
            fires_off: 0,
            calendars: Vec::new(),
            runs: Vec::new(),
            unfired: Vec::new(),
            backfills: Vec::new(),
            records: Vec::new(),
            counters: BTreeMap::new(),
            miscount: 0,
            options: Options {
                now: Some(step(11)),
                grace_ms: STEP_MS,
                ..Options::default()
            },
        };
        for number in [1, 2, 3, 4, 5, 6, 9, 10] {
            world.scheduled(number);
        }
        for (index, key) in ["k0", "k1", "k2"].into_iter().enumerate() {
            let run = world.triggered(key, 1 + index as i64);
            world.record(Record::Sent {
                key: key.into(),
                job: "b".into(),
                wall_ms: START,
            });
            world.record(Record::Answered {
                key: key.into(),
                run,
            });
        }
        world.skip(7, 8);
        world
    }

    /// A completed run for a step of the schedule.
    pub fn scheduled(&mut self, number: i64) -> RunId {
        self.completed(JOBS[0], step(number), Some(step(number)), None)
    }

    /// The run at `index` again, due later than its time.
    pub fn put_off(&mut self, index: usize, ms: i64) {
        let nominal = self.runs[index].nominal.expect("a scheduled run");
        self.erase(index);
        self.completed(JOBS[0], nominal.plus(ms), Some(nominal), None);
    }

    /// The definition of the scheduled job.
    pub fn spec(&mut self) -> &mut JobSpec {
        &mut self.versions[0].spec
    }

    /// Takes everything away that the scheduled job did; it has this schedule from now on.
    pub fn restart(&mut self, schedule: serde_json::Value) {
        while self.runs[0].job == JOBS[0] {
            self.erase(0);
        }
        self.unfired.clear();
        self.versions[0] = version(JOBS[0], 1, START, schedule);
        self.fired_through = START;
    }

    /// A completed run that a caller asked for.
    pub fn triggered(&mut self, key: &str, number: i64) -> RunId {
        self.completed(JOBS[1], step(number), None, Some(key.to_owned()))
    }

    pub fn completed(
        &mut self,
        job: JobId,
        due: WallMs,
        nominal: Option<WallMs>,
        key: Option<String>,
    ) -> RunId {
        // Real ids carry their creation time, and the checker reads it.
        let since_2025 = (due.0 - 1_735_689_600_000) as u64;
        let id = RunId((since_2025 << 22) + self.runs.len() as u64);
        let fence = Fence(id.0 + 1);
        let path = [
            (RunState::Pending, Reason::Created, 0, 0),
            (RunState::Scheduled, Reason::Assigned, 1, 0),
            (RunState::Running, Reason::Started, 1, 5),
            (RunState::Completed, Reason::Succeeded, 1, 9),
        ];
        let end = AttemptEnd {
            outcome: AttemptOutcome::Succeeded,
            at: due.plus(9),
            duration_ms: 3,
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: None,
            log: None,
        };
        let attempt = Attempt {
            number: 1,
            fence,
            worker: WorkerName::new("w").expect("a name"),
            process: ProcessId(1),
            assigned: due,
            started: Some(due.plus(5)),
            end: Some(end),
        };
        self.runs.push(Run {
            id,
            namespace: NamespaceName::default(),
            job,
            job_version: 1,
            state: RunState::Completed,
            origin: if nominal.is_some() {
                Origin::Schedule
            } else {
                Origin::Api
            },
            actor: actor(),
            nominal,
            due,
            created: due,
            retention: Retention::Week,
            params: None,
            idempotency_key: key,
            parent_run: None,
            root_run: None,
            rerun_of: None,
            backfill: None,
            shard: None,
            not_before: None,
            start_by: None,
            parked: None,
            standing: Standing::of(if nominal.is_some() {
                Origin::Schedule
            } else {
                Origin::Api
            }),
            progress: None,
            checkpoint: None,
            cancel: None,
            attempts: vec![attempt],
            transitions: path
                .into_iter()
                .map(|(to, reason, attempt, late)| Transition {
                    to,
                    at: due.plus(late),
                    reason,
                    attempt,
                })
                .collect(),
            result: None,
            error: None,
        });
        self.started(id, 1, fence.0, due.plus(5));
        self.record(Record::Ended {
            run: id,
            attempt: 1,
            wall_ms: due.plus(8),
            outcome: Outcome::Succeeded,
        });
        id
    }

    pub fn started(&mut self, run: RunId, attempt: u32, fence: u64, wall_ms: WallMs) {
        self.record(Record::Started {
            run,
            attempt,
            fence,
            nominal_ms: None,
            due_ms: None,
            wall_ms,
            pid: 1,
        });
    }

    /// Steps that made no run.
    pub fn skip(&mut self, first: i64, last: i64) {
        self.unfired.push(Unfired {
            job: JOBS[0],
            first: step(first),
            last: step(last),
            version: 1,
            count: (last - first + 1) as u64,
            reason: UnfiredReason::Overlap,
            server: actor(),
        });
    }

    pub fn record(&mut self, record: Record) {
        self.records.push(record);
    }

    pub fn forget(&mut self, which: impl Fn(&Record) -> bool) {
        self.records.retain(|record| !which(record));
    }

    /// Removes a run and everything that was written about it.
    pub fn erase(&mut self, index: usize) {
        let gone = self.runs.remove(index).id;
        self.forget(|record| match record {
            Record::Started { run, .. } | Record::Ended { run, .. } => *run == gone,
            _ => false,
        });
    }

    pub fn timeout(&mut self, timeout: &str) {
        for version in &mut self.versions {
            version.spec.timeout = Some(timeout.to_owned());
        }
    }

    pub fn overlap(&mut self, overlap: serde_json::Value) {
        for version in &mut self.versions {
            version.spec.overlap = serde_json::from_value(overlap.clone()).expect("an overlap");
        }
    }

    /// Puts everything into a store and a journal and checks it.
    pub fn check(self) -> Report {
        let mut store = Memory::new();
        let session = store
            .begin_session(&Member::alone("test"), 1000)
            .expect("a session");
        let mut changes = ChangeSet {
            session,
            seq: 1,
            extend_ms: 1000,
            ..ChangeSet::default()
        };
        self.fill(&mut changes);
        assert_eq!(store.commit(&changes).expect("a commit"), Commit::Done);
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::create(dir.path(), "test").expect("a journal");
        self.records.iter().for_each(|record| journal.push(record));
        journal.flush().expect("written");
        let journals = files(dir.path()).expect("files");
        check(&journals, &store.reader(), &self.options).expect("a report")
    }

    fn schedule(&self, job: JobId) -> ScheduleRow {
        let scheduled = job == JOBS[0];
        let fires = self
            .runs
            .iter()
            .filter(|run| run.job == job && run.origin == Origin::Schedule)
            .count() as u64;
        let next_due = self.next_due.filter(|_| scheduled);
        ScheduleRow {
            job,
            fired_through: if scheduled { self.fired_through } else { START },
            next_nominal: next_due,
            next_due,
            fires: fires.saturating_add_signed(self.fires_off * i64::from(scheduled)),
            paused_through: None,
        }
    }

    fn fill(&self, changes: &mut ChangeSet) {
        for row in &self.rows {
            changes.jobs.insert(row.id, JobChange::Insert(row.clone()));
            let schedule = self.schedule(row.id);
            changes.schedules.insert(
                row.id,
                ScheduleChange {
                    expected: None,
                    row: schedule,
                },
            );
        }
        for calendar in &self.calendars {
            let key = (calendar.calendar(), calendar.version);
            changes.calendars.insert(key, calendar.clone());
        }
        for version in &self.versions {
            changes
                .versions
                .insert((version.job, version.version), version.clone());
        }
        for range in &self.unfired {
            changes
                .unfired
                .insert((range.job, range.first), range.clone());
        }
        for row in &self.backfills {
            let (expected, row) = (None, row.clone());
            changes
                .backfills
                .insert(row.id, BackfillChange { expected, row });
        }
        changes.counters = self.counters.clone();
        let mut counters = Counters {
            completed: self.miscount,
            created: self.miscount,
            ..Counters::default()
        };
        for run in &self.runs {
            counters.created += 1;
            counters.completed += u64::from(run.state == RunState::Completed);
            counters.failed += u64::from(run.state == RunState::Failed);
            counters.cancelled += u64::from(run.state == RunState::Cancelled);
            let ended = run.state.is_terminal();
            let change = if ended {
                RunChange::InsertFinished(Box::new(run.clone()))
            } else {
                RunChange::Insert(Box::new(run.clone()))
            };
            changes.runs.insert(run.id, change);
        }
        changes
            .counters
            .insert((SegmentId(0), NamespaceName::default()), counters);
    }
}
