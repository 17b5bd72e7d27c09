//! A run as callers see it: in full, and as a line of a listing without what can be large.

use drumtower_core::model::{
    Actor, Attempt, AttemptEnd, AttemptOutcome, BackfillId, CheckpointMark, JobId, JobName,
    JsonText, NamespaceName, Origin, Progress, Reason, Run, RunId, RunState, Verdict, WorkerName,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::job_view::Deed;
use super::time::Time;

/// A run with the name of its job, which may be deleted, and the parameters it got.
pub struct Named {
    pub run: Run,
    pub job: Option<JobName>,
    pub params: Option<JsonText>,
    pub waiting: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunView<'a> {
    id: RunId,
    namespace: &'a NamespaceName,
    job: Option<&'a JobName>,
    job_id: JobId,
    job_version: u32,
    state: RunState,
    origin: Origin,
    actor: &'a Actor,
    nominal: Option<Time>,
    due: Time,
    /// When it is tried again, while it waits for that.
    not_before: Option<Time>,
    created: Time,
    finished: Option<Time>,
    params: Option<&'a JsonText>,
    idempotency_key: Option<&'a str>,
    /// The run that this one repeats.
    rerun_of: Option<RunId>,
    /// The run of another job whose end made it.
    parent_run: Option<RunId>,
    /// The run that everything began with.
    root_run: Option<RunId>,
    /// What it counts under in the job's overlap, where that has a key.
    overlap_key: Option<&'a str>,
    /// It waits for its turn because others of the job have not ended.
    queued: bool,
    /// The backfill that made it.
    backfill: Option<BackfillId>,
    cancel: Option<Deed<'a>>,
    /// What it waits for while it is PENDING.
    waiting: Option<&'a str>,
    /// How far it says it is.
    progress: Option<ProgressView<'a>>,
    /// What its next attempt goes on from.
    checkpoint: Option<CheckpointView>,
    result: Option<&'a JsonText>,
    error: Option<&'a str>,
    transitions: Vec<TransitionView>,
    attempts: Vec<AttemptView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Progress")]
pub struct ProgressView<'a> {
    /// From 0 to 100.
    #[schemars(range(max = 100))]
    percent: u8,
    message: Option<&'a str>,
    /// When the server learned of it.
    at: Time,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
struct CheckpointView {
    /// From 1, growing over all attempts.
    number: u64,
    /// The attempt that left it; 0 when the run began with it.
    attempt: u32,
    at: Time,
    bytes: u32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Transition")]
struct TransitionView {
    to: RunState,
    at: Time,
    reason: Reason,
    attempt: u32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
struct AttemptView<'a> {
    number: u32,
    /// As text: it may outgrow the integers of a JSON reader.
    fence: String,
    worker: &'a WorkerName,
    assigned: Time,
    started: Option<Time>,
    end: Option<EndView<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AttemptEnd")]
struct EndView<'a> {
    outcome: AttemptOutcome,
    at: Time,
    duration_ms: u64,
    exit_code: Option<i32>,
    signal: Option<i32>,
    /// The status of the answer to a request.
    http_status: Option<u16>,
    /// What the task itself said should become of the run.
    verdict: Option<Verdict>,
    cpu_ms: u64,
    peak_memory_bytes: u64,
    error: Option<&'a str>,
    log: Option<LogView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Log")]
struct LogView {
    bytes: u64,
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct RunSummary<'a> {
    id: RunId,
    namespace: &'a NamespaceName,
    job: Option<&'a JobName>,
    job_id: JobId,
    job_version: u32,
    state: RunState,
    origin: Origin,
    actor: &'a Actor,
    nominal: Option<Time>,
    due: Time,
    created: Time,
    started: Option<Time>,
    finished: Option<Time>,
    worker: Option<&'a WorkerName>,
    attempt: u32,
    duration_ms: Option<u64>,
    exit_code: Option<i32>,
    error: Option<&'a str>,
}

impl<'a> From<&'a Named> for RunView<'a> {
    fn from(named: &'a Named) -> Self {
        let Named {
            run,
            job,
            params,
            waiting,
        } = named;
        let transition = |it: &drumtower_core::model::Transition| TransitionView {
            to: it.to,
            at: it.at.into(),
            reason: it.reason,
            attempt: it.attempt,
        };
        Self {
            id: run.id,
            namespace: &run.namespace,
            job: job.as_ref(),
            job_id: run.job,
            job_version: run.job_version,
            state: run.state,
            origin: run.origin,
            actor: &run.actor,
            nominal: run.nominal.map(Time),
            due: run.due.into(),
            not_before: run.not_before.map(Time),
            created: run.created.into(),
            finished: run.finished().map(Time),
            params: params.as_ref(),
            idempotency_key: run.idempotency_key.as_deref(),
            rerun_of: run.rerun_of,
            parent_run: run.parent_run,
            root_run: run.root_run,
            overlap_key: run.standing.key.as_deref(),
            queued: run.standing.queued,
            backfill: run.backfill.map(|mark| mark.backfill),
            cancel: run.cancel.as_ref().map(|cancel| Deed {
                at: cancel.at.into(),
                actor: &cancel.actor,
            }),
            waiting: waiting.as_deref(),
            progress: run.progress.as_ref().map(ProgressView::from),
            checkpoint: run.checkpoint.map(CheckpointView::from),
            result: run.result.as_ref(),
            error: run.error.as_deref(),
            transitions: run.transitions.iter().map(transition).collect(),
            attempts: run.attempts.iter().map(AttemptView::from).collect(),
        }
    }
}

impl<'a> From<&'a Progress> for ProgressView<'a> {
    fn from(progress: &'a Progress) -> Self {
        Self {
            percent: progress.percent,
            message: progress.message.as_deref(),
            at: progress.at.into(),
        }
    }
}

impl From<CheckpointMark> for CheckpointView {
    fn from(mark: CheckpointMark) -> Self {
        Self {
            number: mark.number,
            attempt: mark.attempt,
            at: mark.at.into(),
            bytes: mark.bytes,
        }
    }
}

impl<'a> From<&'a Attempt> for AttemptView<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        Self {
            number: attempt.number,
            fence: attempt.fence.0.to_string(),
            worker: &attempt.worker,
            assigned: attempt.assigned.into(),
            started: attempt.started.map(Time),
            end: attempt.end.as_ref().map(EndView::from),
        }
    }
}

impl<'a> From<&'a AttemptEnd> for EndView<'a> {
    fn from(end: &'a AttemptEnd) -> Self {
        Self {
            outcome: end.outcome,
            at: end.at.into(),
            duration_ms: end.duration_ms,
            exit_code: end.exit_code,
            signal: end.signal,
            http_status: end.http_status,
            verdict: end.verdict,
            cpu_ms: end.cpu_ms,
            peak_memory_bytes: end.peak_memory_bytes,
            error: end.error.as_deref(),
            log: end.log.map(|log| LogView {
                bytes: log.bytes,
                truncated: log.truncated,
            }),
        }
    }
}

impl<'a> RunSummary<'a> {
    pub fn new(run: &'a Run, job: Option<&'a JobName>) -> Self {
        let last = run.attempts.last();
        let end = last.and_then(|attempt| attempt.end.as_ref());
        Self {
            id: run.id,
            namespace: &run.namespace,
            job,
            job_id: run.job,
            job_version: run.job_version,
            state: run.state,
            origin: run.origin,
            actor: &run.actor,
            nominal: run.nominal.map(Time),
            due: run.due.into(),
            created: run.created.into(),
            started: last.and_then(|attempt| attempt.started).map(Time),
            finished: run.finished().map(Time),
            worker: last.map(|attempt| &attempt.worker),
            attempt: last.map_or(0, |attempt| attempt.number),
            duration_ms: end.map(|end| end.duration_ms),
            exit_code: end.and_then(|end| end.exit_code),
            error: run.error.as_deref(),
        }
    }
}
