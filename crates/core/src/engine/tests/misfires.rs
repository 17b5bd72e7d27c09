//! Times that passed while nothing could fire them: down, paused, overtaken by an edit.

use serde_json::json;

use super::super::*;
use super::fires::account;
use super::world::*;
use crate::model::*;

fn with_policy(key: &str, policy: serde_json::Value) -> serde_json::Value {
    let mut spec = every("a", "1s", "allow");
    spec[key] = policy;
    spec
}

/// Down for `down_ms`, then up for a while that no further time falls into.
fn outage(spec: serde_json::Value, down_ms: u64) -> (World, JobId) {
    let mut world = World::new();
    let job = world.put(spec);
    world.tick_through(2_000, 100);
    world.pass(down_ms);
    world.restart();
    (world, job)
}

fn pause_or_resume(world: &mut World, pause: bool) {
    let (job, condition) = (job_ref("a"), Condition::Any);
    let command = match pause {
        true => Command::PauseJob { job, condition },
        false => Command::ResumeJob { job, condition },
    };
    world.command(command).expect("done");
}

fn ranges(world: &World) -> Vec<(u64, UnfiredReason)> {
    let ranges = world.tables.unfired.values();
    ranges.map(|range| (range.count, range.reason)).collect()
}

#[test]
fn skip_makes_up_for_nothing_but_the_time_that_is_on_time() {
    let (world, job) = outage(with_policy("misfire", json!({"policy": "skip"})), 10_500);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    // The newest is half a second old: on time.
    assert_eq!((runs, unfired), (2 + 1, 9));
    let hourly = json!({"kind": "Job", "name": "a", "task": {"handler": {"name": "noop"}},
        "schedule": [{"every": "1h"}], "misfire": {"policy": "skip"}});
    let (world, _) = outage(hourly, 3_600_000 + 120_000);
    assert_eq!(
        world.tables.active.len(),
        0,
        "two minutes late is not on time"
    );
    assert_eq!(ranges(&world), [(1, UnfiredReason::Misfire)]);
}

#[test]
fn all_makes_up_for_the_newest_within_window_and_count() {
    let all = json!({"policy": "all", "max": 5});
    let (world, job) = outage(with_policy("misfire", all), 60_000);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (2 + 5, 55));
    let all = json!({"policy": "all", "window": "10s"});
    let (world, job) = outage(with_policy("misfire", all), 60_000);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (2 + 11, 49), "ten seconds back, both ends");
    let (world, job) = outage(with_policy("misfire", json!({"policy": "all"})), 600_000);
    let (runs, _) = account(&world, job, START, world.now.wall.0);
    assert_eq!(runs, 2 + 100, "a hundred unless told otherwise");
}

#[test]
fn a_gap_spaces_the_runs_that_catch_up_also_over_restarts() {
    let all = json!({"policy": "all", "gap": "10s", "max": 4});
    let mut spec = with_policy("misfire", all);
    spec["schedule"] = json!([{"every": "1m"}]);
    let (mut world, job) = outage(spec, 600_000);
    let mut made = vec![world.tables.active.len()];
    for _ in 0..5 {
        world.pass(9_999);
        world.restart();
        made.push(world.tables.active.len());
        world.pass(1);
        world.commit();
        made.push(world.tables.active.len());
    }
    assert_eq!(made, [1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4]);
    let due = world.tables.schedules[&job].next_due.expect("planned");
    assert!(due > world.now.wall, "caught up");
}

#[test]
fn an_edit_of_the_schedule_overtakes_what_is_being_caught_up() {
    let all = json!({"policy": "all", "gap": "10s"});
    let (mut world, job) = outage(with_policy("misfire", all), 20_000);
    world.put(every("a", "7s", "allow"));
    assert_eq!(ranges(&world).last(), Some(&(19, UnfiredReason::Edited)));
    account(&world, job, START, START + 22_000);
}

#[test]
fn a_year_of_pause_is_one_row() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(2_000, 100);
    pause_or_resume(&mut world, true);
    world.pass(365 * 86_400_000);
    pause_or_resume(&mut world, false);
    let range = world.tables.unfired.values().next().expect("a range");
    assert_eq!(
        (range.first, range.reason),
        (WallMs(START + 3_000), UnfiredReason::Paused)
    );
    assert_eq!(range.last, world.now.wall);
    assert_eq!(world.tables.unfired.len(), 1);
    world.tick_through(3_000, 100);
    assert_eq!(world.tables.active.len(), 5);
    assert_eq!(world.tables.schedules[&job].paused_through, None);
}

#[test]
fn on_resume_makes_up_for_the_times_of_a_pause() {
    for (policy, runs) in [
        (json!({"policy": "latest"}), 1),
        (json!({"policy": "all"}), 10),
        (json!({"policy": "all", "max": 3}), 3),
        (json!({"policy": "skip"}), 0),
        (json!({}), 0),
    ] {
        let mut world = World::new();
        let job = world.put(with_policy("on_resume", policy));
        world.tick_through(2_000, 100);
        pause_or_resume(&mut world, true);
        world.pass(10_000);
        pause_or_resume(&mut world, false);
        let (made, unfired) = account(&world, job, START, world.now.wall.0);
        assert_eq!((made, unfired), (2 + runs, 10 - runs as u64));
        assert!(
            ranges(&world)
                .iter()
                .all(|(_, reason)| *reason == UnfiredReason::Paused)
        );
    }
}

#[test]
fn a_pause_and_an_outage_each_obey_their_own_policy() {
    let mut world = World::new();
    let mut spec = with_policy("on_resume", json!({"policy": "all", "gap": "5s"}));
    spec["misfire"] = json!({"policy": "skip"});
    let job = world.put(spec);
    world.tick_through(2_000, 100);
    pause_or_resume(&mut world, true);
    world.pass(4_000);
    pause_or_resume(&mut world, false);
    assert_eq!(
        world.tables.active.len(),
        3,
        "the first of four, the others spaced"
    );
    world.pass(30_500);
    world.restart();
    // Each decision takes one more of the pause; what came after it is skipped but for the time that is on time.
    for _ in 0..3 {
        world.pass(5_000);
        world.commit();
    }
    let (_, unfired) = account(
        &world,
        job,
        START,
        world.tables.schedules[&job].fired_through.0,
    );
    assert!(unfired > 30);
    assert!(
        ranges(&world)
            .iter()
            .all(|(_, reason)| *reason == UnfiredReason::Misfire)
    );
}

#[test]
fn a_schedule_ends_after_its_fires() {
    let mut world = World::new();
    let mut spec = every("a", "1s", "allow");
    spec["bounds"] = json!({"max_fires": 3});
    let job = world.put(spec.clone());
    world.tick_through(10_000, 100);
    assert_eq!(world.tables.active.len(), 3);
    assert_eq!(world.tables.schedules[&job].next_due, None);
    assert!(
        world.tables.unfired.is_empty(),
        "a bound makes no occurrence at all"
    );
    spec["bounds"] = json!({"max_fires": 4});
    world.put(spec);
    world.tick_through(10_000, 100);
    assert_eq!(world.tables.active.len(), 4);
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_last_run() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["schedule"] = json!([{"after_end": "10s"}]);
    let job = world.put(once(spec));
    world.worker(1, 1, 4, Vec::new(), 1);
    let due = |world: &World| world.tables.schedules[&job].next_due;
    assert_eq!(
        due(&world),
        Some(WallMs(START + 10_000)),
        "from its creation"
    );
    world.pass(10_000);
    world.beat(1, 2, 0, Vec::new());
    let given = assignments(&world.commit());
    assert_eq!((given.len(), due(&world)), (1, None));
    world.pass(5_000);
    world.trigger("a", None, None).expect("a manual run");
    let manual = *world.tables.active.keys().next_back().expect("it");
    world.pass(2_000);
    world.finish(1, given[0].1, AttemptOutcome::Failed);
    assert_eq!(due(&world), Some(WallMs(START + 27_000)));
    world.pass(1_000);
    let command = Command::CancelRun {
        run: manual,
        scope: None,
    };
    world.command(command).expect("cancelled");
    assert_eq!(
        due(&world),
        Some(WallMs(START + 27_000)),
        "a manual run moves nothing"
    );
    pause_or_resume(&mut world, true);
    assert_eq!(due(&world), None);
    world.pass(100_000);
    pause_or_resume(&mut world, false);
    assert_eq!(
        due(&world),
        Some(world.now.wall.plus(10_000)),
        "from its resumption"
    );
    assert!(world.tables.unfired.is_empty());
    world.pass(7_200_000);
    world.restart();
    assert_eq!(
        ranges(&world),
        [(1, UnfiredReason::Misfire)],
        "beyond the window"
    );
    assert_eq!(due(&world), Some(world.now.wall.plus(10_000)));
}

#[test]
fn a_fixed_delay_is_put_off_and_bounded_like_any_other_schedule() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["schedule"] = json!([{"after_end": "10s"}]);
    spec["jitter"] = json!("5s");
    spec["bounds"] = json!({"start": "2027-01-15T09:00:00Z"});
    let job = world.put(spec.clone());
    let row = world.tables.schedules[&job].clone();
    let start = WallMs(START + 3_600_000);
    assert_eq!(row.next_nominal, Some(start));
    let due = row.next_due.expect("planned");
    assert!(due > start && due < start.plus(5_000), "{due:?}");
    spec["bounds"] = json!({"end": "2027-01-15T08:00:05Z"});
    world.put(spec);
    assert_eq!(world.tables.schedules[&job].next_due, None);
}
