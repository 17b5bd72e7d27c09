//! What the end of an attempt means for its run: a pure function of the policy, the run and the time.
//!
//! A failed attempt is tried again after the backoff, a lost one at once, one that was put off when it asked for, each as
//! long as its own count allows. An attempt that never started goes back in line. A run that was asked to stop is never
//! tried again: what would have been tried again is cancelled.

use crate::model::{
    AttemptEnd, AttemptOutcome, Limits, Reason, RetryPolicy, Ruling, Run, RunState, Verdict, WallMs,
};

/// An assignment that cannot be delivered this often points to something that another try will not mend.
const UNDELIVERED_MAX: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It waits until then, and is given to a worker again.
    Again { at: WallMs, reason: Reason },
    End {
        state: RunState,
        reason: Reason,
        error: Option<String>,
    },
}

/// What follows on `end`, the end of the last attempt of `run`.
pub(super) fn after(policy: &RetryPolicy, run: &Run, end: &AttemptEnd, now: WallMs) -> Next {
    let said = || {
        let words = end.error.clone();
        words.unwrap_or_else(|| "the task failed without saying why".to_owned())
    };
    let failed = |reason, error| Next::End {
        state: RunState::Failed,
        reason,
        error: Some(error),
    };
    let next = match end.outcome {
        AttemptOutcome::Succeeded => Next::End {
            state: RunState::Completed,
            reason: Reason::Succeeded,
            error: None,
        },
        AttemptOutcome::Failed => match again_at(policy, run, end, now) {
            Some(at) => Next::Again {
                at,
                reason: Reason::Retry,
            },
            None => failed(Reason::TaskFailed, said()),
        },
        AttemptOutcome::TimedOut => match again_at(policy, run, end, now) {
            Some(at) => Next::Again {
                at,
                reason: Reason::Retry,
            },
            None => failed(Reason::TimedOut, said()),
        },
        AttemptOutcome::Snoozed => snoozed(run, end, now),
        AttemptOutcome::Lost | AttemptOutcome::Cancelled => {
            if run.ends_in(AttemptOutcome::is_loss) < policy.max_lost as usize {
                Next::Again {
                    at: now,
                    reason: Reason::WorkerLost,
                }
            } else {
                let cause = end.error.as_deref().unwrap_or("stopped by its worker");
                failed(Reason::WorkerLost, format!("worker lost: {cause}"))
            }
        }
        AttemptOutcome::Undelivered => {
            let undelivered = |outcome| outcome == AttemptOutcome::Undelivered;
            if run.ends_in(undelivered) < UNDELIVERED_MAX {
                Next::Again {
                    at: now,
                    reason: Reason::Undelivered,
                }
            } else {
                let cause = end.error.as_deref().unwrap_or_default();
                let error = format!("could not be delivered to a worker: {cause}");
                failed(Reason::WorkerLost, error)
            }
        }
    };
    match run.cancel {
        Some(_) => stopped(end, next),
        None => next,
    }
}

/// When a failed run is tried again; `None` when it has failed for good.
fn again_at(policy: &RetryPolicy, run: &Run, end: &AttemptEnd, now: WallMs) -> Option<WallMs> {
    let failures = run.ends_in(AttemptOutcome::is_failure);
    let attempt = run.attempts.last().map_or(0, |attempt| attempt.number);
    let backoff = || policy.wait_ms(u32::try_from(failures).unwrap_or(u32::MAX), run.id, attempt);
    let wait = match (end.verdict, policy.ruling(end)) {
        (Some(Verdict::GiveUp), _) => return None,
        (Some(Verdict::RetryAfter(ms)), _) => ms,
        (_, Ruling::GiveUp) => return None,
        (_, Ruling::Retry(ms)) => ms.unwrap_or_else(backoff),
    };
    (failures < policy.max_attempts as usize).then(|| later(now, wait))
}

fn snoozed(run: &Run, end: &AttemptEnd, now: WallMs) -> Next {
    let wait = match end.verdict {
        Some(Verdict::Snooze(ms) | Verdict::RetryAfter(ms)) => ms,
        Some(Verdict::GiveUp) | None => 0,
    };
    if run.ends_in(|outcome| outcome == AttemptOutcome::Snoozed) > Limits::SNOOZES {
        return Next::End {
            state: RunState::Failed,
            reason: Reason::TaskFailed,
            error: Some(format!(
                "it put itself off more than {} times: give it a schedule instead",
                Limits::SNOOZES
            )),
        };
    }
    Next::Again {
        at: later(now, wait),
        reason: Reason::Snoozed,
    }
}

/// What becomes of a run that was asked to stop.
fn stopped(end: &AttemptEnd, next: Next) -> Next {
    let words = match (end.outcome, next) {
        (AttemptOutcome::Cancelled, _) => "cancelled on request".to_owned(),
        (AttemptOutcome::Lost | AttemptOutcome::Undelivered, _) => {
            let cause = end.error.as_deref().unwrap_or("its lease ended");
            format!("cancelled on request; its worker did not confirm: {cause}")
        }
        (_, Next::Again { .. }) => {
            let cause = end.error.as_deref().unwrap_or("it was not done");
            format!("cancelled on request; its last attempt had ended: {cause}")
        }
        (_, end) => return end,
    };
    Next::End {
        state: RunState::Cancelled,
        reason: Reason::Cancelled,
        error: Some(words),
    }
}

fn later(now: WallMs, wait_ms: u64) -> WallMs {
    let wait = wait_ms.min(Limits::RETRY_WAIT_MS);
    now.plus(i64::try_from(wait).unwrap_or(i64::MAX))
}
