//! V1 and V2: every time of a schedule, and its one fate.

use drumtower_core::model::{Actor, JobRow, Pause, WallMs};
use serde_json::json;

use super::breaks;
use super::world::{JOBS, START, World, step, version};

fn job(world: &mut World) -> &mut JobRow {
    &mut world.rows[0]
}

/// A second version of the scheduled job.
fn edit(world: &mut World, at: WallMs, schedule: serde_json::Value) {
    world.versions.push(version(JOBS[0], 2, at, schedule));
    job(world).version = 2;
}

#[test]
fn a_time_without_a_fate_is_lost() {
    let report = breaks(&["V1"], |world| world.erase(2));
    assert_eq!(report.lost, 1);
    assert!(
        report.violations[0]
            .evidence
            .contains(&step(3).0.to_string()),
        "{:?}",
        report.violations
    );
}

#[test]
fn a_time_within_the_grace_may_wait_unless_the_cursor_has_passed_it() {
    let waiting = |world: &mut World| {
        world.erase(7);
        world.options.now = Some(step(10).plus(5_000));
    };
    breaks(&[], |world| {
        waiting(world);
        world.fired_through = step(9);
    });
    breaks(&["V1"], waiting);
}

#[test]
fn two_runs_of_one_time_are_double() {
    let report = breaks(&["V2"], |world| {
        world.scheduled(4);
    });
    assert_eq!(report.duplicated, 1);
}

#[test]
fn a_time_with_a_run_and_a_place_in_a_range_is_double() {
    let report = breaks(&["V1"], |world| {
        world.scheduled(7);
    });
    assert_eq!(report.duplicated, 1);
}

#[test]
fn ranges_that_overlap_or_miscount_are_found() {
    breaks(&["V1"], |world| world.skip(8, 8));
    breaks(&["V1"], |world| world.unfired[0].count = 3);
    breaks(&["V1"], |world| world.unfired[0].count = 1);
}

#[test]
fn a_run_at_a_time_that_is_not_in_the_schedule_is_found() {
    breaks(&["V1", "V3"], |world| {
        world.runs[0].nominal = Some(step(1).plus(1))
    });
    breaks(&["V1"], |world| {
        edit(world, step(10).plus(1), json!([]));
        world.scheduled(11);
    });
}

#[test]
fn a_scheduled_run_says_which_time_it_stands_for() {
    breaks(&["V1", "V2"], |world| world.runs[0].nominal = None);
    breaks(&["V2"], |world| world.runs[10].nominal = Some(START));
}

#[test]
fn an_edit_ends_one_schedule_and_begins_another() {
    breaks(&[], |world| {
        world.erase(7);
        edit(world, step(9).plus(1), json!([{"cron": "0 0 1 1 *"}]));
    });
    breaks(&["V1"], |world| {
        edit(world, step(9).plus(1), json!([{"every": "5s"}]));
    });
}

#[test]
fn a_pause_asks_for_nothing_and_a_deletion_ends_the_schedule() {
    breaks(&[], |world| {
        world.erase(7);
        world.erase(6);
        let at = step(8).plus(1);
        job(world).paused = Some(Pause {
            at,
            actor: Actor::new("ann"),
        });
    });
    breaks(&[], |world| {
        world.erase(7);
        let at = step(9).plus(1);
        (job(world).deleted, job(world).updated) = (true, at);
    });
    let report = breaks(&["V1"], |world| {
        world.erase(0);
        let at = step(9).plus(1);
        (job(world).deleted, job(world).updated) = (true, at);
    });
    assert_eq!(report.lost, 1);
}

#[test]
fn a_clock_that_was_set_leaves_open_what_an_edit_ended() {
    // By a clock that ran fast the last two were made before the edit.
    let fast = |step_ms| {
        move |world: &mut World| {
            edit(world, step(8).plus(1), json!([{"cron": "0 0 1 1 *"}]));
            world.options.clock_step_ms = step_ms;
        }
    };
    breaks(&["V1"], fast(0));
    breaks(&[], fast(30_000));
    // What lies further away is asked for all the same.
    breaks(&["V1"], |world| {
        fast(30_000)(world);
        world.erase(3);
    });
}
