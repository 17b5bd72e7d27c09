//! The names of causes, happenings and remedies: they stay when the words are improved, so that programs can act on them.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a run is where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ExplainedCause")]
pub enum Cause {
    WaitsForItsTime,
    /// Others of its job have not ended.
    WaitsForItsTurn,
    /// The circuit breaker of its job is open, or tries with another run.
    BreakerOpen,
    WaitsToBeTriedAgain,
    WaitsPutOff,
    WaitsForRoom,
    /// As many attempts run as a limit allows.
    WaitsForALimit,
    WaitsForARate,
    QueuePaused,
    /// It is ready, and the workers could not be asked.
    WaitsForAWorker,
    NoWorkerConnected,
    NoWorkerForNamespace,
    NoWorkerOffersIt,
    TooHeavyForEveryWorker,
    WorkersLeaving,
    Given,
    Running,
    WorkerSilent,
    BeingCancelled,
    Completed,
    FailedTooOften,
    /// The task itself said that another try is of no use.
    GivenUp,
    GivenUpByRule,
    LostTooOften,
    /// Stopped by workers that were leaving.
    StoppedTooOften,
    UndeliveredTooOften,
    PutOffTooOften,
    /// No worker was given it in time.
    StartTimedOut,
    /// The version of the job that would say more is gone.
    Failed,
    CancelledWhileWaiting,
    Cancelled,
    /// Its worker did not confirm, and the lease ended.
    CancelledUnconfirmed,
    /// As many of its job were under way as may be.
    FailedForOthers,
    /// A newer run of its job took its place.
    Superseded,
    /// It had waited for its turn for too long.
    Expired,
}

impl Cause {
    pub const ALL: [Self; 35] = [
        Self::WaitsForItsTime,
        Self::WaitsForItsTurn,
        Self::BreakerOpen,
        Self::WaitsToBeTriedAgain,
        Self::WaitsPutOff,
        Self::WaitsForRoom,
        Self::WaitsForALimit,
        Self::WaitsForARate,
        Self::QueuePaused,
        Self::WaitsForAWorker,
        Self::NoWorkerConnected,
        Self::NoWorkerForNamespace,
        Self::NoWorkerOffersIt,
        Self::TooHeavyForEveryWorker,
        Self::WorkersLeaving,
        Self::Given,
        Self::Running,
        Self::WorkerSilent,
        Self::BeingCancelled,
        Self::Completed,
        Self::FailedTooOften,
        Self::GivenUp,
        Self::GivenUpByRule,
        Self::LostTooOften,
        Self::StoppedTooOften,
        Self::UndeliveredTooOften,
        Self::PutOffTooOften,
        Self::StartTimedOut,
        Self::Failed,
        Self::CancelledWhileWaiting,
        Self::Cancelled,
        Self::CancelledUnconfirmed,
        Self::FailedForOthers,
        Self::Superseded,
        Self::Expired,
    ];
}

/// What happened to a run on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ExplainedHappening")]
pub enum Happening {
    Made,
    Repeats,
    Assigned,
    /// Given to another worker than the attempt before.
    Moved,
    WentOnFromCheckpoint,
    Started,
    StartedLate,
    CheckpointSaved,
    CancelRequested,
    Succeeded,
    Failed,
    TimedOut,
    Lost,
    /// The worker had it and does not know it any more.
    Forgotten,
    Undelivered,
    Stopped,
    PutOff,
    StartTimedOut,
    Cancelled,
    /// Steps in the middle of a long life that are not told.
    LeftOut,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ExplainedRemedy")]
pub enum Remedy {
    Nothing,
    ReadOutput,
    FollowOutput,
    LookAtWorkers,
    StartWorker,
    StartHandler,
    MakeRoom,
    LookAtQueue,
    ResumeQueue,
    ResetBreaker,
    ChangeJob,
    /// A run keeps the version of the job that it was made from.
    ReplaceRun,
    TriggerNow,
    Cancel,
    WaitForTheEnd,
    RunAgain,
    GoOnFromCheckpoint,
    ExplainTheRunBefore,
    LookAtRuns,
}
