//! One attempt that runs, or waits for its checkpoint to begin with.

use std::sync::Arc;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::executor::{Control, Reporter};

pub(super) struct Running {
    pub(super) hold: Hold,
    pub(super) room: Arc<Semaphore>,
    /// Those who wait for a checkpoint to be kept, by its number.
    pub(super) saving: Vec<(u64, oneshot::Sender<bool>)>,
}

pub(super) enum Hold {
    Runs(Box<dyn Control>),
    /// It begins when its checkpoint is here.
    Waits(Box<Waits>),
}

pub(super) struct Waits {
    pub(super) assign: Box<wire::Assign>,
    pub(super) deadline: MonoMs,
    pub(super) reporter: Reporter,
    pub(super) _fetching: Fetching,
}

/// Ends with whoever waits for it.
pub(super) struct Fetching(pub(super) AbortHandle);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Running {
    pub(super) fn extend(&mut self, deadline: MonoMs) {
        match &mut self.hold {
            Hold::Runs(control) => control.extend(deadline),
            Hold::Waits(waits) => waits.deadline = waits.deadline.max(deadline),
        }
    }

    /// Checkpoints up to `number` are kept, or will not be.
    pub(super) fn settle(&mut self, number: u64, kept: bool) {
        let saving = std::mem::take(&mut self.saving).into_iter();
        let (settled, waiting): (Vec<_>, Vec<_>) = saving.partition(|(saved, _)| *saved <= number);
        self.saving = waiting;
        for (_, waiter) in settled {
            let _ = waiter.send(kept);
        }
    }
}
