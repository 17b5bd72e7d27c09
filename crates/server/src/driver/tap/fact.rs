//! What became true, in few words: enough to count, to show and to notify, without the rows themselves.
//!
//! Servers of one store tell each other their facts as JSON, but for those about workers: each has its own.

use std::sync::Arc;

use drumtower_core::engine::WorkerState;
use drumtower_core::model::{
    BackfillHold, BackfillId, BackfillState, CalendarName, JobId, JobName, NamespaceName, Progress,
    QueueRef, Reason, RunId, RunState, UnfiredReason, WallMs, WorkerName,
};
use serde::{Deserialize, Serialize};

/// How much of an error a fact carries; the run itself has it whole.
pub const ERROR_BYTES: usize = 512;

/// Facts that became true together, in order.
#[derive(Debug)]
pub struct Chunk {
    /// The number of the first of them; the others follow without gaps.
    pub first: u64,
    pub facts: Vec<Fact>,
    /// Whether another server told them.
    pub foreign: bool,
    /// How many the other server told of without saying which; then there are none here.
    pub lost: u64,
}

impl Chunk {
    /// What it takes of the room for facts.
    pub fn weight(&self) -> usize {
        self.facts.len().max(1)
    }

    /// The number after the last of them.
    pub fn end(&self) -> u64 {
        self.first + self.facts.len() as u64 + self.lost
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    Run(RunFact),
    Job(JobFact),
    Calendar(CalendarFact),
    Unfired(UnfiredFact),
    #[serde(skip)]
    Worker(WorkerFact),
    Queue(QueueFact),
    Backfill(BackfillFact),
    Breaker(BreakerFact),
}

/// A job by all that it is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobKey {
    pub id: JobId,
    pub namespace: NamespaceName,
    pub name: JobName,
}

/// A run as a commit left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFact {
    pub run: RunId,
    pub job: Arc<JobKey>,
    /// Its job is gone; perhaps another goes by the same name.
    pub job_deleted: bool,
    pub state: RunState,
    /// This commit made the run.
    pub made: bool,
    /// This is the first fact that shows that it has started.
    pub started_now: bool,
    pub created: WallMs,
    /// When it should start.
    pub due: WallMs,
    /// When it got into its state.
    pub at: WallMs,
    /// How many attempts there have been, the current one among them.
    pub attempts: u32,
    /// When its first attempt was given to a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned: Option<WallMs>,
    /// When an attempt of it first started, by the worker's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<WallMs>,
    /// The worker of its last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// How far it says it is, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<Progress>>,
    /// Present when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    pub reason: Reason,
    /// Of the last attempt.
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Of all attempts together.
    pub cpu_ms: u64,
    pub peak_memory_bytes: u64,
    /// The beginning of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFact {
    pub job: Arc<JobKey>,
    pub deed: JobDeed,
    pub version: u32,
    pub revision: u64,
    pub at: WallMs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobDeed {
    Put,
    Paused,
    Resumed,
    Deleted,
}

impl JobDeed {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Deleted => "deleted",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalendarFact {
    pub namespace: NamespaceName,
    pub name: CalendarName,
    pub version: u32,
    pub deleted: bool,
    pub at: WallMs,
}

/// Times of a job's schedule that made no run. A range that grows is told again with the same `first`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnfiredFact {
    pub job: Arc<JobKey>,
    pub first: WallMs,
    pub last: WallMs,
    pub count: u64,
    pub reason: UnfiredReason,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorkerFact {
    pub name: WorkerName,
    pub namespace: Option<NamespaceName>,
    pub deed: WorkerDeed,
    /// As it is, or as it was when it left.
    pub state: WorkerState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerDeed {
    Joined,
    Changed,
    Left,
}

impl WorkerDeed {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Changed => "changed",
            Self::Left => "left",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueFact {
    pub queue: QueueRef,
    /// What was done to it last.
    pub deed: JobDeed,
    pub revision: u64,
    pub at: WallMs,
}

/// A backfill as a commit left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackfillFact {
    pub id: BackfillId,
    pub namespace: NamespaceName,
    pub job: JobName,
    pub job_id: JobId,
    pub state: BackfillState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<BackfillHold>,
    pub times: u64,
    pub made: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub skipped: u64,
    pub active: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<WallMs>,
}

/// The circuit breaker of a job came to another state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakerFact {
    pub job: Arc<JobKey>,
    pub turn: BreakerTurn,
    /// Until when it lets nothing through, when it has opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<WallMs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakerTurn {
    /// It lets nothing through, for the first time or again.
    Opened,
    /// One run was let through as the probe.
    Probing,
    Closed,
}

impl BreakerTurn {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Probing => "probing",
            Self::Closed => "closed",
        }
    }
}

impl Fact {
    /// The namespace it belongs to; `None` for a worker that serves all.
    pub fn namespace(&self) -> Option<&NamespaceName> {
        match self {
            Self::Run(run) => Some(&run.job.namespace),
            Self::Job(job) => Some(&job.job.namespace),
            Self::Calendar(calendar) => Some(&calendar.namespace),
            Self::Unfired(unfired) => Some(&unfired.job.namespace),
            Self::Worker(worker) => worker.namespace.as_ref(),
            Self::Queue(queue) => Some(&queue.queue.namespace),
            Self::Backfill(backfill) => Some(&backfill.namespace),
            Self::Breaker(breaker) => Some(&breaker.job.namespace),
        }
    }
}
