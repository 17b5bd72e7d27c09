//! Which jobs memory lets go of.
//!
//! A job leaves when nothing needs it: no run of it is resident, it is not due within what has been read ahead, and the
//! store has all of it. The last is what makes it safe: a load that is under way, or begins later, sees the row as it
//! was left, never an older one.

use std::collections::VecDeque;

use crate::model::{JobId, Now, WallMs};

use super::Engine;
use super::time::Timer;

/// A job that was asked for stays at least this long: whoever asked will act on it, and may ask again.
const KEEP_MS: u64 = 5_000;
const LOOK_EVERY_MS: u64 = 500;
/// Jobs looked at in one go.
const LOOKS: usize = 10_000;

/// Jobs that may leave, each once.
#[derive(Debug, Default)]
pub(super) struct Idle {
    queue: VecDeque<JobId>,
    ticking: bool,
}

impl Engine {
    /// Notes that a job changed in the batch being built.
    pub(super) fn mark_job(&mut self, id: JobId) {
        let seq = self.building_seq();
        self.jobs.expect_mut(id).changed = seq;
        self.backfills.stir(id);
    }

    /// Notes that a command asked for a job.
    pub(super) fn keep_job(&mut self, id: JobId) {
        let until = self.now.mono.plus(KEEP_MS);
        self.jobs.expect_mut(id).kept_until = until;
    }

    /// Considers a job for leaving memory, after whatever changed its need.
    pub(super) fn consider(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get(id)
            && !job.idle
            && self.is_unneeded(id)
        {
            self.jobs.expect_mut(id).idle = true;
            self.idle.queue.push_back(id);
            self.look_later();
        }
    }

    fn look_later(&mut self) {
        if !self.idle.ticking {
            self.idle.ticking = true;
            let at = self.now.mono.plus(LOOK_EVERY_MS);
            self.wheel.insert(at.0, Timer::Evict);
        }
    }

    /// Lets go of jobs that are not needed and that the store has whole. None leaves while a command waits that has read
    /// who uses a calendar: what it read would not tell of a job that was made since.
    pub(super) fn evict_jobs(&mut self, now: Now) {
        self.idle.ticking = false;
        let safe = self.safe_seq();
        let looks = if self.users_asked.is_empty() {
            LOOKS
        } else {
            0
        };
        for _ in 0..self.idle.queue.len().min(looks) {
            if let Some(id) = self.idle.queue.pop_front()
                && !self.evict_job(now, id, safe)
            {
                self.idle.queue.push_back(id);
            }
        }
        if !self.idle.queue.is_empty() {
            self.look_later();
        }
    }

    /// False when the job must be looked at again.
    fn evict_job(&mut self, now: Now, id: JobId, safe: u64) -> bool {
        let unneeded = self.is_unneeded(id);
        let Some(job) = self.jobs.get_mut(id) else {
            return true;
        };
        if unneeded && (job.changed > safe || job.kept_until > now.mono) {
            return false;
        }
        job.idle = false;
        if unneeded {
            if let Some(timer) = job.timer.take() {
                self.wheel.cancel(timer);
            }
            self.jobs.evict(id);
        }
        true
    }

    /// Whether no resident run, no due time that was read ahead and no open backfill keeps the job here. A deleted job leaves by another
    /// way.
    fn is_unneeded(&self, id: JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| {
            let far = |due: WallMs| self.ahead.will_read(due, id);
            job.resident_runs == 0
                && !job.row.deleted
                && job.schedule.next_due.is_none_or(far)
                && !self.backfills.need(id)
        })
    }
}
