//! Figures of each job, for as many jobs as may have series of their own.
//!
//! The job that was used longest ago gives way; what it had is added to `_other`, so that sums over all jobs stay whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::model::{JobId, RunState};

use super::histogram::Histogram;
use super::names::{DURATION_BOUNDS, START_BOUNDS};
use crate::driver::tap::{JobKey, RunFact};

/// Jobs with series of their own.
pub const KEPT: usize = 1000;

#[derive(Clone, Debug)]
pub struct JobFigures {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub unfired: u64,
    pub start_delay: Histogram,
    pub duration: Histogram,
    pub cpu_seconds: f64,
    /// The most that any attempt of its last run took.
    pub peak_memory_bytes: u64,
    /// How its last run ended.
    pub last_failed: bool,
}

impl Default for JobFigures {
    fn default() -> Self {
        Self {
            completed: 0,
            failed: 0,
            cancelled: 0,
            unfired: 0,
            start_delay: Histogram::new(START_BOUNDS),
            duration: Histogram::new(DURATION_BOUNDS),
            cpu_seconds: 0.0,
            peak_memory_bytes: 0,
            last_failed: false,
        }
    }
}

impl JobFigures {
    fn absorb(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.unfired += other.unfired;
        self.start_delay.absorb(&other.start_delay);
        self.duration.absorb(&other.duration);
        self.cpu_seconds += other.cpu_seconds;
        self.peak_memory_bytes = self.peak_memory_bytes.max(other.peak_memory_bytes);
    }

    pub fn run(&mut self, run: &RunFact) {
        if let (true, Some(started)) = (run.started_now, run.started) {
            self.start_delay
                .observe(super::counted::seconds(run.due, started));
        }
        let Some(end) = &run.end else { return };
        match run.state {
            RunState::Completed => self.completed += 1,
            RunState::Cancelled => self.cancelled += 1,
            _ => self.failed += 1,
        }
        if run.started.is_some() {
            self.duration.observe(end.duration_ms as f64 / 1e3);
        }
        self.cpu_seconds += end.cpu_ms as f64 / 1e3;
        self.peak_memory_bytes = end.peak_memory_bytes;
        self.last_failed = run.state == RunState::Failed;
    }
}

struct Kept {
    key: Arc<JobKey>,
    used: u64,
    figures: JobFigures,
}

#[derive(Default)]
pub struct Jobs {
    kept: BTreeMap<JobId, Kept>,
    by_use: BTreeMap<u64, JobId>,
    clock: u64,
    pub others: JobFigures,
    /// Whether any job ever gave way or was deleted.
    pub crowded: bool,
}

impl Jobs {
    /// The figures of a job, which is now the one used last.
    pub fn of(&mut self, key: &Arc<JobKey>) -> &mut JobFigures {
        self.clock += 1;
        let clock = self.clock;
        if !self.kept.contains_key(&key.id) {
            if self.kept.len() >= KEPT {
                self.give_way();
            }
            let kept = Kept {
                key: Arc::clone(key),
                used: clock,
                figures: JobFigures::default(),
            };
            self.kept.insert(key.id, kept);
            self.by_use.insert(clock, key.id);
        }
        let kept = self.kept.get_mut(&key.id);
        match kept {
            Some(kept) => {
                if kept.used != clock {
                    self.by_use.remove(&kept.used);
                    kept.used = clock;
                    self.by_use.insert(clock, key.id);
                }
                &mut kept.figures
            }
            None => &mut self.others,
        }
    }

    /// A job that is gone has no series of its own any more.
    pub fn forget(&mut self, job: JobId) {
        if let Some(kept) = self.kept.remove(&job) {
            self.by_use.remove(&kept.used);
            self.others.absorb(&kept.figures);
            self.crowded = true;
        }
    }

    fn give_way(&mut self) {
        if let Some((_, oldest)) = self.by_use.pop_first() {
            self.forget(oldest);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, &JobFigures)> {
        self.kept.values().map(|kept| (&*kept.key, &kept.figures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::{JobName, NamespaceName};

    fn key(id: u64) -> Arc<JobKey> {
        Arc::new(JobKey {
            id: JobId(id),
            namespace: NamespaceName::default(),
            name: JobName::new("j").unwrap(),
        })
    }

    #[test]
    fn the_job_used_longest_ago_gives_way_and_nothing_is_lost() {
        let mut jobs = Jobs::default();
        for id in 0..KEPT as u64 {
            jobs.of(&key(id)).completed += 1;
        }
        jobs.of(&key(0)).completed += 1;
        jobs.of(&key(5000)).completed += 1;
        assert_eq!(jobs.iter().count(), KEPT);
        assert!(
            jobs.iter().any(|(key, _)| key.id == JobId(0)),
            "it was used again"
        );
        assert!(
            !jobs.iter().any(|(key, _)| key.id == JobId(1)),
            "its turn to go"
        );
        let kept: u64 = jobs.iter().map(|(_, figures)| figures.completed).sum();
        assert_eq!(
            (kept + jobs.others.completed, jobs.others.completed),
            (1002, 1)
        );
    }
}
