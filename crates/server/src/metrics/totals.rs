//! What was counted, summed over the jobs that a caller may see.

use drumtower_core::model::{JobName, NamespaceName};

use super::Metrics;
use super::histogram::Histogram;
use super::jobs::JobFigures;
use super::names::START_BOUNDS;

/// Failing jobs that are told of.
const FAILING: usize = 100;

pub struct Totals {
    /// Only known for all jobs together.
    pub made: Option<u64>,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub unfired: u64,
    pub start_delay: Histogram,
    /// Jobs whose last run failed, those with most failures first.
    pub failing: Vec<Failing>,
}

pub struct Failing {
    pub namespace: NamespaceName,
    pub job: JobName,
    pub failed: u64,
    pub completed: u64,
}

impl Metrics {
    /// Sums over the jobs of the namespaces for which `sees` holds; `all` takes in those that have no series.
    pub fn totals(&self, all: bool, sees: impl Fn(&NamespaceName) -> bool) -> Totals {
        let shared = self.drained();
        let counted = &shared.counted;
        let mut totals = Totals {
            made: all.then_some(counted.made),
            completed: 0,
            failed: 0,
            cancelled: 0,
            unfired: 0,
            start_delay: Histogram::new(START_BOUNDS),
            failing: Vec::new(),
        };
        for (key, figures) in counted.jobs.iter().filter(|(key, _)| sees(&key.namespace)) {
            totals.add(figures);
            if figures.last_failed {
                totals.failing.push(Failing {
                    namespace: key.namespace.clone(),
                    job: key.name.clone(),
                    failed: figures.failed,
                    completed: figures.completed,
                });
            }
        }
        if all {
            totals.add(&counted.jobs.others);
        }
        totals
            .failing
            .sort_by_key(|job| std::cmp::Reverse(job.failed));
        totals.failing.truncate(FAILING);
        totals
    }

    pub fn uptime(&self) -> std::time::Duration {
        self.started.elapsed()
    }
}

impl Totals {
    fn add(&mut self, figures: &JobFigures) {
        self.completed += figures.completed;
        self.failed += figures.failed;
        self.cancelled += figures.cancelled;
        self.unfired += figures.unfired;
        self.start_delay.add(&figures.start_delay);
    }
}
