//! Lines in memory: those that are empty cost nothing, and leave.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

/// A world with so many kinds of work, each of which was done once, and a worker for all that takes two runs at a time.
fn world_of(kinds: usize) -> (World, Vec<AttemptRef>) {
    let mut world = World::new();
    let handlers = (0..kinds).map(|kind| format!("kind-{kind}"));
    let hello = Hello {
        handlers: handlers.chain(["noop".to_owned()]).collect(),
        ..hello(7, 1, 2)
    };
    world.event(1, WorkerEvent::Connected(hello));
    world.beat(1, 1, 0, Vec::new());
    world.event(1, WorkerEvent::Granted { total: 2 });
    world.commit();
    world.put(noop("busy"));
    let mut held = Vec::new();
    for kind in 0..kinds {
        let mut spec = noop(&format!("job-{kind}"));
        spec["task"]["handler"] = json!({"name": format!("kind-{kind}")});
        world.put(spec);
        held.extend(give(&mut world, &format!("job-{kind}")));
        serve(&mut world, &mut held, 2 + kind as u64);
    }
    (world, held)
}

fn give(world: &mut World, job: &str) -> Vec<AttemptRef> {
    let triggers = vec![Trigger::of(job_ref(job))];
    world.step(Input::Command {
        ticket: Ticket(1),
        actor: Actor::new("t"),
        command: Command::TriggerRuns { triggers },
    });
    let given = assignments(&world.commit());
    given.into_iter().map(|(_, attempt)| attempt).collect()
}

/// Ends the first that the worker holds, and grants as much in all.
fn serve(world: &mut World, held: &mut Vec<AttemptRef>, ended: u64) {
    let attempt = held.remove(0);
    world.report(1, attempt, AttemptOutcome::Succeeded);
    world.event(1, WorkerEvent::Granted { total: 1 + ended });
    let given = assignments(&world.commit());
    held.extend(given.into_iter().map(|(_, attempt)| attempt));
}

/// How many changes of lines it takes to give a backlog out, one by one, to a worker that is full most of the time.
fn cost(kinds: usize) -> usize {
    let (mut world, mut held) = world_of(kinds);
    let before = world.engine.lines.changes;
    for _ in 0..100 {
        held.extend(give(&mut world, "busy"));
    }
    for run in 0..100 {
        serve(&mut world, &mut held, 2 + (kinds + run) as u64);
    }
    assert!(held.is_empty());
    world.engine.lines.changes - before
}

#[test]
fn giving_out_costs_the_same_whatever_lines_are_empty() {
    let few = cost(1);
    assert_eq!(cost(300), few);
    assert!(few < 100 * 8, "{few} changes");
}

#[test]
fn lines_that_are_empty_leave_and_come_back() {
    let (mut world, mut held) = world_of(50);
    assert_eq!(world.engine.lines.all().count(), 50);
    let mut beats = 1;
    let mut wait = |world: &mut World, held: &[AttemptRef]| {
        for _ in 0..15 {
            world.pass(2_000);
            beats += 1;
            world.beat(1, beats, 0, held.to_vec());
            world.commit();
        }
    };
    wait(&mut world, &held);
    assert_eq!(world.engine.lines.all().count(), 0);
    // One that leaves a place to another, and one that is in use.
    let mut missing = noop("missing");
    missing["task"]["handler"] = json!({"name": "missing"});
    world.put(missing);
    assert!(give(&mut world, "missing").is_empty());
    wait(&mut world, &held);
    for (job, ended) in [("job-7", 52), ("job-8", 53), ("busy", 54)] {
        held.extend(give(&mut world, job));
        assert_eq!(held.len(), 1, "{job} is served");
        serve(&mut world, &mut held, ended);
    }
    assert_eq!(world.engine.lines.all().count(), 4);
    wait(&mut world, &held);
    assert_eq!(world.engine.lines.all().count(), 1, "a run waits in it");
    let view = world.engine.figures(world.now);
    assert_eq!((view.lines.len(), view.lines[0].waiting), (1, 1));
}

#[test]
fn the_lag_is_how_long_the_oldest_has_waited_that_nothing_holds_back() {
    let mut world = World::new();
    let lag = |world: &World| world.engine.figures(world.now).lag_ms;
    assert_eq!(lag(&world), 0);
    let mut limited = noop("limited");
    limited["limits"] = json!({"concurrency": 1});
    limited["overlap"] = json!("allow");
    world.put(limited);
    world.put(noop("free"));
    // The second one waits for the place of the first, however long: that is what was asked for.
    for _ in 0..2 {
        world.trigger("limited", None, None).unwrap();
    }
    world.worker(1, 1, 1, Vec::new(), 1);
    world.commit();
    world.pass(7_000);
    assert_eq!(lag(&world), 0);
    world.trigger("free", None, None).unwrap();
    world.commit();
    world.pass(3_000);
    assert_eq!(lag(&world), 3_000);
}

/// A line with pens that hold nothing but what runs, or with runs in the store only, stays.
#[test]
fn a_line_that_limits_or_parking_need_stays() {
    let mut world = World::with_window(2);
    let mut spec = noop("a");
    spec["limits"] = json!({"concurrency": 1});
    spec["start_timeout"] = json!("40s");
    spec["task"]["handler"] = json!({"name": "missing"});
    world.put(spec);
    for _ in 0..10 {
        world.trigger("a", None, None).expect("made");
    }
    world.tick_through(30_000, 1_000);
    assert_eq!(world.engine.lines.all().count(), 1);
    world.tick_through(60_000, 1_000);
    assert!(world.tables.active.is_empty(), "nobody took them in time");
    world.worker(7, 1, 4, Vec::new(), 1);
    world.tick_through(60_000, 1_000);
    assert_eq!(world.engine.lines.all().count(), 0);
}
