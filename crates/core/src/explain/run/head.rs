//! The one sentence that answers "why?".

use crate::engine::{WorkerState, WorkerView};
use crate::model::{Attempt, AttemptOutcome, CancelRequest, CountsAs, Finality, Reason, RunState};
use crate::schedule::format_duration;

use super::lateness::Lateness;
use super::words::{ahead, between, instant, of_rule, quoted, span, times};
use super::{Cause, Headline, Known, Wait, attempts};

pub(super) fn line(known: &Known<'_>) -> Headline {
    let (code, text) = match known.run.state {
        RunState::Pending => pending(known),
        RunState::Scheduled | RunState::Running => held(known),
        RunState::Completed => completed(known),
        RunState::Failed => failed(known),
        RunState::Cancelled => cancelled(known),
    };
    Headline { code, text }
}

fn pending(known: &Known<'_>) -> (Cause, String) {
    let (run, now) = (known.run, known.now);
    let wait = Wait::of(known);
    let since = between(run.ready().max(run.created), now);
    let text = match &wait {
        Wait::Time { at } => format!(
            "It waits for its time: it starts at {}, {}.",
            instant(*at),
            ahead(*at, now)
        ),
        Wait::Again {
            at,
            attempt,
            outcome: AttemptOutcome::Snoozed,
        } => format!(
            "Its handler put attempt {attempt} off: attempt {} comes at {}, {}. That is no failure.",
            attempt + 1,
            instant(*at),
            ahead(*at, now)
        ),
        Wait::Again { at, attempt, .. } => format!(
            "It waits to be tried again: attempt {attempt} {}; attempt {} comes at {}, {}.",
            last_failure(known),
            attempt + 1,
            instant(*at),
            ahead(*at, now)
        ),
        Wait::Obstacle(obstacle) => {
            format!(
                "It has waited for a worker for {since}: {}.",
                obstacle.missing()
            )
        }
        Wait::Turn { .. } | Wait::Breaker { .. } | Wait::Probe { .. } => {
            let since = between(run.created, now);
            format!(
                "It has been in the queue of its job for {since}: {}.",
                wait.text(now)
            )
        }
        Wait::Limit(_) | Wait::Room { .. } | Wait::Unknown => {
            format!(
                "It has been ready for {since} and waits: {}.",
                wait.text(now)
            )
        }
    };
    (wait.code(), text)
}

/// `failed (the command exited with code 3)`
fn last_failure(known: &Known<'_>) -> String {
    let end = known.run.attempts.last().and_then(|it| it.end.as_ref());
    let Some(end) = end else {
        return "ended".to_owned();
    };
    let what = match end.outcome {
        AttemptOutcome::TimedOut => "timed out",
        AttemptOutcome::Undelivered => "did not start",
        AttemptOutcome::Succeeded
        | AttemptOutcome::Failed
        | AttemptOutcome::Cancelled
        | AttemptOutcome::Lost
        | AttemptOutcome::Snoozed => "failed",
    };
    match attempts::cause(end) {
        Some(cause) => format!("{what} ({cause})"),
        None => what.to_owned(),
    }
}

/// SCHEDULED or RUNNING: a worker has it.
fn held(known: &Known<'_>) -> (Cause, String) {
    let (run, now) = (known.run, known.now);
    let Some(attempt) = run.current_attempt() else {
        return (Cause::Given, "It is with a worker.".to_owned());
    };
    let (number, worker) = (attempt.number, &attempt.worker);
    if let Some(cancel) = &run.cancel {
        let text = format!(
            "{} asked {} ago to cancel it. It ends when worker {worker} has stopped attempt {number}, or when that worker's lease is over.",
            cancel.actor,
            between(cancel.at, now)
        );
        return (Cause::BeingCancelled, text);
    }
    if let Some(silent) = silence(known, attempt) {
        return (Cause::WorkerSilent, silent);
    }
    if run.state == RunState::Scheduled {
        let text = format!(
            "For {} worker {worker} has had attempt {number} and has not said yet that it started.",
            between(attempt.assigned, now)
        );
        return (Cause::Given, text);
    }
    let mut text = format!(
        "Attempt {number} has been running on worker {worker} for {}",
        between(attempt.started.unwrap_or(attempt.assigned), now)
    );
    if let Some(timeout) = known.spec.and_then(|spec| spec.parsed_timeout().ok()) {
        text.push_str(&format!(
            " of the {} that it may take",
            format_duration(timeout)
        ));
    }
    if let Some(progress) = &run.progress {
        let said = progress.message.as_deref().map(quoted);
        let said = said.map_or(String::new(), |said| format!(", {said}"));
        let ago = between(progress.at, now);
        let percent = progress.percent;
        text.push_str(&format!("; {ago} ago it was at {percent} %{said}"));
    }
    (Cause::Running, text + ".")
}

/// That nothing is heard of the worker that has the attempt.
fn silence(known: &Known<'_>, attempt: &Attempt) -> Option<String> {
    let mut fleet = known.fleet?.iter();
    let worker: Option<&WorkerView> = fleet.find(|it| it.name == attempt.worker);
    let (number, name) = (attempt.number, &attempt.worker);
    let follows = "If it is not back before its lease is over, the attempt is lost and the run is tried again elsewhere.";
    match worker {
        Some(worker) if worker.state == WorkerState::Offline || !worker.linked => {
            let heard = worker.last_heartbeat.map_or(String::new(), |at| {
                format!(" and was last heard {} ago", between(at, known.now))
            });
            Some(format!(
                "Worker {name}, which has attempt {number}, is not connected{heard}. {follows}"
            ))
        }
        Some(_) => None,
        None => Some(format!(
            "Worker {name}, which has attempt {number}, is not connected. {follows}"
        )),
    }
}

fn completed(known: &Known<'_>) -> (Cause, String) {
    let run = known.run;
    let last = run.attempts.last();
    let took = last
        .and_then(|it| it.end.as_ref())
        .map(|end| span(end.duration_ms));
    let (number, took) = (
        last.map_or(0, |attempt| attempt.number),
        took.unwrap_or_default(),
    );
    let mut text = match run.attempts.len().saturating_sub(1) {
        0 => format!("It succeeded at the first attempt, which took {took}."),
        before => format!(
            "It succeeded at attempt {number}, which took {took}, after {} that did not.",
            times(before, "attempt")
        ),
    };
    if let Some(late) = Lateness::of(run) {
        text.push_str(&format!(" It started {} late.", late.total()));
    }
    (Cause::Completed, text)
}

fn failed(known: &Known<'_>) -> (Cause, String) {
    let last = known.run.transitions.last();
    match last.map(|step| step.reason) {
        Some(Reason::TaskFailed | Reason::TimedOut | Reason::WorkerLost) | None => {
            failed_attempts(known)
        }
        Some(Reason::StartTimedOut) => {
            let error = known.run.error.as_deref().map(quoted).unwrap_or_default();
            let text = format!("Nobody took it in time: {error}.");
            (Cause::StartTimedOut, text)
        }
        Some(Reason::Overlap) => {
            let text = "It was due while as many runs of its job as may be had not ended, and the job says `overlap: fail`.";
            (Cause::FailedForOthers, text.to_owned())
        }
        // No run fails for these.
        Some(
            Reason::Created
            | Reason::Assigned
            | Reason::Started
            | Reason::Succeeded
            | Reason::Undelivered
            | Reason::Cancelled
            | Reason::Retry
            | Reason::Snoozed
            | Reason::Superseded
            | Reason::Expired,
        ) => failed_attempts(known),
    }
}

/// It failed because of how its attempts ended.
fn failed_attempts(known: &Known<'_>) -> (Cause, String) {
    let run = known.run;
    let error = run.error.as_deref().map(quoted).unwrap_or_default();
    let policy = known.policy();
    let ended_by = policy
        .as_ref()
        .and_then(|policy| attempts::finality(policy, run));
    let (Some(policy), Some(ended_by)) = (policy, ended_by) else {
        return (Cause::Failed, format!("It failed: {error}."));
    };
    match ended_by {
        Finality::GivenUp => (
            Cause::GivenUp,
            format!("The task gave up, saying that another try is of no use: {error}."),
        ),
        Finality::Rule(place) => {
            let fits = policy.rule(place).map(of_rule).unwrap_or_default();
            let text = format!(
                "Rule {} of `retry.on` ({fits}) says not to try again after such a failure: {error}.",
                place + 1
            );
            (Cause::GivenUpByRule, text)
        }
        Finality::UsedUp { counts_as, most } => {
            // The sentence says what kind of end it was, so the words of the attempt are enough.
            let last = run.attempts.last().and_then(|it| it.end.as_ref());
            let said = last.and_then(attempts::cause).unwrap_or(error);
            used_up(counts_as, most, &said)
        }
    }
}

fn used_up(counts_as: CountsAs, most: usize, error: &str) -> (Cause, String) {
    match counts_as {
        CountsAs::Nothing => (Cause::Failed, format!("It failed: {error}.")),
        CountsAs::Failure if most == 1 => (
            Cause::FailedTooOften,
            format!("It failed, and `retry.max_attempts: 1` allows no other try: {error}."),
        ),
        CountsAs::Failure => (
            Cause::FailedTooOften,
            format!(
                "It failed {most} times, which is all that `retry.max_attempts` allows. The last time: {error}."
            ),
        ),
        CountsAs::Loss => (
            Cause::LostTooOften,
            format!(
                "{} lost with the worker, which is all that `retry.max_lost` allows. The last time: {error}.",
                match most {
                    1 => "1 attempt was".to_owned(),
                    _ => format!("{most} attempts were"),
                }
            ),
        ),
        CountsAs::Stop if most == 1 => (
            Cause::StoppedTooOften,
            format!(
                "It was stopped because its worker was leaving, and `retry.max_lost: 1` allows no other try: {error}."
            ),
        ),
        CountsAs::Stop => (
            Cause::StoppedTooOften,
            format!("It was stopped {most} times because its worker was leaving: {error}."),
        ),
        CountsAs::Undelivered => (
            Cause::UndeliveredTooOften,
            format!("It was given to workers {most} times and never started: {error}."),
        ),
        CountsAs::Snooze => (
            Cause::PutOffTooOften,
            format!("Its handler put it off {most} times, which is once too often."),
        ),
    }
}

fn cancelled(known: &Known<'_>) -> (Cause, String) {
    let run = known.run;
    let error = run.error.as_deref().map(quoted).unwrap_or_default();
    match run.transitions.last().map(|last| last.reason) {
        Some(Reason::Superseded) => {
            let text = "A newer run of its job took its place, as the job's `overlap` says.";
            return (Cause::Superseded, text.to_owned());
        }
        Some(Reason::Expired) => {
            let text = "When its turn came it had waited for longer than `misfire.window` of the job allows, so it did not start.";
            return (Cause::Expired, text.to_owned());
        }
        _ => {}
    }
    let Some(CancelRequest { at, actor }) = &run.cancel else {
        return (Cause::Cancelled, format!("It was cancelled: {error}."));
    };
    let asked = instant(*at);
    if known.with_its_job() {
        return (
            Cause::CancelledWhileWaiting,
            format!("{actor} deleted its job at {asked}, while it waited for its turn."),
        );
    }
    // One that ended before the request has nothing to do with it.
    let stopped = run.attempts.last().filter(|attempt| {
        let end = attempt.end.as_ref();
        end.is_some_and(|end| end.at >= *at && run.finished().is_none_or(|it| end.at >= it))
    });
    let Some((attempt, end)) = stopped.and_then(|it| Some((it, it.end.as_ref()?))) else {
        return (
            Cause::CancelledWhileWaiting,
            format!("{actor} cancelled it at {asked}, while it waited."),
        );
    };
    let (number, worker, later) = (attempt.number, &attempt.worker, between(*at, end.at));
    match end.outcome {
        AttemptOutcome::Lost | AttemptOutcome::Undelivered => (
            Cause::CancelledUnconfirmed,
            format!(
                "{actor} asked at {asked} to cancel it. Worker {worker} never confirmed that attempt {number} was stopped; {later} later it was certain that it could not be running any more."
            ),
        ),
        AttemptOutcome::Succeeded
        | AttemptOutcome::Failed
        | AttemptOutcome::TimedOut
        | AttemptOutcome::Cancelled
        | AttemptOutcome::Snoozed => (
            Cause::Cancelled,
            format!(
                "{actor} asked at {asked} to cancel it, and worker {worker} confirmed {later} later that attempt {number} had ended."
            ),
        ),
    }
}
