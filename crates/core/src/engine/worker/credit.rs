//! Credit: permission to assign, given and taken back by the worker alone.

use crate::model::ProcessId;

use super::super::{Effect, Engine, StreamId, ToWorker};

impl Engine {
    /// The sum of what was granted on this stream. It only grows, so a repetition changes nothing.
    pub(super) fn grant(&mut self, process: ProcessId, total: u64) {
        let worker = self.fleet.expect_mut(process);
        worker.granted = worker.granted.max(total);
        worker.draining = false;
        self.place_in_lines(process);
    }

    /// Gives unused credit back. The answer goes out behind every assignment that was made against it.
    pub(super) fn recall(&mut self, process: ProcessId, stream: StreamId, id: u64) {
        let worker = self.fleet.expect_mut(process);
        worker.granted = worker.consumed;
        worker.draining = true;
        let consumed = worker.consumed;
        self.place_in_lines(process);
        self.effect(Effect::Send {
            stream,
            message: ToWorker::RecallAnswer { id, consumed },
        });
    }
}
