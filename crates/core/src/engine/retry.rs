//! What the end of an attempt means for its run: a pure function of the policy, the run and the time.
//!
//! [`OUTCOMES`](crate::model::OUTCOMES) says what each end counts as and leads to, [`RetryPolicy::judge`] whether there is
//! another try and when. A run that was asked to stop is never tried again: what would have been tried again is cancelled.

use crate::model::{
    AttemptEnd, AttemptOutcome, Judgement, Limits, Reason, RetryPolicy, Run, RunState, WallMs,
};

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
    let line = end.outcome.line();
    let next = match (policy.judge(run.id, &run.attempts), line.again) {
        (Some(Judgement::Again { wait_ms, .. }), Some(reason)) => Next::Again {
            at: now.plus(i64::try_from(wait_ms).unwrap_or(i64::MAX)),
            reason,
        },
        _ => Next::End {
            state: line.end.0,
            reason: line.end.1,
            error: last_words(end),
        },
    };
    match run.cancel {
        Some(_) => stopped(run.standing.superseded, end, next),
        None => next,
    }
}

/// The cause of a run's end that was the end of this attempt.
fn last_words(end: &AttemptEnd) -> Option<String> {
    let said = end.error.as_deref();
    match end.outcome {
        AttemptOutcome::Succeeded => None,
        AttemptOutcome::Failed | AttemptOutcome::TimedOut => Some(
            said.unwrap_or("the task failed without saying why")
                .to_owned(),
        ),
        AttemptOutcome::Snoozed => Some(format!(
            "it put itself off more than {} times: give it a schedule instead",
            Limits::SNOOZES
        )),
        AttemptOutcome::Lost => {
            let cause = said.unwrap_or("nobody knows how");
            Some(format!("worker lost: {cause}"))
        }
        AttemptOutcome::Cancelled => {
            let cause = said.unwrap_or("its worker did not say why");
            Some(format!("stopped by its worker: {cause}"))
        }
        AttemptOutcome::Undelivered => {
            let cause = said.unwrap_or_default();
            Some(format!("could not be delivered to a worker: {cause}"))
        }
    }
}

/// What becomes of a run that was asked to stop.
fn stopped(superseded: bool, end: &AttemptEnd, next: Next) -> Next {
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
    let (reason, words) = match superseded {
        true => (
            Reason::Superseded,
            format!("a newer run took its place: {words}"),
        ),
        false => (Reason::Cancelled, words),
    };
    Next::End {
        state: RunState::Cancelled,
        reason,
        error: Some(words),
    }
}
