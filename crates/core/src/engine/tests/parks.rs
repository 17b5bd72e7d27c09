//! Parking: a line longer than its window waits in the store and comes back in order.

use super::super::*;
use super::world::*;
use crate::model::*;

const WINDOW: usize = 4_000;

fn drain(world: &mut World, stream: u64, capacity: u32) -> Vec<RunId> {
    let mut order = Vec::new();
    let mut granted = u64::from(capacity);
    let mut effects = world.worker(7, stream, capacity, vec![], 1);
    loop {
        let assigned = assignments(&effects);
        if assigned.is_empty() {
            return order;
        }
        effects.clear();
        for (_, attempt) in assigned {
            order.push(attempt.run);
            granted += 1;
            effects.extend(world.finish(stream, attempt, AttemptOutcome::Succeeded));
        }
        world.event(stream, WorkerEvent::Granted { total: granted });
        effects.extend(world.commit());
    }
}

#[test]
fn a_long_line_is_parked_and_drains_completely_in_order() {
    let mut world = World::with_window(WINDOW);
    world.put(noop("a"));
    let count = WINDOW + 7_000;
    world.trigger_many("a", count, None);
    let parked = world
        .tables
        .active
        .values()
        .filter(|run| run.parked.is_some())
        .count();
    assert_eq!(parked, 7_000);
    let order = drain(&mut world, 1, 100);
    assert_eq!(order.len(), count);
    assert!(order.is_sorted(), "first come, first served");
    assert!(world.tables.active.is_empty());
    world.check_conservation();
}

#[test]
fn parked_runs_survive_a_restart_and_can_be_cancelled() {
    let mut world = World::with_window(WINDOW);
    world.put(noop("a"));
    world.trigger_many("a", WINDOW + 2_000, None);
    let parked = world
        .tables
        .active
        .values()
        .find(|run| run.parked.is_some())
        .expect("parked")
        .id;
    world
        .command(Command::CancelRun {
            run: parked,
            scope: None,
        })
        .expect("cancelled");
    assert_eq!(world.tables.history[&parked].state, RunState::Cancelled);
    world.restart();
    let order = drain(&mut world, 1, 500);
    assert_eq!(order.len(), WINDOW + 1_999);
    assert!(!order.contains(&parked));
    world.check_conservation();
}

#[test]
fn a_line_without_workers_does_not_hold_others_up() {
    let mut world = World::with_window(WINDOW);
    let mut other = noop("b");
    other["task"]["handler"]["name"] = "missing".into();
    world.put(noop("a"));
    world.put(other);
    world.trigger_many("b", 25_000, None);
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    assert_eq!(world.tables.active[&run].state, RunState::Scheduled);
}

#[test]
fn a_run_parked_under_an_old_version_loads_while_an_edit_is_on_its_way() {
    let mut world = World::with_window(WINDOW);
    world.put(noop("a"));
    world.trigger_many("a", WINDOW + 1_000, None);
    world.restart();
    let mut edited = noop("a");
    edited["description"] = "second".into();
    let spec: JobSpec = serde_json::from_value(edited).expect("valid");
    let command = Command::PutJob {
        spec: Box::new(spec),
        condition: Condition::Any,
    };
    world.step(Input::Command {
        ticket: Ticket(1),
        actor: Actor::new("t"),
        command,
    });
    let parked = world
        .tables
        .active
        .values()
        .find(|run| run.parked.is_some())
        .expect("parked")
        .id;
    let command = Command::CancelRun {
        run: parked,
        scope: None,
    };
    world.step(Input::Command {
        ticket: Ticket(2),
        actor: Actor::new("t"),
        command,
    });
    world.commit();
    assert_eq!(world.tables.history[&parked].job_version, 1);
}

/// Far runs that were read when the clock was ahead must not keep near ones out.
#[test]
fn a_run_that_is_due_soon_does_not_wait_behind_those_that_are_due_later() {
    let mut world = World::with_window(4);
    world.put(noop("a"));
    let delayed = |after| Command::TriggerRuns {
        triggers: vec![
            Trigger {
                when: Some(When::After(after)),
                ..Trigger::of(job_ref("a"))
            };
            3
        ],
    };
    world.command(delayed(30_000)).expect("made");
    world.step_clock(-2 * 3_600_000);
    world.tick_through(2_000, 500);
    world.command(delayed(20_000)).expect("made");
    world.command(delayed(20_000)).expect("made");
    world.worker(1, 1, 100, Vec::new(), 1);
    world.tick_through(3_000, 500);
    world.beat(1, 2, 0, Vec::new());
    let mut given = 0;
    for beat in 0..10 {
        world.beat(1, 3 + beat, 0, Vec::new());
        given += assignments(&world.tick_through(5_000, 500)).len();
    }
    assert_eq!(given, 6, "those that are due after the clock went back");
}

/// Two handlers without a worker, each with a full window of backlog, must not hold up a third that has one.
#[test]
fn lines_without_workers_that_fill_memory_do_not_hold_others_up() {
    let mut world = World::new();
    world.put(noop("a"));
    for name in ["b", "c"] {
        let mut other = noop(name);
        other["task"]["handler"]["name"] = format!("missing-{name}").into();
        world.put(other);
    }
    world.worker(7, 1, 4, vec![], 1);
    // 64 KiB of parameters take 128 places of the window each: 800 runs fill it.
    let params = format!("\"{}\"", "x".repeat(65_000));
    for name in ["b", "c"] {
        for _ in 0..800 {
            world.trigger(name, Some(&params), None).expect("made");
        }
    }
    world.beat(1, 2, 0, vec![]);
    let run = world.trigger("a", None, None).expect("made").run;
    world.tick_through(2_000, 500);
    assert_eq!(world.tables.active[&run].state, RunState::Scheduled);
}
