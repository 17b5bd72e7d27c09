//! Which times make runs, how many at once, and what they leave alone.

use serde_json::json;

use super::super::fires::account;
use super::*;

#[test]
fn missing_times_are_made_in_order_a_few_at_once() {
    for (order, first) in [
        (BackfillOrder::OldestFirst, [10, 11, 12]),
        (BackfillOrder::NewestFirst, [29, 28, 27]),
    ] {
        let (mut world, job) = paused_for_a_minute();
        let plan = BackfillPlan {
            max_active: 3,
            order,
            ..seconds(10, 30)
        };
        let made = create(&mut world, "a", plan).expect("made");
        assert_eq!((made.times, made.revision), (20, 1));
        assert_eq!(nominals(&world, made.id), first);
        let before = world.tables.schedules[&job].clone();
        work_off(&mut world);
        let row = &world.tables.backfills[&made.id];
        assert_eq!(row.state, BackfillState::Completed);
        assert_eq!((row.made, row.completed, row.skipped), (20, 20, 0));
        assert_eq!(world.tables.schedules[&job], before, "the live schedule");
        let mut all = nominals(&world, made.id);
        all.sort_unstable();
        assert_eq!(all, (10..30).collect::<Vec<_>>());
        let run = world.tables.backfilled(made.id)[0];
        assert_eq!((run.origin, &*run.actor.0), (Origin::Backfill, "tester"));
        world.check_conservation();
    }
}

fn take(world: &mut World, which: BackfillWhich, from: i64, to: i64) -> BackfillId {
    let plan = BackfillPlan {
        which,
        max_active: 100,
        ..seconds(from, to)
    };
    create(world, "a", plan).expect("made").id
}

#[test]
fn each_choice_takes_its_own_times() {
    let mut world = World::new();
    let job = world.put(once(every("a", "1s", "allow")));
    world.worker(8, 9, 100, vec![], 1);
    // Of six times every second one fails.
    for second in 1..=6 {
        world.pass(1000);
        for (stream, attempt) in assignments(&world.commit()) {
            let outcome = match second % 2 {
                0 => AttemptOutcome::Failed,
                _ => AttemptOutcome::Succeeded,
            };
            world.finish(stream, attempt, outcome);
        }
    }
    world.event(9, WorkerEvent::Goodbye);
    world.commit();
    let before = world.tables.schedules[&job].clone();
    let failed = take(&mut world, BackfillWhich::Failed, 1, 6);
    let missing = take(&mut world, BackfillWhich::Missing, -5, 1);
    assert_eq!(nominals(&world, failed), [2, 4]);
    // Before the job was made there was no run, and at its own instant neither.
    assert_eq!(nominals(&world, missing), [-5, -4, -3, -2, -1, 0]);
    work_off(&mut world);
    let none = [
        take(&mut world, BackfillWhich::Failed, 1, 6),
        take(&mut world, BackfillWhich::Missing, -5, 6),
    ];
    for id in none {
        let row = &world.tables.backfills[&id];
        assert_eq!((row.state, row.made), (BackfillState::Completed, 0));
        assert_eq!(row.skipped, row.times);
    }
    let all = take(&mut world, BackfillWhich::All, 3, 6);
    assert_eq!(nominals(&world, all), [3, 4, 5]);
    let after = &world.tables.schedules[&job];
    assert_eq!(after.fires, before.fires);
    assert_eq!(after.fired_through, before.fired_through);
}

#[test]
fn the_live_schedule_goes_on_beside_a_backfill() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "skip"));
    world.pass(300);
    let plan = BackfillPlan {
        max_active: 10,
        ..seconds(-20, 0)
    };
    let id = create(&mut world, "a", plan).expect("made").id;
    assert_eq!(world.tables.backfills[&id].live.len(), 10);
    // Runs of a backfill do not count for the overlap of the schedule: its first time fires beside them.
    world.tick_through(3_000, 500);
    let (fired, _) = account(&world, job, START, START + 3_000);
    assert_eq!(fired, 1);
    world.worker(7, 1, 1, vec![], 1);
    let scheduled = world.tables.active.values();
    let leased = scheduled.filter(|run| run.state == RunState::Scheduled);
    let leased: Vec<Origin> = leased.map(|run| run.origin).collect();
    assert_eq!(leased, [Origin::Schedule], "a backfill comes last");
}

#[test]
fn it_goes_on_after_a_restart_and_makes_nothing_twice() {
    let (mut world, _) = paused_for_a_minute();
    let plan = BackfillPlan {
        max_active: 2,
        ..seconds(0, 20)
    };
    let id = create(&mut world, "a", plan).expect("made").id;
    for life in 0..30 {
        world.restart();
        let row = &world.tables.backfills[&id];
        if row.state == BackfillState::Completed {
            break;
        }
        let process = 10 + life;
        let effects = world.worker(process, 1, 1, vec![], 1);
        for (stream, attempt) in assignments(&effects) {
            world.finish(stream, attempt, AttemptOutcome::Succeeded);
        }
    }
    let row = &world.tables.backfills[&id];
    assert_eq!((row.state, row.completed), (BackfillState::Completed, 20));
}

#[test]
fn an_edit_does_not_change_what_is_pinned() {
    let (mut world, job) = paused_for_a_minute();
    let plan = BackfillPlan {
        params: Some(JsonText::parse("params", r#"{"day": 1}"#).expect("JSON")),
        ..seconds(0, 6)
    };
    let id = create(&mut world, "a", plan).expect("made").id;
    world.put(every("a", "5s", "allow"));
    world.restart();
    work_off(&mut world);
    assert_eq!(nominals(&world, id), [0, 1, 2, 3, 4, 5]);
    for run in world.tables.backfilled(id) {
        assert_eq!((run.job, run.job_version), (job, 1));
        assert!(run.params.is_some());
    }
}

#[test]
fn retries_wait_with_the_priority_of_the_backfill() {
    let mut world = World::new();
    let mut spec = every("a", "1h", "allow");
    spec["retry"] = json!({"max_attempts": 2, "initial": "0s", "priority": 9});
    world.put(spec);
    let plan = BackfillPlan {
        which: BackfillWhich::All,
        priority: 2,
        ..seconds(-7200, 0)
    };
    let id = create(&mut world, "a", plan).expect("made").id;
    let effects = world.worker(7, 1, 1, vec![], 1);
    let (stream, attempt) = assignments(&effects)[0];
    world.finish(stream, attempt, AttemptOutcome::Failed);
    let lines = world.engine.figures(world.now).lines;
    let waiting = lines.iter().filter(|line| line.waiting > 0);
    let waiting: Vec<u32> = waiting.map(|line| line.requirement.priority).collect();
    assert_eq!(waiting, [2]);
    assert_eq!(world.tables.backfills[&id].live, [attempt.run]);
}
