//! The Drumtower agent: takes attempts from servers and runs them on this machine.
//!
//! - [`agent`]: dials servers and joins the parts below with the SDK's runtime.
//! - [`supervisor`]: the small process that stands above every command and leaves nothing of it running.
//! - [`exec`]: the executor for argument vectors, the agent's end of a supervisor.
//! - [`load`]: what a heartbeat tells about this machine.
//! - [`open_files`]: how many files this process may have open, and tasks unlike it.

pub mod agent;
pub mod exec;
pub mod load;
pub mod open_files;
pub mod supervisor;
