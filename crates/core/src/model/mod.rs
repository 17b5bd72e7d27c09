//! The nouns of Drumtower and the shape of their rows.
//!
//! Everything here is plain data: ids with a text form, validated names, the definition of a job, the life of a run. The
//! engine changes these values, a store keeps them, the API shows them; none of them knows how.

mod calendar;
mod id;
mod job;
mod json;
mod limits;
mod misfire;
mod name;
mod run;
mod system;
mod time;

pub use calendar::{
    CalendarKind, CalendarRef, CalendarSpec, CalendarVersion, SweepCause, SweepRow, Weekday,
};
pub use id::{
    Epoch, Fence, IdError, JobId, ProcessId, RunId, SegmentId, SessionId, TokenId, id_created_ms,
    id_segment,
};
pub(crate) use id::{raw_floor, raw_next};
pub(crate) use job::check_params;
pub use job::{
    Exec, Handler, JobRecord, JobRow, JobSpec, JobVersion, Overlap, Pause, Placement, Requirement,
    Retention, ScheduleRow, SpecError, Task, TaskNeed, Unfired, UnfiredReason,
};
pub use json::{JsonError, JsonText};
pub use limits::Limits;
pub use misfire::{CatchUp, Misfire, MisfirePolicy};
pub use name::{Actor, CalendarName, JobName, NameError, NamespaceName, WorkerName};
pub use run::{
    Attempt, AttemptEnd, AttemptOutcome, CancelRequest, LogLocator, Origin, Reason, Run, RunState,
    Transition,
};
pub use system::{
    Counters, IdempotencyEntry, IdempotencyHash, Meta, Role, SegmentRow, SessionRow, TokenRow,
};
pub use time::{MonoMs, Now, WallMs};
