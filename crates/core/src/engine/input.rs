//! What goes into a step: commands from the edge, events from workers, rows that were asked for, the passing of time.

use std::collections::BTreeMap;

use crate::backfill::Page;
use crate::model::{
    Actor, AttemptOutcome, BackfillId, BackfillOrder, BackfillPlan, BackfillRow, BackfillWhich,
    CalendarRef, CalendarSpec, Checkpoint, DrainRow, Ending, Fence, IdempotencyEntry,
    IdempotencyHash, JobId, JobName, JobRecord, JobSpec, JobVersion, JsonText, LockRef,
    LockRequest, LogLocator, NamespaceName, Obedience, ProcessId, QueueRef, QueueSpec, RequestId,
    Run, RunId, SegmentSet, SessionId, SettingKey, SettingRow, SweepCause, TokenId, Verdict,
    WallMs, WorkerName, WorkerRef,
};

/// Names a caller that waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Names a worker's stream on this server; never reused while the server lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64);

#[derive(Clone, Debug)]
pub enum Input {
    /// Time has passed.
    Tick,
    Command {
        ticket: Ticket,
        actor: Actor,
        command: Command,
    },
    Worker {
        stream: StreamId,
        event: WorkerEvent,
    },
    Loaded(Loaded),
    /// Drains of workers, as the server that writes them has changed them.
    Drains(Vec<DrainRow>),
    /// Settings, as the server that writes them has changed them.
    Settings(Vec<SettingRow>),
    /// Nobody waits any more for the answer to a command: it has not reached anyone, and will not.
    CallerGone(Ticket),
}

#[derive(Clone, Debug)]
pub enum Command {
    PutJob {
        spec: Box<JobSpec>,
        condition: Condition,
    },
    PauseJob {
        job: JobRef,
        condition: Condition,
    },
    ResumeJob {
        job: JobRef,
        condition: Condition,
    },
    DeleteJob {
        job: JobRef,
        condition: Condition,
    },
    /// Closes the job's circuit breaker.
    ResetBreaker {
        job: JobRef,
    },
    PutCalendar {
        spec: CalendarSpec,
        condition: Condition,
    },
    /// Refused while a job uses it.
    DeleteCalendar {
        calendar: CalendarRef,
        condition: Condition,
    },
    PutQueue {
        spec: QueueSpec,
        condition: Condition,
    },
    PauseQueue {
        queue: QueueRef,
        condition: Condition,
    },
    ResumeQueue {
        queue: QueueRef,
        condition: Condition,
    },
    DeleteQueue {
        queue: QueueRef,
        condition: Condition,
    },
    TriggerRuns {
        triggers: Vec<Trigger>,
    },
    /// `scope` is the one namespace the caller may act in; `None` means all.
    CancelRun {
        run: RunId,
        scope: Option<NamespaceName>,
    },
    /// Runs of the namespace that are dead letters are no more.
    DiscardLetters {
        namespace: NamespaceName,
        runs: Vec<RunId>,
    },
    CreateBackfill {
        backfill: Box<NewBackfill>,
    },
    /// `scope` is the one namespace the caller may act in, here and below; `None` means all.
    PauseBackfill {
        backfill: BackfillId,
        scope: Option<NamespaceName>,
        condition: Condition,
    },
    ResumeBackfill {
        backfill: BackfillId,
        scope: Option<NamespaceName>,
        condition: Condition,
    },
    /// Waiting runs of it are cancelled; those that a worker has are asked to stop only with `runs`.
    CancelBackfill {
        backfill: BackfillId,
        scope: Option<NamespaceName>,
        condition: Condition,
        runs: bool,
    },
    CreateToken {
        token: NewToken,
    },
    RevokeToken {
        id: TokenId,
    },
    PutSetting {
        key: SettingKey,
        value: JsonText,
        condition: Condition,
    },
    DeleteSetting {
        key: SettingKey,
        condition: Condition,
    },
    /// These workers get nothing new; after `deadline_ms` what they run is stopped. A repetition without a deadline keeps
    /// the one there is.
    DrainWorker {
        worker: WorkerRef,
        deadline_ms: Option<u64>,
    },
    /// They are in service again.
    ResumeWorker {
        worker: WorkerRef,
    },
    /// What is held against them is forgotten.
    ResetWorker {
        worker: WorkerRef,
    },
    AcquireLock {
        request: LockRequest,
    },
    /// Another term for a hold; `ttl_ms` unless it stays as it is.
    RenewLock {
        lock: LockRef,
        fence: Fence,
        ttl_ms: Option<u64>,
    },
    /// Ends the hold of `fence`; without one, whichever there is.
    ReleaseLock {
        lock: LockRef,
        fence: Option<Fence>,
    },
}

/// The caller's condition on the row it edits, from `If-Match` and `If-None-Match`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Any,
    /// Only if the row stands at this revision.
    Revision(u64),
    /// Only if there is no such row.
    Absent,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobRef {
    pub namespace: NamespaceName,
    pub name: JobName,
}

#[derive(Clone, Debug)]
pub struct Trigger {
    pub job: JobRef,
    /// Instead of the job's own.
    pub params: Option<JsonText>,
    pub idempotency_key: Option<String>,
    /// By which it is known again when another server sends it twice, where the caller gave no key.
    pub request: Option<RequestId>,
    /// When the run is due; at once unless given.
    pub when: Option<When>,
    /// The run that this one repeats.
    pub rerun: Option<Box<Rerun>>,
    pub overlap: Obedience,
    /// It is made even if the job's breaker is open.
    pub force: bool,
}

impl Trigger {
    /// A run of the job as it is, at once.
    pub fn of(job: JobRef) -> Self {
        Self {
            job,
            params: None,
            idempotency_key: None,
            request: None,
            when: None,
            rerun: None,
            overlap: Obedience::Ignore,
            force: false,
        }
    }
}

/// What a repetition takes from the run it repeats. Runs that ended and versions never change, so whoever asks has read
/// them from the store.
#[derive(Clone, Debug)]
pub struct Rerun {
    pub of: RunId,
    pub job: JobId,
    /// The time it stands for, if a schedule made it.
    pub nominal: Option<WallMs>,
    /// Its own parameters, unless the trigger brings others.
    pub params: Option<JsonText>,
    /// The definition it was made from; `None` means the job's current one.
    pub version: Option<JobVersion>,
    /// What it goes on from, instead of from the beginning.
    pub checkpoint: Option<Checkpoint>,
    /// It is a dead letter, which the new run takes the place of; refused when it is none any more.
    pub letter: bool,
}

/// The time of a run that does not start at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    At(WallMs),
    /// So many milliseconds after the request is carried out.
    After(u64),
}

/// A backfill to begin. Versions never change, so whoever asks has read the job's current one from the store, and counted
/// the times of its schedule.
#[derive(Clone, Debug)]
pub struct NewBackfill {
    pub job: JobRef,
    pub version: JobVersion,
    pub plan: BackfillPlan,
    /// How many times the schedule has in the interval.
    pub times: u64,
    pub idempotency_key: Option<String>,
}

/// A token to be kept: the edge drew the secret and hashed it.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub role: crate::model::Role,
    pub namespace: Option<NamespaceName>,
    pub hash: [u8; 32],
}

/// One attempt of one run, as a worker names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttemptRef {
    pub run: RunId,
    pub attempt: u32,
    pub fence: Fence,
}

#[derive(Clone, Debug)]
pub enum WorkerEvent {
    Connected(Hello),
    Heartbeat(Heartbeat),
    Granted {
        total: u64,
    },
    /// `stays` tells a worker that moves its credit from one that is about to leave.
    Recalled {
        id: u64,
        stays: bool,
    },
    Started {
        attempt: AttemptRef,
        at: WallMs,
    },
    Finished(Finished),
    Refused {
        attempt: AttemptRef,
        reason: String,
    },
    /// `percent` is at most 100; the message is bounded.
    Progress {
        attempt: AttemptRef,
        percent: u8,
        message: Option<String>,
    },
    Checkpoint {
        attempt: AttemptRef,
        checkpoint: Checkpoint,
    },
    /// It leaves for good and holds nothing.
    Goodbye,
    /// The stream broke.
    Disconnected,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    pub worker: WorkerName,
    pub process: ProcessId,
    /// The worker's own number of the stream.
    pub stream_number: u64,
    /// The namespace its token is bound to; `None` means all.
    pub namespace: Option<NamespaceName>,
    pub host: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    pub exec: bool,
    pub http: bool,
    pub enforcement: Enforcement,
    pub handlers: Vec<String>,
    pub capacity: u32,
    /// It keeps a stream to each server, and heeds what a renewal says to be elsewhere.
    pub links: bool,
}

/// How a worker holds commands to their limits, in its own words: shown, never judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enforcement {
    pub by: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    pub number: u64,
    pub acked_position: u64,
    pub held: Vec<AttemptRef>,
    pub load: Load,
    /// The worker's wall clock when it was sent.
    pub wall: WallMs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub cpu_permille: u32,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
    pub disk_used_bytes: u64,
    pub disk_total_bytes: u64,
    pub network_received_bytes_per_s: u64,
    pub network_sent_bytes_per_s: u64,
    pub running_weight: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    pub attempt: AttemptRef,
    pub outcome: AttemptOutcome,
    /// `None` when it never did.
    pub started: Option<WallMs>,
    pub duration_ms: u64,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub http_status: Option<u16>,
    pub verdict: Option<Verdict>,
    pub cpu_ms: u64,
    pub peak_memory_bytes: u64,
    pub result: Option<JsonText>,
    pub error: Option<String>,
    pub log: Option<LogLocator>,
}

/// What the engine asks the store for. Answered by the [`Loaded`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadKey {
    /// A job by name; deleted ones do not answer.
    JobNamed(JobRef),
    /// A run that is not held in memory.
    Run(RunId),
    Idempotency(IdempotencyHash),
    /// Whether a run is a dead letter.
    Letter(RunId),
    /// A backfill that is not held in memory.
    Backfill(BackfillId),
    /// A page of the times that a backfill goes through.
    Times(TimesWanted),
    /// Jobs due before a time, after a place in the order (next_due, id).
    Due {
        before: WallMs,
        after: Option<(WallMs, JobId)>,
    },
    /// The first runs of those parked under the key of a queue.
    Queued {
        key: String,
        rows: usize,
    },
    /// Runs of a job that count under a key of its overlap and do not wait for their turn.
    Live {
        job: JobId,
        key: Option<String>,
    },
    /// Runs parked under a key, so many at most.
    Parked {
        key: String,
        after: Option<RunId>,
        rows: usize,
    },
    /// The same, of which some have to go elsewhere; [`LOAD_ROWS`] at most.
    Sorted {
        key: String,
        after: Option<RunId>,
    },
    /// Parked runs that should have started by then, after a place in the order (start_by, id).
    Overdue {
        by: WallMs,
        after: Option<(WallMs, RunId)>,
    },
    /// Jobs that a sweep concerns, after a place in the order of their ids.
    Swept {
        cause: SweepCause,
        after: Option<JobId>,
    },
    /// Jobs that use a calendar: one page is enough to know.
    CalendarUsers(CalendarRef),
    /// Jobs that run after the job of a run that ended, after a place in the order of their ids.
    Followers {
        ending: RunId,
        job: JobRef,
        after: Option<JobId>,
    },
    /// Ends that followers have to be told of.
    Endings,
}

/// The times that a backfill asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimesWanted {
    pub backfill: BackfillId,
    pub job: JobId,
    pub version: u32,
    pub from: WallMs,
    pub to: WallMs,
    pub which: BackfillWhich,
    pub order: BackfillOrder,
    /// The last one that is settled.
    pub after: Option<WallMs>,
}

/// A request to read; `tag` is the last commit that had been acknowledged when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    pub id: u64,
    pub tag: u64,
    /// Whose it is. Once it is revoked, what is read may be another's and is of no use.
    pub session: SessionId,
    /// What it owns: listings bring nothing else.
    pub within: SegmentSet,
    pub keys: Vec<LoadKey>,
    /// By which answers to requests grow old.
    pub now: WallMs,
}

/// How many rows one load of a listing brings at most.
pub const LOAD_ROWS: usize = 2_000;

/// How many followers of a job one load brings at most: each may make a run.
pub const FOLLOWER_ROWS: usize = 250;

/// How many ends that followers have to be told of are held in memory.
pub const ENDING_ROWS: usize = 4_000;

#[derive(Clone, Debug)]
pub struct Loaded {
    pub id: u64,
    pub rows: Vec<LoadedRow>,
}

#[derive(Clone, Debug)]
pub enum LoadedRow {
    JobNamed(JobRef, Option<JobRecord>),
    /// The job of a run that is loaded with it.
    Job(JobRecord),
    Run(RunId, Option<Run>),
    Idempotency(IdempotencyHash, Option<IdempotencyEntry>),
    Letter(RunId, bool),
    Backfill(BackfillId, Option<BackfillRow>),
    Times(TimesWanted, Page),
    /// In order; fewer than [`LOAD_ROWS`] means there are no more.
    Due {
        before: WallMs,
        jobs: Vec<JobRecord>,
    },
    /// In order; `all` says that there are no more. The jobs and pinned versions of the runs come before them, as rows of
    /// their own.
    Parked {
        key: String,
        runs: Vec<Run>,
        all: bool,
    },
    /// In order, likewise; fewer than [`LOAD_ROWS`] means there are no more.
    Sorted {
        key: String,
        runs: Vec<Run>,
    },
    /// In order, likewise, with their jobs and versions before them; `next` is when the first beyond them must start.
    Overdue {
        runs: Vec<Run>,
        next: Option<WallMs>,
    },
    /// In order, likewise with their jobs and versions.
    Queued {
        key: String,
        runs: Vec<Run>,
    },
    /// In order, likewise with their jobs and versions; no more than [`LOAD_ROWS`].
    Live {
        job: JobId,
        key: Option<String>,
        runs: Vec<Run>,
    },
    /// In order; fewer than [`LOAD_ROWS`] means there are no more.
    Swept {
        cause: SweepCause,
        jobs: Vec<JobRecord>,
    },
    CalendarUsers(CalendarRef, Vec<JobRecord>),
    /// In order; fewer than [`FOLLOWER_ROWS`] means there are no more.
    Followers {
        ending: RunId,
        jobs: Vec<JobRecord>,
    },
    /// In order of their runs; fewer than [`ENDING_ROWS`] means there are no more.
    Endings(Vec<Ending>),
    /// A name that no job has and that jobs run after; it comes before the name itself.
    Awaited(JobRef),
    /// A version that a loaded run is pinned to and that is not its job's current one.
    Version(JobVersion),
}
