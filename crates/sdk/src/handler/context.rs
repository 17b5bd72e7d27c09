//! What a handler knows about the attempt it carries out.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use drumtower_core::model::RunId;
use drumtower_proto::worker::v1 as wire;
use tokio_util::sync::CancellationToken;

use crate::CheckpointError;
use crate::executor::{Notes, Output, OutputStream, Reporter};

/// One attempt of one run. Cheap to clone.
///
/// Triggering a run and recording its end happen exactly once; what a handler does happens *at least* once: a worker can
/// die after the deed and before the report. [`Context::idempotency_key`] is the same for every attempt of a run, and
/// [`Context::fence`] grows with every attempt: hand it to a store that refuses a smaller one, and a late attempt can do no
/// harm.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    assign: Box<wire::Assign>,
    attempt: wire::AttemptRef,
    cancel: CancellationToken,
    output: Output,
    notes: Notes,
}

impl Context {
    pub(super) fn new(
        assign: Box<wire::Assign>,
        cancel: CancellationToken,
        reporter: &Reporter,
    ) -> Self {
        let attempt = assign.attempt.unwrap_or_default();
        Self {
            inner: Arc::new(Inner {
                assign,
                attempt,
                cancel,
                output: reporter.output().clone(),
                notes: reporter.notes().clone(),
            }),
        }
    }

    pub fn run_id(&self) -> RunId {
        RunId(self.inner.attempt.run)
    }

    /// From 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt.attempt
    }

    /// Grows with every attempt of a run.
    pub fn fence(&self) -> u64 {
        self.inner.attempt.fence
    }

    /// The same for every attempt of a run: what the caller gave, or the run's id.
    pub fn idempotency_key(&self) -> &str {
        &self.inner.assign.idempotency_key
    }

    pub fn namespace(&self) -> &str {
        &self.inner.assign.namespace
    }

    pub fn job(&self) -> &str {
        &self.inner.assign.job
    }

    pub fn job_version(&self) -> u32 {
        self.inner.assign.job_version
    }

    /// The time in the schedule that this run stands for; `None` when it was triggered by hand.
    pub fn nominal_time(&self) -> Option<SystemTime> {
        self.inner.assign.nominal_wall_ms.map(from_wall)
    }

    /// When the run should start.
    pub fn due_time(&self) -> SystemTime {
        from_wall(self.inner.assign.due_wall_ms)
    }

    /// Resolves when the handler should stop: the run was cancelled, took too long, or its lease could not be renewed. A
    /// handler that does not return soon after is dropped where it waits.
    pub async fn cancelled(&self) {
        self.inner.cancel.cancelled().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.is_cancelled()
    }

    /// Writes a line to the run's log. Waits while too much output is on its way to the server.
    pub async fn log(&self, line: impl AsRef<str>) {
        let mut line = line.as_ref().to_owned();
        line.push('\n');
        self.inner
            .output
            .write(OutputStream::Stdout, line.as_bytes())
            .await;
    }

    /// Tells how far the handler is, in percent and in words; shown with the run. Costs little: only the newest is told,
    /// at most once a second.
    pub fn progress(&self, percent: u8, message: impl Into<String>) {
        self.inner.notes.progress(percent, message);
    }

    /// Saves what a later attempt can go on from, wherever it runs, and waits until the server has it on disk. At most
    /// 1 MiB; each takes the place of the one before. It never goes back: what a handler that has lost its lease still
    /// saves is refused.
    pub async fn checkpoint(&self, body: impl Into<Vec<u8>>) -> Result<(), CheckpointError> {
        self.inner.notes.checkpoint(body.into()).await
    }

    /// What an earlier attempt saved last; `None` when there is nothing to go on from.
    pub fn last_checkpoint(&self) -> Option<&[u8]> {
        self.inner.notes.last_checkpoint()
    }
}

fn from_wall(wall_ms: i64) -> SystemTime {
    let span = Duration::from_millis(wall_ms.unsigned_abs());
    let time = if wall_ms >= 0 {
        UNIX_EPOCH.checked_add(span)
    } else {
        UNIX_EPOCH.checked_sub(span)
    };
    time.unwrap_or(UNIX_EPOCH)
}
