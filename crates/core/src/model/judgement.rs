//! Whether a run is tried again after the end of an attempt, and by whose word.
//!
//! The engine acts on it, and explanations tell it: both ask the same function, so that what is said is what was done.

use crate::fault::{Fault, armed};

use super::{Attempt, AttemptEnd, CountsAs, Limits, RetryPolicy, Ruling, RunId, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It succeeded.
    Done,
    /// It is tried again after so many milliseconds.
    Again {
        wait_ms: u64,
        by: AgainBy,
    },
    Never(Finality),
}

/// Who says that and when it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgainBy {
    Backoff,
    /// A rule of `retry.on`, counted from 0, that names a wait of its own.
    Rule(usize),
    /// The task itself.
    Task,
    /// It was no failure: it is repeated at once, or soon.
    NoFailure,
}

/// What ended the tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// The task itself said that another try is of no use.
    GivenUp,
    /// A rule of `retry.on`, counted from 0.
    Rule(usize),
    /// As many ends of this kind as there may be.
    UsedUp { counts_as: CountsAs, most: usize },
}

/// The first comes again at once, as after a broken connection or a deployment. Beyond that workers may need a while, as one
/// does whose handler has not stopped yet: 1 s, doubled each time up to 30 s, so that ten together outlast two minutes.
fn patient_wait_ms(count: usize) -> u64 {
    match count {
        0 | 1 => 0,
        2..=6 => 1_000 << (count - 2),
        _ => 30_000,
    }
}

impl RetryPolicy {
    /// What follows on the end of the last of these attempts, whether or not the run was asked to stop. `None` when it has
    /// not ended.
    pub fn judge(&self, run: RunId, attempts: &[Attempt]) -> Option<Judgement> {
        let last = attempts.last()?;
        let end = last.end.as_ref()?;
        let counts_as = end.outcome.line().counts_as;
        let ends = attempts.iter().filter_map(|it| it.end.as_ref());
        let alike = ends.filter(|it| it.outcome.line().counts_as == counts_as);
        let count = match counts_as {
            CountsAs::Failure if armed(Fault::RetryCountedTwice) => 2 * alike.count(),
            CountsAs::Loss if armed(Fault::LossNotCounted) => 0,
            _ => alike.count(),
        };
        Some(match counts_as {
            CountsAs::Nothing => Judgement::Done,
            CountsAs::Failure => self.judge_failure(run, last.number, end, count),
            CountsAs::Loss => self.within(counts_as, count, 0, AgainBy::NoFailure),
            CountsAs::Undelivered | CountsAs::Stop => {
                let wait = patient_wait_ms(count);
                self.within(counts_as, count, wait, AgainBy::NoFailure)
            }
            CountsAs::Snooze => {
                let wait = match end.verdict {
                    Some(Verdict::Snooze(ms) | Verdict::RetryAfter(ms)) => ms,
                    Some(Verdict::GiveUp) | None => 0,
                };
                self.within(counts_as, count, wait, AgainBy::Task)
            }
        })
    }

    fn judge_failure(
        &self,
        run: RunId,
        attempt: u32,
        end: &AttemptEnd,
        failures: usize,
    ) -> Judgement {
        let rule = self.rule_for(end);
        let backoff = || self.wait_ms(u32::try_from(failures).unwrap_or(u32::MAX), run, attempt);
        let verdict = end.verdict.filter(|_| !armed(Fault::VerdictIgnored));
        let (wait, by) = match (verdict, self.ruling(end), rule) {
            (Some(Verdict::GiveUp), _, _) => return Judgement::Never(Finality::GivenUp),
            (Some(Verdict::RetryAfter(ms)), _, _) => (ms, AgainBy::Task),
            (_, Ruling::GiveUp, rule) => {
                return Judgement::Never(Finality::Rule(rule.unwrap_or_default()));
            }
            (_, Ruling::Retry(Some(ms)), Some(rule)) => (ms, AgainBy::Rule(rule)),
            (_, Ruling::Retry(_), _) => (backoff(), AgainBy::Backoff),
        };
        self.within(CountsAs::Failure, failures, wait, by)
    }

    /// Again, unless as many have ended like this as may.
    fn within(&self, counts_as: CountsAs, count: usize, wait_ms: u64, by: AgainBy) -> Judgement {
        match counts_as.most(self) {
            Some(most) if count >= most => Judgement::Never(Finality::UsedUp { counts_as, most }),
            _ if armed(Fault::BackoffSkipped) => Judgement::Again { wait_ms: 0, by },
            _ => Judgement::Again {
                wait_ms: wait_ms.min(Limits::RETRY_WAIT_MS),
                by,
            },
        }
    }
}
