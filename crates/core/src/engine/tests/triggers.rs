//! Commands: triggers, idempotency, cancels, edits.

use super::super::*;
use super::world::*;
use crate::change::RunChange;
use crate::model::*;

#[test]
fn a_triggered_run_is_created_and_assigned_in_one_batch() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
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
    let command = Command::TriggerRuns {
        triggers: vec![trigger],
    };
    world.step(Input::Command {
        ticket: Ticket(99),
        actor: Actor::new("tester"),
        command,
    });
    let batch = world.engine.take_batch(world.now).expect("a batch");
    let changes = batch.changes.expect("rows");
    let [RunChange::Insert(run)] = changes.runs.values().collect::<Vec<_>>()[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(run.state, RunState::Scheduled);
    assert_eq!(run.attempts[0].number, 1);
    assert_eq!(assignments(&batch.effects).len(), 1);
    assert!(batch.effects.iter().any(|effect| matches!(
        effect,
        Effect::Reply {
            ticket: Ticket(99),
            ..
        }
    )));
}

#[test]
fn a_key_makes_one_run_also_after_a_restart_and_refuses_another_body() {
    let mut world = World::new();
    world.put(noop("a"));
    let first = world.trigger("a", Some("1"), Some("k")).expect("made");
    let again = world.trigger("a", Some("1"), Some("k")).expect("repeated");
    assert_eq!((again.run, again.repeated), (first.run, true));
    world.restart();
    let again = world.trigger("a", Some("1"), Some("k")).expect("repeated");
    assert_eq!((again.run, again.repeated), (first.run, true));
    assert_eq!(
        world.trigger("a", Some("2"), Some("k")),
        Err(Refusal::KeyReused("k".into()))
    );
    assert_eq!(world.tables.active.len(), 1);
    world.check_conservation();
}

#[test]
fn two_triggers_with_one_key_in_one_batch_make_one_run() {
    let mut world = World::new();
    world.put(noop("a"));
    let trigger = || Trigger {
        job: job_ref("a"),
        params: None,
        idempotency_key: Some("k".into()),
        request: None,
        when: None,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    let Ok(Reply::Triggered(results)) = world.command(Command::TriggerRuns {
        triggers: vec![trigger(), trigger()],
    }) else {
        panic!("refused");
    };
    assert_eq!(
        results[0].clone().expect("made").run,
        results[1].clone().expect("repeated").run
    );
    assert_eq!(world.tables.active.len(), 1);
}

#[test]
fn a_request_that_a_server_sends_twice_makes_one_run_and_is_not_told_as_repeated() {
    let mut world = World::new();
    world.put(noop("a"));
    let mut send = |number: u128, key: Option<&str>| {
        let trigger = Trigger {
            request: Some(RequestId(number)),
            idempotency_key: key.map(str::to_owned),
            ..Trigger::of(job_ref("a"))
        };
        let triggers = vec![trigger];
        match world.command(Command::TriggerRuns { triggers }) {
            Ok(Reply::Triggered(mut results)) => results.remove(0).expect("made"),
            other => panic!("{other:?}"),
        }
    };
    let first = send(0, None);
    assert_eq!(send(0, None), first);
    assert!(!first.repeated, "its caller knows of one request");
    assert_ne!(send(1, None).run, first.run, "another request");
    // The caller's own key goes before, and is never taken for what servers call a request.
    let keyed = send(0, Some("00000000000000000000000000000000"));
    assert_ne!(keyed.run, first.run);
    assert!(send(2, Some("00000000000000000000000000000000")).repeated);
    assert_eq!(world.tables.active.len(), 3);
    assert_eq!(world.tables.active[&first.run].idempotency_key, None);
    world.check_conservation();
}

#[test]
fn an_unknown_job_is_refused_by_name() {
    let mut world = World::new();
    assert_eq!(
        world.trigger("missing", None, None),
        Err(Refusal::NoSuchJob(job_ref("missing")))
    );
}

#[test]
fn a_repeated_result_changes_nothing_and_is_acknowledged() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let fence = world.tables.active[&run].attempts[0].fence;
    let attempt = AttemptRef {
        run,
        attempt: 1,
        fence,
    };
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    assert_eq!(world.tables.history[&run].state, RunState::Completed);
    let before = world.tables.history[&run].clone();
    let effects = world.finish(1, attempt, AttemptOutcome::Failed);
    assert!(effects.iter().any(|effect| matches!(
        effect,
        Effect::Send {
            message: ToWorker::FinishAck { .. },
            ..
        }
    )));
    assert_eq!(world.tables.history[&run], before);
    world.check_conservation();
}

#[test]
fn a_result_under_another_fence_is_not_taken() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let fence = world.tables.active[&run].attempts[0].fence;
    let stale = AttemptRef {
        run,
        attempt: 1,
        fence: Fence(fence.0 - 1),
    };
    world.finish(1, stale, AttemptOutcome::Succeeded);
    assert!(world.tables.active.contains_key(&run));
}

#[test]
fn a_waiting_run_is_cancelled_at_once_and_never_assigned() {
    let mut world = World::new();
    world.put(noop("a"));
    let run = world.trigger("a", None, None).expect("made").run;
    world
        .command(Command::CancelRun { run, scope: None })
        .expect("cancelled");
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
    assert!(assignments(&world.worker(7, 1, 4, vec![], 1)).is_empty());
    world.check_conservation();
}

#[test]
fn a_leased_run_is_cancelled_when_its_worker_confirms() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    world
        .command(Command::CancelRun { run, scope: None })
        .expect("asked");
    assert_eq!(world.tables.active[&run].state, RunState::Scheduled);
    assert!(
        world.tables.active[&run].cancel.is_some(),
        "the request is durable"
    );
    let fence = world.tables.active[&run].attempts[0].fence;
    world.finish(
        1,
        AttemptRef {
            run,
            attempt: 1,
            fence,
        },
        AttemptOutcome::Cancelled,
    );
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
}

#[test]
fn a_cancel_from_another_namespace_finds_nothing() {
    let mut world = World::new();
    world.put(noop("a"));
    let run = world.trigger("a", None, None).expect("made").run;
    let scope = Some(NamespaceName::new("other").expect("a name"));
    assert!(matches!(
        world.command(Command::CancelRun { run, scope }),
        Err(Refusal::NoSuchRun(_))
    ));
    assert_eq!(world.tables.active[&run].state, RunState::Pending);
}

#[test]
fn cancelling_what_has_ended_returns_how_it_ended() {
    let mut world = World::new();
    world.put(noop("a"));
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
        AttemptOutcome::Succeeded,
    );
    let Ok(Reply::Run(answer)) = world.command(Command::CancelRun { run, scope: None }) else {
        panic!("refused")
    };
    assert_eq!(answer.state, RunState::Completed);
}

#[test]
fn a_stale_edit_is_refused_and_a_repeated_definition_changes_nothing() {
    let mut world = World::new();
    let id = world.put(noop("a"));
    world.put(noop("a"));
    assert_eq!(world.tables.jobs[&id].revision, 1);
    let mut changed = noop("a");
    changed["weight"] = 2.into();
    assert_eq!(world.put(changed.clone()), id);
    assert_eq!(
        (
            world.tables.jobs[&id].version,
            world.tables.jobs[&id].revision
        ),
        (2, 2)
    );
    let spec: JobSpec = serde_json::from_value(noop("a")).expect("valid");
    let stale = world.command(Command::PutJob {
        spec: Box::new(spec),
        condition: Condition::Revision(1),
    });
    assert!(matches!(
        stale,
        Err(Refusal::Stale {
            given: 1,
            current: 2
        })
    ));
}

#[test]
fn a_deleted_name_is_free_and_its_next_job_has_another_id() {
    let mut world = World::new();
    let first = world.put(noop("a"));
    let run = world.trigger("a", None, None).expect("made").run;
    world
        .command(Command::DeleteJob {
            job: job_ref("a"),
            condition: Condition::Any,
        })
        .expect("deleted");
    assert_eq!(
        world.trigger("a", None, None),
        Err(Refusal::NoSuchJob(job_ref("a")))
    );
    let second = world.put(noop("a"));
    assert_ne!(first, second);
    assert_eq!(
        assignments(&world.worker(7, 1, 4, vec![], 1))[0].1.run,
        run,
        "its run goes on"
    );
}

#[test]
fn a_run_made_and_cancelled_in_one_batch_never_was_active() {
    let mut world = World::new();
    world.put(noop("a"));
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
    let actor = Actor::new("tester");
    let command = Command::TriggerRuns {
        triggers: vec![trigger],
    };
    world.step(Input::Command {
        ticket: Ticket(50),
        actor: actor.clone(),
        command,
    });
    let run = *world.engine.resident_runs().first().expect("made");
    let command = Command::CancelRun { run, scope: None };
    world.step(Input::Command {
        ticket: Ticket(51),
        actor,
        command,
    });
    world.commit();
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
    world.check_conservation();
}

#[test]
fn a_load_that_began_before_a_run_ended_does_not_revive_it() {
    let mut world = World::with_window(20_000);
    world.put(noop("a"));
    for _ in 0..21 {
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
        world
            .command(Command::TriggerRuns {
                triggers: vec![trigger; 1000],
            })
            .expect("made");
    }
    let run = world
        .tables
        .active
        .values()
        .find(|run| run.parked.is_some())
        .expect("parked")
        .id;
    let command = || Command::CancelRun { run, scope: None };
    let input = Input::Command {
        ticket: Ticket(60),
        actor: Actor::new("slow"),
        command: command(),
    };
    let Step::Need { request, .. } = world.engine.step(world.now, input) else {
        panic!("it was resident")
    };
    let late = world.tables.load(request);
    world
        .command(command())
        .expect("cancelled by a faster caller");
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
    world.step(Input::Loaded(late));
    assert!(
        !world.engine.resident_runs().contains(&run),
        "a row from before the end was taken"
    );
}
