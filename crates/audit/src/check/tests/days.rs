//! Jobs whose calendars are edited while they run.

use drumtower_core::model::{Actor, CalendarSpec, CalendarVersion, WallMs};
use drumtower_core::schedule::CalendarUse;
use serde_json::json;

use super::breaks;
use super::world::{START, World, step};

/// The scheduled job fires only on these days, from the given time on.
fn only(world: &mut World, number: u32, created: WallMs, include: &[&str]) {
    let name: CalendarSpec = serde_json::from_value(json!({
        "kind": "Calendar", "name": "c", "include": include
    }))
    .expect("a calendar");
    world.spec().calendar = Some(CalendarUse {
        only: vec![name.name.clone()],
        ..CalendarUse::default()
    });
    world.calendars.push(CalendarVersion {
        version: number,
        spec: name,
        created,
        actor: Actor::new("ann"),
        deleted: false,
    });
}

#[test]
fn a_run_on_a_day_that_does_not_count_is_found() {
    breaks(&[], |world| only(world, 1, START, &["2026-01-01"]));
    breaks(&["V1"], |world| only(world, 1, START, &["2026-01-02"]));
}

#[test]
fn an_edit_of_a_calendar_counts_for_what_comes_after() {
    let edited = |world: &mut World| {
        only(world, 1, START.plus(-5), &["2026-01-01"]);
        only(world, 2, step(9), &["01-02"]);
    };
    let report = breaks(&["V1"], edited);
    assert_eq!(report.counts.violations["V1"], 1);
    breaks(&[], |world| {
        edited(world);
        world.erase(7);
    });
    let report = breaks(&["V1"], |world| {
        edited(world);
        world.erase(7);
        world.erase(6);
    });
    assert_eq!(report.lost, 1);
}

#[test]
fn an_edit_by_a_clock_that_was_set_back_leaves_open_what_was_decided_before() {
    // The last run was made by a clock that went back by twelve seconds; then came the edit.
    let edited = |stepped: i64| {
        move |world: &mut World| {
            only(world, 1, START.plus(-5), &["2026-01-01"]);
            only(world, 2, step(9), &["01-02"]);
            world.options.clock_step_ms = stepped;
        }
    };
    breaks(&[], edited(12_000));
    breaks(&[], |world| {
        edited(12_000)(world);
        world.erase(7);
    });
    breaks(&["V1"], edited(9_000));
    // What both versions of the calendar hold, or the first alone before the edit, needs a fate.
    let report = breaks(&["V1"], |world| {
        edited(12_000)(world);
        world.erase(3);
    });
    assert_eq!(report.lost, 1);
    let report = breaks(&["V1"], |world| {
        only(world, 1, START.plus(-5), &["2026-01-01"]);
        only(world, 2, step(9), &["2026-01-01", "01-02"]);
        world.options.clock_step_ms = 12_000;
        world.erase(7);
    });
    assert_eq!(report.lost, 1);
}

#[test]
fn nothing_is_said_about_times_whose_calendar_is_forgotten() {
    // The first three versions are not kept; the oldest that is was made at the third step.
    let often = |world: &mut World| {
        for number in 1..=103 {
            let created = step(3).plus(i64::from(number) - 4);
            only(world, number, created, &["2026-01-01"]);
        }
    };
    breaks(&[], |world| {
        often(world);
        world.erase(1);
        world.erase(0);
    });
    breaks(&["V1"], |world| {
        often(world);
        world.erase(4);
    });
}
