//! From what is seen of runs to what people may be told of. Pure: time is passed in, rules are asked for.
//!
//! - failure: a run ended FAILED;
//! - recovery: a run COMPLETED, and the run of its job that ended before it had failed;
//! - late: a run has not started within `late_after` of its due time, or started after it. A rule with another
//!   `late_after` has another instant. Each is told once: a run remembers until when it was judged, and after a restart
//!   that is the instant until which all runs had been judged.
//!
//! Runs that wait are held up to a bound. Beyond it the watch says that it is [`incomplete`](Watch::incomplete), and
//! whoever drives it adds them again from the store once there is room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use drumtower_core::model::{JobId, NotifyOn, RunId, RunState, WallMs};

use super::event::{Event, Sighting};
use crate::driver::tap::JobKey;

/// Runs that are watched for lateness at once.
pub const WAITING: usize = 100_000;
/// Jobs whose recovery is waited for at once.
const FAILING: usize = 100_000;
/// Ended runs that are known to have been told of.
const SEEN: usize = 20_000;
/// A run that starts within this time of its due time is not looked at.
const SOON_MS: i64 = 1000;
/// Rules may change while a run waits.
const LOOK_AGAIN_MS: i64 = 60_000;

#[derive(Clone, Debug)]
struct Waiting {
    job: Arc<JobKey>,
    created: WallMs,
    due: WallMs,
    /// Every instant of lateness up to here was told.
    judged: WallMs,
    check: WallMs,
}

/// A run that may be late; whether it is, its rules say.
#[derive(Clone, Debug)]
pub struct Suspect {
    pub job: Arc<JobKey>,
    /// The event without its threshold.
    event: Event,
    created: WallMs,
    judged: WallMs,
    until: WallMs,
}

impl Suspect {
    /// The instants of lateness that lie in what was not judged yet, one event for each threshold.
    pub fn judge(&self, thresholds: &[u64]) -> Vec<Event> {
        let late = |threshold: &u64| {
            let after = i64::try_from(*threshold).unwrap_or(i64::MAX);
            let at = self.event.due.plus(after).max(self.created);
            (at > self.judged && at <= self.until).then(|| Event {
                at,
                late_after_ms: Some(*threshold),
                ..self.event.clone()
            })
        };
        thresholds.iter().filter_map(late).collect()
    }
}

#[derive(Default)]
pub struct Watch {
    failing: BTreeMap<JobId, WallMs>,
    waiting: BTreeMap<RunId, Waiting>,
    checks: BTreeSet<(WallMs, RunId)>,
    seen: BTreeSet<RunId>,
    seen_order: VecDeque<RunId>,
    incomplete: bool,
}

impl Watch {
    /// With what was kept: when each failing job failed last, and runs that were told of.
    pub fn resume(failing: BTreeMap<JobId, WallMs>, seen: Vec<RunId>) -> Self {
        let mut watch = Self {
            failing,
            ..Self::default()
        };
        seen.into_iter().for_each(|run| watch.remember(run));
        watch
    }

    pub fn failing(&self) -> &BTreeMap<JobId, WallMs> {
        &self.failing
    }

    /// The last runs that were told of, oldest first.
    pub fn told(&self, most: usize) -> Vec<RunId> {
        let skip = self.seen_order.len().saturating_sub(most);
        self.seen_order.iter().skip(skip).copied().collect()
    }

    /// Whether runs wait that are not watched, and there is room for them.
    pub fn incomplete(&self) -> bool {
        self.incomplete && self.waiting.len() < WAITING / 2
    }

    pub fn begin_completing(&mut self) {
        self.incomplete = false;
    }

    /// Takes note of a run. What comes out is an event for those whom it concerns, and perhaps a suspicion of lateness.
    pub fn see(&mut self, run: &Sighting<'_>) -> (Option<Event>, Option<Suspect>) {
        if run.state.is_terminal() {
            let late = self.started(run);
            return (self.ended(run), late);
        }
        if run.started.is_some() {
            return (None, self.started(run));
        }
        self.wait(run, WallMs(i64::MIN));
        (None, None)
    }

    /// Watches a run that waits; `judged` is the instant until which it was judged before.
    pub fn wait(&mut self, run: &Sighting<'_>, judged: WallMs) {
        if self.waiting.contains_key(&run.run) {
            return;
        }
        if self.waiting.len() >= WAITING {
            self.incomplete = true;
            return;
        }
        let check = run.due.plus(SOON_MS);
        self.checks.insert((check, run.run));
        let waiting = Waiting {
            job: Arc::clone(run.job),
            created: run.created,
            due: run.due,
            judged,
            check,
        };
        self.waiting.insert(run.run, waiting);
    }

    /// Runs that wait and that it is time to judge, at most so many. Each must be given to [`Watch::judged`].
    pub fn suspects(&mut self, now: WallMs, most: usize) -> Vec<Suspect> {
        let due = self.checks.range(..=(now, RunId(u64::MAX)));
        let runs: Vec<RunId> = due.take(most).map(|(_, run)| *run).collect();
        runs.into_iter()
            .filter_map(|run| self.suspect(run, now))
            .collect()
    }

    fn suspect(&self, run: RunId, until: WallMs) -> Option<Suspect> {
        let waiting = self.waiting.get(&run)?;
        let sighting = Sighting {
            run,
            job: &waiting.job,
            state: RunState::Pending,
            created: waiting.created,
            due: waiting.due,
            at: waiting.created,
            attempts: 0,
            started: None,
            worker: None,
            exit_code: None,
            error: None,
        };
        Some(Suspect {
            job: Arc::clone(&waiting.job),
            event: sighting.event(NotifyOn::Late, until, None),
            created: waiting.created,
            judged: waiting.judged,
            until,
        })
    }

    /// A suspect was judged by these thresholds; the run goes on waiting until the next one.
    pub fn judged(&mut self, suspect: &Suspect, thresholds: &[u64]) {
        let run = suspect.event.run;
        let Some(waiting) = self.waiting.get_mut(&run) else {
            return;
        };
        self.checks.remove(&(waiting.check, run));
        let ahead = thresholds
            .iter()
            .map(|after| waiting.due.plus(i64::try_from(*after).unwrap_or(i64::MAX)))
            .filter(|at| *at > suspect.until)
            .min();
        let again = suspect.until.plus(LOOK_AGAIN_MS);
        waiting.check = ahead.map_or(again, |at| at.min(again));
        waiting.judged = suspect.until;
        self.checks.insert((waiting.check, run));
    }

    fn started(&mut self, run: &Sighting<'_>) -> Option<Suspect> {
        let waiting = self.waiting.remove(&run.run)?;
        self.checks.remove(&(waiting.check, run.run));
        let started = run.started?;
        (started.since(run.due) >= SOON_MS).then(|| Suspect {
            job: Arc::clone(run.job),
            event: Sighting {
                error: None,
                exit_code: None,
                ..*run
            }
            .event(NotifyOn::Late, started, None),
            created: waiting.created,
            judged: waiting.judged,
            until: started,
        })
    }

    fn ended(&mut self, run: &Sighting<'_>) -> Option<Event> {
        if self.seen.contains(&run.run) {
            return None;
        }
        let job = run.job.id;
        match run.state {
            RunState::Failed => {
                if self.failing.len() < FAILING || self.failing.contains_key(&job) {
                    let last = self.failing.entry(job).or_insert(run.at);
                    *last = (*last).max(run.at);
                }
                self.remember(run.run);
                Some(run.event(NotifyOn::Failure, run.at, None))
            }
            RunState::Completed if self.failing.get(&job).is_some_and(|last| run.at >= *last) => {
                self.failing.remove(&job);
                self.remember(run.run);
                Some(run.event(NotifyOn::Recovery, run.at, None))
            }
            _ => None,
        }
    }

    /// A job that is gone neither fails nor recovers.
    pub fn forget(&mut self, job: JobId) {
        self.failing.remove(&job);
    }

    fn remember(&mut self, run: RunId) {
        if self.seen.insert(run) {
            self.seen_order.push_back(run);
        }
        if self.seen_order.len() > SEEN
            && let Some(oldest) = self.seen_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
