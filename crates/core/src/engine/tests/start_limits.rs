//! Runs that must start by a time: in memory, parked, over restarts and clock steps.

use super::super::*;
use super::world::*;
use crate::model::*;

fn hurried(name: &str, limit: &str) -> serde_json::Value {
    let mut spec = noop(name);
    spec["start_timeout"] = limit.into();
    spec
}

fn fate(world: &World, run: RunId) -> (RunState, Reason) {
    let tables = &world.tables;
    let run = tables
        .history
        .get(&run)
        .unwrap_or_else(|| &tables.active[&run]);
    (run.state, run.transitions.last().expect("one").reason)
}

const TIMED_OUT: (RunState, Reason) = (RunState::Failed, Reason::StartTimedOut);

#[test]
fn a_run_that_nobody_takes_fails_at_its_time_and_is_a_dead_letter() {
    let mut world = World::new();
    world.put(hurried("a", "10s"));
    let run = world.trigger("a", None, None).expect("made").run;
    world.pass(9_999);
    world.commit();
    assert_eq!(fate(&world, run).0, RunState::Pending);
    world.pass(1);
    world.commit();
    assert_eq!(fate(&world, run), TIMED_OUT);
    let error = world.tables.history[&run].error.clone().expect("a cause");
    assert_eq!(
        error,
        "it was not given to a worker within its start_timeout of 10s: no worker that can run it was connected and had room"
    );
    assert!(world.tables.letters.contains_key(&run));
    world.check_conservation();
}

#[test]
fn one_that_was_given_is_not_asked_again_when_it_is_tried_again() {
    let mut world = World::new();
    let mut spec = hurried("a", "10s");
    spec["retry"] = serde_json::json!({"initial": "20s", "jitter": false});
    world.put(spec);
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let fence = world.tables.active[&run].attempts[0].fence;
    world.finish(
        1,
        AttemptRef {
            run,
            attempt: 1,
            fence,
        },
        AttemptOutcome::Failed,
    );
    world.event(1, WorkerEvent::Goodbye);
    world.tick_through(120_000, 500);
    assert_eq!(fate(&world, run), (RunState::Pending, Reason::Retry));
    world.worker(8, 2, 4, vec![], 1);
    assert_eq!(world.tables.active[&run].attempts.len(), 2);
}

#[test]
fn what_never_arrived_was_not_given() {
    let mut world = World::new();
    world.put(hurried("a", "10s"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    world.pass(11_000);
    world.commit();
    assert_eq!(fate(&world, run).0, RunState::Scheduled, "given in time");
    world.event(1, WorkerEvent::Disconnected);
    world.event(2, WorkerEvent::Connected(hello(7, 2, 0)));
    world.beat(2, 2, 0, vec![]);
    world.commit();
    assert_eq!(fate(&world, run), TIMED_OUT);
}

#[test]
fn the_time_counts_from_the_due_time() {
    let mut world = World::new();
    world.put(hurried("a", "10s"));
    let trigger = Trigger {
        when: Some(When::After(300_000)),
        ..Trigger::of(job_ref("a"))
    };
    world
        .command(Command::TriggerRuns {
            triggers: vec![trigger],
        })
        .expect("made");
    let run = *world.tables.active.keys().next().expect("one");
    world.tick_through(309_000, 500);
    assert_eq!(fate(&world, run).0, RunState::Pending);
    world.tick_through(1_000, 500);
    assert_eq!(fate(&world, run), TIMED_OUT);
}

#[test]
fn parked_runs_are_found_page_by_page_and_only_those() {
    let mut world = World::with_window(10);
    world.put(hurried("a", "10s"));
    world.put(hurried("b", "60s"));
    world.put(noop("c"));
    world.trigger_many("a", 5_000, None);
    world.trigger_many("b", 1_000, None);
    world.trigger_many("c", 1_000, None);
    assert!(
        world
            .tables
            .active
            .values()
            .filter(|run| run.parked.is_some())
            .count()
            > 6_000
    );
    world.tick_through(9_900, 100);
    assert!(world.tables.history.is_empty());
    world.tick_through(400, 100);
    assert_eq!(world.tables.history.len(), 5_000);
    world.tick_through(49_000, 500);
    assert_eq!(world.tables.history.len(), 5_000);
    world.tick_through(1_500, 100);
    assert_eq!(world.tables.history.len(), 6_000);
    world.tick_through(100_000, 500);
    assert_eq!(
        world.tables.active.len(),
        1_000,
        "those without a limit wait"
    );
    world.check_conservation();
}

#[test]
fn a_restart_forgets_neither_those_in_memory_nor_those_parked() {
    let mut world = World::with_window(10);
    world.put(hurried("a", "10s"));
    world.trigger_many("a", 1_000, None);
    world.pass(30_000);
    world.restart();
    world.tick_through(300, 100);
    assert_eq!(world.tables.history.len(), 1_000);
}

#[test]
fn nothing_is_read_for_jobs_without_a_limit() {
    let mut world = World::with_window(10);
    world.put(noop("a"));
    world.trigger_many("a", 1_000, None);
    for _ in 0..50 {
        world.pass(10_000);
        world.step(Input::Tick);
        let overdue = |request: &LoadRequest| {
            request
                .keys
                .iter()
                .any(|key| matches!(key, LoadKey::Overdue { .. }))
        };
        assert!(!world.engine.take_loads().iter().any(overdue));
    }
}

#[test]
fn a_clock_that_goes_back_gives_more_time_and_one_that_goes_forward_less() {
    let mut world = World::new();
    world.put(hurried("a", "30s"));
    let run = world.trigger("a", None, None).expect("made").run;
    world.step_clock(-20_000);
    world.tick_through(40_000, 500);
    assert_eq!(fate(&world, run).0, RunState::Pending);
    world.step_clock(20_000);
    world.tick_through(1_000, 500);
    assert_eq!(fate(&world, run), TIMED_OUT);
}

#[test]
fn one_read_back_too_late_is_not_given() {
    let mut world = World::with_window(2);
    world.put(hurried("a", "10s"));
    world.trigger_many("a", 1_000, None);
    world.lag = 5;
    world.pass(11_000);
    let effects = world.worker(7, 1, 4, vec![], 1);
    assert!(assignments(&effects).is_empty());
    world.lag = 0;
    world.tick_through(1_000, 100);
    assert_eq!(world.tables.history.len(), 1_000);
}

#[test]
fn a_cancel_goes_before() {
    let mut world = World::with_window(1);
    world.put(hurried("a", "10s"));
    let runs: Vec<RunId> = (0..3)
        .map(|_| world.trigger("a", None, None).expect("made").run)
        .collect();
    world
        .command(Command::CancelRun {
            run: runs[2],
            scope: None,
        })
        .expect("asked");
    world.tick_through(11_000, 100);
    assert_eq!(
        fate(&world, runs[2]),
        (RunState::Cancelled, Reason::Cancelled)
    );
    assert_eq!(fate(&world, runs[1]), TIMED_OUT);
}

/// Time passes between the last tick and a batch: whoever is served then may be too late.
#[test]
fn the_last_that_waits_at_a_limit_may_be_too_late_when_it_is_served() {
    let mut world = World::new();
    let mut spec = hurried("a", "10s");
    spec["limits"] = serde_json::json!({"concurrency": 1});
    world.put(spec);
    let run = world.trigger("a", None, None).expect("made").run;
    world.pass(11_000);
    world.event(1, WorkerEvent::Connected(hello(7, 1, 4)));
    world.beat(1, 1, 0, vec![]);
    world.event(1, WorkerEvent::Granted { total: 4 });
    let batch = world.engine.take_batch(world.now).expect("a batch");
    assert!(assignments(&batch.effects).is_empty());
    let changes = batch.changes.expect("rows");
    let seq = changes.seq;
    world.tables.apply(changes);
    world.engine.acknowledge(seq);
    assert_eq!(fate(&world, run), TIMED_OUT);
}

#[test]
fn those_that_wait_for_their_turn_fail_too() {
    let mut world = World::new();
    let mut spec = hurried("a", "4s");
    spec["schedule"] = serde_json::json!([{"every": "1s"}]);
    spec["overlap"] = serde_json::json!({"on_full": "queue", "depth": 50});
    world.put(spec);
    world.worker(7, 1, 4, vec![], 1);
    for beat in 2..12 {
        world.pass(1_000);
        let held = world.tables.active.values().filter_map(|run| {
            let current = run.current_attempt()?;
            Some(AttemptRef {
                run: run.id,
                attempt: current.number,
                fence: current.fence,
            })
        });
        let held: Vec<AttemptRef> = held.collect();
        world.beat(1, beat, 1_000, held);
        world.commit();
    }
    let timed_out = world.tables.history.keys().map(|run| fate(&world, *run));
    let timed_out: Vec<_> = timed_out.collect();
    assert!(timed_out.len() >= 4, "{timed_out:?}");
    assert!(timed_out.iter().all(|it| *it == TIMED_OUT), "{timed_out:?}");
    world.check_conservation();
}
