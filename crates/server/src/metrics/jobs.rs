//! Figures of each job, for as many jobs as may have series of their own.
//!
//! When all places are taken, the namespace that has most of them gives one up: that of a job whose last run did not
//! fail, and among those of the one used longest ago. So a busy tenant takes no place from a small one, and a job that
//! failed keeps telling so. What a job had is gone with its place; `_other` counts only what happens to jobs while they
//! have none, so that it never grows by what happened long ago.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drumtower_core::model::{JobId, JobName, NamespaceName, RunState};

use super::histogram::Histogram;
use super::names::{DURATION_BOUNDS, START_BOUNDS};
use crate::driver::tap::{BreakerFact, BreakerTurn, JobKey, RunFact};

/// Jobs with series of their own.
pub const KEPT: usize = 1000;

#[derive(Clone, Debug)]
pub struct JobFigures {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub unfired: u64,
    /// How often its circuit breaker opened, also again, and closed.
    pub breaker_opened: u64,
    pub breaker_closed: u64,
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
            breaker_opened: 0,
            breaker_closed: 0,
            start_delay: Histogram::new(START_BOUNDS),
            duration: Histogram::new(DURATION_BOUNDS),
            cpu_seconds: 0.0,
            peak_memory_bytes: 0,
            last_failed: false,
        }
    }
}

impl JobFigures {
    fn run(&mut self, run: &RunFact) {
        self.count(run);
        if let Some(end) = &run.end {
            self.peak_memory_bytes = end.peak_memory_bytes;
            self.last_failed = failed(run);
        }
    }

    /// What can be said of runs of several jobs together.
    fn count(&mut self, run: &RunFact) {
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
    }
}

fn failed(run: &RunFact) -> bool {
    run.state == RunState::Failed
}

struct Kept {
    key: Arc<JobKey>,
    used: u64,
    figures: JobFigures,
}

impl Kept {
    fn turn(&self) -> Turn {
        (self.figures.last_failed, self.used, self.key.id)
    }
}

/// Whose turn it is to give way within a namespace: jobs that did not fail first, then by last use.
type Turn = (bool, u64, JobId);

#[derive(Default)]
pub struct Jobs {
    kept: BTreeMap<JobId, Kept>,
    turns: BTreeMap<NamespaceName, BTreeSet<Turn>>,
    /// No two jobs with one name have series at once: they would be the same series.
    named: BTreeMap<(NamespaceName, JobName), JobId>,
    clock: u64,
    pub others: JobFigures,
    /// Whether anything was ever counted in `others`.
    pub crowded: bool,
}

impl Jobs {
    pub fn run(&mut self, run: &RunFact) {
        let place = !run.job_deleted && self.place(&run.job, failed(run));
        match self.kept.get_mut(&run.job.id).filter(|_| place) {
            Some(kept) => {
                kept.figures.run(run);
                self.used(run.job.id);
            }
            None => {
                self.crowded = true;
                self.others.count(run);
            }
        }
    }

    pub fn unfired(&mut self, job: &Arc<JobKey>) {
        self.note(job, |figures| figures.unfired += 1);
    }

    pub fn breaker(&mut self, breaker: &BreakerFact) {
        match breaker.turn {
            BreakerTurn::Opened => self.note(&breaker.job, |figures| figures.breaker_opened += 1),
            BreakerTurn::Closed => self.note(&breaker.job, |figures| figures.breaker_closed += 1),
            BreakerTurn::Probing => {}
        }
    }

    fn note(&mut self, job: &Arc<JobKey>, count: impl FnOnce(&mut JobFigures)) {
        let place = self.place(job, false);
        match self.kept.get_mut(&job.id).filter(|_| place) {
            Some(kept) => {
                count(&mut kept.figures);
                self.used(job.id);
            }
            None => {
                self.crowded = true;
                count(&mut self.others);
            }
        }
    }

    /// Puts a job behind all others of its namespace that stand as it does.
    fn used(&mut self, job: JobId) {
        self.clock += 1;
        if let Some(kept) = self.kept.get_mut(&job)
            && let Some(turns) = self.turns.get_mut(&kept.key.namespace)
        {
            // Where it stood is under its last use, failed then or not.
            turns.remove(&(true, kept.used, job));
            turns.remove(&(false, kept.used, job));
            kept.used = self.clock;
            turns.insert(kept.turn());
        }
    }

    /// Sees to it that a job has series of its own, if there is a place for it.
    fn place(&mut self, key: &Arc<JobKey>, failing: bool) -> bool {
        if self.kept.contains_key(&key.id) {
            return true;
        }
        let name = (key.namespace.clone(), key.name.clone());
        if let Some(before) = self.named.get(&name) {
            self.forget(*before);
        }
        if self.kept.len() >= KEPT && !self.make_room(&key.namespace, failing) {
            return false;
        }
        let kept = Kept {
            key: Arc::clone(key),
            used: self.clock,
            figures: JobFigures::default(),
        };
        let turns = self.turns.entry(key.namespace.clone()).or_default();
        turns.insert(kept.turn());
        self.named.insert(name, key.id);
        self.kept.insert(key.id, kept);
        true
    }

    /// A job that is gone has no series any more.
    pub fn forget(&mut self, job: JobId) {
        let Some(kept) = self.kept.remove(&job) else {
            return;
        };
        let key = &kept.key;
        self.named
            .remove(&(key.namespace.clone(), key.name.clone()));
        if let Some(turns) = self.turns.get_mut(&key.namespace) {
            turns.remove(&kept.turn());
            if turns.is_empty() {
                self.turns.remove(&key.namespace);
            }
        }
    }

    /// Takes a place from the namespace that has most. One that has most itself gives up no job that failed for one that
    /// did not.
    fn make_room(&mut self, for_namespace: &NamespaceName, failing: bool) -> bool {
        let places = |namespace: &NamespaceName| self.turns.get(namespace).map_or(0, BTreeSet::len);
        let own = (for_namespace, places(for_namespace));
        let most = self
            .turns
            .iter()
            .map(|(namespace, turns)| (namespace, turns.len()))
            .fold(own, |most, next| if next.1 > most.1 { next } else { most });
        let first = self.turns.get(most.0).and_then(|turns| turns.first());
        let Some((last_failed, _, job)) = first.copied() else {
            return false;
        };
        if most.0 == for_namespace && last_failed && !failing {
            return false;
        }
        self.forget(job);
        true
    }

    pub fn iter(&self) -> impl Iterator<Item = (&JobKey, &JobFigures)> {
        self.kept.values().map(|kept| (&*kept.key, &kept.figures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tap::RunEnd;
    use drumtower_core::model::{Reason, RunId, WallMs};

    fn key(id: u64, namespace: &str, name: &str) -> Arc<JobKey> {
        Arc::new(JobKey {
            id: JobId(id),
            namespace: NamespaceName::new(namespace).unwrap(),
            name: JobName::new(name).unwrap(),
        })
    }

    fn ended(job: &Arc<JobKey>, state: RunState) -> RunFact {
        RunFact {
            run: RunId(1),
            job: Arc::clone(job),
            job_deleted: false,
            state,
            made: false,
            started_now: false,
            created: WallMs(0),
            due: WallMs(0),
            at: WallMs(0),
            attempts: 1,
            assigned: None,
            started: None,
            worker: None,
            progress: None,
            end: Some(RunEnd {
                reason: Reason::Succeeded,
                duration_ms: 0,
                exit_code: None,
                cpu_ms: 0,
                peak_memory_bytes: 0,
                error: None,
            }),
        }
    }

    fn complete(jobs: &mut Jobs, id: u64, namespace: &str) {
        let job = key(id, namespace, &format!("j{id}"));
        jobs.run(&ended(&job, RunState::Completed));
    }

    fn fail(jobs: &mut Jobs, id: u64, namespace: &str) {
        let job = key(id, namespace, &format!("j{id}"));
        jobs.run(&ended(&job, RunState::Failed));
    }

    fn has(jobs: &Jobs, id: u64) -> bool {
        let same = jobs.kept.len() == jobs.named.len()
            && jobs.kept.len() == jobs.turns.values().map(BTreeSet::len).sum::<usize>();
        assert!(same, "the three tables tell of the same jobs");
        jobs.iter().any(|(key, _)| key.id == JobId(id))
    }

    #[test]
    fn the_job_used_longest_ago_gives_way_and_its_past_is_not_counted_anew() {
        let mut jobs = Jobs::default();
        for id in 0..KEPT as u64 {
            complete(&mut jobs, id, "a");
        }
        complete(&mut jobs, 0, "a");
        complete(&mut jobs, 5000, "a");
        assert_eq!(jobs.iter().count(), KEPT);
        assert!(has(&jobs, 0), "it was used again");
        assert!(!has(&jobs, 1), "its turn to go");
        assert_eq!(
            (jobs.others.completed, jobs.crowded),
            (0, false),
            "what happened long ago is no event of now"
        );
    }

    #[test]
    fn a_job_that_failed_outlasts_any_number_that_did_not() {
        let mut jobs = Jobs::default();
        fail(&mut jobs, 1, "a");
        for id in 0..3 * KEPT as u64 {
            complete(&mut jobs, 10 + id, "a");
        }
        assert!(has(&jobs, 1));
        complete(&mut jobs, 1, "a");
        for id in 0..KEPT as u64 {
            complete(&mut jobs, 10 + id, "a");
        }
        assert!(!has(&jobs, 1), "it is like the others now");
    }

    #[test]
    fn where_all_failed_one_that_did_not_is_counted_with_the_others() {
        let mut jobs = Jobs::default();
        for id in 0..KEPT as u64 {
            fail(&mut jobs, id, "a");
        }
        complete(&mut jobs, 5000, "a");
        jobs.unfired(&key(5000, "a", "j5000"));
        assert!(!has(&jobs, 5000) && jobs.crowded);
        assert_eq!((jobs.others.completed, jobs.others.unfired), (1, 1));
        fail(&mut jobs, 5001, "a");
        assert!(has(&jobs, 5001) && !has(&jobs, 0));
        assert!(!jobs.others.last_failed);
    }

    #[test]
    fn a_busy_namespace_takes_no_place_from_a_small_one() {
        let mut jobs = Jobs::default();
        for id in 0..3 {
            complete(&mut jobs, id, "small");
        }
        for id in 0..2 * KEPT as u64 {
            fail(&mut jobs, 10 + id, "busy");
        }
        assert!((0..3).all(|id| has(&jobs, id)));
        complete(&mut jobs, 5000, "third");
        assert!(has(&jobs, 5000), "one that has none gets a place");
        assert_eq!(jobs.iter().count(), KEPT);
    }

    #[test]
    fn a_job_that_is_gone_has_no_series_and_none_comes_twice() {
        let mut jobs = Jobs::default();
        let (old, new) = (key(1, "a", "x"), key(2, "a", "x"));
        jobs.run(&ended(&old, RunState::Completed));
        jobs.run(&ended(&new, RunState::Completed));
        assert!(!has(&jobs, 1) && has(&jobs, 2));
        jobs.run(&RunFact {
            job_deleted: true,
            ..ended(&old, RunState::Failed)
        });
        assert!(!has(&jobs, 1) && has(&jobs, 2));
        assert_eq!(jobs.others.failed, 1);
        jobs.forget(JobId(2));
        jobs.run(&RunFact {
            job_deleted: true,
            ..ended(&new, RunState::Completed)
        });
        assert_eq!((jobs.iter().count(), jobs.others.completed), (0, 1));
    }
}
