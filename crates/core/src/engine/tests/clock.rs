//! The wall clock steps; nothing is lost, doubled or early.

use super::super::*;
use super::fires::account;
use super::world::*;
use crate::model::*;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Nothing but alarms.
fn alarms(effects: &[Effect]) -> Vec<&str> {
    let alarms = effects.iter().filter_map(|effect| match effect {
        Effect::Alarm { text } => Some(text.as_str()),
        _ => None,
    });
    alarms.collect()
}

fn latest_due(world: &World) -> WallMs {
    let all = world.tables.active.values();
    all.map(|run| run.due).max().expect("something fired")
}

#[test]
fn steps_of_every_size_lose_and_double_nothing() {
    for step in [-DAY, -HOUR, -1_000, 1_000, HOUR, DAY] {
        let mut world = World::new();
        let job = world.put(every("a", "1s", "allow"));
        world.tick_through(2_500, 100);
        world.step_clock(step);
        world.tick_through(100_000, 100);
        let highest = world.now.wall.0.max(START + 2_500);
        account(&world, job, START, highest);
        assert!(latest_due(&world) <= WallMs(highest), "early at {step}");
        world.step_clock(-step);
        world.tick_through(100_000, 100);
        let highest = highest.max(world.now.wall.0);
        account(&world, job, START, highest);
    }
}

#[test]
fn a_great_step_forward_is_held_back_and_firing_goes_on_by_the_steady_clock() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(2_500, 100);
    world.step_clock(DAY);
    let effects = world.tick_through(10_000, 100);
    assert!(alarms(&effects)[0].contains("went forward by 86400 s"));
    assert_eq!(latest_due(&world), WallMs(START + 12_000));
    let created = world.tables.active.values().map(|run| run.created).max();
    assert!(
        created < Some(WallMs(START + 13_000)),
        "stamped by the steady clock"
    );
    // The mistake is undone: it is as if nothing had happened.
    world.step_clock(-DAY);
    world.tick_through(5_000, 100);
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!((runs, unfired), (17, 0));
}

#[test]
fn a_step_that_stands_is_believed_and_the_times_in_it_obey_the_policy() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.tick_through(2_500, 100);
    world.step_clock(HOUR);
    let effects = world.tick_through(70_000, 100);
    assert!(alarms(&effects)[1].contains("is believed: it has stood for a minute"));
    let (_, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!(unfired, 3_599);
    assert_eq!(world.tables.unfired.len(), 1);
}

fn clock_of(world: &mut World, process: u64, host: &str, beat: u64, wall: WallMs) -> Vec<Effect> {
    let stream = process;
    let hello = Hello {
        host: host.into(),
        ..hello(process, stream, 1)
    };
    world.event(stream, WorkerEvent::Connected(hello));
    let heartbeat = Heartbeat {
        number: beat,
        acked_position: 0,
        held: Vec::new(),
        load: Load::default(),
        wall,
    };
    world.event(stream, WorkerEvent::Heartbeat(heartbeat));
    world.commit()
}

#[test]
fn a_worker_elsewhere_confirms_or_denies_a_step() {
    let mut world = World::new();
    world.put(every("a", "1s", "allow"));
    world.tick_through(2_500, 100);
    world.step_clock(HOUR);
    world.commit();
    let wall = world.now.wall;
    let effects = clock_of(&mut world, 1, "", 1, wall);
    assert!(
        alarms(&effects)
            .iter()
            .all(|text| !text.contains("believed"))
    );
    let steady = world.now.wall.plus(-HOUR);
    clock_of(&mut world, 2, "elsewhere", 2, steady);
    world.tick_through(59_000, 1_000);
    let steady = world.now.wall.plus(-HOUR);
    clock_of(&mut world, 2, "elsewhere", 3, steady);
    let effects = world.tick_through(30_000, 1_000);
    assert!(
        alarms(&effects).is_empty(),
        "it was denied half a minute ago"
    );
    let wall = world.now.wall;
    let effects = clock_of(&mut world, 3, "elsewhere", 4, wall);
    assert!(
        alarms(&effects)
            .iter()
            .any(|text| text.contains("another machine agrees"))
    );
    assert!(latest_due(&world) >= WallMs(START + HOUR));
}

#[test]
fn a_worker_whose_clock_is_off_is_told_of_once() {
    let mut world = World::new();
    let off = world.now.wall.plus(-4_000);
    let effects = clock_of(&mut world, 1, "elsewhere", 1, off);
    assert!(alarms(&effects)[0].contains("worker `w1` is -4000 ms off"));
    assert_eq!(world.engine.workers(world.now)[0].skew_ms, -4_000);
    let effects = clock_of(&mut world, 1, "elsewhere", 2, off);
    assert!(alarms(&effects).is_empty());
    let right = world.now.wall;
    let effects = clock_of(&mut world, 1, "elsewhere", 3, right);
    assert!(alarms(&effects)[0].contains("right again"));
}

#[test]
fn a_clock_that_runs_ahead_makes_nothing_old_enough_to_delete() {
    let mut world = World::new();
    world.put(noop("a"));
    world.pass(5_000);
    world.step_clock(10 * 365 * 86_400_000);
    let trigger = Trigger {
        job: job_ref("a"),
        params: None,
        idempotency_key: None,
        request: None,
        when: None,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let input = Input::Command {
        ticket: Ticket(1),
        actor: Actor::new("t"),
        command: Command::TriggerRuns {
            triggers: vec![trigger],
        },
    };
    world.step(input);
    let batch = world.engine.take_batch(world.now).expect("a batch");
    let prune = batch.changes.expect("rows").prune.expect("a step");
    assert_eq!(prune.now, WallMs(START + 5_000));
}

#[test]
fn a_held_step_stays_held_when_the_loop_is_reset() {
    let mut world = World::new();
    world.put(every("a", "1s", "allow"));
    world.tick_through(2_500, 100);
    world.step_clock(DAY);
    world.tick_through(1_000, 100);
    world.reset();
    world.tick_through(5_000, 100);
    assert_eq!(latest_due(&world), WallMs(START + 8_000));
}

#[test]
fn a_step_makes_no_key_old() {
    let mut world = World::new();
    world.put(noop("a"));
    let first = world.trigger("a", None, Some("k")).expect("made");
    world.step_clock(2 * DAY);
    // Held back at first, then believed; each time another commit makes the engine forget the key and ask the store.
    for _ in 0..3 {
        world.tick_through(40_000, 1_000);
        world.trigger("a", None, None).expect("made");
        let again = world.trigger("a", None, Some("k")).expect("made");
        assert_eq!((again.run, again.repeated), (first.run, true));
    }
}
