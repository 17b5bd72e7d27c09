//! The states of runs and the ends of attempts as a page, printed from the tables that the engine goes by.

use std::fmt::Write;

use drumtower_core::model::{AttemptOutcome, CountsAs, MOVES, OUTCOMES, Outcome, Reason, RunState};

const HEAD: &str = "\
# The states of runs and attempts

Printed from the tables that the engine goes by (`drumtower schema states`); a step that is not here cannot be taken. Each step is
kept in the run with its time, its reason and its attempt: `drumtower run show` lists them, and `drumtower run explain` tells them
in words.

## Runs

";

const ATTEMPTS: &str = "
## Attempts

An attempt begins when a worker is *assigned* the run: it has a number, a fence and a lease from then on. It is *started* when the
worker says so. It ends in exactly one of these ways, said by its worker or concluded by the server, and nothing that is said
of it later is taken. *Again* is what becomes of the run while the count allows it, *else* when it does not, or when a rule, a
verdict or the handler gives up; the last column holds once somebody has asked to cancel the run.

| end of an attempt | meaning | counts as | again | else | after a request to cancel |
|---|---|---|---|---|---|
";

const FOOT: &str = "
COMPLETED, FAILED and CANCELLED are final: the first valid end stands, and whatever comes later is refused. How often PENDING is
reached again is bounded: [retries](concepts/retries.md).
";

pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("| state | meaning |\n|---|---|\n");
    for state in RunState::ALL {
        row(&mut page, &[state.as_str(), meaning_of_state(state)]);
    }
    page.push_str("\n### Steps\n\n| from | to | reason |\n|---|---|---|\n");
    for step in MOVES {
        let reasons: Vec<String> = step
            .reasons
            .iter()
            .map(|reason| format!("`{}`", reason.as_str()))
            .collect();
        let from = step.from.map_or("(made)", RunState::as_str);
        row(&mut page, &[from, step.to.as_str(), &reasons.join(", ")]);
    }
    page.push_str("\n### Reasons\n\n| reason | when |\n|---|---|\n");
    for reason in Reason::ALL {
        let name = format!("`{}`", reason.as_str());
        row(&mut page, &[&name, meaning(reason)]);
    }
    page.push_str(ATTEMPTS);
    for line in OUTCOMES {
        of_outcome(&mut page, line);
    }
    page.push_str(FOOT);
    page
}

fn of_outcome(page: &mut String, line: &Outcome) {
    let again = line.again.map_or("-".to_owned(), |reason| {
        format!("PENDING, `{}`", reason.as_str())
    });
    let (state, reason) = line.end;
    let end = format!("{}, `{}`", state.as_str(), reason.as_str());
    let stop = match (line.outcome, line.again) {
        (AttemptOutcome::Cancelled | AttemptOutcome::Lost | AttemptOutcome::Undelivered, _) => {
            "CANCELLED".to_owned()
        }
        (_, Some(_)) => "CANCELLED if it would be tried again".to_owned(),
        (_, None) => state.as_str().to_owned(),
    };
    let name = format!("`{}`", line.outcome.as_str());
    let cells = [
        name.as_str(),
        meaning_of_outcome(line.outcome),
        counted(line.counts_as),
        &again,
        &end,
        &stop,
    ];
    row(page, &cells);
}

fn meaning_of_outcome(outcome: AttemptOutcome) -> &'static str {
    match outcome {
        AttemptOutcome::Succeeded => "the task did what it should",
        AttemptOutcome::Failed => {
            "an exit code, a signal, an answer or an error that is no success"
        }
        AttemptOutcome::TimedOut => {
            "it took longer than `timeout`, or than `progress_timeout` without progress"
        }
        AttemptOutcome::Cancelled => {
            "its worker stopped it: on request, or unasked because it shut down"
        }
        AttemptOutcome::Lost => "its worker was not heard of for a whole lease, left, or forgot it",
        AttemptOutcome::Undelivered => {
            "it never started: the assignment did not arrive, or was refused"
        }
        AttemptOutcome::Snoozed => "its handler put it off",
    }
}

fn counted(counts_as: CountsAs) -> &'static str {
    match counts_as {
        CountsAs::Nothing => "-",
        CountsAs::Failure => "failure, against `retry.max_attempts`",
        CountsAs::Loss => "loss, against `retry.max_lost`",
        CountsAs::Stop => "stop, up to 100 times; once where `retry.max_lost` is 1",
        CountsAs::Undelivered => "undelivered, up to 10 times",
        CountsAs::Snooze => "snooze, up to 100 times",
    }
}

fn row(page: &mut String, cells: &[&str]) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn meaning_of_state(state: RunState) -> &'static str {
    match state {
        RunState::Pending => {
            "waits for its time, for its turn, for a worker with room, or to be tried again"
        }
        RunState::Scheduled => "given to a worker, which holds it under a lease",
        RunState::Running => "started there, as far as the server knows",
        RunState::Completed => "the task succeeded",
        RunState::Failed => "it failed and is not tried again",
        RunState::Cancelled => "stopped on request, or not wanted any more",
    }
}

fn meaning(reason: Reason) -> &'static str {
    match reason {
        Reason::Created => "a schedule, a call or a requeue made it",
        Reason::Assigned => "a worker with room was chosen; a new attempt begins",
        Reason::Started => {
            "the worker said so, and half a second passed; shorter attempts end without it"
        }
        Reason::Succeeded => "the task said so, or showed it by its exit or its answer",
        Reason::TaskFailed => "the task failed, and no try is left or none is wanted",
        Reason::TimedOut => "the attempt took longer than `timeout`, and no try is left",
        Reason::WorkerLost => {
            "the worker did not renew its lease, forgot the attempt, shut down or was drained by force; at the end of the run, once too often"
        }
        Reason::Undelivered => "the assignment never reached the worker, or it refused it",
        Reason::Cancelled => "somebody asked for it, and nothing of it runs any more",
        Reason::Retry => {
            "the attempt failed or timed out, and the run is tried again after its backoff"
        }
        Reason::Snoozed => "the handler put it off; that is no failure",
        Reason::StartTimedOut => "no worker was given it within `start_timeout`",
        Reason::Overlap => {
            "others of its job had not ended when it was due, and the job says `overlap: fail`"
        }
        Reason::Superseded => "a newer run of its job took its place, as `overlap` says",
        Reason::Expired => "it had waited for its turn for longer than `misfire.window`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::Limits;

    #[test]
    fn the_bounds_are_those_of_the_engine() {
        assert_eq!((Limits::UNDELIVERED, Limits::SNOOZES), (10, 100));
        assert_eq!(Limits::STOPS, 100);
    }

    #[test]
    fn every_reason_is_of_some_step() {
        for reason in Reason::ALL {
            let used = MOVES.iter().any(|step| step.reasons.contains(&reason));
            assert!(used, "{}", reason.as_str());
        }
    }
}
