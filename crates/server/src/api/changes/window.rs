//! What happened between two flushes, folded: each thing once, in its last state; under load, counts for each job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drumtower_core::model::{
    BackfillId, CalendarName, JobId, NamespaceName, QueueRef, RunId, RunState, WallMs, WorkerName,
};

use crate::driver::tap::{
    BackfillFact, BreakerFact, CalendarFact, Fact, JobFact, JobKey, QueueFact, RunFact,
    UnfiredFact, WorkerFact,
};

/// Runs that a window keeps apart; beyond that only counts are kept.
const RUNS: usize = 1000;
/// Jobs that a window counts apart; the rest is counted together.
const JOBS: usize = 1000;
/// Jobs that are told apart only to say how many there were; beyond that the number is too small.
const BEYOND: usize = 10_000;
/// Jobs, calendars, workers, queues, backfills and breakers that a window keeps; beyond that the client reads them anew.
const OTHERS: usize = 1000;
/// Summaries in one flush.
const SUMMARIES: usize = 20;

/// Counts of what happened to runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub made: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub unfired: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.unfired += other.unfired;
    }

    fn weight(&self) -> u64 {
        self.made + self.started + self.completed + self.failed + self.cancelled + self.unfired
    }

    fn of_run(run: &RunFact) -> Self {
        Self {
            made: u64::from(run.made),
            started: u64::from(run.started_now),
            completed: u64::from(run.state == RunState::Completed),
            failed: u64::from(run.state == RunState::Failed),
            cancelled: u64::from(run.state == RunState::Cancelled),
            unfired: 0,
        }
    }
}

/// One message to send.
#[derive(Debug, PartialEq)]
pub enum Message {
    Run(RunFact),
    Unfired(UnfiredFact),
    Job(JobFact),
    Worker(WorkerFact),
    Calendar(CalendarFact),
    Queue(QueueFact),
    Backfill(BackfillFact),
    Breaker(BreakerFact),
    /// Of one job, or of several that are not told apart.
    Runs {
        job: Option<Arc<JobKey>>,
        jobs: usize,
        tally: Tally,
    },
    Resync {
        reason: &'static str,
        missed: Option<u64>,
    },
}

impl Message {
    /// Facts are numbered over all namespaces, and so are those that were missed.
    pub fn leave_out_missed(&mut self) {
        if let Self::Resync { missed, .. } = self {
            *missed = None;
        }
    }
}

#[derive(Default)]
pub struct Window {
    runs: BTreeMap<RunId, RunFact>,
    /// By the beginning of the range too: a job may have several.
    unfired: BTreeMap<(JobId, WallMs), UnfiredFact>,
    /// More runs changed than are kept apart.
    crowded: bool,
    tallies: BTreeMap<JobId, (Arc<JobKey>, Tally)>,
    /// Of jobs beyond those, and which they are as far as they are told apart.
    rest: Tally,
    beyond: BTreeSet<JobId>,
    jobs: BTreeMap<JobId, JobFact>,
    workers: BTreeMap<WorkerName, WorkerFact>,
    calendars: BTreeMap<(NamespaceName, CalendarName), CalendarFact>,
    queues: BTreeMap<QueueRef, QueueFact>,
    backfills: BTreeMap<BackfillId, BackfillFact>,
    breakers: BTreeMap<JobId, BreakerFact>,
    missed: u64,
    restarted: bool,
    too_many: bool,
}

impl Window {
    /// The client comes from another life of the server.
    pub fn restarted(&mut self) {
        self.restarted = true;
    }

    pub fn missed(&mut self, count: u64) {
        self.missed += count;
    }

    pub fn add(&mut self, fact: &Fact) {
        let others = self.others();
        match fact {
            Fact::Run(run) => self.add_run(run),
            Fact::Unfired(unfired) => self.add_unfired(unfired),
            _ if others >= OTHERS => self.too_many = true,
            Fact::Job(job) => {
                self.jobs.insert(job.job.id, job.clone());
            }
            Fact::Worker(worker) => {
                self.workers.insert(worker.name.clone(), worker.clone());
            }
            Fact::Calendar(calendar) => {
                let key = (calendar.namespace.clone(), calendar.name.clone());
                self.calendars.insert(key, calendar.clone());
            }
            Fact::Queue(queue) => {
                self.queues.insert(queue.queue.clone(), queue.clone());
            }
            Fact::Backfill(backfill) => {
                self.backfills.insert(backfill.id, backfill.clone());
            }
            Fact::Breaker(breaker) => {
                self.breakers.insert(breaker.job.id, breaker.clone());
            }
        }
    }

    fn add_run(&mut self, run: &RunFact) {
        self.count(&run.job, &Tally::of_run(run));
        if self.crowded {
            return;
        }
        if let Some(kept) = self.runs.get_mut(&run.run) {
            let (made, started_now) = (kept.made, kept.started_now);
            *kept = run.clone();
            kept.made |= made;
            kept.started_now |= started_now;
        } else if self.runs.len() >= RUNS {
            self.crowd();
        } else {
            self.runs.insert(run.run, run.clone());
        }
    }

    fn add_unfired(&mut self, unfired: &UnfiredFact) {
        let tally = Tally {
            unfired: 1,
            ..Tally::default()
        };
        self.count(&unfired.job, &tally);
        if !self.crowded {
            let key = (unfired.job.id, unfired.first);
            self.unfired.insert(key, unfired.clone());
            if self.unfired.len() > RUNS {
                self.crowd();
            }
        }
    }

    fn crowd(&mut self) {
        self.crowded = true;
        self.runs.clear();
        self.unfired.clear();
    }

    fn count(&mut self, job: &Arc<JobKey>, tally: &Tally) {
        if let Some((_, kept)) = self.tallies.get_mut(&job.id) {
            kept.add(tally);
        } else if self.tallies.len() < JOBS {
            self.tallies.insert(job.id, (Arc::clone(job), *tally));
        } else {
            self.rest.add(tally);
            if self.beyond.len() < BEYOND {
                self.beyond.insert(job.id);
            }
        }
    }

    /// What is kept beside runs.
    fn others(&self) -> usize {
        self.jobs.len()
            + self.workers.len()
            + self.calendars.len()
            + self.queues.len()
            + self.backfills.len()
            + self.breakers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tallies.is_empty()
            && self.others() == 0
            && self.missed == 0
            && !self.restarted
            && !self.too_many
    }

    /// Takes everything out as messages: single ones while there are at most `budget`, counts for each job beyond.
    pub fn take(&mut self, budget: usize) -> Vec<Message> {
        let window = std::mem::take(self);
        let mut messages = Vec::new();
        let others = window.others();
        let too_many = window.too_many || others > budget;
        if window.restarted || window.missed > 0 || too_many {
            messages.push(Message::Resync {
                reason: match (window.restarted, window.missed) {
                    (true, _) => "restarted",
                    (false, 0) => "too_many",
                    _ => "missed",
                },
                missed: Some(window.missed),
            });
        }
        if !too_many {
            messages.extend(window.jobs.into_values().map(Message::Job));
            messages.extend(window.calendars.into_values().map(Message::Calendar));
            messages.extend(window.workers.into_values().map(Message::Worker));
            messages.extend(window.queues.into_values().map(Message::Queue));
            messages.extend(window.backfills.into_values().map(Message::Backfill));
            messages.extend(window.breakers.into_values().map(Message::Breaker));
        }
        let singles = messages.len() + window.runs.len() + window.unfired.len();
        if window.crowded || singles > budget {
            messages.extend(summaries(window.tallies, window.rest, window.beyond.len()));
        } else {
            messages.extend(window.unfired.into_values().map(Message::Unfired));
            messages.extend(window.runs.into_values().map(Message::Run));
        }
        messages
    }
}

/// Counts of the busiest jobs, and one for all the others.
fn summaries(
    tallies: BTreeMap<JobId, (Arc<JobKey>, Tally)>,
    mut rest: Tally,
    beyond: usize,
) -> Vec<Message> {
    let mut tallies: Vec<_> = tallies.into_values().collect();
    tallies.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.weight()));
    let others = tallies.split_off(SUMMARIES.min(tallies.len()));
    for (_, tally) in &others {
        rest.add(tally);
    }
    let mut messages: Vec<Message> = tallies
        .into_iter()
        .map(|(job, tally)| Message::Runs {
            job: Some(job),
            jobs: 1,
            tally,
        })
        .collect();
    if rest.weight() > 0 {
        messages.push(Message::Runs {
            job: None,
            jobs: others.len() + beyond,
            tally: rest,
        });
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::{JobName, UnfiredReason};

    fn run(id: u64, job: u64, state: RunState, made: bool) -> Fact {
        Fact::Run(RunFact {
            run: RunId(id),
            job: Arc::new(JobKey {
                id: JobId(job),
                namespace: NamespaceName::default(),
                name: JobName::new(&format!("j{job}")).unwrap(),
            }),
            job_deleted: false,
            state,
            made,
            started_now: state == RunState::Running,
            created: WallMs(0),
            due: WallMs(0),
            at: WallMs(0),
            attempts: 0,
            assigned: None,
            started: None,
            worker: None,
            progress: None,
            end: None,
        })
    }

    #[test]
    fn changes_of_one_run_become_one_with_its_last_state() {
        let mut window = Window::default();
        window.add(&run(1, 1, RunState::Scheduled, true));
        window.add(&run(1, 1, RunState::Running, false));
        window.add(&run(1, 1, RunState::Failed, false));
        let messages = window.take(10);
        let [Message::Run(run)] = &messages[..] else {
            panic!("{messages:?}")
        };
        assert_eq!(
            (run.state, run.made, run.started_now),
            (RunState::Failed, true, true)
        );
        assert!(window.is_empty() && window.take(10).is_empty());
    }

    #[test]
    fn beyond_the_budget_there_are_counts_for_the_busiest_jobs_and_one_for_the_rest() {
        let mut window = Window::default();
        for id in 0..3000 {
            // Job 0 has as many as all the others together.
            let job = if id % 2 == 0 { 0 } else { id };
            window.add(&run(id, job, RunState::Scheduled, true));
            window.add(&run(id, job, RunState::Completed, false));
        }
        let messages = window.take(100);
        assert_eq!(messages.len(), SUMMARIES + 1);
        let Message::Runs {
            job: Some(job),
            tally,
            ..
        } = &messages[0]
        else {
            panic!("{messages:?}")
        };
        assert_eq!(job.name.as_str(), "j0");
        assert_eq!((tally.made, tally.completed), (1500, 1500));
        let mut all = Tally::default();
        for message in &messages {
            let Message::Runs { tally, .. } = message else {
                panic!("{message:?}")
            };
            all.add(tally);
        }
        assert_eq!((all.made, all.completed, all.failed), (3000, 3000, 0));
    }

    #[test]
    fn each_range_of_unfired_times_is_told_and_one_that_grew_once() {
        let mut window = Window::default();
        let Fact::Run(RunFact { job, .. }) = run(1, 1, RunState::Completed, false) else {
            panic!("a run")
        };
        for (first, last) in [(10, 10), (10, 20), (50, 50)] {
            window.add(&Fact::Unfired(UnfiredFact {
                job: Arc::clone(&job),
                first: WallMs(first),
                last: WallMs(last),
                count: 1,
                reason: UnfiredReason::Misfire,
            }));
        }
        let told: Vec<(i64, i64)> = window
            .take(10)
            .into_iter()
            .map(|message| match message {
                Message::Unfired(range) => (range.first.0, range.last.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, [(10, 20), (50, 50)]);
    }

    #[test]
    fn jobs_beyond_those_counted_apart_are_counted_as_jobs() {
        let mut window = Window::default();
        for id in 0..3 * JOBS as u64 {
            window.add(&run(id, id, RunState::Completed, false));
        }
        let messages = window.take(100);
        let jobs = messages.iter().map(|message| match message {
            Message::Runs { jobs, .. } => *jobs,
            other => panic!("{other:?}"),
        });
        assert_eq!(jobs.sum::<usize>(), 3 * JOBS);
    }

    #[test]
    fn a_hole_comes_first_and_once() {
        let mut window = Window::default();
        window.add(&run(1, 1, RunState::Completed, false));
        window.missed(3);
        window.missed(4);
        let messages = window.take(10);
        let resync = Message::Resync {
            reason: "missed",
            missed: Some(7),
        };
        assert_eq!(messages[0], resync);
        assert_eq!(messages.len(), 2);
    }
}
