//! Tells a job's circuit breaker what its runs come to. The rules are in `model/breaker.rs`; a row is written only when it
//! changed, and a job that never fails has none.

use crate::fault::{Fault, armed};
use crate::model::{BreakerRow, JobId, Now, Pass, Reason, Run, RunId, RunState, WallMs};

use super::Engine;

impl Engine {
    /// A run of the job that is ready then was let through: by an open breaker only as its probe. Nobody waits for one that
    /// is to start later.
    pub(super) fn note_probe(&mut self, now: Now, id: JobId, run: RunId, ready: WallMs) {
        let job = self.jobs.expect_mut(id);
        if job.compiled.breaker.is_none() || ready > now.wall {
            return;
        }
        let pass = BreakerRow::pass(job.breaker.as_ref(), now.wall);
        let open = job.breaker.as_mut().and_then(|row| row.open.as_mut());
        if let (Pass::Probe, Some(open)) = (pass, open) {
            open.probe = Some(run);
            self.write_breaker(id);
        }
    }

    /// A run has ended.
    pub(super) fn tell_breaker(&mut self, now: Now, run: &Run, state: RunState, reason: Reason) {
        let job = self.jobs.expect_mut(run.job);
        let Some(policy) = job.compiled.breaker.filter(|_| !job.row.deleted) else {
            return;
        };
        let end = (run.id, state, reason);
        let after = BreakerRow::after(&policy, job.breaker.clone(), run.job, end, now.wall);
        if after != job.breaker {
            job.breaker = after;
            self.write_breaker(run.job);
            self.tend_queues(run.job);
        }
    }

    /// The breaker of a job is as if it had never failed. False when it was.
    pub(super) fn close_breaker(&mut self, id: JobId) -> bool {
        let job = self.jobs.expect_mut(id);
        let before = job.breaker.take();
        let open = before.is_some();
        if armed(Fault::ResetForgetsNothing) {
            job.breaker = before.map(|row| BreakerRow { open: None, ..row });
        }
        if open {
            self.write_breaker(id);
            self.wake_queues(id);
            self.tend_queues(id);
        }
        open
    }

    fn write_breaker(&mut self, id: JobId) {
        if !armed(Fault::BreakerNotWritten) {
            self.building.breaker(id);
        }
        self.mark_job(id);
    }
}
