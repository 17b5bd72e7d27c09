//! Schedules: every due time has one fate, whatever the clock and the server do.

use std::collections::BTreeSet;

use super::super::*;
use super::world::*;
use crate::model::*;

/// Every nominal time of an `every: 1s` job in (after, through] is a run or lies in exactly one range.
pub(super) fn account(world: &World, job: JobId, after: i64, through: i64) -> (usize, u64) {
    account_every(world, job, 1000, after, through)
}

/// The same for any period. Returns how many times made runs, and how many did not.
pub(super) fn account_every(
    world: &World,
    job: JobId,
    period: i64,
    after: i64,
    through: i64,
) -> (usize, u64) {
    let all = world
        .tables
        .active
        .values()
        .chain(world.tables.history.values());
    let fired: Vec<i64> = all
        .filter(|run| run.job == job && run.origin != Origin::Backfill)
        .filter_map(|run| Some(run.nominal?.0))
        .collect();
    let unique: BTreeSet<i64> = fired.iter().copied().collect();
    assert_eq!(unique.len(), fired.len(), "an occurrence fired twice");
    let mut unfired = 0;
    let ranges: Vec<&Unfired> = world
        .tables
        .unfired
        .values()
        .filter(|range| range.job == job)
        .collect();
    let first = (after / period + 1) * period;
    for nominal in (first..=through).step_by(period as usize) {
        let covered = ranges
            .iter()
            .filter(|range| range.first.0 <= nominal && nominal <= range.last.0)
            .count();
        let run = usize::from(unique.contains(&nominal));
        assert_eq!(
            covered + run,
            1,
            "{nominal} has {covered} ranges and {run} runs"
        );
        unfired += covered as u64;
    }
    (fired.len(), unfired)
}

#[test]
fn fires_at_its_time_and_never_before() {
    let mut world = World::new();
    world.pass(300);
    let job = world.put(every("a", "1s", "allow"));
    world.pass(699);
    world.commit();
    assert!(world.tables.active.is_empty(), "a millisecond too early");
    world.pass(1);
    world.commit();
    let run = world.tables.active.values().next().expect("fired");
    assert_eq!(
        (run.nominal, run.due),
        (Some(WallMs(START + 1000)), WallMs(START + 1000))
    );
    assert_eq!(
        world.tables.schedules[&job].fired_through,
        WallMs(START + 1000)
    );
    assert_eq!(
        world.tables.schedules[&job].next_due,
        Some(WallMs(START + 2000))
    );
}

#[test]
fn a_live_run_makes_the_next_times_one_range_of_overlap() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "skip"));
    world.tick_through(5_000, 250);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (1, 4));
    assert_eq!(
        world.tables.unfired.len(),
        1,
        "one row however long it lasts"
    );
}

#[test]
fn after_an_outage_the_latest_runs_and_the_rest_is_one_range() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(3_000, 100);
    world.pass(600_000);
    world.restart();
    world.tick_through(2_000, 100);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (3 + 1 + 2, 599));
    assert_eq!(world.tables.unfired.len(), 1);
}

#[test]
fn a_time_more_than_an_hour_old_is_not_caught_up() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["schedule"] = serde_json::json!([{"at": "2027-01-15T09:00:00Z"}]);
    let job = world.put(spec);
    let due = world.tables.schedules[&job].next_due.expect("planned");
    world.pass((due.0 - START) as u64 + 3_600_001);
    world.commit();
    assert!(world.tables.active.is_empty());
    assert_eq!(
        world.tables.unfired[&(job, due)].reason,
        UnfiredReason::Misfire
    );
    assert_eq!(world.tables.schedules[&job].next_due, None);
}

#[test]
fn a_pause_is_one_range_and_nothing_fires_in_it() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(2_000, 100);
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    world.tick_through(100_000, 10_000);
    world
        .command(Command::ResumeJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("resumed");
    world.tick_through(3_000, 100);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (5, 100));
    assert!(
        world
            .tables
            .unfired
            .values()
            .all(|range| range.reason == UnfiredReason::Paused)
    );
}

#[test]
fn a_new_schedule_of_a_paused_job_leaves_the_times_of_the_old_one_recorded() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    world.tick_through(10_000, 1_000);
    world.put(every("a", "5s", "allow"));
    world.tick_through(10_000, 1_000);
    world
        .command(Command::ResumeJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("resumed");
    let ranges = world.tables.unfired.values();
    let ranges: Vec<_> = ranges
        .map(|range| (range.job, range.version, range.count))
        .collect();
    assert_eq!(ranges, [(job, 1, 10), (job, 2, 2)]);
}

#[test]
fn an_edit_keeps_old_times_and_plans_the_new_schedule_from_now() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(1_500, 100);
    world.put(every("a", "10s", "allow"));
    assert_eq!(
        world.tables.schedules[&job].next_due,
        Some(WallMs(START + 10_000))
    );
    world.tick_through(10_000, 100);
    assert_eq!(world.tables.active.len(), 2);
}

#[test]
fn a_restart_at_every_moment_doubles_nothing() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    for _ in 0..40 {
        world.pass(137);
        world.step(Input::Tick);
        world.restart();
    }
    account(&world, job, START, world.now.wall.0);
    world.check_conservation();
}

#[test]
fn a_pause_just_before_the_due_time_fires_nothing() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.pass(999);
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    assert!(world.tables.active.is_empty());
    assert_eq!(world.tables.schedules[&job].next_due, None);
}
