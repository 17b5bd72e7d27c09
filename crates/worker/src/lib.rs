//! The Drumtower agent: takes attempts from servers and runs them on this machine.
//!
//! - [`supervisor`]: the small process that stands above every command and leaves nothing of it running.
//! - [`exec`]: the executor for argument vectors, the agent's end of a supervisor.
//! - [`load`]: what a heartbeat tells about this machine.

pub mod exec;
pub mod load;
pub mod supervisor;
