//! V3 to V7, V13 and V18: what one run may have been through.

use drumtower_core::model::{
    Actor, AttemptOutcome, CancelRequest, Fence, Reason, RunState, Transition, Verdict,
};

use super::breaks;
use super::world::{World, step};
use crate::Record;
use crate::journal::Outcome;

/// Gives the first run an attempt before the one it completed with, undelivered, and its task's record.
fn second_attempt(world: &mut World) {
    let run = &mut world.runs[0];
    let mut first = run.attempts[0].clone();
    first.started = None;
    if let Some(end) = &mut first.end {
        (end.outcome, end.at) = (AttemptOutcome::Undelivered, run.due.plus(2));
    }
    let (at, fence) = (run.due.plus(2), Fence(run.attempts[0].fence.0 + 1));
    run.attempts[0].number = 2;
    run.attempts[0].assigned = at;
    run.attempts[0].fence = fence;
    run.attempts.insert(0, first);
    let back = [
        (RunState::Pending, Reason::Undelivered),
        (RunState::Scheduled, Reason::Assigned),
    ];
    run.transitions.splice(
        2..2,
        back.map(|(to, reason)| Transition {
            to,
            at,
            reason,
            attempt: 1,
        }),
    );
    let (id, due) = (run.id, run.due);
    world.forget(|record| matches!(record, Record::Started { run, .. } | Record::Ended { run, .. } if *run == id));
    world.started(id, 2, fence.0, due.plus(5));
}

#[test]
fn a_start_before_the_due_time_is_early_beyond_the_clock_bound() {
    let early = |world: &mut World| {
        let (run, due, fence) = (
            world.runs[3].id,
            world.runs[3].due,
            world.runs[3].attempts[0].fence.0,
        );
        world.forget(|record| matches!(record, Record::Started { run: it, .. } if *it == run));
        world.started(run, 1, fence, due.plus(-1));
    };
    assert_eq!(breaks(&["V3"], early).early, 1);
    breaks(&[], |world| {
        early(world);
        world.options.clock_bound_ms = 1;
    });
}

#[test]
fn a_task_that_was_told_a_later_due_time_is_early_too() {
    breaks(&["V3"], |world| {
        for record in &mut world.records {
            if let Record::Started {
                wall_ms, due_ms, ..
            } = record
            {
                *due_ms = Some(wall_ms.plus(1));
                break;
            }
        }
    });
}

#[test]
fn a_late_start_in_calm_times_is_found() {
    breaks(&["V4"], |world| {
        world.options.healthy = vec![(step(0), step(20))];
        world.options.start_within_ms = 4;
    });
    breaks(&[], |world| {
        world.options.healthy = vec![(step(0), step(20))];
        world.options.start_within_ms = 5;
    });
}

#[test]
fn an_attempt_that_starts_twice_is_double() {
    let report = breaks(&["V5"], |world| {
        let (run, fence) = (world.runs[0].id, world.runs[0].attempts[0].fence.0);
        world.started(run, 1, fence, step(1).plus(7));
    });
    assert_eq!(report.duplicated, 1);
}

#[test]
fn an_attempt_that_was_never_assigned_is_double() {
    let report = breaks(&["V5"], |world| {
        let run = world.runs[0].id;
        world.started(run, 2, 1 << 50, step(1).plus(20));
    });
    assert_eq!(report.duplicated, 1);
}

#[test]
fn a_second_attempt_after_an_undelivered_one_is_fine() {
    breaks(&[], second_attempt);
}

#[test]
fn attempts_that_overlap_are_double() {
    let report = breaks(&["V5"], |world| {
        second_attempt(world);
        let run = &mut world.runs[0];
        let id = run.id;
        if let Some(end) = &mut run.attempts[0].end {
            end.outcome = AttemptOutcome::Lost;
        }
        let fence = run.attempts[0].fence.0;
        world.started(id, 1, fence, step(1).plus(1));
        world.record(Record::Ended {
            run: id,
            attempt: 1,
            wall_ms: step(1).plus(9),
            outcome: Outcome::Succeeded,
        });
    });
    assert_eq!(report.duplicated, 1);
    breaks(&["V5"], |world| {
        second_attempt(world);
        world.runs[0].attempts[1].assigned = step(1).plus(1);
    });
    breaks(&[], |world| {
        second_attempt(world);
        world.runs[0].attempts[1].assigned = step(1).plus(1);
        world.options.clock_back_ms = 1;
    });
    breaks(&["V5"], |world| {
        second_attempt(world);
        world.runs[0].attempts[0].end = None;
    });
}

#[test]
fn an_undelivered_attempt_that_started_is_double() {
    breaks(&["V5"], |world| {
        second_attempt(world);
        let (run, fence) = (world.runs[0].id, world.runs[0].attempts[0].fence.0);
        world.started(run, 1, fence, step(1).plus(1));
    });
}

#[test]
fn a_fence_that_does_not_grow_or_is_not_the_one_assigned_is_found() {
    breaks(&["V6"], |world| {
        second_attempt(world);
        world.runs[0].attempts[0].fence = world.runs[0].attempts[1].fence;
    });
    breaks(&["V6"], |world| {
        for record in &mut world.records {
            if let Record::Started { fence, .. } = record {
                *fence += 1;
                break;
            }
        }
    });
    breaks(&["V5", "V6"], |world| world.runs[0].attempts[0].number = 3);
}

#[test]
fn a_run_that_ends_twice_or_takes_a_forbidden_step_is_found() {
    breaks(&["V18", "V7"], |world| {
        let end = world.runs[0].transitions[3].clone();
        world.runs[0].transitions.push(Transition {
            to: RunState::Failed,
            ..end.clone()
        });
        world.runs[0].transitions.push(end);
    });
    breaks(&["V18"], |world| {
        world.runs[0].transitions.remove(1);
    });
    breaks(&["V18"], |world| {
        world.runs[0].transitions.remove(0);
    });
    breaks(&["V18"], |world| world.runs[0].transitions.clear());
    breaks(&["V18"], |world| {
        world.runs[0].transitions.pop();
    });
}

#[test]
fn a_task_that_failed_did_not_complete() {
    breaks(&["V7"], |world| {
        for record in &mut world.records {
            if let Record::Ended { outcome, .. } = record {
                *outcome = Outcome::Failed;
                break;
            }
        }
    });
}

#[test]
fn nothing_is_assigned_after_a_cancel_was_accepted() {
    let cancelled = |late: i64| {
        move |world: &mut World| {
            let at = world.runs[0].due.plus(late);
            world.runs[0].cancel = Some(CancelRequest {
                at,
                actor: Actor::new("ann"),
            });
        }
    };
    breaks(&["V13"], cancelled(-1));
    breaks(&[], cancelled(1));
}

/// The first run failed so often before it completed, with these waits.
fn failed_before(world: &mut World, outcome: AttemptOutcome, waits: &[i64]) {
    let run = &mut world.runs[0];
    let last = run.attempts.remove(0);
    let mut at = run.due;
    let mut path = vec![run.transitions[0].clone()];
    let mut step = |to, at, reason, attempt| {
        path.push(Transition {
            to,
            at,
            reason,
            attempt,
        });
    };
    for (index, wait) in waits.iter().enumerate() {
        let number = index as u32 + 1;
        let mut attempt = last.clone();
        attempt.number = number;
        attempt.fence = Fence(last.fence.0 + u64::from(number));
        attempt.assigned = at;
        if let Some(end) = &mut attempt.end {
            (end.outcome, end.at) = (outcome, at.plus(1));
        }
        run.attempts.push(attempt);
        step(RunState::Scheduled, at, Reason::Assigned, number);
        step(RunState::Pending, at.plus(1), Reason::Retry, number);
        at = at.plus(1 + wait);
    }
    let number = waits.len() as u32 + 1;
    let mut attempt = last;
    attempt.number = number;
    attempt.fence = Fence(attempt.fence.0 + u64::from(number));
    attempt.assigned = at;
    if let Some(end) = &mut attempt.end {
        end.at = at.plus(1);
    }
    run.attempts.push(attempt);
    step(RunState::Scheduled, at, Reason::Assigned, number);
    step(RunState::Completed, at.plus(1), Reason::Succeeded, number);
    run.transitions = path;
    let id = run.id;
    world.forget(|record| matches!(record, Record::Started { run, .. } | Record::Ended { run, .. } if *run == id));
    world.options.journaled = crate::check::Journaled::None;
}

#[test]
fn tries_keep_to_what_the_job_allows() {
    use AttemptOutcome::{Failed, Lost, TimedOut};
    let fine: [(AttemptOutcome, &[i64]); 4] = [
        (Failed, &[1_000, 2_000, 4_000]),
        (TimedOut, &[1_400]),
        (Lost, &[0, 0, 0]),
        (Failed, &[5_000, 5_000]),
    ];
    for (outcome, waits) in fine {
        breaks(&[], |world| failed_before(world, outcome, waits));
    }
    let faulty: [(AttemptOutcome, &[i64]); 5] = [
        (Failed, &[999]),
        (Failed, &[1_000, 1_999]),
        (TimedOut, &[0]),
        (Failed, &[1_000, 2_000, 4_000, 8_000]),
        (Lost, &[0, 0, 0, 0]),
    ];
    for (outcome, waits) in faulty {
        breaks(&["V12"], |world| failed_before(world, outcome, waits));
    }
    breaks(&[], |world| {
        world.spec().retry.initial = Some("10ms".to_owned());
        world.spec().retry.max_attempts = Some(5);
        failed_before(world, Failed, &[10, 20, 40, 80]);
    });
    breaks(&["V12"], |world| {
        failed_before(world, Failed, &[60_000]);
        if let Some(end) = &mut world.runs[0].attempts[0].end {
            end.verdict = Some(Verdict::GiveUp);
        }
    });
}
