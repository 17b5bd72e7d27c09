//! Limits of jobs and keys: never more leased than they say, nobody waits longer than they make them.

use serde_json::json;

use super::super::*;
use super::crew::*;
use super::world::*;
use crate::model::*;

fn crew(window: usize) -> Crew {
    Crew::of(World::with_window(window))
}

#[test]
fn a_job_runs_as_many_attempts_as_it_may_in_order() {
    let mut crew = crew(1_000);
    crew.put(with("a", json!({"limits": {"concurrency": 2}})));
    let made = crew.trigger_many("a", "{}", 5);
    assert_eq!(crew.runs_now(), made[..2]);
    crew.end_first();
    assert_eq!(crew.runs_now(), made[1..3]);
    assert_eq!(crew.drain(), made[1..]);
    crew.is_empty();
}

#[test]
fn keys_do_not_wait_for_each_other() {
    let mut crew = crew(1_000);
    crew.put(with(
        "a",
        json!({"limits": {"concurrency": 4, "key": "/c", "per_key": 1}}),
    ));
    let hot = crew.trigger_many("a", r#"{"c": "hot"}"#, 10);
    let other = crew.trigger("a", r#"{"c": "other"}"#);
    let none = crew.trigger_many("a", "{}", 2);
    assert_eq!(crew.runs_now(), [hot[0], other, none[0]]);
    crew.end(other, AttemptOutcome::Succeeded);
    assert_eq!(crew.runs_now(), [hot[0], none[0]]);
    crew.drain();
    crew.is_empty();
}

/// The promise of parking: ten times the window of one key, and others are given out at once.
#[test]
fn a_hot_key_with_ten_times_the_window_delays_nobody() {
    const WINDOW: usize = 1_000;
    let mut crew = crew(WINDOW);
    crew.put(with("hot", json!({"limits": {"key": "/c", "per_key": 2}})));
    crew.put(with("full", json!({"limits": {"concurrency": 1}})));
    crew.put(noop("plain"));
    let hot = crew.trigger_many("hot", r#"{"c": 1}"#, 10 * WINDOW);
    let full = crew.trigger_many("full", "{}", 10 * WINDOW);
    assert!(
        crew.world.engine.resident_runs().len() <= WINDOW,
        "memory is bounded"
    );
    for other in 2..50 {
        let run = crew.trigger("hot", &format!(r#"{{"c": {other}}}"#));
        assert_eq!(crew.world.tables.active[&run].state, RunState::Scheduled);
        crew.end(run, AttemptOutcome::Succeeded);
    }
    let plain = crew.trigger("plain", "{}");
    assert_eq!(crew.world.tables.active[&plain].state, RunState::Scheduled);
    crew.end(plain, AttemptOutcome::Succeeded);
    // Over a restart, too.
    crew.world.restart();
    crew.dial();
    let run = crew.trigger("hot", r#"{"c": "x"}"#);
    assert_eq!(crew.world.tables.active[&run].state, RunState::Scheduled);
    crew.end(run, AttemptOutcome::Succeeded);
    let order = crew.drain();
    let of = |job: &[RunId]| -> Vec<RunId> {
        let all = order.iter().copied();
        all.filter(|run| job.binary_search(run).is_ok()).collect()
    };
    assert_eq!(of(&hot), hot, "first come, first served");
    assert_eq!(of(&full), full, "first come, first served");
    crew.is_empty();
}

#[test]
fn many_keys_leave_nothing_behind() {
    let mut crew = crew(64);
    crew.put(with("a", json!({"limits": {"key": "/c", "per_key": 1}})));
    for key in 0..500 {
        crew.trigger("a", &format!(r#"{{"c": {key}}}"#));
        assert!(crew.world.engine.gates.len() <= 4);
        crew.drain();
    }
    crew.is_empty();
}

/// More keys at once than memory has room for: they are parked under the job, not each under its own key.
#[test]
fn a_backlog_of_many_keys_takes_bounded_memory() {
    let mut crew = crew(64);
    crew.put(with(
        "a",
        json!({"limits": {"concurrency": 1, "key": "/c", "per_key": 1}}),
    ));
    let made: Vec<RunId> = (0..600)
        .map(|key| crew.trigger("a", &format!(r#"{{"c": {key}}}"#)))
        .collect();
    assert!(
        crew.world.engine.gates.len() <= 70,
        "{}",
        crew.world.engine.gates.len()
    );
    assert!(crew.world.engine.resident_runs().len() <= 70);
    assert_eq!(crew.drain(), made);
    crew.is_empty();
}

#[test]
fn a_raised_limit_holds_at_once_and_a_lowered_one_kills_nothing() {
    let mut crew = crew(1_000);
    crew.put(with("a", json!({"limits": {"concurrency": 1}})));
    crew.trigger_many("a", "{}", 9);
    assert_eq!(crew.running.len(), 1);
    crew.put(with("a", json!({"limits": {"concurrency": 4}})));
    assert_eq!(crew.running.len(), 4);
    crew.put(with("a", json!({"limits": {"concurrency": 2}})));
    assert_eq!(crew.running.len(), 4);
    crew.end_first();
    crew.end_first();
    assert_eq!(crew.running.len(), 2, "none until there is room");
    crew.put(noop("a"));
    assert_eq!(crew.running.len(), 7, "without limits all go");
    // The limit comes while seven run.
    crew.put(with("a", json!({"limits": {"concurrency": 3}})));
    crew.trigger_many("a", "{}", 2);
    for left in (2..7).rev() {
        crew.end_first();
        assert_eq!(crew.running.len(), left.max(3));
    }
    crew.drain();
    crew.is_empty();
}

#[test]
fn runs_that_wait_follow_an_edit_of_the_key() {
    let mut crew = crew(1_000);
    crew.put(with("a", json!({"limits": {"key": "/c", "per_key": 1}})));
    let one = crew.trigger("a", r#"{"c": 1, "d": 1}"#);
    let two = crew.trigger("a", r#"{"c": 1, "d": 2}"#);
    let three = crew.trigger("a", r#"{"c": 2, "d": 2}"#);
    assert_eq!(crew.runs_now(), [one, three]);
    crew.put(with("a", json!({"limits": {"key": "/d", "per_key": 1}})));
    assert_eq!(crew.runs_now(), [one, three], "3 holds the place of d = 2");
    crew.end(three, AttemptOutcome::Succeeded);
    assert_eq!(crew.runs_now(), [one, two]);
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_server_that_starts_finds_the_places_taken() {
    let mut crew = crew(1_000);
    crew.put(with("a", json!({"limits": {"concurrency": 3}})));
    crew.trigger_many("a", "{}", 6);
    crew.world.restart();
    crew.settle();
    assert_eq!(crew.running.len(), 3);
    crew.dial();
    assert_eq!(crew.running.len(), 3);
    crew.put(with("a", json!({"limits": {"concurrency": 1}})));
    crew.world.restart();
    crew.dial();
    for left in [2, 1, 1, 1, 1, 0] {
        crew.end_first();
        assert_eq!(crew.running.len(), left);
    }
    crew.is_empty();
}

#[test]
fn a_cancelled_run_keeps_its_place_until_its_worker_confirms() {
    let mut crew = crew(1_000);
    crew.put(once(with("a", json!({"limits": {"concurrency": 1}}))));
    let made = crew.trigger_many("a", "{}", 3);
    let cancel = |run| Command::CancelRun { run, scope: None };
    crew.command(cancel(made[0]));
    crew.command(cancel(made[1]));
    assert_eq!(crew.runs_now(), [made[0]]);
    crew.end(made[0], AttemptOutcome::Cancelled);
    assert_eq!(
        crew.runs_now(),
        [made[2]],
        "the one that waited is cancelled"
    );
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_lost_worker_gives_its_places_back() {
    let mut crew = crew(1_000);
    crew.put(with(
        "a",
        json!({"limits": {"concurrency": 1}, "retry": {"max_lost": 1}}),
    ));
    let made = crew.trigger_many("a", "{}", 2);
    crew.running.clear();
    crew.world.tick_through(60_000, 1_000);
    crew.dial();
    assert_eq!(crew.runs_now(), [made[1]]);
    crew.drain();
    crew.is_empty();
}

#[test]
fn what_is_tried_again_takes_a_place_again() {
    let mut crew = crew(1_000);
    crew.put(with(
        "a",
        json!({
            "limits": {"concurrency": 1},
            "retry": {"initial": "0s", "priority": 9, "max_attempts": 2},
        }),
    ));
    let made = crew.trigger_many("a", "{}", 3);
    crew.end(made[0], AttemptOutcome::Failed);
    assert_eq!(crew.runs_now(), [made[0]], "at once, and first");
    crew.end(made[0], AttemptOutcome::Failed);
    assert_eq!(crew.runs_now(), [made[1]]);
    crew.put(with(
        "a",
        json!({
            "limits": {"concurrency": 1},
            "retry": {"initial": "5s", "max_attempts": 2},
        }),
    ));
    let late = crew.trigger("a", "{}");
    crew.end(made[1], AttemptOutcome::Succeeded);
    crew.end(made[2], AttemptOutcome::Succeeded);
    crew.end(late, AttemptOutcome::Failed);
    assert!(crew.runs_now().is_empty());
    let next = crew.trigger("a", "{}");
    assert_eq!(crew.runs_now(), [next], "nobody waits for one that waits");
    crew.pass(6_000);
    assert_eq!(crew.runs_now(), [next]);
    crew.end(next, AttemptOutcome::Succeeded);
    assert_eq!(crew.runs_now(), [late]);
    crew.drain();
    crew.is_empty();
}

#[test]
fn a_deleted_job_keeps_its_limits_to_the_end() {
    let mut crew = crew(64);
    crew.put(with("a", json!({"limits": {"concurrency": 2}})));
    let made = crew.trigger_many("a", "{}", 300);
    let condition = Condition::Any;
    crew.command(Command::DeleteJob {
        job: job_ref("a"),
        condition,
    });
    crew.world.restart();
    crew.dial();
    assert_eq!(crew.running.len(), 2);
    assert_eq!(crew.drain(), made);
    crew.is_empty();
}

/// Its time is over when it is about to be given out: the pen goes with its last run.
#[test]
fn a_run_that_is_too_late_leaves_its_pen() {
    let mut crew = crew(1_000);
    crew.put(once(with(
        "a",
        json!({"limits": {"concurrency": 1}, "start_timeout": "2s"}),
    )));
    let made = crew.trigger_many("a", "{}", 3);
    // There is room for the next in time, and nobody looks before its time is over.
    let first = crew.running.remove(0);
    crew.world.report(1, first, AttemptOutcome::Succeeded);
    crew.world.pass(5_000);
    let batch = crew.world.engine.take_batch(crew.world.now);
    let changes = batch.and_then(|batch| batch.changes).expect("changes");
    let seq = changes.seq;
    crew.world.tables.apply(changes);
    crew.world.engine.acknowledge(seq);
    crew.settle();
    for late in &made[1..] {
        let run = &crew.world.tables.history[late];
        assert_eq!(run.state, RunState::Failed, "{run:?}");
    }
    crew.is_empty();
}

/// Runs that wait for their turn keep doing so when the limits of their job are edited.
#[test]
fn an_edit_of_limits_does_not_promote_what_waits_for_its_turn() {
    let overlap = json!({"limit": 1, "on_full": "queue"});
    let mut crew = crew(1_000);
    crew.put(with(
        "a",
        json!({"overlap": overlap, "limits": {"concurrency": 5}}),
    ));
    let trigger = Trigger {
        overlap: Obedience::Obey,
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger; 3];
    crew.command(Command::TriggerRuns { triggers });
    let made: Vec<RunId> = crew.world.tables.active.keys().copied().collect();
    assert_eq!(crew.runs_now(), made[..1]);
    let cancel = Command::CancelRun {
        run: made[2],
        scope: None,
    };
    let step = crew.world.engine.step(
        crew.world.now,
        Input::Command {
            ticket: Ticket(7),
            actor: Actor::new("t"),
            command: cancel,
        },
    );
    let Step::Need { request, input } = step else {
        panic!("it is in the store only");
    };
    let loaded = crew.world.tables.load(request);
    crew.world.step(Input::Loaded(loaded));
    crew.put(with("a", json!({"overlap": overlap, "queue": "q"})));
    assert_eq!(crew.runs_now(), made[..1]);
    crew.world.step(*input);
    crew.settle();
    assert_eq!(crew.drain(), made[..2]);
    crew.is_empty();
}

/// A scan that began before some were parked does not find them: it is made again.
#[test]
fn what_is_parked_while_the_store_is_read_is_found() {
    for lag in 0..4 {
        let mut crew = crew(64);
        crew.world.lag = lag;
        crew.put(with(
            "a",
            json!({"limits": {"concurrency": 1, "key": "/c", "per_key": 1}}),
        ));
        let mut made = crew.trigger_many("a", r#"{"c": 1}"#, 12);
        for round in 0..40 {
            if !crew.running.is_empty() {
                crew.end_first();
            }
            made.push(crew.trigger("a", &format!(r#"{{"c": {}}}"#, round % 3)));
        }
        for _ in 0..200 {
            crew.settle();
            if !crew.running.is_empty() {
                crew.end_first();
            }
        }
        crew.is_empty();
        assert_eq!(crew.world.tables.history.len(), made.len());
    }
}

#[test]
fn what_a_run_waits_for_is_told() {
    let mut crew = crew(64);
    let job = crew.put(with(
        "a",
        json!({"limits": {"concurrency": 3, "key": "/c", "per_key": 1}}),
    ));
    let made = crew.trigger_many("a", r#"{"c": "eu"}"#, 200);
    let told = |crew: &Crew, run: RunId| {
        let run = &crew.world.tables.active[&run];
        crew.world.engine.hindrance(run)
    };
    assert_eq!(told(&crew, made[0]), None, "it runs");
    let of_key = Some(Hindrance {
        gate: GateKey::JobKey(job, std::sync::Arc::from("=eu")),
        what: Held::Full { held: 1, most: 1 },
    });
    assert_eq!(told(&crew, made[1]), of_key);
    assert!(crew.world.tables.active[&made[199]].parked.is_some());
    assert_eq!(told(&crew, made[199]), of_key);
}

/// Blocked keys of one job fill memory; a job of somebody else with room at its limit must go on.
#[test]
fn blocked_keys_of_one_job_do_not_hold_up_another_job_with_limits() {
    let mut crew = Crew::of(World::with_window(256));
    crew.put(with("a", json!({"limits": {"key": "/c", "per_key": 1}})));
    crew.put(with("b", json!({"limits": {"concurrency": 5}})));
    for key in 0..600 {
        crew.trigger_many("a", &format!(r#"{{"c": {key}}}"#), 3);
    }
    let run = crew.trigger("b", "{}");
    crew.pass(5_000);
    assert_eq!(crew.world.tables.active[&run].state, RunState::Scheduled);
}

/// The same within the job: a key that nothing runs of.
#[test]
fn blocked_keys_do_not_hold_up_a_key_that_is_free() {
    let mut crew = Crew::of(World::with_window(256));
    crew.put(with("a", json!({"limits": {"key": "/c", "per_key": 1}})));
    for key in 0..600 {
        crew.trigger_many("a", &format!(r#"{{"c": {key}}}"#), 3);
    }
    let run = crew.trigger("a", r#"{"c": "free"}"#);
    crew.pass(5_000);
    assert_eq!(crew.world.tables.active[&run].state, RunState::Scheduled);
}
