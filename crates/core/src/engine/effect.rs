//! What comes out of a step and is performed only after the commit that made it true.

use crate::model::{
    BackfillId, BackfillRow, BackfillState, CalendarRef, CalendarVersion, CheckpointMark, DrainRow,
    JobName, JobRecord, LockRef, LockRow, NamespaceName, Pass, QueueRef, QueueRow, Run, RunId,
    SegmentSet, SettingName, SettingRow, SpecError, Task, TokenRow, WallMs, WorkerName,
};

use super::{AttemptRef, JobRef, StreamId, Ticket};

#[derive(Clone, Debug)]
pub enum Effect {
    Reply {
        ticket: Ticket,
        reply: Result<Reply, Refusal>,
    },
    Send {
        stream: StreamId,
        message: ToWorker,
    },
    /// The server ends the stream.
    Close {
        stream: StreamId,
        reason: &'static str,
        again: bool,
    },
    /// A run changed in a way that someone may be waiting for.
    RunChanged {
        run: RunId,
    },
    /// Something that whoever runs the server should see.
    Alarm {
        text: String,
    },
    /// The table of tokens changed.
    TokensChanged,
    /// A setting changed.
    SettingsChanged,
}

#[derive(Clone, Debug)]
pub enum Reply {
    /// `created` tells a new job from a changed or unchanged one.
    Job {
        record: Box<JobRecord>,
        created: bool,
    },
    /// `created` tells a new calendar from a changed or unchanged one.
    Calendar {
        version: Box<CalendarVersion>,
        created: bool,
    },
    Deleted,
    /// The dead letters that are no more.
    Discarded(Vec<RunId>),
    Triggered(Vec<Result<Triggered, Refusal>>),
    /// The run as it stands; a run that had already ended is returned as it ended.
    Run(Box<Run>),
    Token(Box<TokenRow>),
    /// `created` tells a new setting from a changed or unchanged one.
    Setting {
        row: Box<SettingRow>,
        created: bool,
    },
    /// `created` tells a new queue from a changed or unchanged one.
    Queue {
        row: Box<QueueRow>,
        created: bool,
    },
    /// The caller holds it.
    Lock(Box<LockRow>),
    /// The drain that is in force, if any is.
    Drain(Option<Box<DrainRow>>),
    /// Nothing is held against the worker; `changed` tells whether anything was.
    Reset {
        changed: bool,
    },
    /// `repeated` when the key was known: this is the backfill of the first request.
    Backfill {
        row: Box<BackfillRow>,
        repeated: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggered {
    pub run: RunId,
    /// The key was known: this is the run of the first request.
    pub repeated: bool,
}

/// Why a command was not carried out. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("another server owns {0:?}: ask that one")]
    Elsewhere(Box<SegmentSet>),
    #[error("there is no job `{}` in namespace `{}`", .0.name, .0.namespace)]
    NoSuchJob(JobRef),
    #[error("there is no calendar `{}` in namespace `{}`", .0.name, .0.namespace)]
    NoSuchCalendar(CalendarRef),
    #[error("there is already a calendar `{}` in namespace `{}`", .0.name, .0.namespace)]
    CalendarThere(CalendarRef),
    #[error("calendar `{}` is used by job `{job}`: take it out of the job's `calendar` first", calendar.name)]
    CalendarInUse { calendar: CalendarRef, job: JobName },
    #[error("calendar `{}` stands at version {current}, not {given}: read it again and repeat the edit", calendar.name)]
    StaleCalendar {
        calendar: CalendarRef,
        given: u64,
        current: u32,
    },
    #[error("there are already {0} calendars: delete one that no job uses")]
    TooManyCalendars(usize),
    #[error("there is no queue `{}` in namespace `{}`", .0.name, .0.namespace)]
    NoSuchQueue(QueueRef),
    #[error("there is already a queue `{}` in namespace `{}`", .0.name, .0.namespace)]
    QueueThere(QueueRef),
    #[error("queue `{}` stands at revision {current}, not {given}: read it again and repeat the edit", queue.name)]
    StaleQueue {
        queue: QueueRef,
        given: u64,
        current: u64,
    },
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    #[error(
        "{0} is not a dead letter: it was requeued, discarded or too old, or never failed for good"
    )]
    NoSuchLetter(RunId),
    #[error("there is no backfill {0}")]
    NoSuchBackfill(BackfillId),
    #[error("{id} is {}: create another backfill", state.as_str())]
    BackfillOver {
        id: BackfillId,
        state: BackfillState,
    },
    #[error(
        "{0} goes through times of the same interval and is not over: wait for it, cancel it, or give another interval"
    )]
    BackfillInTheWay(BackfillId),
    #[error(
        "the namespace has {0} backfills that are not over already: wait for one, or cancel one"
    )]
    TooManyBackfills(usize),
    #[error("{id} stands at revision {current}, not {given}: read it again and repeat the change")]
    StaleBackfill {
        id: BackfillId,
        given: u64,
        current: u64,
    },
    #[error("there is no token {0}")]
    NoSuchToken(crate::model::TokenId),
    #[error("{0}")]
    Invalid(SpecError),
    #[error("the job stands at revision {current}, not {given}: read it again and repeat the edit")]
    Stale { given: u64, current: u64 },
    #[error("setting `{0}` is not set here")]
    NoSuchSetting(SettingName),
    #[error("there is already a setting `{0}`")]
    SettingThere(SettingName),
    #[error(
        "setting `{name}` stands at revision {current}, not {given}: read it again and repeat the edit"
    )]
    StaleSetting {
        name: SettingName,
        given: u64,
        current: u64,
    },
    #[error("there is already a job `{}` in namespace `{}`", .0.name, .0.namespace)]
    AlreadyThere(JobRef),
    #[error("idempotency key `{0}` was used for another request within 24 hours: use a new key")]
    KeyReused(String),
    #[error(
        "{limit} of job `{}`{} {} not ended{}: wait for one, or trigger without `overlap: obey`",
        job.name,
        of_key(key),
        if *limit == 1 { "has" } else { "have" },
        in_queue(waiting)
    )]
    OverlapFull {
        job: JobRef,
        limit: u32,
        key: Option<String>,
        /// How many wait for their turn, where they do.
        waiting: Option<u32>,
    },
    #[error(
        "runs of the job are under way for {0} keys of its overlap already: wait for some to end"
    )]
    TooManyOverlapKeys(usize),
    #[error("the circuit breaker of job `{}` is open {}: see to what fails, then reset the breaker; or trigger with `force`", job.name, until(pass))]
    BreakerOpen { job: JobRef, pass: Pass },
    #[error("lock `{}` is held by `{}`: wait for it, or ask later", .0.lock.name, .0.owner)]
    LockHeld(Box<LockRow>),
    #[error("lock `{}` is not held under this fence any more: stop what it guards and acquire it again", .0.name)]
    LockLost(LockRef),
    #[error("the namespace holds {0} locks already: release some")]
    TooManyLocks(usize),
    #[error("{0} wait for this lock already: ask again later")]
    TooManyWaiters(usize),
    #[error("{0} wait for locks of the namespace already: ask again later")]
    TooManyWaitersInNamespace(usize),
    #[error("there is no worker `{0}`, connected, lost lately or drained")]
    NoSuchWorker(WorkerName),
    #[error("{0} names of workers are drained already: resume some")]
    TooManyDrains(usize),
    #[error("there is already a token named `{0}`: choose another name")]
    TokenNameTaken(String),
}

fn of_key(key: &Option<String>) -> String {
    key.as_ref()
        .map_or_else(String::new, |key| format!(" with the key {key}"))
}

fn in_queue(waiting: &Option<u32>) -> String {
    waiting.map_or_else(String::new, |depth| format!(", and {depth} wait already"))
}

fn until(pass: &Pass) -> String {
    match pass {
        Pass::Cooling(at) => match jiff::Timestamp::from_millisecond(at.0) {
            Ok(at) => format!("until {at}"),
            Err(_) => "for long".to_owned(),
        },
        Pass::Probing(run) => format!("until {run} has shown whether all is well again"),
        Pass::Closed | Pass::Probe => String::new(),
    }
}

/// Messages to a worker, in the engine's own words.
#[derive(Clone, Debug)]
pub enum ToWorker {
    Welcome {
        lease_ms: u64,
        heartbeat_ms: u64,
    },
    /// The lease of everything that heartbeat `beat` named runs from when it was sent, but for what is `elsewhere`.
    Renew {
        beat: u64,
        elsewhere: Vec<AttemptRef>,
    },
    /// Runs wait that it could take, had it given credit for so much more.
    Want {
        weight: u32,
    },
    Assign(Box<Assign>),
    Cancel {
        attempt: AttemptRef,
        reason: &'static str,
    },
    FinishAck {
        attempt: AttemptRef,
    },
    /// Checkpoints up to `number` are settled: kept, or refused because the attempt is over.
    CheckpointAck {
        attempt: AttemptRef,
        number: u64,
        kept: bool,
    },
    RecallAnswer {
        id: u64,
        consumed: u64,
    },
}

#[derive(Clone, Debug)]
pub struct Assign {
    pub position: u64,
    pub attempt: AttemptRef,
    pub beat: u64,
    pub namespace: NamespaceName,
    pub job: crate::model::JobName,
    pub job_version: u32,
    pub task: Task,
    pub params: Option<crate::model::JsonText>,
    pub idempotency_key: String,
    pub nominal: Option<WallMs>,
    pub due: WallMs,
    pub timeout_ms: u64,
    /// How long it may go without a word of progress.
    pub progress_timeout_ms: Option<u64>,
    /// What an earlier attempt left to go on from.
    pub checkpoint: Option<CheckpointMark>,
    pub weight: u32,
}
