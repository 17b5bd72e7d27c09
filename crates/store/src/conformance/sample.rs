//! Rows to exercise a store with.

use std::collections::BTreeMap;

use drumtower_core::change::{ChangeSet, JobChange, RunChange, ScheduleChange};
use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, BackfillId, BackfillOrder, BackfillRow,
    BackfillState, BackfillWhich, CalendarName, CalendarRef, CalendarVersion, Fence, JobId,
    JobName, JobRow, JobSpec, JobVersion, NamespaceName, Obedience, Origin, ProcessId, Reason,
    Retention, Run, RunId, RunState, ScheduleRow, SegmentId, Standing, Transition, WallMs,
    WorkerName,
};

/// 2026-07-01T00:00:00Z.
pub const T0: WallMs = WallMs(1_782_864_000_000);

const ID_EPOCH_MS: i64 = 1_735_689_600_000;

/// A raw id made `ms` after [`T0`] in a segment.
pub fn raw_id(ms: i64, segment: u16, counter: u64) -> u64 {
    let at = (T0.0 + ms - ID_EPOCH_MS) as u64;
    (at << 22) | (u64::from(segment) << 12) | counter
}

pub fn run_id(ms: i64, counter: u64) -> RunId {
    RunId(raw_id(ms, 7, counter))
}

pub fn job_id(counter: u64) -> JobId {
    JobId(raw_id(-1_000, 7, counter))
}

pub fn namespace(name: &str) -> NamespaceName {
    NamespaceName::new(name).expect("a sample name is valid")
}

pub fn job_name(name: &str) -> JobName {
    JobName::new(name).expect("a sample name is valid")
}

pub fn spec(namespace: &str, name: &str) -> JobSpec {
    let json = serde_json::json!({
        "kind": "Job", "name": name, "namespace": namespace, "task": {"handler": {"name": "noop"}},
        "schedule": [{"every": "10s"}],
    });
    serde_json::from_value(json).expect("a sample definition is valid")
}

pub fn job_row(counter: u64, namespace_name: &str, name: &str) -> JobRow {
    JobRow {
        id: job_id(counter),
        namespace: namespace(namespace_name),
        name: job_name(name),
        segment: SegmentId(7),
        version: 1,
        revision: 1,
        paused: None,
        deleted: false,
        created: T0,
        updated: T0,
        actor: Actor::new("admin"),
    }
}

pub fn version(row: &JobRow) -> JobVersion {
    let spec = spec(row.namespace.as_str(), row.name.as_str());
    JobVersion {
        job: row.id,
        version: row.version,
        spec,
        created: row.updated,
        actor: row.actor.clone(),
    }
}

pub fn schedule(job: JobId, due_ms: Option<i64>) -> ScheduleRow {
    let at = due_ms.map(|ms| T0.plus(ms));
    ScheduleRow {
        job,
        fired_through: T0,
        next_nominal: at,
        next_due: at,
        fires: 0,
        paused_through: None,
    }
}

pub fn calendar(namespace_name: &str, name: &str) -> CalendarRef {
    CalendarRef {
        namespace: namespace(namespace_name),
        name: CalendarName::new(name).expect("a sample name is valid"),
    }
}

/// A version of a calendar, with days that differ from version to version.
pub fn calendar_version(namespace: &str, name: &str, version: u32) -> CalendarVersion {
    let json = serde_json::json!({
        "kind": "Calendar", "name": name, "namespace": namespace, "weekly": ["mon", "fri"],
        "include": ["2026-10-10"], "exclude": [format!("{:02}-25", version % 12 + 1)],
    });
    CalendarVersion {
        version,
        spec: serde_json::from_value(json).expect("a sample calendar is valid"),
        created: T0.plus(i64::from(version)),
        actor: Actor::new("admin"),
        deleted: false,
    }
}

/// The definition with calendars; both lists may be empty.
pub fn uses(mut version: JobVersion, only: &[&str], minus: &[&str]) -> JobVersion {
    let json = serde_json::json!({"only": only, "minus": minus});
    version.spec.calendar = serde_json::from_value(json).expect("a sample use is valid");
    version
}

/// A set that makes jobs, each with its definition and its schedule.
pub fn new_jobs(rows: impl IntoIterator<Item = JobRow>) -> ChangeSet {
    let mut changes = ChangeSet::default();
    for row in rows {
        let version = version(&row);
        changes.versions.insert((row.id, row.version), version);
        changes.schedules.insert(
            row.id,
            ScheduleChange {
                expected: None,
                row: schedule(row.id, Some(10_000)),
            },
        );
        changes.jobs.insert(row.id, JobChange::Insert(row));
    }
    changes
}

/// A pending run made `ms` after [`T0`].
pub fn run(ms: i64, counter: u64, job: JobId) -> Run {
    let created = T0.plus(ms);
    let transition = Transition {
        to: RunState::Pending,
        at: created,
        reason: Reason::Created,
        attempt: 0,
    };
    Run {
        id: run_id(ms, counter),
        namespace: NamespaceName::default(),
        job,
        job_version: 1,
        state: RunState::Pending,
        origin: Origin::Api,
        actor: Actor::new("admin"),
        nominal: None,
        due: created,
        created,
        retention: Retention::Week,
        params: None,
        idempotency_key: None,
        parent_run: None,
        root_run: None,
        rerun_of: None,
        backfill: None,
        shard: None,
        not_before: None,
        start_by: None,
        parked: None,
        standing: Standing::of(Origin::Api),
        progress: None,
        checkpoint: None,
        cancel: None,
        attempts: Vec::new(),
        transitions: Vec::from([transition]),
        result: None,
        error: None,
    }
}

/// A backfill that has just begun, made `ms` after [`T0`].
pub fn backfill(ms: i64, job: u64) -> BackfillRow {
    BackfillRow {
        id: BackfillId(run_id(ms, 0).0),
        namespace: NamespaceName::default(),
        job: JobId(job),
        job_name: JobName::new("nightly").expect("a sample name is valid"),
        job_version: 1,
        from: T0.plus(-86_400_000),
        to: T0,
        which: BackfillWhich::Missing,
        order: BackfillOrder::OldestFirst,
        max_active: 4,
        priority: 0,
        params: None,
        overlap: Obedience::Ignore,
        force: false,
        held: None,
        state: BackfillState::Running,
        cursor: None,
        times: 24,
        made: 0,
        completed: 0,
        failed: 0,
        cancelled: 0,
        skipped: 0,
        live: Vec::new(),
        created: T0.plus(ms),
        actor: Actor::new("admin"),
        ended: None,
        revision: 1,
        step: 1,
    }
}

/// The run as it is when a worker has it.
pub fn running(mut run: Run) -> Run {
    let at = run.created.plus(2);
    run.attempts.push(Attempt {
        number: run.attempts.len() as u32 + 1,
        fence: Fence(1 << 40),
        worker: WorkerName::new("worker-1").expect("a sample name is valid"),
        process: ProcessId(0xfeed_beef_dead_cafe),
        assigned: at,
        started: Some(at.plus(3)),
        end: None,
    });
    run.transition(RunState::Scheduled, at, Reason::Assigned);
    run.transition(RunState::Running, at.plus(3), Reason::Started);
    run
}

/// The run after it ran for `lasted_ms`.
pub fn ended(run: Run, state: RunState, lasted_ms: i64) -> Run {
    let mut run = running(run);
    let at = run.created.plus(5 + lasted_ms);
    let (outcome, reason) = match state {
        RunState::Completed => (AttemptOutcome::Succeeded, Reason::Succeeded),
        RunState::Cancelled => (AttemptOutcome::Cancelled, Reason::Cancelled),
        _ => (AttemptOutcome::Failed, Reason::TaskFailed),
    };
    if let Some(attempt) = run.attempts.last_mut() {
        attempt.end = Some(AttemptEnd {
            outcome,
            at,
            duration_ms: lasted_ms.unsigned_abs(),
            exit_code: Some(i32::from(state != RunState::Completed)),
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 4,
            peak_memory_bytes: 3 << 20,
            error: None,
            log: None,
        });
    }
    run.transition(state, at, reason);
    run
}

/// A set of changes of runs.
pub fn runs(changes: impl IntoIterator<Item = RunChange>) -> ChangeSet {
    let runs: BTreeMap<_, _> = changes
        .into_iter()
        .map(|change| (change.run().id, change))
        .collect();
    ChangeSet {
        runs,
        ..ChangeSet::default()
    }
}

/// Runs that end as soon as they are made.
pub fn finished(ended: impl IntoIterator<Item = Run>) -> ChangeSet {
    runs(
        ended
            .into_iter()
            .map(|run| RunChange::InsertFinished(Box::new(run))),
    )
}
