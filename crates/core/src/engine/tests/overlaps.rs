//! How many runs of a job are under way at once, and what becomes of those that would be too many.

use serde_json::json;

use super::super::*;
use super::fires::account;
use super::world::*;
use crate::model::*;

pub(super) fn with(mut spec: serde_json::Value, overlap: serde_json::Value) -> serde_json::Value {
    spec["overlap"] = overlap;
    spec
}

pub(super) fn of_state(world: &World, state: RunState) -> usize {
    let tables = &world.tables;
    let all = tables.active.values().chain(tables.history.values());
    all.filter(|run| run.state == state).count()
}

pub(super) fn reasons(world: &World) -> Vec<(RunState, Reason)> {
    let ends = world.tables.history.values().filter_map(|run| {
        let last = run.transitions.last()?;
        Some((run.state, last.reason))
    });
    ends.collect()
}

pub(super) fn queued(world: &World) -> usize {
    let runs = world.tables.active.values();
    runs.filter(|run| run.standing.queued).count()
}

pub(super) fn live(world: &World) -> usize {
    world.tables.active.len() - queued(world)
}

/// A trigger that obeys, with parameters.
fn obeying(world: &mut World, job: &str, params: Option<&str>) -> Result<Triggered, Refusal> {
    let trigger = Trigger {
        params: params.map(|text| JsonText::parse("params", text).expect("JSON")),
        overlap: Obedience::Obey,
        ..Trigger::of(job_ref(job))
    };
    match world.command(Command::TriggerRuns {
        triggers: vec![trigger],
    })? {
        Reply::Triggered(mut results) => results.remove(0),
        other => panic!("{other:?}"),
    }
}

/// Everything that workers hold succeeds, one after another, until nothing is left.
fn drain(world: &mut World, mut held: Vec<(u64, AttemptRef)>) -> Vec<RunId> {
    let mut order = Vec::new();
    while let Some((stream, attempt)) = held.pop() {
        order.push(attempt.run);
        let effects = world.finish(stream, attempt, AttemptOutcome::Succeeded);
        held.extend(assignments(&effects));
        let total = 1000 + order.len() as u64;
        world.event(stream, WorkerEvent::Granted { total });
        held.extend(assignments(&world.commit()));
        assert!(live(world) <= 1, "one at a time");
    }
    order
}

#[test]
fn a_limit_lets_as_many_run_and_skips_the_rest() {
    let mut world = World::new();
    let job = world.put(with(every("a", "1s", "skip"), json!({"limit": 3})));
    world.tick_through(6_000, 500);
    assert_eq!(account(&world, job, START, world.now.wall.0), (3, 3));
}

#[test]
fn runs_wait_for_their_turn_and_start_in_order() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "queue"));
    world.tick_through(5_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 4));
    assert_eq!(account(&world, job, START, world.now.wall.0), (5, 0));
    let held = assignments(&world.worker(1, 1, 1000, vec![], 1));
    assert_eq!(held.len(), 1, "those in the queue are not given out");
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    let order = drain(&mut world, held);
    assert_eq!(order.len(), 5);
    assert!(order.is_sorted());
    assert!(world.tables.active.is_empty());
    world.check_conservation();
}

#[test]
fn a_queue_survives_a_restart_and_an_end_just_before_it() {
    let mut world = World::new();
    world.put(every("a", "1s", "queue"));
    world.tick_through(3_000, 500);
    let held = assignments(&world.worker(1, 1, 1000, vec![], 1));
    let (stream, attempt) = held[0];
    world.report(stream, attempt, AttemptOutcome::Succeeded);
    // The end becomes durable, and the server dies before the next in the queue has its turn.
    let batch = world.engine.take_batch(world.now).expect("an end");
    world.tables.apply(batch.changes.expect("changes"));
    assert_eq!((live(&world), queued(&world)), (0, 2));
    world.restart();
    assert_eq!((live(&world), queued(&world)), (1, 1));
}

#[test]
fn a_full_queue_keeps_its_oldest_and_records_the_time() {
    let mut world = World::new();
    let overlap = json!({"on_full": "queue", "depth": 2});
    let job = world.put(with(every("a", "1s", "skip"), overlap));
    world.tick_through(6_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 2));
    assert_eq!(account(&world, job, START, world.now.wall.0), (3, 3));
    let range = world.tables.unfired.values().next().expect("a range");
    assert_eq!((range.count, range.reason), (3, UnfiredReason::QueueFull));
}

#[test]
fn a_full_queue_keeps_its_newest_and_cancels_the_oldest() {
    let mut world = World::new();
    let overlap = json!({"on_full": "queue", "depth": 1, "keep": "newest"});
    let job = world.put(with(every("a", "1s", "skip"), overlap));
    world.tick_through(4_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 1));
    assert_eq!(account(&world, job, START, world.now.wall.0), (4, 0));
    let superseded = (RunState::Cancelled, Reason::Superseded);
    assert_eq!(reasons(&world), [superseded, superseded]);
    let newest = world.tables.active.values().next_back().expect("it waits");
    assert_eq!(newest.nominal, Some(WallMs(START + 4_000)));
}

#[test]
fn what_waited_longer_than_the_misfire_window_is_cancelled_at_its_turn() {
    let mut world = World::new();
    let mut spec = every("a", "1s", "queue");
    spec["misfire"] = json!({"window": "10s"});
    world.put(spec);
    world.tick_through(3_000, 500);
    let held = assignments(&world.worker(1, 1, 1000, vec![], 1));
    world
        .command(Command::PauseJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("paused");
    world.pass(9_500);
    world.beat(1, 2, 1, vec![held[0].1]);
    world.commit();
    let order = drain(&mut world, held);
    assert_eq!(
        order.len(),
        2,
        "the second waited for 10.5 s, the third for 9.5"
    );
    assert!(reasons(&world).contains(&(RunState::Cancelled, Reason::Expired)));
}

#[test]
fn missed_times_are_made_up_for_one_after_another() {
    let mut world = World::new();
    let mut spec = every("a", "1s", "queue");
    spec["misfire"] = json!({"policy": "all", "max": 10});
    let job = world.put(spec);
    world.pass(60_000);
    world.restart();
    let (runs, unfired) = account(&world, job, START, world.now.wall.0);
    assert_eq!(
        (runs, unfired, live(&world), queued(&world)),
        (10, 50, 1, 9)
    );
}

#[test]
fn a_due_time_can_fail() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "fail"));
    world.tick_through(3_000, 500);
    assert_eq!(account(&world, job, START, world.now.wall.0), (3, 0));
    let failed = (RunState::Failed, Reason::Overlap);
    assert_eq!(reasons(&world), [failed, failed]);
    assert_eq!(world.tables.letters.len(), 2, "as any that failed for good");
    world.check_conservation();
}

#[test]
fn triggers_say_whether_they_obey() {
    let mut world = World::new();
    world.put(noop("a"));
    obeying(&mut world, "a", None).expect("nothing is under way");
    let Err(Refusal::OverlapFull {
        limit: 1,
        waiting: None,
        ..
    }) = obeying(&mut world, "a", None)
    else {
        panic!("a run has not ended");
    };
    world
        .trigger("a", None, None)
        .expect("it ignores the overlap");
    assert_eq!(world.tables.active.len(), 2);
    assert_eq!(
        world
            .tables
            .counters
            .values()
            .map(|it| it.created)
            .sum::<u64>(),
        2
    );
    world.put(every("b", "1s", "skip"));
    obeying(&mut world, "b", None).expect("nothing is under way");
    world.tick_through(2_000, 500);
    assert_eq!(world.tables.active.len(), 3, "it holds the schedule back");
}

#[test]
fn obeying_triggers_queue_up_or_are_refused_when_the_queue_is_full() {
    let mut world = World::new();
    world.put(with(noop("a"), json!({"on_full": "queue", "depth": 1})));
    obeying(&mut world, "a", None).expect("runs");
    obeying(&mut world, "a", None).expect("waits");
    let Err(Refusal::OverlapFull {
        waiting: Some(1), ..
    }) = obeying(&mut world, "a", None)
    else {
        panic!("the queue is full");
    };
    world.put(with(noop("f"), json!("fail")));
    obeying(&mut world, "f", None).expect("runs");
    assert!(matches!(
        obeying(&mut world, "f", None),
        Err(Refusal::OverlapFull { .. })
    ));
    assert!(
        world.tables.history.is_empty(),
        "a refused trigger makes no run"
    );
}

#[test]
fn each_key_has_its_own_limit() {
    let mut world = World::new();
    world.put(with(
        noop("a"),
        json!({"key": "/customer", "on_full": "queue"}),
    ));
    for (customer, runs) in [("x", 3), ("y", 2)] {
        for _ in 0..runs {
            let params = format!(r#"{{"customer": "{customer}"}}"#);
            obeying(&mut world, "a", Some(&params)).expect("made");
        }
    }
    assert_eq!((live(&world), queued(&world)), (2, 3));
    world.restart();
    let held = assignments(&world.worker(1, 1, 1000, vec![], 1));
    assert_eq!(held.len(), 2);
    let of_x = held.iter().find(|(_, it)| {
        let params = world.tables.active[&it.run].params.clone();
        params.is_some_and(|text| text.as_str().contains('x'))
    });
    let (stream, attempt) = *of_x.expect("one of x");
    let next = assignments(&world.finish(stream, attempt, AttemptOutcome::Succeeded));
    let key = world.tables.active[&next[0].1.run].standing.key.clone();
    assert_eq!(key.as_deref(), Some("\"x\""));
}

#[test]
fn a_run_that_is_tried_again_keeps_its_place() {
    let mut world = World::new();
    world.put(every("a", "1s", "queue"));
    world.tick_through(1_000, 500);
    let (stream, attempt) = assignments(&world.worker(1, 1, 1000, vec![], 1))[0];
    world.finish(stream, attempt, AttemptOutcome::Failed);
    world.tick_through(500, 500);
    let run = &world.tables.active[&attempt.run];
    assert_eq!((run.state, live(&world)), (RunState::Pending, 1));
    world.tick_through(500, 500);
    assert_eq!((live(&world), queued(&world)), (1, 1));
}

#[test]
fn a_run_in_the_queue_can_be_cancelled() {
    let mut world = World::new();
    world.put(every("a", "1s", "queue"));
    world.tick_through(3_000, 500);
    let waiting: Vec<RunId> = world
        .tables
        .active
        .values()
        .filter(|run| run.standing.queued)
        .map(|run| run.id)
        .collect();
    for lag in [0, 3] {
        world.lag = lag;
        let run = waiting[usize::from(lag > 0)];
        let reply = world.command(Command::CancelRun { run, scope: None });
        assert!(matches!(reply, Ok(Reply::Run(run)) if run.state == RunState::Cancelled));
    }
    assert_eq!((live(&world), queued(&world)), (1, 0));
    world.check_conservation();
}

#[test]
fn an_edit_changes_how_many_may_run() {
    let mut world = World::new();
    world.put(every("a", "1s", "queue"));
    world.tick_through(5_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 4));
    world.put(with(
        every("a", "1s", "skip"),
        json!({"on_full": "queue", "limit": 3}),
    ));
    assert_eq!((live(&world), queued(&world)), (3, 2));
    world.put(with(
        every("a", "1s", "skip"),
        json!({"on_full": "queue", "depth": 1, "keep": "newest"}),
    ));
    assert_eq!(
        (live(&world), queued(&world)),
        (3, 1),
        "the limit fell: nobody is stopped for it"
    );
    world.put(every("a", "1s", "allow"));
    assert_eq!((live(&world), queued(&world)), (4, 0));
}

#[test]
fn a_deleted_job_lets_go_of_those_that_wait() {
    let mut world = World::new();
    world.put(every("a", "1s", "queue"));
    world.tick_through(4_000, 500);
    world
        .command(Command::DeleteJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("deleted");
    assert_eq!((live(&world), queued(&world)), (1, 0));
    assert_eq!(world.tables.history.len(), 3);
    for run in world.tables.history.values() {
        let asked = run.cancel.as_ref().expect("somebody did it");
        assert_eq!(
            (&asked.actor, asked.at),
            (&Actor::new("tester"), world.now.wall)
        );
    }
    let (stream, attempt) = assignments(&world.worker(1, 1, 1000, vec![], 1))[0];
    world.finish(stream, attempt, AttemptOutcome::Succeeded);
    assert!(world.tables.active.is_empty());
}

#[test]
fn counts_are_right_when_a_job_comes_back_into_memory() {
    let mut world = World::with_window(1);
    let mut spec = noop("a");
    spec["schedule"] = json!([{"every": "1h"}]);
    spec["overlap"] = json!({"limit": 2, "on_full": "queue"});
    world.put(spec);
    world
        .trigger("a", None, None)
        .expect("it takes the one place in memory");
    for _ in 0..5 {
        obeying(&mut world, "a", None).expect("made");
    }
    assert_eq!(
        (live(&world), queued(&world)),
        (3, 3),
        "one of them does not count"
    );
    let before = world.tables.active.clone();
    world.restart();
    world.tick_through(30_000, 500);
    assert_eq!(
        before, world.tables.active,
        "nothing is let in that may not"
    );
    obeying(&mut world, "a", None).expect("waits");
    assert_eq!((live(&world), queued(&world)), (3, 4));
}

#[test]
fn the_end_of_runs_that_obey_does_not_move_a_fixed_delay() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["schedule"] = json!([{"after_end": "10s"}]);
    let job = world.put(spec);
    obeying(&mut world, "a", None).expect("made");
    world.tick_through(11_000, 500);
    let range = world.tables.unfired.values().next().expect("a range");
    assert_eq!((range.job, range.reason), (job, UnfiredReason::Overlap));
    let (stream, attempt) = assignments(&world.worker(1, 1, 1000, vec![], 1))[0];
    world.finish(stream, attempt, AttemptOutcome::Succeeded);
    world.tick_through(10_000, 500);
    assert_eq!(
        world.tables.active.len(),
        1,
        "ten seconds after the time that passed"
    );
}

#[test]
fn the_same_key_with_another_obedience_is_another_request() {
    let mut world = World::new();
    world.put(noop("a"));
    world.trigger("a", None, Some("k")).expect("made");
    let trigger = Trigger {
        idempotency_key: Some("k".into()),
        overlap: Obedience::Obey,
        ..Trigger::of(job_ref("a"))
    };
    let reply = world.command(Command::TriggerRuns {
        triggers: vec![trigger],
    });
    let Ok(Reply::Triggered(results)) = reply else {
        panic!("{reply:?}");
    };
    assert!(matches!(results[0], Err(Refusal::KeyReused(_))));
}
