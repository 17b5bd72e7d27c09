//! Events from workers: one file each. What arrives on a stream that is not its process's current one is dropped.

mod conclude;
mod connect;
mod credit;
mod disconnect;
mod finish_attempt;
mod heartbeat;
mod lose_attempt;
mod report_progress;
mod save_checkpoint;
mod start_attempt;

use crate::model::{Now, ProcessId};

use super::{AttemptRef, Engine, StreamId, WorkerEvent};

/// Attempts of other servers that are remembered of a worker: as many as one may run at once.
const UNHEARD: usize = 20_000;

pub(super) use report_progress::Reports;

impl Engine {
    pub(super) fn worker_event(&mut self, now: Now, stream: StreamId, event: WorkerEvent) {
        if let WorkerEvent::Connected(hello) = event {
            self.connect(now, stream, hello);
            return;
        }
        let Some(process) = self.fleet.current(stream) else {
            return;
        };
        match event {
            WorkerEvent::Connected(_) => {}
            WorkerEvent::Heartbeat(heartbeat) => self.heartbeat(now, process, stream, heartbeat),
            WorkerEvent::Granted { total } => self.grant(process, total),
            WorkerEvent::Recalled { id, stays } => self.recall(process, stream, id, stays),
            WorkerEvent::Started { attempt, at } => {
                if !self.is_for_another(process, attempt) {
                    self.start_attempt(now, process, attempt, at);
                }
            }
            WorkerEvent::Finished(finished) => self.finish_attempt(now, process, stream, finished),
            WorkerEvent::Refused { attempt, reason } => {
                self.refuse_attempt(now, process, attempt, &reason)
            }
            WorkerEvent::Progress {
                attempt,
                percent,
                message,
            } => self.report_progress(now, process, attempt, percent, message),
            WorkerEvent::Checkpoint {
                attempt,
                checkpoint,
            } => self.save_checkpoint(now, process, stream, attempt, checkpoint),
            WorkerEvent::Goodbye => self.goodbye(now, process),
            WorkerEvent::Disconnected => self.disconnect(process, stream),
        }
    }

    /// Whether a worker speaks of what another server owns. It is not heard then, and nothing is acknowledged: it says it again
    /// to whoever it is told to, or on another stream. One that keeps a stream to each server has to do so too should the
    /// segment come back on this one.
    fn is_for_another(&mut self, process: ProcessId, attempt: AttemptRef) -> bool {
        if self.segments.owned().contains(attempt.run.segment()) {
            return false;
        }
        let worker = self.fleet.expect_mut(process);
        if worker.hello.links && worker.unheard.len() < UNHEARD {
            worker.unheard.insert(attempt);
        }
        true
    }
}
