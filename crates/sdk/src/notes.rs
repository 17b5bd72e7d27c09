//! What an attempt tells of itself while it runs: how far it is, and what a later attempt can go on from.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use drumtower_core::model::{Limits, format_bytes};
use tokio::sync::{mpsc, oneshot};

use crate::executor::Event;
use crate::session::Attempt;

/// Takes the progress and the checkpoints of one attempt. Cheap to clone.
#[derive(Clone)]
pub struct Notes {
    attempt: Attempt,
    events: mpsc::UnboundedSender<Event>,
    /// The newest word that the runtime has not taken: however often it changes, one event is under way.
    newest: Newest,
    last: Option<Arc<[u8]>>,
}

/// A percentage and a message.
pub(crate) type Newest = Arc<Mutex<Option<(u8, String)>>>;

/// Why a checkpoint was not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// So many bytes are too many.
    TooLong(usize),
    /// The attempt is over, or the server is of a version that keeps none.
    NotKept,
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(
                f,
                "the checkpoint has {bytes} bytes, the bound is {}: keep the data elsewhere and save where it is",
                format_bytes(Limits::CHECKPOINT_BYTES as u64)
            ),
            Self::NotKept => f.write_str(
                "the checkpoint was not kept: the attempt is over, or the server is too old for checkpoints",
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl Notes {
    pub(crate) fn new(attempt: Attempt, events: mpsc::UnboundedSender<Event>) -> Self {
        Self {
            attempt,
            events,
            newest: Newest::default(),
            last: None,
        }
    }

    pub(crate) fn begin_with(&mut self, checkpoint: Arc<[u8]>) {
        self.last = Some(checkpoint);
    }

    /// What an earlier attempt left to go on from.
    pub fn last_checkpoint(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// Tells how far the attempt is, in percent and in words. Only the newest is told, at most once a second.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        let message: String = message.into();
        let message = message.chars().take(Limits::PROGRESS_CHARS).collect();
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.replace((percent.min(100), message)).is_none() {
            self.send(Event::Progress(self.attempt, Arc::clone(&self.newest)));
        }
    }

    /// Saves what a later attempt can go on from, and does not wait until it is kept.
    pub fn save(&self, body: impl Into<Arc<[u8]>>) -> Result<(), CheckpointError> {
        self.pass_on(body.into(), None)
    }

    /// Saves it and waits until the server has it on disk.
    pub async fn checkpoint(&self, body: impl Into<Arc<[u8]>>) -> Result<(), CheckpointError> {
        let (settled, kept) = oneshot::channel();
        self.pass_on(body.into(), Some(settled))?;
        match kept.await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(CheckpointError::NotKept),
        }
    }

    fn pass_on(
        &self,
        body: Arc<[u8]>,
        settled: Option<oneshot::Sender<bool>>,
    ) -> Result<(), CheckpointError> {
        if body.len() > Limits::CHECKPOINT_BYTES {
            return Err(CheckpointError::TooLong(body.len()));
        }
        self.send(Event::Checkpoint {
            attempt: self.attempt,
            body,
            settled,
        });
        Ok(())
    }

    /// When the runtime is gone nobody is left to tell.
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}
