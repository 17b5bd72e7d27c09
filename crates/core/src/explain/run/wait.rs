//! What a PENDING run waits for: its time, its turn, its job's breaker, a limit, a worker that could take it, or room on one.

use crate::engine::{Hindrance, WorkerView};
use crate::model::{AttemptOutcome, BreakerRow, Pass, Requirement, RunId, TaskNeed, WallMs};

use super::words::{ahead, instant};
use super::{Cause, Known};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its time has not come.
    Time { at: WallMs },
    /// Others of its job, or with its key, have not ended.
    Turn { key: Option<String> },
    /// Its turn may have come, but the breaker of its job lets nothing through before then.
    Breaker { until: WallMs },
    /// Nor before the breaker has seen how this run ends.
    Probe { run: RunId },
    /// An attempt ended, and the next one comes then.
    Again {
        at: WallMs,
        attempt: u32,
        outcome: AttemptOutcome,
    },
    /// As many run as may, or start no faster, or its queue is paused.
    Limit(Hindrance),
    /// No worker that is connected could take it, however long it waits.
    Obstacle(Obstacle),
    /// Workers that could take it are busy, or other runs come first.
    Room {
        /// Whether more runs wait than memory holds.
        parked: bool,
    },
    /// It is ready, and nobody could be asked about the workers.
    Unknown,
}

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    NobodyConnected(TaskNeed),
    Namespace(String),
    NotOffered(TaskNeed),
    TooHeavy { weight: u32, largest: u32 },
    AllLeaving,
}

impl Wait {
    /// What the run, which is PENDING, waits for.
    pub fn of(known: &Known<'_>) -> Self {
        let (run, now) = (known.run, known.now);
        if run.standing.queued {
            return match BreakerRow::pass(known.breaker, now) {
                Pass::Cooling(until) => Self::Breaker { until },
                Pass::Probing(run) => Self::Probe { run },
                Pass::Closed | Pass::Probe => Self::Turn {
                    key: run.standing.key.clone(),
                },
            };
        }
        if let Some(at) = run.not_before.filter(|at| *at > now)
            && let Some(last) = run.attempts.last()
            && let Some(end) = &last.end
        {
            return Self::Again {
                at,
                attempt: last.number,
                outcome: end.outcome,
            };
        }
        if run.due > now {
            return Self::Time { at: run.due };
        }
        if let Some(limit) = known.limit {
            return Self::Limit(limit.clone());
        }
        let (Some(spec), Some(fleet)) = (known.spec, known.fleet) else {
            return Self::Unknown;
        };
        match Obstacle::find(&spec.requirement(), fleet) {
            Some(obstacle) => Self::Obstacle(obstacle),
            None => Self::Room {
                parked: run.parked.is_some(),
            },
        }
    }

    pub fn code(&self) -> Cause {
        match self {
            Self::Time { .. } => Cause::WaitsForItsTime,
            Self::Turn { .. } => Cause::WaitsForItsTurn,
            Self::Breaker { .. } | Self::Probe { .. } => Cause::BreakerOpen,
            Self::Again {
                outcome: AttemptOutcome::Snoozed,
                ..
            } => Cause::WaitsPutOff,
            Self::Again { .. } => Cause::WaitsToBeTriedAgain,
            Self::Limit(limit) => limit.code(),
            Self::Obstacle(obstacle) => obstacle.code(),
            Self::Room { .. } => Cause::WaitsForRoom,
            Self::Unknown => Cause::WaitsForAWorker,
        }
    }

    /// A clause that follows on "it waits:".
    pub fn text(&self, now: WallMs) -> String {
        match self {
            Self::Time { at } => format!(
                "its time has not come: it starts at {}, {}",
                instant(*at),
                ahead(*at, now)
            ),
            Self::Turn { key: None } => {
                "runs of its job have not ended: it starts when it has its turn".to_owned()
            }
            Self::Turn { key: Some(key) } => {
                format!("runs of its job with the key {key} have not ended: it starts when it has its turn")
            }
            Self::Breaker { until } => format!(
                "the circuit breaker of its job is open after failures and lets nothing through before {}, {}",
                instant(*until),
                ahead(*until, now)
            ),
            Self::Probe { run } => format!(
                "the circuit breaker of its job lets nothing through before {run}, which tries whether all is well again, has ended"
            ),
            Self::Again {
                at,
                attempt,
                outcome,
            } => format!(
                "its attempt {attempt} {}: it is tried again at {}, {}",
                past(*outcome),
                instant(*at),
                ahead(*at, now)
            ),
            Self::Limit(limit) => limit.text(now),
            Self::Obstacle(obstacle) => obstacle.text(),
            Self::Room { parked: false } => {
                "all workers that could take it are busy, or other runs come first".to_owned()
            }
            Self::Room { parked: true } => {
                "all workers that could take it are busy, and more runs wait before it than are held in memory".to_owned()
            }
            Self::Unknown => "a worker has to take it; the workers could not be asked".to_owned(),
        }
    }
}

/// What an attempt that ended so did.
fn past(outcome: AttemptOutcome) -> &'static str {
    match outcome {
        AttemptOutcome::Succeeded => "succeeded",
        AttemptOutcome::Failed => "failed",
        AttemptOutcome::TimedOut => "timed out",
        AttemptOutcome::Cancelled => "was stopped by its worker",
        AttemptOutcome::Lost => "was lost with its worker",
        AttemptOutcome::Undelivered => "never reached its worker",
        AttemptOutcome::Snoozed => "was put off by its handler",
    }
}

impl Obstacle {
    /// The first thing that every worker lacks.
    pub fn find(wanted: &Requirement, fleet: &[WorkerView]) -> Option<Self> {
        let connected = fleet.iter().filter(|worker| worker.linked);
        let connected: Vec<&WorkerView> = connected.collect();
        if connected.is_empty() {
            return Some(Self::NobodyConnected(wanted.need.clone()));
        }
        let serving = kept(&connected, |worker| {
            let namespace = worker.namespace.as_ref();
            namespace.is_none_or(|namespace| *namespace == wanted.namespace)
        });
        if serving.is_empty() {
            return Some(Self::Namespace(wanted.namespace.to_string()));
        }
        let offering = kept(&serving, |worker| offers(worker, &wanted.need));
        if offering.is_empty() {
            return Some(Self::NotOffered(wanted.need.clone()));
        }
        let large = kept(&offering, |worker| worker.capacity >= wanted.weight);
        if large.is_empty() {
            let largest = offering.iter().map(|worker| worker.capacity).max();
            return Some(Self::TooHeavy {
                weight: wanted.weight,
                largest: largest.unwrap_or_default(),
            });
        }
        let leaving = |worker: &&WorkerView| !worker.state.takes_work();
        large.iter().all(leaving).then_some(Self::AllLeaving)
    }

    pub fn code(&self) -> Cause {
        match self {
            Self::NobodyConnected(_) => Cause::NoWorkerConnected,
            Self::Namespace(_) => Cause::NoWorkerForNamespace,
            Self::NotOffered(_) => Cause::NoWorkerOffersIt,
            Self::TooHeavy { .. } => Cause::TooHeavyForEveryWorker,
            Self::AllLeaving => Cause::WorkersLeaving,
        }
    }

    /// What is missing and what to do about it, in one clause.
    pub fn text(&self) -> String {
        format!("{}: {}", self.missing(), self.remedy())
    }

    /// `no worker is connected`
    pub(super) fn missing(&self) -> String {
        match self {
            Self::NobodyConnected(TaskNeed::Handler(name)) => {
                format!("no worker is connected, and no worker offers the handler `{name}`")
            }
            Self::NobodyConnected(TaskNeed::Exec | TaskNeed::Http) => {
                "no worker is connected".to_owned()
            }
            Self::Namespace(namespace) => format!("no worker serves the namespace `{namespace}`"),
            Self::NotOffered(TaskNeed::Exec) => "no worker runs commands".to_owned(),
            Self::NotOffered(TaskNeed::Http) => "no worker makes HTTP requests".to_owned(),
            Self::NotOffered(TaskNeed::Handler(name)) => {
                format!("no worker offers the handler `{name}`")
            }
            Self::TooHeavy { weight, largest } => format!(
                "its weight {weight} is more than any worker's capacity, of which the largest is {largest}"
            ),
            Self::AllLeaving => {
                "the workers that could take it are in maintenance, silent or faulty".to_owned()
            }
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::NobodyConnected(TaskNeed::Handler(_))
            | Self::NotOffered(TaskNeed::Handler(_)) => {
                "start the program that registers it, as docs/workers.md shows, or correct the name in the job"
            }
            Self::NobodyConnected(TaskNeed::Exec | TaskNeed::Http)
            | Self::NotOffered(TaskNeed::Exec | TaskNeed::Http) => {
                "start one with `drumtower work`"
            }
            Self::Namespace(_) => "start one with a token that is bound to it or to none",
            Self::TooHeavy { .. } => "lower `weight`, or start a worker with a larger --capacity",
            Self::AllLeaving => "`drumtower worker list` says why, or start another one",
        }
    }
}

fn kept<'a>(workers: &[&'a WorkerView], fits: impl Fn(&WorkerView) -> bool) -> Vec<&'a WorkerView> {
    let fitting = workers.iter().copied().filter(|worker| fits(worker));
    fitting.collect()
}

fn offers(worker: &WorkerView, need: &TaskNeed) -> bool {
    match need {
        TaskNeed::Exec => worker.exec,
        TaskNeed::Http => worker.http,
        TaskNeed::Handler(name) => worker.handlers.contains(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Load, WorkerState};
    use crate::model::{NamespaceName, WorkerName};

    fn worker(change: impl FnOnce(&mut WorkerView)) -> WorkerView {
        let mut worker = WorkerView {
            name: WorkerName::new("one").unwrap(),
            state: WorkerState::Online,
            why: None,
            linked: true,
            alive: true,
            drain: None,
            losses: 0,
            faulty_until: None,
            probation: false,
            host: String::new(),
            version: String::new(),
            labels: Default::default(),
            namespace: None,
            exec: true,
            http: false,
            enforcement: Default::default(),
            handlers: vec!["other".to_owned()],
            capacity: 4,
            credit: 4,
            attempts: 0,
            running: Vec::new(),
            load: Load::default(),
            skew_ms: 0,
            connected: WallMs(0),
            last_heartbeat: None,
        };
        change(&mut worker);
        worker
    }

    fn wanted(need: TaskNeed, weight: u32) -> Requirement {
        Requirement {
            namespace: NamespaceName::new("billing").unwrap(),
            need,
            weight,
            priority: 5,
        }
    }

    #[track_caller]
    fn says(need: TaskNeed, weight: u32, fleet: &[WorkerView], words: &str) {
        let found = Obstacle::find(&wanted(need, weight), fleet);
        let said = found.map(|it| it.text()).unwrap_or_default();
        assert!(said.starts_with(words), "{said}");
    }

    #[test]
    fn the_first_thing_that_is_missing_is_named() {
        let gone = worker(|it| (it.state, it.linked) = (WorkerState::Offline, false));
        says(TaskNeed::Exec, 1, &[gone], "no worker is connected: start");
        let abroad = worker(|it| it.namespace = NamespaceName::new("sales").ok());
        says(
            TaskNeed::Exec,
            1,
            &[abroad],
            "no worker serves the namespace `billing`",
        );
        let plain = || worker(|_| {});
        let handler = TaskNeed::Handler("count".to_owned());
        says(
            handler,
            1,
            &[plain()],
            "no worker offers the handler `count`",
        );
        says(
            TaskNeed::Http,
            1,
            &[plain()],
            "no worker makes HTTP requests",
        );
        says(
            TaskNeed::Exec,
            5,
            &[plain()],
            "its weight 5 is more than any worker's capacity, of which the largest is 4",
        );
        let leaving = worker(|it| it.state = WorkerState::Maintenance);
        says(
            TaskNeed::Exec,
            4,
            &[leaving],
            "the workers that could take it are in maintenance",
        );
    }

    #[test]
    fn a_worker_that_could_take_it_is_no_obstacle() {
        let busy = worker(|it| (it.state, it.credit) = (WorkerState::Busy, 0));
        assert_eq!(Obstacle::find(&wanted(TaskNeed::Exec, 4), &[busy]), None);
        let other = TaskNeed::Handler("other".to_owned());
        assert_eq!(Obstacle::find(&wanted(other, 1), &[worker(|_| {})]), None);
    }
}
