//! Spans that hold more times than anybody can list.

use drumtower_core::model::{Actor, Pause, Retention, Unfired, UnfiredReason};
use serde_json::json;

use super::breaks;
use super::world::{JOBS, START, World};

const YEAR_S: i64 = 365 * 86_400;

/// A job of every second whose times up to a second after the start make one range.
fn long(world: &mut World, seconds: i64, count: u64) {
    world.restart(json!([{"every": "1s"}]));
    world.spec().retention = Some(Retention::Keep);
    let last = START.plus(seconds * 1000);
    world.unfired.push(Unfired {
        job: JOBS[0],
        first: START.plus(1000),
        last,
        version: 1,
        count,
        reason: UnfiredReason::Paused,
        server: Actor::new("s"),
    });
    world.fired_through = last;
    world.next_due = Some(last.plus(1000));
    world.options.now = Some(last.plus(5_000));
}

#[test]
fn a_year_in_one_range_is_not_listed() {
    let report = breaks(&[], |world| long(world, YEAR_S, 10_000));
    assert_eq!(report.counts.sampled_spans, 1);
    assert_eq!(report.counts.unfired_times, 10_000);
    assert!(report.counts.due_times < 50_000, "{:?}", report.counts);
}

#[test]
fn a_range_that_says_too_little_or_too_much_is_found() {
    breaks(&["V1"], |world| long(world, YEAR_S, 9_999));
    breaks(&[], |world| long(world, 12_000, 12_000));
    breaks(&[], |world| long(world, 12_000, 10_000));
    breaks(&["V1"], |world| long(world, 12_000, 12_001));
    breaks(&[], |world| long(world, 9_999, 9_999));
    breaks(&["V1"], |world| long(world, 9_998, 9_999));
}

#[test]
fn a_range_ends_at_a_time_of_the_schedule() {
    breaks(&["V1"], |world| {
        long(world, YEAR_S, 10_000);
        world.unfired[0].last = world.unfired[0].last.plus(1);
    });
    breaks(&["V1"], |world| {
        long(world, YEAR_S, 10_000);
        world.unfired[0].first = world.unfired[0].first.plus(-1);
    });
}

#[test]
fn a_run_within_a_long_range_is_double_and_a_time_after_it_lost() {
    let report = breaks(&["V1"], |world| {
        long(world, YEAR_S, 10_000);
        world.scheduled(1_000_000);
    });
    assert_eq!(report.duplicated, 1);
    let report = breaks(&["V1"], |world| {
        long(world, YEAR_S, 10_000);
        world.fired_through = world.fired_through.plus(3_000);
    });
    assert_eq!(report.lost, 3);
}

#[test]
fn a_pause_of_a_year_is_not_listed() {
    let report = breaks(&[], |world| {
        long(world, YEAR_S, 10_000);
        world.unfired.clear();
        world.rows[0].paused = Some(Pause {
            at: START.plus(500),
            actor: Actor::new("ann"),
        });
        world.rows[0].revision = 2;
        world.next_due = None;
    });
    assert_eq!(report.counts.due_times, 0);
}

#[test]
fn a_schedule_that_lost_everything_is_not_listed_to_the_end() {
    let report = breaks(&["V1"], |world| {
        long(world, YEAR_S, 10_000);
        world.unfired.clear();
    });
    assert!((100_000..200_000).contains(&report.lost), "{}", report.lost);
    assert_eq!(report.counts.sampled_spans, 1);
}
