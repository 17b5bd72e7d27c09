//! What follows on an attempt that did not succeed.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::lease::Terms;
use crate::model::*;

/// A world with one job under this `retry`, one worker with room, and a run that it was given.
fn given(retry: serde_json::Value) -> (World, AttemptRef) {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["retry"] = retry;
    world.put(spec);
    world.worker(7, 1, 1_000, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = current(&world, run).expect("given");
    (world, attempt)
}

fn current(world: &World, run: RunId) -> Option<AttemptRef> {
    let attempt = world.tables.active.get(&run)?.current_attempt()?;
    Some(AttemptRef {
        run,
        attempt: attempt.number,
        fence: attempt.fence,
    })
}

/// Lets time pass while the worker beats, until the run is given to it again.
fn await_again(world: &mut World, run: RunId) -> AttemptRef {
    for beat in 100.. {
        if let Some(attempt) = current(world, run) {
            return attempt;
        }
        assert!(beat < 10_000, "it is never tried again");
        world.pass(1_000);
        world.beat(
            1,
            u64::try_from(world.now.wall.0).expect("after 1970"),
            0,
            vec![],
        );
        world.commit();
    }
    unreachable!()
}

fn waits_for(world: &World, run: RunId) -> i64 {
    let run = &world.tables.active[&run];
    assert_eq!(run.state, RunState::Pending);
    run.ready().since(world.now.wall)
}

fn reasons(run: &Run) -> Vec<Reason> {
    run.transitions.iter().map(|step| step.reason).collect()
}

#[test]
fn a_failed_run_is_tried_again_after_the_backoff_until_it_has_failed_three_times() {
    let (mut world, first) = given(json!({}));
    world.finish(1, first, AttemptOutcome::Failed);
    let wait = waits_for(&world, first.run);
    assert!((1_000..=1_500).contains(&wait), "{wait}");
    world.pass(wait.unsigned_abs() - 1);
    assert!(assignments(&world.commit()).is_empty(), "too early");
    world.pass(1);
    let again = assignments(&world.commit());
    let (_, second) = again[0];
    assert_eq!((second.run, second.attempt), (first.run, 2));
    assert!(second.fence > first.fence);
    world.finish(1, second, AttemptOutcome::TimedOut);
    let wait = waits_for(&world, first.run);
    assert!((2_000..=3_000).contains(&wait), "{wait}");
    let third = await_again(&mut world, first.run);
    world.finish(1, third, AttemptOutcome::Failed);
    let run = &world.tables.history[&first.run];
    assert_eq!((run.state, run.attempts.len()), (RunState::Failed, 3));
    assert_eq!(
        reasons(run),
        [
            Reason::Created,
            Reason::Assigned,
            Reason::Retry,
            Reason::Assigned,
            Reason::Retry,
            Reason::Assigned,
            Reason::TaskFailed
        ]
    );
    world.check_conservation();
}

#[test]
fn a_run_that_succeeds_in_the_end_is_completed() {
    let (mut world, first) = given(json!({"initial": "1s"}));
    world.report_with(1, first, |end| {
        end.result = Some(JsonText::parse("result", "1").expect("JSON"));
    });
    world.commit();
    assert_eq!(world.tables.active[&first.run].result, None);
    let second = await_again(&mut world, first.run);
    world.finish(1, second, AttemptOutcome::Succeeded);
    let run = &world.tables.history[&first.run];
    assert_eq!((run.state, &run.error), (RunState::Completed, &None));
}

#[test]
fn rules_and_verdicts_say_when_to_give_up_and_how_long_to_wait() {
    let rules = json!({"on": [{"exit_codes": [3], "action": "give_up"},
                              {"exit_codes": [4], "action": "retry", "after": "40s"}]});
    let end = |change: &dyn Fn(&mut Finished)| {
        let (mut world, attempt) = given(rules.clone());
        world.report_with(1, attempt, |end| change(end));
        world.commit();
        let waits = world.tables.active.get(&attempt.run);
        waits.map(|run| run.ready().since(world.now.wall))
    };
    assert_eq!(end(&|end| end.exit_code = Some(3)), None);
    assert_eq!(end(&|end| end.exit_code = Some(4)), Some(40_000));
    assert_eq!(end(&|end| end.verdict = Some(Verdict::GiveUp)), None);
    let again = Some(Verdict::RetryAfter(7_000));
    assert_eq!(end(&|end| end.verdict = again), Some(7_000));
    let over_the_rule = |end: &mut Finished| {
        (end.exit_code, end.verdict) = (Some(3), Some(Verdict::RetryAfter(5)));
    };
    assert_eq!(end(&over_the_rule), Some(5));
}

#[test]
fn a_run_that_is_put_off_has_not_failed() {
    let (mut world, mut attempt) = given(json!({"max_attempts": 1}));
    let snooze = |end: &mut Finished| {
        end.outcome = AttemptOutcome::Snoozed;
        end.verdict = Some(Verdict::Snooze(2_000));
    };
    for _ in 0..100 {
        world.report_with(1, attempt, snooze);
        world.commit();
        assert_eq!(waits_for(&world, attempt.run), 2_000);
        attempt = await_again(&mut world, attempt.run);
    }
    world.report_with(1, attempt, snooze);
    world.commit();
    let run = &world.tables.history[&attempt.run];
    assert_eq!(run.state, RunState::Failed);
    assert!(run.error.as_deref().unwrap_or_default().contains("100"));
}

#[test]
fn a_lost_run_goes_to_another_worker_at_once_and_losses_count_apart() {
    let (mut world, first) = given(json!({"max_attempts": 1, "max_lost": 3}));
    world.worker(8, 2, 100, vec![], 1);
    let holder = |world: &World| {
        let run = &world.tables.active[&first.run];
        run.attempts.last().map(|attempt| attempt.process.0)
    };
    assert_eq!(holder(&world), Some(7));
    // A worker that does not name what reached it has lost it.
    world.beat(1, 2, 1, vec![]);
    world.commit();
    assert_eq!(holder(&world), Some(8));
    world.beat(2, 2, 1, vec![]);
    world.commit();
    assert_eq!(holder(&world), Some(7));
    world.event(1, WorkerEvent::Disconnected);
    world.pass(Terms::default().over_at(MonoMs(0)).0);
    world.commit();
    let run = &world.tables.history[&first.run];
    let lost = run.ends_in(AttemptOutcome::is_loss);
    assert_eq!((run.state, lost), (RunState::Failed, 3));
    let words = run.error.as_deref().unwrap_or_default();
    assert!(words.starts_with("worker lost: "), "{words}");
}

#[test]
fn with_nobody_else_a_lost_run_goes_back_to_the_process_that_lost_it() {
    let (mut world, first) = given(json!({}));
    world.beat(1, 2, 1, vec![]);
    world.commit();
    let again = current(&world, first.run).expect("given at once");
    assert_eq!(again.attempt, 2);
    world.worker(8, 2, 100, vec![], 1);
    world.beat(1, 3, 2, vec![]);
    world.commit();
    let holder = world.tables.active[&first.run].attempts.last().cloned();
    assert_eq!(holder.map(|attempt| attempt.process), Some(ProcessId(8)));
}

/// Another worker refused it since: that does not make the one that lost it any better.
#[test]
fn a_refusal_does_not_bring_a_lost_run_back_to_the_process_that_lost_it() {
    let (mut world, first) = given(json!({"max_lost": 3}));
    world.worker(8, 2, 100, vec![], 1);
    world.beat(1, 2, 1, vec![]);
    world.commit();
    for turn in 3..9 {
        let attempt = current(&world, first.run).expect("given out");
        assert_eq!(attempt.attempt, turn - 1);
        let holder = world.tables.active[&first.run].attempts.last().cloned();
        assert_eq!(holder.map(|it| it.process), Some(ProcessId(8)), "{turn}");
        let reason = "it has no room".into();
        world.event(2, WorkerEvent::Refused { attempt, reason });
        world.commit();
        while current(&world, first.run).is_none() {
            world.pass(500);
            let number = world.now.mono.0;
            world.beat(1, number, 1, vec![]);
            world.beat(2, number, u64::from(turn) - 2, vec![]);
            world.commit();
        }
    }
}

#[test]
fn a_worker_that_refuses_what_it_started_has_lost_it() {
    let (mut world, first) = given(json!({}));
    let at = world.now.wall;
    world.event(1, WorkerEvent::Started { attempt: first, at });
    world.event(
        1,
        WorkerEvent::Refused {
            attempt: first,
            reason: "changed its mind".into(),
        },
    );
    world.commit();
    let run = &world.tables.active[&first.run];
    assert_eq!(run.ends_in(AttemptOutcome::is_loss), 1);
    assert_eq!(run.attempts.len(), 2);
}

#[test]
fn a_long_wait_is_spent_in_the_store_and_survives_a_restart() {
    for restart in [false, true] {
        let (mut world, first) = given(json!({"initial": "30m", "jitter": false}));
        world.finish(1, first, AttemptOutcome::Failed);
        let parked = world.tables.active[&first.run].parked.clone();
        assert!(parked.is_some_and(|key| key.starts_with("due/")));
        assert!(world.engine.resident_runs().is_empty());
        if restart {
            world.restart();
        }
        world.tick_through(1_799_000, 1_000);
        assert_eq!(world.tables.active[&first.run].attempts.len(), 1);
        world.pass(1_000);
        let effects = world.worker(9, 9, 1, vec![], 1);
        let (_, again) = assignments(&effects)[0];
        assert_eq!((again.run, again.attempt), (first.run, 2));
        assert!(again.fence > first.fence);
        world.finish(9, again, AttemptOutcome::Succeeded);
        let ended = &world.tables.history[&first.run];
        assert_eq!(ended.attempts.len(), 2);
        world.check_conservation();
    }
}

#[test]
fn a_read_from_before_a_run_was_parked_again_does_not_bring_it_back_as_it_was() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["retry"] = json!({"initial": "0s", "max_attempts": 2, "on":
        [{"exit_codes": [1], "action": "retry", "after": "200s"}]});
    world.put(spec);
    world
        .command(Command::TriggerRuns {
            triggers: vec![Trigger {
                when: Some(When::After(120_000)),
                ..Trigger::of(job_ref("a"))
            }],
        })
        .expect("made");
    let run = *world.tables.active.keys().next().expect("one");
    let stale = world.tables.active[&run].clone();
    assert!(stale.parked.is_some());
    world.tick_through(120_000, 1_000);
    world.worker(7, 1, 1, vec![], 1);
    let attempt = current(&world, run).expect("given");
    world.report_with(1, attempt, |end| end.exit_code = Some(1));
    let request = match world.engine.step(
        world.now,
        Input::Command {
            ticket: Ticket(99),
            actor: Actor::new("t"),
            command: Command::CancelRun { run, scope: None },
        },
    ) {
        Step::Need { request, .. } => request,
        Step::Done => panic!("the run left memory"),
    };
    let loaded = Loaded {
        id: request.id,
        rows: vec![LoadedRow::Run(run, Some(stale))],
    };
    world.step(Input::Loaded(loaded));
    assert!(world.engine.resident_runs().is_empty(), "it is not revived");
    world.commit();
    assert_eq!(world.tables.active[&run].attempts.len(), 1);
}

#[test]
fn a_run_that_waits_to_be_tried_again_can_be_cancelled() {
    for initial in ["10s", "1h"] {
        let (mut world, first) = given(json!({"initial": initial}));
        world.finish(1, first, AttemptOutcome::Failed);
        let command = Command::CancelRun {
            run: first.run,
            scope: None,
        };
        world.command(command).expect("cancelled");
        let run = &world.tables.history[&first.run];
        assert_eq!(run.state, RunState::Cancelled);
        world.tick_through(20_000, 1_000);
        world.check_conservation();
    }
}

#[test]
fn a_run_that_was_asked_to_stop_is_not_tried_again() {
    for (outcome, max_attempts, state) in [
        (AttemptOutcome::Failed, 3, RunState::Cancelled),
        (AttemptOutcome::Failed, 1, RunState::Failed),
        (AttemptOutcome::Lost, 3, RunState::Cancelled),
        (AttemptOutcome::Snoozed, 3, RunState::Cancelled),
        (AttemptOutcome::Succeeded, 3, RunState::Completed),
    ] {
        let (mut world, first) = given(json!({"max_attempts": max_attempts}));
        let command = Command::CancelRun {
            run: first.run,
            scope: None,
        };
        world.command(command).expect("asked");
        world.finish(1, first, outcome);
        assert_eq!(world.tables.history[&first.run].state, state, "{outcome:?}");
    }
}

#[test]
fn retries_have_their_own_priority() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["priority"] = json!(1);
    spec["retry"] = json!({"initial": "0s", "priority": 9});
    world.put(spec);
    world.put(noop("b"));
    world.worker(7, 1, 1, vec![], 1);
    let first = world.trigger("a", None, None).expect("made").run;
    let attempt = current(&world, first).expect("given");
    world.trigger("b", None, None).expect("made");
    world.trigger("b", None, None).expect("made");
    world.report_with(1, attempt, |_| {});
    world.event(1, WorkerEvent::Granted { total: 2 });
    let next = assignments(&world.commit());
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1.run, first, "before those that its job is behind");
    world.restart();
    world.check_conservation();
}

#[test]
fn a_run_that_is_tried_again_still_counts_as_live() {
    let mut world = World::new();
    let mut spec = every("a", "10s", "skip");
    spec["retry"] = json!({"initial": "25s", "jitter": false});
    let job = world.put(spec);
    world.worker(7, 1, 4, vec![], 1);
    world.pass(10_000);
    world.beat(1, 2, 0, vec![]);
    let (_, attempt) = assignments(&world.commit())[0];
    world.finish(1, attempt, AttemptOutcome::Failed);
    world.tick_through(20_000, 1_000);
    let runs = world
        .tables
        .active
        .values()
        .chain(world.tables.history.values());
    assert_eq!(runs.filter(|run| run.job == job).count(), 1);
}

/// The only worker still has the lost attempt in its hands, as a handler does that is slow to hear of it: it refuses the next
/// one until that has stopped. The run must outlive those seconds.
#[test]
fn a_worker_that_has_not_stopped_yet_does_not_use_a_run_up_at_once() {
    let mut world = World::new();
    world.put(noop("a"));
    let run = world.trigger("a", None, None).expect("made").run;
    let given = assignments(&world.worker(1, 1, 4, vec![], 1));
    assert_eq!(given.len(), 1);
    let lost = given[0].1;
    // The worker is frozen for longer than its lease, and then dials again.
    world.event(1, WorkerEvent::Disconnected);
    world.tick_through(20_000, 1_000);
    let mut effects = world.worker(1, 2, 4, vec![lost], 2);
    world.pass(3_000);
    world.beat(2, 3, 0, vec![lost]);
    effects.extend(world.commit());
    let began = world.now.mono;
    let mut granted = 4;
    for _ in 0..50 {
        let given = assignments(&effects);
        effects.clear();
        for (stream, attempt) in given {
            let reason = "attempt 1 of the run has not stopped yet".to_owned();
            world.event(stream, WorkerEvent::Refused { attempt, reason });
            granted += 1;
            world.event(stream, WorkerEvent::Granted { total: granted });
        }
        effects.extend(world.commit());
        world.pass(10);
    }
    let after = world.now.mono.0 - began.0;
    assert!(
        world.tables.active.contains_key(&run),
        "after {after} ms: {:?}",
        world.tables.history[&run].error
    );
}
