//! The supervisor: one small, single-threaded process above every command an agent runs.
//!
//! It is the same binary as the agent, re-executed with [`ENTRY`] as its first argument; the binary hands over to
//! [`supervise_main`] before it does anything else. Standard input is a socket to the agent, standard output and
//! standard error are the command's own. Frames on the socket are described in [`wire`].
//!
//! ```text
//! waiting ──Start──▶ running ──Kill, run timeout──▶ stopping (SIGTERM sent, grace runs)
//!    │                  │                                │
//!    │ socket closed    │ command exits, lease deadline,  │ tree empty, grace or lease over,
//!    ▼                  ▼ socket closed                   ▼ socket closed
//!  gone              clearing: the whole tree is frozen and killed until none is left ──▶ Exited sent, gone
//! ```
//!
//! Invariants
//! - The tree is every descendant, whatever it did to its session, group, environment or descriptors: the supervisor
//!   is a child subreaper, so an orphan becomes its child. `waitpid` answering "no child" is therefore the proof that
//!   the tree is empty, and the supervisor neither reports an end nor exits before it has that proof. (A process that
//!   cannot be killed, because the kernel holds it in an uninterruptible call, keeps the supervisor waiting.)
//! - The lease deadline is a reading of a clock that counts suspension, and only ever moves forward. It is held here
//!   and not in the agent: a frozen agent cannot keep a command alive. Nor can a dead one, since its socket closes.
//! - The scratch directory belongs to the supervisor: it makes it, and removes it when the tree is gone.
//!
//! Where a version 2 control group may be made, the command also runs in one of its own: the kernel then kills its
//! members at once. The walk over the tree follows all the same, because a privileged command can leave its group.
//!
//! A tree is held to its limits by its control group where that has the controllers. Elsewhere the kernel holds each process to
//! its resource limits, and the supervisor measures the tree and kills what goes beyond them.
//!
//! If the supervisor itself is killed with SIGKILL, the kernel kills the command (parent-death signal), and the agent
//! kills what is left in the supervisor's session and control group. Only a descendant that made its own session
//! survives that, and only where no control group could be made. Work handed to another service (cron, systemd, a
//! container engine) is not part of the tree.
//!
//! Outside Linux there is no subreaper: the supervisor reaches the command's process group only.

pub mod cgroup;
pub(crate) mod clock;
mod launch;
mod link;
pub(crate) mod plain_file;
pub(crate) mod result_file;
pub(crate) mod resume_files;
pub(crate) mod surroundings;
pub(crate) mod sys;
mod watch;
pub mod wire;

#[cfg(target_os = "linux")]
pub(crate) mod tree;
#[cfg(not(target_os = "linux"))]
#[path = "tree_portable.rs"]
pub(crate) mod tree;

use std::process::ExitCode;

pub use clock::BootMs;
pub(crate) use launch::remove_scratch;

/// First argument that turns the binary into a supervisor. Not for people.
pub const ENTRY: &str = "__supervise";

/// Keeps other processes of the same user, tasks above all, from reading the memory of this one, tokens included.
pub fn forbid_inspection() {
    sys::forbid_inspection();
}

/// The whole life of a supervisor process. Call it before any thread is started.
pub fn supervise_main() -> ExitCode {
    match watch::supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drumtower supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}
