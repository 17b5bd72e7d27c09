//! Queues: limits over several jobs, pauses, edits in flight.

use serde_json::json;

use super::super::*;
use super::crew::*;
use super::world::*;
use crate::model::*;

fn queue(more: serde_json::Value) -> serde_json::Value {
    let mut spec = json!({"kind": "Queue", "name": "q"});
    for (key, value) in more.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    spec
}

fn crew() -> Crew {
    let mut crew = Crew::of(World::with_window(256));
    crew.put(with("a", json!({"queue": "q"})));
    crew.put(with("b", json!({"queue": "q", "weight": 2})));
    crew
}

#[test]
fn jobs_share_the_limits_of_their_queue() {
    let mut crew = crew();
    crew.trigger_many("a", "{}", 5);
    assert_eq!(
        crew.running.len(),
        5,
        "one that is not defined limits nothing"
    );
    crew.queue(queue(json!({"concurrency": 2})));
    crew.trigger_many("b", "{}", 3);
    assert_eq!(crew.running.len(), 5, "what runs counts");
    for _ in 0..3 {
        crew.end_first();
    }
    assert_eq!(crew.running.len(), 2);
    crew.queue(queue(json!({"concurrency": 3})));
    assert_eq!(crew.running.len(), 3);
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_key_is_limited_across_jobs() {
    let mut crew = crew();
    crew.queue(queue(json!({"key": "/c", "per_key": 1})));
    let a = crew.trigger_many("a", r#"{"c": 1}"#, 2);
    let b = crew.trigger("b", r#"{"c": 1}"#);
    let other = crew.trigger("b", r#"{"c": 2}"#);
    assert_eq!(crew.runs_now(), [a[0], other]);
    crew.end(a[0], AttemptOutcome::Succeeded);
    assert_eq!(crew.running.len(), 2, "one of those that wait");
    // Without the key the rest goes.
    crew.queue(queue(json!({})));
    assert_eq!(crew.running.len(), 3);
    assert!(crew.runs_now().contains(&b));
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_paused_queue_gives_nothing_out_over_a_restart() {
    let mut crew = crew();
    crew.queue(queue(json!({"concurrency": 50})));
    let (queue_of, condition) = (queue_ref("q"), Condition::Any);
    crew.command(Command::PauseQueue {
        queue: queue_of,
        condition,
    });
    let made = crew.trigger_many("a", "{}", 400);
    assert!(crew.running.is_empty());
    crew.queue(queue(json!({"concurrency": 60})));
    assert!(crew.running.is_empty(), "applying it does not resume it");
    crew.world.restart();
    crew.dial();
    assert!(crew.running.is_empty());
    let view = &crew.world.engine.queues()[0];
    assert!(view.row.as_ref().is_some_and(|row| row.paused.is_some()));
    assert_eq!(
        crew.world
            .engine
            .hindrance(&crew.world.tables.active[&made[0]])
            .map(|it| it.what),
        Some(Held::Paused)
    );
    let queue_of = queue_ref("q");
    crew.command(Command::ResumeQueue {
        queue: queue_of,
        condition,
    });
    assert_eq!(crew.running.len(), 60);
    let view = &crew.world.engine.queues()[0];
    assert_eq!(
        (view.running, view.holders.len()),
        (60, Limits::QUEUE_HOLDERS)
    );
    assert_eq!(view.holders, made[..Limits::QUEUE_HOLDERS]);
    assert_eq!(crew.drain(), made);
    crew.is_empty();
}

#[test]
fn a_deleted_queue_holds_nobody_back() {
    let mut crew = crew();
    crew.queue(queue(json!({"concurrency": 1})));
    let (queue_of, condition) = (queue_ref("q"), Condition::Any);
    crew.command(Command::PauseQueue {
        queue: queue_of,
        condition,
    });
    crew.trigger_many("a", "{}", 20);
    let queue_of = queue_ref("q");
    crew.command(Command::DeleteQueue {
        queue: queue_of,
        condition,
    });
    assert_eq!(crew.running.len(), 20);
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_job_that_moves_to_another_queue_takes_what_waits_along() {
    let mut crew = crew();
    crew.queue(queue(json!({"concurrency": 1})));
    crew.queue(json!({"kind": "Queue", "name": "other", "concurrency": 2}));
    let made = crew.trigger_many("a", "{}", 300);
    assert_eq!(crew.running.len(), 1);
    crew.put(with("a", json!({"queue": "other"})));
    assert_eq!(crew.running.len(), 2, "the one that runs counts there");
    let b = crew.trigger("b", "{}");
    assert!(crew.runs_now().contains(&b), "and here no more");
    crew.end(b, AttemptOutcome::Succeeded);
    assert_eq!(crew.running.len(), 2);
    assert_eq!(crew.drain(), made);
    crew.is_empty();
}

#[test]
fn a_line_without_workers_takes_no_place_from_one_that_has() {
    let mut crew = crew();
    let mut missing = with("a", json!({"queue": "q", "priority": 9}));
    missing["task"]["handler"]["name"] = "missing".into();
    crew.put(missing);
    crew.queue(queue(
        json!({"concurrency": 2, "rate": "1000/1s", "burst": 1000}),
    ));
    crew.trigger_many("a", "{}", 10);
    let b = crew.trigger_many("b", "{}", 4);
    assert_eq!(crew.runs_now(), b[..2]);
    crew.end_first();
    assert_eq!(crew.runs_now(), b[1..3]);
}

/// More of one queue than memory holds, which no worker takes; what one would take lies behind it in the store.
#[test]
fn what_no_worker_takes_fills_memory_and_holds_nobody_up() {
    let mut crew = crew();
    let mut missing = with("a", json!({"queue": "q"}));
    missing["task"]["handler"]["name"] = "missing".into();
    crew.put(missing);
    crew.queue(queue(json!({"key": "/c", "per_key": 1})));
    for key in 0..1_500 {
        crew.trigger("a", &format!(r#"{{"c": {key}}}"#));
    }
    assert_eq!(crew.running.len(), 0);
    let runs = crew.trigger_many("b", r#"{"c": "other"}"#, 2);
    crew.pass(2_000);
    assert_eq!(crew.runs_now(), runs[..1]);
    assert_eq!(crew.end_first(), runs[0]);
    crew.pass(2_000);
    assert_eq!(crew.runs_now(), runs[1..]);
    let resident = crew.world.engine.resident_runs().len();
    assert!(resident <= 256 + 2, "{resident} runs are in memory");
    let gates = crew.world.engine.gates.len();
    assert!(gates <= 256 + 4, "{gates} gates are in memory");
}

#[test]
fn the_urgent_go_first_when_a_place_is_free() {
    let mut crew = crew();
    crew.put(with("urgent", json!({"queue": "q", "priority": 9})));
    crew.queue(queue(json!({"concurrency": 1})));
    let a = crew.trigger_many("a", "{}", 3);
    let urgent = crew.trigger_many("urgent", "{}", 2);
    assert_eq!(crew.drain(), [a[0], urgent[0], urgent[1], a[1], a[2]]);
}

#[test]
fn edits_of_a_queue_are_compared_and_recorded() {
    let mut world = World::new();
    let spec = |more| serde_json::from_value::<QueueSpec>(queue(more)).expect("a queue");
    let mut put = |more, condition| {
        world.command(Command::PutQueue {
            spec: spec(more),
            condition,
        })
    };
    let made = put(json!({"concurrency": 1}), Condition::Absent);
    assert!(matches!(made, Ok(Reply::Queue { created: true, .. })));
    let again = put(json!({"concurrency": 1}), Condition::Revision(1));
    assert!(matches!(&again, Ok(Reply::Queue { row, created: false }) if row.revision == 1));
    let there = put(json!({}), Condition::Absent);
    assert_eq!(there.unwrap_err(), Refusal::QueueThere(queue_ref("q")));
    let edited = put(json!({"concurrency": 2}), Condition::Revision(1));
    assert!(matches!(&edited, Ok(Reply::Queue { row, .. }) if row.revision == 2));
    let stale = put(json!({}), Condition::Revision(1));
    assert!(matches!(stale, Err(Refusal::StaleQueue { current: 2, .. })));
    let wrong = put(json!({"rate": "x"}), Condition::Any);
    assert!(matches!(wrong, Err(Refusal::Invalid(fault)) if fault.field == "rate"));
    let delete = |condition| Command::DeleteQueue {
        queue: queue_ref("q"),
        condition,
    };
    assert!(world.command(delete(Condition::Revision(7))).is_err());
    assert!(matches!(
        world.command(delete(Condition::Revision(2))),
        Ok(Reply::Deleted)
    ));
    assert!(matches!(
        world.command(delete(Condition::Any)),
        Err(Refusal::NoSuchQueue(_))
    ));
    let spec = spec(json!({}));
    let condition = Condition::Any;
    let anew = world.command(Command::PutQueue { spec, condition });
    assert!(matches!(&anew, Ok(Reply::Queue { row, created: true }) if row.revision == 4));
    let deeds: Vec<AuditAction> = world.tables.audit.values().map(|it| it.action).collect();
    use AuditAction::{Changed, Created, Deleted};
    assert_eq!(deeds, [Created, Changed, Deleted, Created]);
}

/// "A job that moves to another queue takes its waiting runs along."
#[test]
fn runs_that_are_parked_leave_a_paused_queue_with_their_job() {
    for queue in [json!({"queue": "other"}), json!({})] {
        let mut crew = Crew::of(World::with_window(64));
        crew.queue(json!({"kind": "Queue", "name": "q", "concurrency": 1}));
        crew.put(with("a", json!({"queue": "q"})));
        crew.command(Command::PauseQueue {
            queue: queue_ref("q"),
            condition: Condition::Any,
        });
        let made = crew.trigger_many("a", "{}", 10);
        assert_eq!(crew.running.len(), 0);
        crew.put(with("a", queue));
        crew.pass(5_000);
        assert_eq!(crew.running.len(), made.len(), "all went along");
    }
}

/// The server dies after the move, before it has looked through what is parked under the queue that is paused.
#[test]
fn a_restart_leaves_no_run_behind_in_a_paused_queue_that_its_job_has_left() {
    let mut crew = Crew::of(World::with_window(64));
    crew.queue(json!({"kind": "Queue", "name": "q", "concurrency": 1}));
    crew.put(with("a", json!({"queue": "q"})));
    crew.command(Command::PauseQueue {
        queue: queue_ref("q"),
        condition: Condition::Any,
    });
    let made = crew.trigger_many("a", "{}", 10);
    crew.world.lag = 1_000;
    crew.put(with("a", json!({"queue": "other"})));
    assert!(crew.running.len() < made.len(), "the others are parked");
    crew.world.lag = 0;
    crew.world.restart();
    crew.dial();
    crew.pass(5_000);
    assert_eq!(crew.running.len(), made.len(), "all went along");
}

/// The same with a queue that lets nothing through for as long as what holds it runs, or its rate says.
#[test]
fn a_restart_leaves_no_run_behind_in_a_full_queue_that_its_job_has_left() {
    for limits in [json!({"concurrency": 1}), json!({"rate": "1/1h"})] {
        let mut queue = json!({"kind": "Queue", "name": "q"});
        queue
            .as_object_mut()
            .unwrap()
            .extend(limits.as_object().unwrap().clone());
        let mut crew = Crew::of(World::with_window(64));
        crew.queue(queue);
        crew.put(with("holder", json!({"queue": "q"})));
        crew.put(with("a", json!({"queue": "q"})));
        crew.trigger_many("holder", "{}", 1);
        let made = crew.trigger_many("a", "{}", 10);
        assert_eq!(crew.running.len(), 1, "the queue lets no more through");
        crew.world.lag = 1_000;
        crew.put(with("a", json!({"queue": "other"})));
        assert!(crew.running.len() <= made.len(), "the others are parked");
        crew.world.lag = 0;
        crew.world.restart();
        crew.dial();
        crew.pass(5_000);
        let others = crew.world.tables.active.values();
        let left = others.filter(|run| run.parked.is_some()).count();
        assert_eq!(left, 0, "all went along");
    }
}

/// A queue that is paused is not the job's failure.
#[test]
fn what_a_paused_queue_held_back_says_so_and_does_not_open_the_breaker() {
    let mut crew = Crew::of(World::with_window(1_000));
    crew.queue(json!({"kind": "Queue", "name": "q"}));
    let job = crew.put(once(with(
        "a",
        json!({"queue": "q", "start_timeout": "2s", "breaker": {"failures": 2}}),
    )));
    crew.command(Command::PauseQueue {
        queue: queue_ref("q"),
        condition: Condition::Any,
    });
    let made = crew.trigger_many("a", "{}", 3);
    crew.pass(5_000);
    let error = crew.world.tables.history[&made[0]].error.clone();
    let error = error.expect("words");
    let open = crew.world.tables.breakers.get(&job);
    let open = open.is_some_and(|row| row.open.is_some());
    assert!(
        error.contains("paused") && !open,
        "{error}; breaker open: {open}"
    );
}

/// Who looks at a line sees how long the oldest has waited, also behind a gate, and what no worker could take.
#[test]
fn what_waits_behind_a_gate_has_an_age_and_is_not_said_to_wait_for_a_worker() {
    let mut crew = crew();
    crew.queue(queue(json!({"concurrency": 2})));
    let made = crew.trigger_many("a", "{}", 7);
    assert_eq!(crew.running.len(), 2);
    let told = |crew: &Crew| {
        let figures = crew.world.engine.figures(crew.world.now);
        let line = figures.lines[0].clone();
        assert_eq!(figures.held, line.held);
        (line.waiting, line.held, line.parked, line.oldest)
    };
    // Memory holds two of them, the store three.
    let oldest = Some(made[2].created());
    assert_eq!(told(&crew), (2, 2, true, oldest));
    let view = &crew.world.engine.queues()[0];
    assert_eq!((view.waiting, view.held, view.oldest), (2, 2, oldest));
    // Room in the queue and nobody who serves them: they wait for a worker, also those whose turn it is not.
    crew.queue(queue(json!({"concurrency": 50})));
    assert_eq!(crew.running.len(), 7);
    for (name, more) in [
        ("b", json!({"queue": "q"})),
        ("c", json!({"queue": "q", "limits": {"concurrency": 9}})),
    ] {
        let mut missing = with(name, more);
        missing["task"]["handler"]["name"] = "missing".into();
        crew.put(missing);
        crew.trigger_many(name, "{}", 3);
    }
    let figures = crew.world.engine.figures(crew.world.now);
    let waiting: u64 = figures.waiting.iter().sum();
    assert_eq!((waiting, figures.held), (6, 0));
    let view = &crew.world.engine.queues()[0];
    assert_eq!((view.waiting, view.held), (6, 0));
}
