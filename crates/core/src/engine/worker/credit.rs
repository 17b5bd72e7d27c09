//! Credit: permission to assign, given and taken back by the worker alone.

use crate::model::ProcessId;

use super::super::{Effect, Engine, StreamId, ToWorker};

/// Workers that are looked at for one line at a time.
const LOOKED_AT: usize = 256;

impl Engine {
    /// The sum of what was granted on this stream. It only grows, so a repetition changes nothing.
    pub(super) fn grant(&mut self, process: ProcessId, total: u64) {
        let worker = self.fleet.expect_mut(process);
        worker.granted = worker.granted.max(total);
        worker.wanted = 0;
        worker.draining = false;
        self.place_in_lines(process);
    }

    /// Gives unused credit back. The answer goes out behind every assignment that was made against it.
    pub(super) fn recall(&mut self, process: ProcessId, stream: StreamId, id: u64, stays: bool) {
        let worker = self.fleet.expect_mut(process);
        worker.granted = worker.consumed;
        worker.draining = !stays;
        let consumed = worker.consumed;
        self.place_in_lines(process);
        self.effect(Effect::Send {
            stream,
            message: ToWorker::RecallAnswer { id, consumed },
        });
    }

    /// Asks workers for credit that other servers may have, for lines that nobody has room for. Not all of a large fleet are
    /// asked at once: the others are when they are heard of next.
    pub(in super::super) fn want_credit_of_hungry_lines(&mut self) {
        let hungry = self.lines.take_hungry();
        if self.is_alone() {
            return;
        }
        for line in hungry {
            let weight = self.lines.line(line).requirement.weight;
            for process in self.fleet.some_that_serve(line, LOOKED_AT) {
                self.want_credit(process, weight);
            }
        }
    }

    /// A worker is heard of: runs may wait that it has given no credit for.
    pub(super) fn want_credit_for_lines(&mut self, process: ProcessId) {
        if !self.is_alone()
            && let Some(worker) = self.fleet.get(process)
        {
            let weight = worker.heaviest_waiting(&self.lines);
            self.want_credit(process, weight);
        }
    }

    /// Whether no other server can have credit. One that owns everything is not alone on a store that it shares: what all others
    /// had may have come to it, and they still have workers.
    fn is_alone(&self) -> bool {
        self.options.idle_commit_ms.is_none()
    }

    fn want_credit(&mut self, process: ProcessId, weight: u32) {
        let worker = self.fleet.expect_mut(process);
        let Some(stream) = worker.stream.filter(|_| worker.hello.links) else {
            return;
        };
        if worker.lacks_only_credit()
            && worker.credit() < u64::from(weight)
            && worker.wanted < weight
        {
            worker.wanted = weight;
            let message = ToWorker::Want { weight };
            self.effect(Effect::Send { stream, message });
        }
    }
}
