//! What is counted from facts.

use drumtower_core::model::WallMs;

use super::histogram::Histogram;
use super::jobs::Jobs;
use super::names::START_BOUNDS;
use crate::driver::tap::{Fact, Heard, JobDeed};

pub struct Counted {
    pub jobs: Jobs,
    pub made: u64,
    /// From when a run was due to when it was first given to a worker.
    pub scheduling_delay: Histogram,
    /// Facts that were missed: what they would have counted is not in these figures.
    pub missed: u64,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            jobs: Jobs::default(),
            made: 0,
            scheduling_delay: Histogram::new(START_BOUNDS),
            missed: 0,
        }
    }
}

/// From `since` to `until`; a clock that was set back makes nothing negative.
pub fn seconds(since: WallMs, until: WallMs) -> f64 {
    (until.0.saturating_sub(since.0)).max(0) as f64 / 1e3
}

impl Counted {
    pub fn hear(&mut self, heard: &Heard) {
        match heard {
            Heard::Missed(count) => self.missed += count,
            Heard::Facts(chunk) => chunk.facts.iter().for_each(|fact| self.fact(fact)),
        }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Run(run) => {
                self.made += u64::from(run.made);
                // A run is given out once between being made and having started; the start is told once.
                if let (true, Some(assigned)) = (run.started_now, run.assigned) {
                    self.scheduling_delay.observe(seconds(run.due, assigned));
                }
                if run.started_now || run.end.is_some() {
                    self.jobs.run(run);
                }
            }
            Fact::Unfired(unfired) => self.jobs.unfired(&unfired.job),
            Fact::Job(job) if job.deed == JobDeed::Deleted => self.jobs.forget(job.job.id),
            Fact::Breaker(breaker) => self.jobs.breaker(breaker),
            Fact::Job(_)
            | Fact::Calendar(_)
            | Fact::Worker(_)
            | Fact::Queue(_)
            | Fact::Backfill(_) => {}
        }
    }
}
