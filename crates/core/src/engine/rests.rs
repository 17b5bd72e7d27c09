//! Queues that are left alone until a time, by which something lets them go on: the cooldown of their job's breaker is over,
//! or a run that others have to stop for is ready. Backfills of the job that wait for the cooldown are with them.
//!
//! One timer a job, at the earliest of its queues' times. When it rings, all of them are looked at, and those that it is too
//! early for rest again. So a time that does not hold any more costs one look and holds nothing up.
//!
//! What a queue rests for holds from when that was decided until then. Only a wall clock that goes back behind the first of
//! them makes it doubtful.

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
    /// When it was last decided that something rests.
    since: WallMs,
    timer: wheel::Key,
    /// The keys of the queues.
    queues: BTreeSet<Option<String>>,
}

impl Engine {
    /// Looks at a queue again then, or before.
    pub(super) fn rest_queue(&mut self, queue: TurnRef, until: WallMs) {
        let TurnRef { job, key } = queue;
        let now = self.now.wall;
        if let Some(rest) = self.rests.jobs.get_mut(&job)
            && rest.until <= until
        {
            rest.queues.insert(key);
            rest.since = rest.since.max(now);
            return;
        }
        let mut queues = self.end_rest(job);
        queues.insert(key);
        self.arm_rest(job, until, now, queues);
    }

    fn arm_rest(
        &mut self,
        job: JobId,
        until: WallMs,
        since: WallMs,
        queues: BTreeSet<Option<String>>,
    ) {
        let at = self.now.mono_at(until).max(self.now.mono.plus(1));
        let timer = self.wheel.insert(at.0, Timer::QueueRested(job));
        let rest = Rest {
            until,
            since,
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

    /// Looks at the backfills of a job again then, or before.
    pub(super) fn rest_backfills(&mut self, job: JobId, until: WallMs) {
        let now = self.now.wall;
        match self.rests.jobs.get_mut(&job) {
            Some(rest) if rest.until <= until => rest.since = rest.since.max(now),
            _ => {
                let queues = self.end_rest(job);
                self.arm_rest(job, until, now, queues);
            }
        }
    }

    /// The queues of a job may go on, and its backfills.
    pub(super) fn queues_rested(&mut self, job: JobId) {
        self.backfills.stir(job);
        for key in self.end_rest(job) {
            // The job may have left memory: reading the queue brings it back.
            self.queue_found(TurnRef { job, key });
        }
    }

    /// What a job rested for holds no more: whoever says so looks at its queues and backfills.
    pub(super) fn wake_queues(&mut self, job: JobId) {
        self.end_rest(job);
    }

    /// The wall clock went back: queues that began to rest after the time that it shows are looked at.
    pub(super) fn look_at_rests(&mut self) {
        let now = self.now.wall;
        let rests = self.rests.jobs.iter();
        let doubtful = rests.filter(|(_, rest)| rest.since > now);
        let doubtful: Vec<JobId> = doubtful.map(|(job, _)| *job).collect();
        for job in doubtful {
            self.queues_rested(job);
        }
    }

    /// Places all timers anew after the wall clock went forward.
    pub(super) fn arm_rests(&mut self) {
        for (job, rest) in std::mem::take(&mut self.rests.jobs) {
            self.wheel.cancel(rest.timer);
            self.arm_rest(job, rest.until, rest.since, rest.queues);
        }
    }
}
