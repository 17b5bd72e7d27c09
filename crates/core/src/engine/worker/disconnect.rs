//! A stream ends: by accident, and the worker may be back within its lease; or for good, holding nothing.

use crate::model::{LossCause, Now, ProcessId};

use super::super::{AttemptRef, Effect, Engine, StreamId};

impl Engine {
    /// Nothing is concluded from a broken stream: the worker runs on until its lease ends.
    pub(super) fn disconnect(&mut self, process: ProcessId, stream: StreamId) {
        self.fleet.close_stream(stream);
        let worker = self.fleet.expect_mut(process);
        worker.stream = None;
        worker.doubt();
        worker.forget_stream();
        self.leave_all_lines(process);
    }

    /// The worker says that it leaves and runs nothing: what it was thought to hold is lost.
    pub(super) fn goodbye(&mut self, now: Now, process: ProcessId) {
        if let Some(stream) = self.fleet.expect_mut(process).stream.take() {
            self.fleet.close_stream(stream);
        }
        self.drop_worker(now, process);
    }

    /// Forgets a process that cannot run anything any more.
    pub(in super::super) fn drop_worker(&mut self, now: Now, process: ProcessId) {
        self.leave_all_lines(process);
        let Some(worker) = self.fleet.remove(process) else {
            return;
        };
        if let Some(timer) = worker.timer {
            self.wheel.cancel(timer);
        }
        if let Some(stream) = worker.stream {
            self.effect(Effect::Close {
                stream,
                reason: "nothing was heard for a whole lease",
                again: true,
            });
        }
        let attempts = worker.attempts.into_iter();
        let lost = attempts.map(|(run, held)| AttemptRef {
            run,
            attempt: held.attempt,
            fence: held.fence,
        });
        self.starting.losing.extend(lost);
        self.lose_some(now);
    }

    /// Concludes what became of attempts whose worker is gone, as many as a batch has room for.
    pub(in super::super) fn lose_some(&mut self, now: Now) {
        while !self.is_full()
            && let Some(attempt) = self.starting.losing.pop_front()
        {
            self.lose_attempt(now, attempt, LossCause::LeaseEnded.as_str());
        }
    }
}
