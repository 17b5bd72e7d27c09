//! Runs that are triggered for later.

use super::super::*;
use super::world::*;
use crate::model::*;

const HOUR: u64 = 3_600_000;

fn later(world: &mut World, when: When) -> RunId {
    let trigger = Trigger {
        job: job_ref("a"),
        params: None,
        idempotency_key: None,
        request: None,
        when: Some(when),
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let command = Command::TriggerRuns {
        triggers: vec![trigger],
    };
    match world.command(command) {
        Ok(Reply::Triggered(made)) => made[0].as_ref().expect("made").run,
        other => panic!("{other:?}"),
    }
}

fn world() -> World {
    let mut world = World::new();
    world.put(noop("a"));
    world
}

/// Beats, and returns the runs that were given out.
fn given(world: &mut World, beat: u64) -> Vec<RunId> {
    world.beat(1, beat, beat, Vec::new());
    let effects = world.commit();
    let given = assignments(&effects).into_iter();
    given.map(|(_, attempt)| attempt.run).collect()
}

#[test]
fn a_run_starts_when_its_delay_is_over_and_not_before() {
    for (delay, parked) in [(30_000, false), (2 * HOUR, true)] {
        let mut world = world();
        world.worker(1, 1, 4, Vec::new(), 1);
        let run = later(&mut world, When::After(delay));
        assert_eq!(world.tables.active[&run].parked.is_some(), parked);
        assert_eq!(world.tables.active[&run].due, WallMs(START + delay as i64));
        let mut beat = 1;
        while world.now.wall < WallMs(START + delay as i64 - 1_000) {
            world.pass(1_000);
            beat += 1;
            assert_eq!(given(&mut world, beat), []);
        }
        world.pass(999);
        assert_eq!(given(&mut world, beat + 1), []);
        world.pass(1);
        assert_eq!(given(&mut world, beat + 2), [run]);
    }
}

#[test]
fn delayed_runs_survive_restarts_and_leave_memory() {
    let mut world = world();
    let runs: Vec<RunId> = (1..20)
        .map(|n| later(&mut world, When::After(n * 600_000)))
        .collect();
    world.tick_through(10_000, 500);
    assert!(world.engine.resident_runs().is_empty());
    for _ in 0..130 {
        world.pass(90_000);
        world.restart();
    }
    let waiting: Vec<RunId> = world.engine.resident_runs();
    assert_eq!(waiting, runs, "all are due and wait for a worker");
    let mut beat = 1;
    let mut started = assignments(&world.worker(1, 1, 100, Vec::new(), beat));
    while started.len() < runs.len() {
        beat += 1;
        world.beat(
            1,
            beat,
            beat,
            started.iter().map(|(_, attempt)| *attempt).collect(),
        );
        started.extend(assignments(&world.commit()));
    }
    assert_eq!(started.len(), runs.len(), "each once");
}

#[test]
fn a_time_that_has_passed_means_at_once() {
    let mut world = world();
    let run = later(&mut world, When::At(WallMs(START - 5)));
    assert_eq!(world.tables.active[&run].due, WallMs(START));
}

#[test]
fn clock_steps_neither_lose_nor_double_a_delayed_run() {
    for step in [-7_200_000, -5_000, 5_000, 7_200_000] {
        let mut world = world();
        let near = later(&mut world, When::After(40_000));
        let far = later(&mut world, When::After(HOUR));
        world.tick_through(10_000, 1_000);
        world.step_clock(step);
        world.tick_through(4 * HOUR, 10_000);
        assert_eq!(world.engine.resident_runs(), [near, far]);
        let effects = world.worker(1, 1, 4, Vec::new(), 1);
        assert_eq!(assignments(&effects).len(), 2);
    }
}

#[test]
fn a_clock_that_was_behind_for_hours_delays_nothing_once_it_is_right() {
    let mut world = world();
    world.tick_through(10_000, 1_000);
    world.step_clock(-7_200_000);
    world.tick_through(120_000, 1_000);
    world.step_clock(7_200_000);
    // It is believed after a minute.
    world.tick_through(120_000, 1_000);
    let run = later(&mut world, When::After(600_000));
    world.tick_through(700_000, 1_000);
    assert_eq!(world.engine.resident_runs(), [run]);
    assert_eq!(assignments(&world.worker(1, 1, 4, Vec::new(), 1)).len(), 1);
}

#[test]
fn a_delayed_run_can_be_cancelled_wherever_it_waits() {
    let mut world = world();
    let near = later(&mut world, When::After(40_000));
    let far = later(&mut world, When::After(HOUR));
    for run in [near, far] {
        let command = Command::CancelRun { run, scope: None };
        world.command(command).expect("cancelled");
    }
    world.tick_through(2 * HOUR, 10_000);
    assert!(world.tables.active.is_empty());
    assert!(assignments(&world.worker(1, 1, 4, Vec::new(), 1)).is_empty());
    world.check_conservation();
}

#[test]
fn a_key_holds_for_the_same_delay_only() {
    let mut world = world();
    let mut send = |when| {
        let trigger = Trigger {
            job: job_ref("a"),
            params: None,
            idempotency_key: Some("k".into()),
            request: None,
            when,
            rerun: None,
            overlap: Obedience::Ignore,
            force: false,
        };
        let command = Command::TriggerRuns {
            triggers: vec![trigger],
        };
        match world.command(command) {
            Ok(Reply::Triggered(mut made)) => made.remove(0),
            other => panic!("{other:?}"),
        }
    };
    let first = send(Some(When::After(5_000))).expect("made");
    let again = send(Some(When::After(5_000))).expect("made");
    assert_eq!((first.run, again.repeated), (again.run, true));
    assert!(matches!(send(None), Err(Refusal::KeyReused(_))));
}

#[test]
fn further_ahead_than_anyone_means_is_refused() {
    let mut world = world();
    let trigger = Trigger {
        job: job_ref("a"),
        params: None,
        idempotency_key: None,
        request: None,
        when: Some(When::After(u64::MAX)),
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let answer = world.command(Command::TriggerRuns {
        triggers: vec![trigger],
    });
    let Ok(Reply::Triggered(made)) = answer else {
        panic!("{answer:?}");
    };
    assert!(matches!(&made[0], Err(Refusal::Invalid(error)) if error.field == "delay"));
}

/// Runs of one minute: the near ones do not wait behind those that are due at its end.
#[test]
fn within_a_minute_the_nearest_come_first() {
    let mut world = World::with_window(4);
    world.put(noop("a"));
    world.worker(1, 1, 100, Vec::new(), 1);
    let minute = (START / 60_000 + 5) * 60_000;
    let at = |ms: i64, count: usize| Command::TriggerRuns {
        triggers: vec![
            Trigger {
                when: Some(When::At(WallMs(minute + ms))),
                ..Trigger::of(job_ref("a"))
            };
            count
        ],
    };
    for _ in 0..3 {
        world.command(at(58_000, 1_000)).expect("made");
    }
    world.command(at(5_000, 1)).expect("made");
    let mut beat = 2;
    let mut first = None;
    while world.now.wall.0 < minute + 65_000 {
        world.beat(1, beat, 0, Vec::new());
        beat += 1;
        let given = assignments(&world.tick_through(1_000, 500));
        if first.is_none() && !given.is_empty() {
            first = Some(world.now.wall.0 - minute);
        }
    }
    assert!(first.is_some_and(|ms| ms < 10_000), "{first:?}");
}
