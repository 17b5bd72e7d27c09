//! The life of a run.
//!
//! ```text
//! PENDING ──assigned──► SCHEDULED ──started──► RUNNING ──► COMPLETED | FAILED | CANCELLED
//!    ▲  │                  │    │                 │  │
//!    │  ├─cancel► CANCELLED│    └─finished────────┘  │ (a start that was never seen apart from its end)
//!    │  └─never given► FAILED                        │
//!    │  └─too many► FAILED │                         │
//!    └──undelivered, lost, tried again, put off──────┘
//! ```
//!
//! [`MOVES`] is the whole of it: what is not in the table cannot happen.
//!
//! A terminal state absorbs: the first valid writer wins. Each transition is kept with its time and reason. Attempts are
//! numbered from 1 and each carries a fence greater than every one before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Actor, BackfillMark, Fence, Home, JobId, JsonText, NamespaceName, ProcessId, Retention, RunId,
    Standing, Verdict, WallMs, WorkerName,
};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum RunState {
    Pending,
    Scheduled,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl RunState {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Scheduled,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Whether the table knows such a step, for whatever reason.
    pub fn may_become(self, next: Self) -> bool {
        let steps = MOVES.iter();
        steps
            .filter(|step| step.from == Some(self))
            .any(|step| step.to == next)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Scheduled => "SCHEDULED",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// What made a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The job's own schedule.
    Schedule,
    /// A call of the API, the CLI or an SDK.
    Api,
    /// A backfill, for a time that had passed.
    Backfill,
    /// The end of a run of another job.
    After,
}

/// Why a run changed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Created,
    Assigned,
    Started,
    Succeeded,
    /// The task ended on its own and said, or showed by its exit, that it failed.
    TaskFailed,
    TimedOut,
    /// The worker did not renew its lease, or no longer knew the attempt.
    WorkerLost,
    /// The assignment never reached the worker, or it refused it before starting.
    Undelivered,
    Cancelled,
    /// The attempt failed, and the run is tried again.
    Retry,
    /// The handler put the run off.
    Snoozed,
    /// It was not given to a worker within `start_timeout`.
    StartTimedOut,
    /// As many runs of the job as may be were under way, and its overlap says that the run fails.
    Overlap,
    /// A newer run of the job took its place.
    Superseded,
    /// It had waited in the queue for longer than the job's misfire window when its turn came.
    Expired,
}

impl Reason {
    pub const ALL: [Self; 15] = [
        Self::Created,
        Self::Assigned,
        Self::Started,
        Self::Succeeded,
        Self::TaskFailed,
        Self::TimedOut,
        Self::WorkerLost,
        Self::Undelivered,
        Self::Cancelled,
        Self::Retry,
        Self::Snoozed,
        Self::StartTimedOut,
        Self::Overlap,
        Self::Superseded,
        Self::Expired,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Assigned => "assigned",
            Self::Started => "started",
            Self::Succeeded => "succeeded",
            Self::TaskFailed => "task_failed",
            Self::TimedOut => "timed_out",
            Self::WorkerLost => "worker_lost",
            Self::Undelivered => "undelivered",
            Self::Cancelled => "cancelled",
            Self::Retry => "retry",
            Self::Snoozed => "snoozed",
            Self::StartTimedOut => "start_timed_out",
            Self::Overlap => "overlap",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
        }
    }
}

/// One line of the table of states.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// `None` is where every run begins.
    pub from: Option<RunState>,
    pub to: RunState,
    /// What may cause it.
    pub reasons: &'static [Reason],
}

impl Move {
    /// Whether the table holds the step for this reason.
    pub fn exists(from: Option<RunState>, to: RunState, reason: Reason) -> bool {
        MOVES
            .iter()
            .any(|step| step.from == from && step.to == to && step.reasons.contains(&reason))
    }
}

/// What a run can fail for, each once, in the order of the table.
pub fn failures() -> Vec<Reason> {
    let mut reasons = Vec::new();
    for step in MOVES.iter().filter(|step| step.to == RunState::Failed) {
        for reason in step.reasons {
            if !reasons.contains(reason) {
                reasons.push(*reason);
            }
        }
    }
    reasons
}

const fn step(from: Option<RunState>, to: RunState, reasons: &'static [Reason]) -> Move {
    Move { from, to, reasons }
}

/// Every step that a run can take.
pub const MOVES: &[Move] = {
    use Reason::{
        Assigned, Created, Expired, Overlap, Retry, Snoozed, StartTimedOut, Started, Succeeded,
        Superseded, TaskFailed, TimedOut, Undelivered, WorkerLost,
    };
    use RunState::{Cancelled, Completed, Failed, Pending, Running, Scheduled};
    &[
        step(None, Pending, &[Created]),
        step(Some(Pending), Scheduled, &[Assigned]),
        step(Some(Pending), Failed, &[StartTimedOut, Overlap]),
        step(
            Some(Pending),
            Cancelled,
            &[Reason::Cancelled, Superseded, Expired],
        ),
        step(Some(Scheduled), Running, &[Started]),
        step(Some(Scheduled), Completed, &[Succeeded]),
        step(Some(Scheduled), Failed, &[TaskFailed, TimedOut, WorkerLost]),
        step(Some(Scheduled), Cancelled, &[Reason::Cancelled, Superseded]),
        step(
            Some(Scheduled),
            Pending,
            &[Retry, Snoozed, WorkerLost, Undelivered],
        ),
        step(Some(Running), Completed, &[Succeeded]),
        step(Some(Running), Failed, &[TaskFailed, TimedOut, WorkerLost]),
        step(Some(Running), Cancelled, &[Reason::Cancelled, Superseded]),
        step(Some(Running), Pending, &[Retry, Snoozed, WorkerLost]),
    ]
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub to: RunState,
    pub at: WallMs,
    pub reason: Reason,
    /// The attempt it concerns; 0 when none.
    pub attempt: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1, in order.
    pub number: u32,
    pub fence: Fence,
    pub worker: WorkerName,
    pub process: ProcessId,
    pub assigned: WallMs,
    /// When the worker started it, by the worker's clock.
    pub started: Option<WallMs>,
    pub end: Option<AttemptEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnd {
    pub outcome: AttemptOutcome,
    /// When the server learned of it.
    pub at: WallMs,
    pub duration_ms: u64,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// The status of the answer to a request.
    pub http_status: Option<u16>,
    /// What the task itself said should become of the run.
    pub verdict: Option<Verdict>,
    pub cpu_ms: u64,
    pub peak_memory_bytes: u64,
    /// What went wrong, in words; bounded by [`Limits::ERROR_BYTES`](super::Limits::ERROR_BYTES).
    pub error: Option<String>,
    pub log: Option<LogLocator>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    Succeeded,
    Failed,
    TimedOut,
    Cancelled,
    /// The worker is gone, or stopped the attempt because it could not renew its lease.
    Lost,
    /// It never started.
    Undelivered,
    /// The handler put it off: neither a success nor a failure.
    Snoozed,
}

/// Where an attempt's output ends in the append-only log files; records chain backwards from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLocator {
    /// The file that holds the last record.
    pub file: u32,
    /// Its offset in that file.
    pub offset: u64,
    /// Bytes of output kept.
    pub bytes: u64,
    /// Whether output beyond the bound was dropped.
    pub truncated: bool,
    /// Whose files these are; `None` where the server has no others.
    pub home: Option<Home>,
}

/// A request to cancel, durable when acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    pub at: WallMs,
    pub actor: Actor,
}

impl CancelRequest {
    /// The error of a run that was cancelled because somebody deleted its job.
    pub const JOB_DELETED: &str = "its job was deleted while it waited for its turn";
}

/// How far a running task says it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 100.
    pub percent: u8,
    /// Bounded by [`Limits::PROGRESS_CHARS`](super::Limits::PROGRESS_CHARS).
    pub message: Option<String>,
    /// When the server learned of it.
    pub at: WallMs,
}

/// The newest checkpoint of a run; what it holds lies beside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMark {
    /// From 1, growing over all attempts of the run.
    pub number: u64,
    /// The one that left it; 0 when the run began with it.
    pub attempt: u32,
    pub at: WallMs,
    pub bytes: u32,
}

/// One execution of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub namespace: NamespaceName,
    pub job: JobId,
    pub job_version: u32,
    pub state: RunState,
    pub origin: Origin,
    /// Who asked for it: a token's name, or the schedule.
    pub actor: Actor,
    /// The nominal time of the occurrence; `None` when triggered.
    pub nominal: Option<WallMs>,
    /// When it should start.
    pub due: WallMs,
    pub created: WallMs,
    pub retention: Retention,
    /// Its own parameters; `None` means those of the pinned job version.
    pub params: Option<JsonText>,
    /// The caller's key, handed to user code; `None` means the run id serves.
    pub idempotency_key: Option<String>,
    pub parent_run: Option<RunId>,
    pub root_run: Option<RunId>,
    pub rerun_of: Option<RunId>,
    /// The backfill that made it.
    pub backfill: Option<BackfillMark>,
    pub shard: Option<(u32, u32)>,
    /// No attempt is made before this: it waits to be tried again.
    pub not_before: Option<WallMs>,
    /// If no worker was given it by then, it fails.
    pub start_by: Option<WallMs>,
    /// The key it waits under in the store while it is not held in memory.
    pub parked: Option<String>,
    /// Its part in the overlap of its job.
    pub standing: Standing,
    pub cancel: Option<CancelRequest>,
    pub attempts: Vec<Attempt>,
    pub transitions: Vec<Transition>,
    pub progress: Option<Progress>,
    pub checkpoint: Option<CheckpointMark>,
    pub result: Option<JsonText>,
    /// The cause of FAILED or CANCELLED, in words.
    pub error: Option<String>,
}

impl Run {
    /// Moves to `next` and records why. The caller has checked that the table allows it.
    pub fn transition(&mut self, next: RunState, at: WallMs, reason: Reason) {
        assert!(
            Move::exists(Some(self.state), next, reason),
            "{}: {} may not become {} for the reason {reason:?}",
            self.id,
            self.state.as_str(),
            next.as_str()
        );
        let attempt = self.attempts.last().map_or(0, |attempt| attempt.number);
        self.state = next;
        self.transitions.push(Transition {
            to: next,
            at,
            reason,
            attempt,
        });
    }

    /// How many attempts ended in a way that `fits`.
    pub fn ends_in(&self, fits: impl Fn(AttemptOutcome) -> bool) -> usize {
        let ends = self.attempts.iter().filter_map(|it| it.end.as_ref());
        ends.filter(|end| fits(end.outcome)).count()
    }

    /// Whether an attempt failed: what waits now is tried again.
    pub fn has_failed(&self) -> bool {
        self.ends_in(AttemptOutcome::is_failure) > 0
    }

    pub fn current_attempt(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.end.is_none())
    }

    /// By when it must be given to a worker; `None` when that was done, or when it can wait for ever. What never reached
    /// its worker was not given to it.
    pub fn must_start_by(&self) -> Option<WallMs> {
        let undelivered = |attempt: &Attempt| {
            let end = attempt.end.as_ref();
            end.is_some_and(|end| end.outcome == AttemptOutcome::Undelivered)
        };
        let waits = self.state == RunState::Pending && self.attempts.iter().all(undelivered);
        self.start_by.filter(|_| waits)
    }

    /// From when on it may be given to a worker.
    pub fn ready(&self) -> WallMs {
        self.not_before.map_or(self.due, |at| at.max(self.due))
    }

    pub fn finished(&self) -> Option<WallMs> {
        if self.state.is_terminal() {
            self.transitions.last().map(|transition| transition.at)
        } else {
            None
        }
    }

    /// The key that user code can use to recognise a repetition.
    pub fn key_for_task(&self) -> String {
        self.idempotency_key
            .clone()
            .unwrap_or_else(|| self.id.to_string())
    }
}
