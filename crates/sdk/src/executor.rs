//! The seam between the runtime, which talks to servers, and what runs attempts.
//!
//! An executor is given an attempt and a [`Reporter`], and returns a [`Control`] at once. Through the one it tells what
//! happens, through the other it is told to stop. A reporter that is dropped without an end reports that the attempt was
//! given up, so an attempt cannot be forgotten.

use std::sync::Arc;

use drumtower_core::model::{Limits, MonoMs};
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::clock;
use crate::notes::Newest;
use crate::session::{Attempt, StopReason, WINDOW_BYTES};

pub use crate::notes::Notes;

/// Runs attempts of one kind of task.
pub trait Executor: Send + Sync + 'static {
    /// Begins an attempt and returns at once. It must be over by `deadline`, on the clock that counts suspension, unless
    /// [`Control::extend`] moves that.
    fn start(
        &self,
        assign: Box<wire::Assign>,
        deadline: MonoMs,
        reporter: Reporter,
    ) -> Box<dyn Control>;
}

/// The hold on one attempt that runs. Dropping it ends the attempt by force: nobody is left who could renew its lease.
pub trait Control: Send {
    /// The lease was renewed; an earlier deadline than the one in force changes nothing.
    fn extend(&self, deadline: MonoMs);
    /// Ask it to stop.
    fn stop(&self, reason: StopReason);
    /// End it by force.
    fn abort(&self);
}

pub(crate) enum Event {
    Started(Attempt),
    Log {
        attempt: Attempt,
        stream: u32,
        wall_ms: i64,
        data: Vec<u8>,
    },
    Progress(Attempt, Newest),
    Checkpoint {
        attempt: Attempt,
        body: Arc<[u8]>,
        /// Who waits for it to be kept.
        settled: Option<oneshot::Sender<bool>>,
    },
    /// The checkpoint that the attempt begins with, or why there is none.
    Fetched(Attempt, Result<Arc<[u8]>, String>),
    Finished(Attempt, Box<wire::Finished>),
    Refused(Attempt, String),
}

/// Where output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Tells the runtime what becomes of one attempt.
pub struct Reporter {
    output: Output,
    notes: Notes,
    finished: bool,
}

/// Takes the output of one attempt.
#[derive(Clone)]
pub struct Output {
    attempt: Attempt,
    events: mpsc::UnboundedSender<Event>,
    /// Bytes that may be on their way: what bounds the channel.
    room: Arc<Semaphore>,
}

impl Reporter {
    pub(crate) fn new(attempt: Attempt, events: mpsc::UnboundedSender<Event>) -> Self {
        let room = Arc::new(Semaphore::new(WINDOW_BYTES));
        Self {
            notes: Notes::new(attempt, events.clone()),
            output: Output {
                attempt,
                events,
                room,
            },
            finished: false,
        }
    }

    pub(crate) fn room(&self) -> Arc<Semaphore> {
        Arc::clone(&self.output.room)
    }

    pub fn attempt(&self) -> Attempt {
        self.output.attempt
    }

    /// The attempt runs.
    pub fn started(&self) {
        self.output.send(Event::Started(self.output.attempt));
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Progress and checkpoints.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// What an earlier attempt left to go on from.
    pub(crate) fn begin_with(&mut self, checkpoint: Arc<[u8]>) {
        self.notes.begin_with(checkpoint);
    }

    /// The attempt has ended and nothing of it runs. `end` need not name the attempt; the outcome "cancelled" means that
    /// it obeyed [`Control::stop`] or [`Control::abort`].
    pub fn finish(mut self, end: wire::Finished) {
        self.finished = true;
        self.output
            .send(Event::Finished(self.output.attempt, Box::new(end)));
    }

    /// The attempt was not started and will not be here: the server gives it to another worker, or to this one later. Not to
    /// be told after [`Reporter::started`] or after output.
    pub fn refuse(mut self, reason: &str) {
        self.finished = true;
        self.output
            .send(Event::Refused(self.output.attempt, reason.to_owned()));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if !self.finished {
            let mut end = wire::Finished::default();
            end.set_outcome(wire::Outcome::Cancelled);
            self.output
                .send(Event::Finished(self.output.attempt, Box::new(end)));
        }
    }
}

impl Output {
    /// Sends output; waits while too much of it is unacknowledged.
    pub async fn write(&self, stream: OutputStream, data: &[u8]) {
        for part in data.chunks(Limits::LOG_LINE_BYTES) {
            // A part is far below the window, so its length fits.
            match self.room.acquire_many(part.len() as u32).await {
                Ok(permits) => permits.forget(),
                Err(_closed) => return,
            }
            self.write_past_window(stream, part);
        }
    }

    /// Sends output that is bounded by other means, without waiting.
    pub fn write_past_window(&self, stream: OutputStream, data: &[u8]) {
        let stream = match stream {
            OutputStream::Stdout => 1,
            OutputStream::Stderr => 2,
        };
        self.send(Event::Log {
            attempt: self.attempt,
            stream,
            wall_ms: clock::wall().0,
            data: data.to_vec(),
        });
    }

    /// When the runtime is gone nobody is left to tell.
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}
