//! Queues that are left alone until a time, by which something lets them go on: the cooldown of their job's breaker is over.
//!
//! One timer a job, at the earliest of its queues' times. When it rings, all of them are looked at, and those that it is too
//! early for rest again. So a time that does not hold any more costs one look and holds nothing up.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{JobId, WallMs};
use crate::wheel;

use super::Engine;
use super::time::Timer;
use super::turns::TurnRef;

#[derive(Debug, Default)]
pub(super) struct Rests {
    jobs: BTreeMap<JobId, Rest>,
}

#[derive(Debug)]
struct Rest {
    until: WallMs,
    timer: wheel::Key,
    /// The keys of the queues.
    queues: BTreeSet<Option<String>>,
}

impl Engine {
    /// Looks at a queue again then, or before.
    pub(super) fn rest_queue(&mut self, queue: TurnRef, until: WallMs) {
        let TurnRef { job, key } = queue;
        if let Some(rest) = self.rests.jobs.get_mut(&job)
            && rest.until <= until
        {
            rest.queues.insert(key);
            return;
        }
        let mut queues = self.end_rest(job);
        queues.insert(key);
        self.arm_rest(job, until, queues);
    }

    fn arm_rest(&mut self, job: JobId, until: WallMs, queues: BTreeSet<Option<String>>) {
        let at = self.now.mono_at(until).max(self.now.mono.plus(1));
        let timer = self.wheel.insert(at.0, Timer::QueueRested(job));
        let rest = Rest {
            until,
            timer,
            queues,
        };
        self.rests.jobs.insert(job, rest);
    }

    /// Clears the timer of a job. Returns which of its queues rested.
    fn end_rest(&mut self, job: JobId) -> BTreeSet<Option<String>> {
        let Some(rest) = self.rests.jobs.remove(&job) else {
            return BTreeSet::new();
        };
        self.wheel.cancel(rest.timer);
        rest.queues
    }

    /// The queues of a job may go on.
    pub(super) fn queues_rested(&mut self, job: JobId) {
        for key in self.end_rest(job) {
            // The job may have left memory: reading the queue brings it back.
            self.queue_found(TurnRef { job, key });
        }
    }

    /// What the queues of a job rested for holds no more: whoever says so looks at them.
    pub(super) fn wake_queues(&mut self, job: JobId) {
        self.end_rest(job);
    }

    /// Places all timers anew after the wall clock went forward.
    pub(super) fn arm_rests(&mut self) {
        for (job, rest) in std::mem::take(&mut self.rests.jobs) {
            self.wheel.cancel(rest.timer);
            self.arm_rest(job, rest.until, rest.queues);
        }
    }
}
