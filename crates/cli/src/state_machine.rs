//! The states of a run as a page, printed from the table that the engine goes by.

use std::fmt::Write;

use drumtower_core::model::{MOVES, Reason, RunState};

const HEAD: &str = "\
# The states of a run

Printed from the table that the engine goes by (`drumtower schema states`); a step that is not here cannot be taken. Each step is
kept in the run with its time, its reason and its attempt, and `drumtower run show` lists them.

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
    page.push_str("\n## Steps\n\n| from | to | reason |\n|---|---|---|\n");
    for step in MOVES {
        let reasons: Vec<String> = step
            .reasons
            .iter()
            .map(|reason| format!("`{}`", reason.as_str()))
            .collect();
        let from = step.from.map_or("(made)", RunState::as_str);
        row(&mut page, &[from, step.to.as_str(), &reasons.join(", ")]);
    }
    page.push_str("\n## Reasons\n\n| reason | when |\n|---|---|\n");
    for reason in Reason::ALL {
        let name = format!("`{}`", reason.as_str());
        row(&mut page, &[&name, meaning(reason)]);
    }
    page.push_str(FOOT);
    page
}

fn row(page: &mut String, cells: &[&str]) {
    // Writing to a string cannot fail.
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn meaning_of_state(state: RunState) -> &'static str {
    match state {
        RunState::Pending => "waits for its time, for a worker with room, or to be tried again",
        RunState::Scheduled => "given to a worker, which holds it under a lease",
        RunState::Running => "started there, as far as the server knows",
        RunState::Completed => "the task succeeded",
        RunState::Failed => "it failed and is not tried again",
        RunState::Cancelled => "stopped on request",
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
            "the worker did not renew its lease, forgot the attempt or shut down; at the end of the run, once too often"
        }
        Reason::Undelivered => "the assignment never reached the worker, or it refused it",
        Reason::Cancelled => "somebody asked for it, and nothing of it runs any more",
        Reason::Retry => {
            "the attempt failed or timed out, and the run is tried again after its backoff"
        }
        Reason::Snoozed => "the handler put it off; that is no failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_of_some_step() {
        for reason in Reason::ALL {
            let used = MOVES.iter().any(|step| step.reasons.contains(&reason));
            assert!(used, "{}", reason.as_str());
        }
    }
}
