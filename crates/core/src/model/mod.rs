//! The nouns of Drumtower and the shape of their rows.
//!
//! Everything here is plain data: ids with a text form, validated names, the definition of a job, the life of a run. The
//! engine changes these values, a store keeps them, the API shows them; none of them knows how.

mod after;
mod audit_entry;
mod backfill;
mod breaker;
mod calendar;
mod checkpoint;
mod diff;
mod drain;
mod gate;
mod id;
mod job;
mod job_settings;
mod json;
mod judgement;
mod limit;
mod limits;
mod lock;
mod loss;
mod misfire;
mod name;
mod notify;
mod outcome;
mod overlap;
mod queue;
mod rate_row;
mod requirement;
mod retry;
mod run;
mod segment_set;
mod setting;
mod system;
mod task;
mod tie;
mod time;

pub use after::{After, AfterOn, AfterRow, Arrival, Ending, Need, Unmade};
pub use audit_entry::{AuditAction, AuditEntry, AuditKind, AuditObject};
pub use backfill::{
    BackfillHold, BackfillMark, BackfillOrder, BackfillPlan, BackfillRow, BackfillState,
    BackfillWhich,
};
pub use breaker::{Breaker, BreakerPolicy, BreakerRow, Open, Pass};
pub use calendar::{
    CalendarKind, CalendarRef, CalendarSpec, CalendarVersion, SweepCause, SweepRow, Weekday,
};
pub use checkpoint::Checkpoint;
pub use diff::{Change, diff};
pub use drain::{DrainRow, WorkerRef, check_drain_deadline};
pub use gate::{GateKey, parked_at, pen_key};
pub use id::{
    AuditId, BackfillId, Epoch, Fence, Home, IdError, JobId, ProcessId, RunId, SegmentId,
    SessionId, TokenId, id_created_ms, id_floor, id_segment,
};
pub(crate) use id::{raw_floor, raw_next};
pub(crate) use job::check_params;
pub use job::{
    JobRecord, JobRow, JobSpec, JobVersion, Pause, Placement, Retention, ScheduleRow, SpecError,
    Unfired, UnfiredReason,
};
pub use job_settings::{JobCeilings, JobDefaults, JobSettings};
pub use json::{JsonError, JsonText};
pub use judgement::{AgainBy, Finality, Judgement};
pub use limit::{JobLimits, ParsedLimits, PerKey, key_value, key_words};
pub use limits::Limits;
pub(crate) use lock::check_ttl;
pub use lock::{LockRef, LockRequest, LockRow};
pub use loss::LossCause;
pub use misfire::{CatchUp, Misfire, MisfirePolicy};
pub use name::{
    Actor, CalendarName, JobName, LockName, NameError, NamespaceName, QueueName, WorkerName,
};
pub use notify::{Notify, NotifyOn, NotifyRule};
pub use outcome::{CountsAs, OUTCOMES, Outcome};
pub use overlap::{Keep, Obedience, OnFull, Overlap, OverlapPolicy, Places, Standing, Tallies};
pub use queue::{QueueKind, QueueRef, QueueRow, QueueSpec};
pub use rate_row::RateRow;
pub use requirement::{Requirement, TaskNeed};
pub use retry::{Backoff, DeadLetter, Retry, RetryAction, RetryPolicy, RetryRule, Ruling, Verdict};
pub use run::{
    Attempt, AttemptEnd, AttemptOutcome, CancelRequest, CheckpointMark, LogLocator, MOVES, Move,
    Origin, Progress, Reason, Run, RunState, Transition, failures,
};
pub use segment_set::SegmentSet;
pub use setting::{SettingKey, SettingName, SettingRow};
pub use system::{
    Counters, IdempotencyEntry, IdempotencyHash, Member, Meta, RequestId, Role, SegmentRow,
    SessionRow, TokenRow,
};
pub use task::{
    Cores, Exec, Expect, Handler, Http, Method, Process, ResourceLimits, Script, StatusPattern,
    Task, format_bytes,
};
pub use time::{MonoMs, Now, WallMs, instant};
