//! The end of an attempt in words, and what followed on it.

use crate::model::{
    AgainBy, Attempt, AttemptEnd, AttemptOutcome, CountsAs, Finality, Judgement, LossCause,
    RetryPolicy, Run, Verdict,
};
use crate::schedule::format_duration;

use super::Happening;
use super::words::{instant, of_rule, quoted, span};

/// How it ended: `Attempt 1 failed after 1.9s: the command exited with code 3.`
pub(super) fn ended(attempt: &Attempt, end: &AttemptEnd, on_request: bool) -> (Happening, String) {
    let (number, worker) = (attempt.number, &attempt.worker);
    let after = span(end.duration_ms);
    let said = cause(end);
    let because = match &said {
        Some(said) => format!(": {said}."),
        None => ".".to_owned(),
    };
    match end.outcome {
        AttemptOutcome::Succeeded => (
            Happening::Succeeded,
            format!("Attempt {number} succeeded after {after}."),
        ),
        AttemptOutcome::Failed => (
            Happening::Failed,
            format!("Attempt {number} failed after {after}{because}"),
        ),
        AttemptOutcome::TimedOut => (
            Happening::TimedOut,
            format!("Attempt {number} was stopped after {after}{because}"),
        ),
        AttemptOutcome::Cancelled if on_request => (
            Happening::Stopped,
            format!("Worker {worker} confirmed that it had stopped attempt {number}."),
        ),
        AttemptOutcome::Cancelled => {
            let because = match said {
                Some(_) => because,
                None => " and did not say why.".to_owned(),
            };
            (
                Happening::Stopped,
                format!("Worker {worker} stopped attempt {number} after {after}{because}"),
            )
        }
        AttemptOutcome::Lost => lost(attempt, end, &because),
        AttemptOutcome::Undelivered => undelivered(attempt, end, &because),
        AttemptOutcome::Snoozed => {
            let asked = match end.verdict {
                Some(Verdict::Snooze(ms) | Verdict::RetryAfter(ms)) => {
                    format!(" for {}", format_duration(ms))
                }
                Some(Verdict::GiveUp) | None => String::new(),
            };
            (
                Happening::PutOff,
                format!("The handler put attempt {number} off{asked}; that is no failure."),
            )
        }
    }
}

fn lost(attempt: &Attempt, end: &AttemptEnd, because: &str) -> (Happening, String) {
    let (number, worker) = (attempt.number, &attempt.worker);
    match end.error.as_deref().and_then(LossCause::read) {
        Some(LossCause::LeaseEnded) => (
            Happening::Lost,
            format!(
                "Attempt {number} was lost: worker {worker} left or missed its heartbeats for a whole lease. How far the task came is not known."
            ),
        ),
        Some(LossCause::Forgotten) => (
            Happening::Forgotten,
            format!(
                "Attempt {number} was lost: worker {worker} is connected but has no memory of it, as after a restart. How far the task came is not known."
            ),
        ),
        Some(LossCause::NeverArrived) | None => (
            Happening::Lost,
            format!("Attempt {number} was lost with worker {worker}{because}"),
        ),
    }
}

fn undelivered(attempt: &Attempt, end: &AttemptEnd, because: &str) -> (Happening, String) {
    let (number, worker) = (attempt.number, &attempt.worker);
    let text = match end.error.as_deref().and_then(LossCause::read) {
        Some(LossCause::NeverArrived) => {
            format!(
                "Attempt {number} never reached worker {worker}: the connection broke on the way."
            )
        }
        Some(LossCause::LeaseEnded | LossCause::Forgotten) | None => {
            format!("Worker {worker} handed attempt {number} back before it started{because}")
        }
    };
    (Happening::Undelivered, text)
}

/// What the attempt died of, as far as anybody said.
pub(super) fn cause(end: &AttemptEnd) -> Option<String> {
    let said = end.error.as_deref().map(quoted);
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return Some(said);
    }
    match (end.exit_code, end.signal, end.http_status) {
        (_, Some(signal), _) => Some(format!("signal {signal}")),
        (Some(code), None, _) => Some(format!("exit code {code}")),
        (None, None, Some(status)) => Some(format!("HTTP status {status}")),
        (None, None, None) => None,
    }
}

/// What follows on the end of the attempt at this place, when it is another try.
pub(super) fn again(policy: &RetryPolicy, run: &Run, place: usize) -> Option<String> {
    let attempts = &run.attempts[..=place];
    let end = attempts.last()?.end.as_ref()?;
    let Judgement::Again { wait_ms, by } = policy.judge(run.id, attempts)? else {
        return None;
    };
    let counts_as = end.outcome.line().counts_as;
    let at = instant(end.at.plus(i64::try_from(wait_ms).unwrap_or(i64::MAX)));
    let count = alike(attempts, counts_as);
    let of = match counts_as.most(policy) {
        Some(most) => format!("{count} of at most {most}"),
        None => count.to_string(),
    };
    let wait = span(wait_ms);
    Some(match (by, counts_as) {
        (AgainBy::Backoff, _) => {
            format!("Failure {of}: tried again after a backoff of {wait}, at {at}.")
        }
        (AgainBy::Rule(place), _) => format!(
            "Failure {of}: rule {} of `retry.on`{} says to try again after {wait}, at {at}.",
            place + 1,
            policy
                .rule(place)
                .map_or(String::new(), |rule| format!(" ({})", of_rule(rule)))
        ),
        (AgainBy::Task, CountsAs::Snooze) => format!("It is tried again at {at}."),
        (AgainBy::Task, _) => {
            format!("Failure {of}: the task asked to be tried again after {wait}, at {at}.")
        }
        (AgainBy::NoFailure, CountsAs::Loss) => format!(
            "Loss {of}, counted apart from failures: tried again at once, by another worker if one has room."
        ),
        (AgainBy::NoFailure, CountsAs::Stop) => format!(
            "A stop counts as neither failure nor loss: tried again {}, by another worker if one has room.",
            match wait_ms {
                0 => "at once".to_owned(),
                _ => format!("after {wait}, at {at}"),
            }
        ),
        (AgainBy::NoFailure, _) if wait_ms > 0 => {
            format!(
                "It had not started, so that counts as no try: given to a worker again after {wait}, at {at}."
            )
        }
        (AgainBy::NoFailure, _) => {
            "It had not started, so that counts as no try: given to a worker again at once."
                .to_owned()
        }
    })
}

/// Why there is no other try after the last attempt.
pub(super) fn finality(policy: &RetryPolicy, run: &Run) -> Option<Finality> {
    match policy.judge(run.id, &run.attempts)? {
        Judgement::Never(finality) => Some(finality),
        Judgement::Done | Judgement::Again { .. } => None,
    }
}

fn alike(attempts: &[Attempt], counts_as: CountsAs) -> usize {
    let ends = attempts.iter().filter_map(|it| it.end.as_ref());
    ends.filter(|end| end.outcome.line().counts_as == counts_as)
        .count()
}
