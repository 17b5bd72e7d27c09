//! The engine.

mod effect;
mod fleet_view;
mod input;

pub use effect::{Assign, Effect, Refusal, Reply, ToWorker, Triggered};
pub use fleet_view::{WorkerState, WorkerView};
pub use input::{
    AttemptRef, Command, Condition, Finished, Heartbeat, Hello, Input, JobRef, LOAD_ROWS, Load, LoadKey, LoadRequest,
    Loaded, LoadedRow, NewToken, StreamId, Ticket, Trigger, WorkerEvent,
};
