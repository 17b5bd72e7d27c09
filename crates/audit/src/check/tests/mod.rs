//! Each kind of violation, made on purpose in a small world, is found; the world without it is clean.

mod after_end;
mod attempts;
mod backfills;
mod catching_up;
mod days;
mod schedules;
mod spans;
mod world;

use drumtower_core::model::{Counters, Run, RunId, RunState, SegmentId, WallMs};

use super::{Journaled, Report};
use crate::Record;
use world::{START, World};

fn promises(report: &Report) -> Vec<&'static str> {
    report.counts.violations.keys().copied().collect()
}

/// The world with one thing changed breaks exactly these promises.
fn breaks(expected: &[&str], change: impl FnOnce(&mut World)) -> Report {
    let mut world = World::calm();
    change(&mut world);
    let report = world.check();
    assert_eq!(promises(&report), expected, "{:#?}", report.violations);
    report
}

#[test]
fn a_calm_world_is_clean() {
    let report = World::calm().check();
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert_eq!(
        (report.checked, report.lost, report.duplicated, report.early),
        (11, 0, 0, 0)
    );
    assert_eq!(
        (
            report.counts.answered,
            report.counts.started,
            report.counts.completed
        ),
        (3, 11, 11)
    );
    assert_eq!(
        (
            report.counts.jobs,
            report.counts.due_times,
            report.counts.unfired_times
        ),
        (2, 10, 2)
    );
    assert_eq!(report.latest_start_ms, Some(5));
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["violations"], serde_json::json!([]));
}

#[test]
fn an_answered_run_that_is_gone_is_lost() {
    let report = breaks(&["V9"], |world| {
        world.record(Record::Sent {
            key: "k9".into(),
            job: "b".into(),
            wall_ms: START,
        });
        world.record(Record::Answered {
            key: "k9".into(),
            run: RunId(1 << 40),
        });
    });
    assert_eq!(report.lost, 1);
}

#[test]
fn one_key_answered_with_two_runs_is_double() {
    let report = breaks(&["V2"], |world| {
        let other = world.triggered("k1", 7);
        world.record(Record::Sent {
            key: "k0".into(),
            job: "b".into(),
            wall_ms: START,
        });
        world.record(Record::Answered {
            key: "k0".into(),
            run: other,
        });
    });
    assert!(report.duplicated >= 1);
}

#[test]
fn two_runs_of_one_key_are_double() {
    let report = breaks(&["V2"], |world| {
        world.triggered("k1", 8);
    });
    assert_eq!(report.duplicated, 1);
}

#[test]
fn a_refused_key_makes_no_run_and_an_unknown_one_may() {
    breaks(&["V9"], |world| {
        world.triggered("no", 8);
        world.record(Record::Sent {
            key: "no".into(),
            job: "b".into(),
            wall_ms: START,
        });
        world.record(Record::Refused {
            key: "no".into(),
            code: "invalid_field".into(),
        });
    });
    let report = breaks(&[], |world| {
        world.triggered("maybe", 8);
        world.record(Record::Sent {
            key: "maybe".into(),
            job: "b".into(),
            wall_ms: START,
        });
        world.record(Record::Refused {
            key: "maybe".into(),
            code: "overloaded".into(),
        });
        world.record(Record::Sent {
            key: "maybe".into(),
            job: "b".into(),
            wall_ms: START,
        });
    });
    assert_eq!(report.counts.unknown, 1);
}

#[test]
fn an_answer_to_nothing_is_a_faulty_journal() {
    breaks(&["journal"], |world| {
        let run = world.runs[10].id;
        world.record(Record::Answered {
            key: "k2".into(),
            run,
        });
    });
}

#[test]
fn completed_without_a_start_is_lost_where_tasks_write_journals() {
    let forget = |world: &mut World| {
        let run = world.runs[0].id;
        world.forget(|record| matches!(record, Record::Started { run: it, .. } if *it == run));
    };
    assert_eq!(breaks(&["V9"], forget).lost, 1);
    breaks(&[], |world| {
        forget(world);
        world.options.journaled = Journaled::None;
    });
    let report = breaks(&["V9"], |world| {
        world.forget(|record| matches!(record, Record::Started { .. }));
        world.options.journaled = Journaled::All;
    });
    assert_eq!(report.lost, 11);
}

#[test]
fn counters_that_disagree_with_the_rows_are_found() {
    breaks(&["V8"], |world| {
        let counters = Counters {
            created: 1,
            completed: 1,
            ..Counters::default()
        };
        world
            .counters
            .insert((SegmentId(5), "other".parse().expect("a name")), counters);
    });
    breaks(&["V8"], |world| world.miscount = 1);
}

/// Who waits for its turn waits as long as every place is taken by one whose time has not come, and no longer.
#[test]
fn a_turn_that_does_not_come_is_found() {
    let waits = |world: &mut World, overlap: serde_json::Value| {
        world.options.settled = true;
        world.overlap(overlap);
        let pending = |run: &mut Run| {
            run.state = RunState::Pending;
            run.transitions.truncate(1);
            run.attempts.clear();
            run.standing.counts = true;
        };
        let later = &mut world.runs[9];
        pending(later);
        later.not_before = Some(WallMs(i64::MAX / 2));
        let turn = &mut world.runs[10];
        pending(turn);
        turn.standing.queued = true;
        let never = [world.runs[9].id, world.runs[10].id];
        world.forget(|record| {
            matches!(record, Record::Started { run, .. } | Record::Ended { run, .. } if never.contains(run))
        });
    };
    breaks(&[], |world| waits(world, serde_json::json!("queue")));
    for overlap in [
        serde_json::json!({"on_full": "queue", "limit": 2}),
        serde_json::json!("cancel_old"),
    ] {
        breaks(&["V16"], |world| waits(world, overlap));
    }
}

#[test]
fn a_run_that_never_ends_is_found_when_all_should_have() {
    let hang = |world: &mut World| {
        let run: &mut Run = &mut world.runs[10];
        run.state = RunState::Running;
        run.transitions.truncate(3);
        run.attempts[0].end = None;
    };
    breaks(&[], hang);
    breaks(&["V16"], |world| {
        hang(world);
        world.options.settled = true;
    });
    breaks(&["V16"], |world| {
        hang(world);
        world.timeout("10s");
    });
}
