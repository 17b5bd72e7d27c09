//! What the end of an attempt counts as, and what follows on it.
//!
//! [`OUTCOMES`] is the whole of it: one line for each way in which an attempt can end. The engine goes by it, and the
//! page of the states is printed from it. Within the maximum of its count an attempt is followed by another; beyond, and
//! where trying again is ruled out, the run ends. An attempt of a run that was asked to stop is followed by none: what
//! would be tried again is CANCELLED instead.

use super::{AttemptOutcome, Limits, Reason, RetryPolicy, RunState};

/// Each count has a maximum of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountsAs {
    /// It is never counted, because nothing follows.
    Nothing,
    Failure,
    Loss,
    /// Its worker stopped it because it was told to leave.
    Stop,
    Undelivered,
    Snooze,
}

impl CountsAs {
    /// How many ends of this kind a run may have: the last of them is its own end. `None` is as many as there are.
    pub fn most(self, policy: &RetryPolicy) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Failure => Some(policy.max_attempts as usize),
            Self::Loss => Some(policy.max_lost as usize),
            // What must not be repeated when it is lost must not be when it was stopped either.
            Self::Stop if policy.max_lost <= 1 => Some(1),
            Self::Stop => Some(Limits::STOPS),
            Self::Undelivered => Some(Limits::UNDELIVERED),
            Self::Snooze => Some(Limits::SNOOZES + 1),
        }
    }
}

/// One line of the table of ends.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub outcome: AttemptOutcome,
    pub counts_as: CountsAs,
    /// With which reason the run goes back to PENDING; `None` when nothing is tried again.
    pub again: Option<Reason>,
    /// What the run ends in, and with which reason, when it is not tried again.
    pub end: (RunState, Reason),
}

/// Every way in which an attempt can end.
pub const OUTCOMES: &[Outcome] = &[
    Outcome {
        outcome: AttemptOutcome::Succeeded,
        counts_as: CountsAs::Nothing,
        again: None,
        end: (RunState::Completed, Reason::Succeeded),
    },
    Outcome {
        outcome: AttemptOutcome::Failed,
        counts_as: CountsAs::Failure,
        again: Some(Reason::Retry),
        end: (RunState::Failed, Reason::TaskFailed),
    },
    Outcome {
        outcome: AttemptOutcome::TimedOut,
        counts_as: CountsAs::Failure,
        again: Some(Reason::Retry),
        end: (RunState::Failed, Reason::TimedOut),
    },
    Outcome {
        outcome: AttemptOutcome::Lost,
        counts_as: CountsAs::Loss,
        again: Some(Reason::WorkerLost),
        end: (RunState::Failed, Reason::WorkerLost),
    },
    // One that its worker stopped because it leaves; on request, the run is CANCELLED.
    Outcome {
        outcome: AttemptOutcome::Cancelled,
        counts_as: CountsAs::Stop,
        again: Some(Reason::WorkerLost),
        end: (RunState::Failed, Reason::WorkerLost),
    },
    Outcome {
        outcome: AttemptOutcome::Undelivered,
        counts_as: CountsAs::Undelivered,
        again: Some(Reason::Undelivered),
        end: (RunState::Failed, Reason::WorkerLost),
    },
    Outcome {
        outcome: AttemptOutcome::Snoozed,
        counts_as: CountsAs::Snooze,
        again: Some(Reason::Snoozed),
        end: (RunState::Failed, Reason::TaskFailed),
    },
];

impl AttemptOutcome {
    /// Its line of the table.
    pub fn line(self) -> &'static Outcome {
        let place = match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::TimedOut => 2,
            Self::Lost => 3,
            Self::Cancelled => 4,
            Self::Undelivered => 5,
            Self::Snoozed => 6,
        };
        &OUTCOMES[place]
    }

    /// Whether it counts against `retry.max_attempts`.
    pub fn is_failure(self) -> bool {
        self.line().counts_as == CountsAs::Failure
    }

    /// Whether it counts against `retry.max_lost`.
    pub fn is_loss(self) -> bool {
        self.line().counts_as == CountsAs::Loss
    }

    /// Whether its worker is, or was, not there to end it.
    pub fn ends_with_worker(self) -> bool {
        matches!(self.line().counts_as, CountsAs::Loss | CountsAs::Stop)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Undelivered => "undelivered",
            Self::Snoozed => "snoozed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Move;

    #[test]
    fn every_line_is_found_by_its_outcome() {
        for line in OUTCOMES {
            let found = line.outcome.line();
            assert_eq!(found.outcome, line.outcome);
            let json = serde_json::to_string(&line.outcome).expect("JSON");
            assert_eq!(json, format!("{:?}", line.outcome.as_str()));
        }
    }

    #[test]
    fn what_follows_is_a_step_that_runs_can_take() {
        for line in OUTCOMES {
            let (state, reason) = line.end;
            assert!(state.is_terminal());
            let held = Some(RunState::Scheduled);
            assert!(Move::exists(held, state, reason), "{:?}", line.outcome);
            if let Some(again) = line.again {
                assert!(Move::exists(held, RunState::Pending, again), "{again:?}");
                assert!(line.counts_as.most(&RetryPolicy::default()).is_some());
            }
        }
    }
}
