//! What a session asks of whoever drives it.

use drumtower_core::model::{MonoMs, RunId};
use drumtower_proto::worker::v1 as wire;

use super::LinkId;

/// One attempt of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    pub run: u64,
    pub number: u32,
}

impl Attempt {
    pub fn run_id(self) -> RunId {
        RunId(self.run)
    }
}

impl From<wire::AttemptRef> for Attempt {
    fn from(attempt: wire::AttemptRef) -> Self {
        Self {
            run: attempt.run,
            number: attempt.attempt,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Start this attempt. It must not run beyond `deadline` unless an [`Action::Extend`] moves it.
    Start {
        assign: Box<wire::Assign>,
        deadline: MonoMs,
    },
    /// The lease of these lasts until then. Deadlines never move back.
    Extend {
        attempts: Vec<Attempt>,
        deadline: MonoMs,
    },
    /// Ask it to stop.
    Stop {
        attempt: Attempt,
        reason: StopReason,
    },
    /// Its time to stop is over: end it by force.
    Abort { attempt: Attempt },
    /// Output was acknowledged or dropped: its reader may bring this much more.
    LogRoom { attempt: Attempt, bytes: usize },
    /// Checkpoints of the attempt up to `number` are kept by the server, or will not be.
    CheckpointSettled {
        attempt: Attempt,
        number: u64,
        kept: bool,
    },
    /// Let go of the stream of this link, and dial another one if `again`. If not, and
    /// [`Session::rejection`](super::Session::rejection) says nothing, other links go on: dial again much later.
    Disconnect {
        link: LinkId,
        reason: String,
        again: bool,
    },
}

/// Why an attempt is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The server asked for it: someone cancelled the run, or the attempt has no right to run here.
    Cancelled,
    /// It took longer than its job allows.
    TimedOut,
    /// It said nothing of progress for longer than its job allows.
    NoProgress,
    /// Its lease ends and was not renewed.
    LeaseEnds,
    /// The worker shuts down.
    Draining,
}
