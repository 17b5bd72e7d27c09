//! Leases: what is concluded from a worker's silence, its return and its words.

use super::super::*;
use super::world::*;
use crate::lease::Terms;
use crate::model::*;

fn one_assigned() -> (World, AttemptRef) {
    let mut world = World::new();
    world.put(once(noop("a")));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let fence = world.tables.active[&run].attempts[0].fence;
    (
        world,
        AttemptRef {
            run,
            attempt: 1,
            fence,
        },
    )
}

#[test]
fn a_renewal_is_the_effect_of_a_commit_even_when_no_row_changes() {
    let (mut world, attempt) = one_assigned();
    world.pass(3_000);
    world.beat(1, 2, 1, vec![attempt]);
    let batch = world.engine.take_batch(world.now).expect("a batch");
    assert!(
        batch.changes.is_some(),
        "a server that cannot commit must not renew"
    );
    assert!(matches!(
        batch.effects[..],
        [Effect::Send {
            message: ToWorker::Renew { beat: 2, .. },
            ..
        }]
    ));
}

#[test]
fn a_silent_worker_loses_its_runs_only_when_it_must_have_stopped() {
    let (mut world, attempt) = one_assigned();
    let terms = Terms::default();
    world.event(1, WorkerEvent::Disconnected);
    world.pass(terms.lease_ms + terms.margin_ms() - 1);
    world.commit();
    assert!(
        world.tables.active.contains_key(&attempt.run),
        "its lease may still run"
    );
    world.pass(1);
    world.commit();
    let run = &world.tables.history[&attempt.run];
    assert_eq!(run.state, RunState::Failed);
    assert_eq!(
        run.transitions.last().map(|last| last.reason),
        Some(Reason::WorkerLost)
    );
    world.check_conservation();
}

#[test]
fn a_new_owner_waits_a_whole_term_from_its_take_over() {
    let (mut world, attempt) = one_assigned();
    let terms = Terms::default();
    world.pass(terms.lease_ms);
    world.restart();
    world.pass(terms.lease_ms + terms.margin_ms() - 1);
    world.commit();
    assert!(world.tables.active.contains_key(&attempt.run));
    world.pass(1);
    world.commit();
    assert_eq!(world.tables.history[&attempt.run].state, RunState::Failed);
}

#[test]
fn a_longer_lease_of_before_is_waited_for() {
    let long = Terms::default();
    let short = Terms {
        lease_ms: 5_000,
        heartbeat_ms: 1_000,
        ..long
    };
    let (mut world, attempt) = one_assigned();
    world.restart_granting(short);
    // It names the attempt, so it holds a lease of before; then nothing more is heard.
    world.worker(7, 2, 4, vec![attempt], 2);
    world.event(2, WorkerEvent::Disconnected);
    world.pass(long.over_at(MonoMs(0)).0 - 1);
    world.commit();
    assert!(
        world.tables.active.contains_key(&attempt.run),
        "its lease may still run"
    );
    world.pass(1);
    world.commit();
    assert!(world.tables.history.contains_key(&attempt.run));
}

#[test]
fn a_worker_that_returns_after_a_restart_keeps_what_it_names() {
    let (mut world, attempt) = one_assigned();
    world.restart();
    let effects = world.worker(7, 2, 4, vec![attempt], 5);
    assert!(assignments(&effects).is_empty(), "nothing runs twice");
    world.finish(2, attempt, AttemptOutcome::Succeeded);
    assert_eq!(
        world.tables.history[&attempt.run].state,
        RunState::Completed
    );
    assert_eq!(world.tables.history[&attempt.run].attempts.len(), 1);
}

#[test]
fn what_never_arrived_goes_back_in_line_under_a_higher_fence() {
    let (mut world, attempt) = one_assigned();
    world.event(1, WorkerEvent::Disconnected);
    let effects = world.worker(7, 2, 4, vec![], 5);
    let again = assignments(&effects);
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].1.run, again[0].1.attempt), (attempt.run, 2));
    assert!(again[0].1.fence > attempt.fence);
    world.finish(2, attempt, AttemptOutcome::Succeeded);
    assert!(
        world.tables.active.contains_key(&attempt.run),
        "the old attempt's word does not count"
    );
}

#[test]
fn what_may_be_on_its_way_is_not_concluded_from() {
    let (mut world, attempt) = one_assigned();
    world.beat(1, 2, 0, vec![]);
    world.commit();
    assert_eq!(world.tables.active[&attempt.run].attempts.len(), 1);
    assert!(
        world.tables.active[&attempt.run]
            .current_attempt()
            .is_some()
    );
}

#[test]
fn what_arrived_and_was_forgotten_is_lost() {
    let (mut world, attempt) = one_assigned();
    world.beat(1, 2, 1, vec![]);
    world.commit();
    assert_eq!(world.tables.history[&attempt.run].state, RunState::Failed);
}

#[test]
fn a_cancelled_run_whose_worker_is_lost_ends_cancelled() {
    let (mut world, attempt) = one_assigned();
    world
        .command(Command::CancelRun {
            run: attempt.run,
            scope: None,
        })
        .expect("asked");
    world.event(1, WorkerEvent::Disconnected);
    world.pass(60_000);
    world.commit();
    assert_eq!(
        world.tables.history[&attempt.run].state,
        RunState::Cancelled
    );
}

#[test]
fn a_worker_without_right_is_told_to_stop() {
    let (mut world, attempt) = one_assigned();
    world.event(2, WorkerEvent::Connected(hello(8, 1, 4)));
    world.beat(2, 1, 0, vec![attempt]);
    let stopped = |effect: &Effect| {
        matches!(
            effect,
            Effect::Send {
                stream: StreamId(2),
                message: ToWorker::Cancel { .. }
            }
        )
    };
    assert!(world.commit().iter().any(stopped));
    assert!(world.tables.active.contains_key(&attempt.run));
}

#[test]
fn an_older_stream_of_the_same_process_is_closed_and_not_heard() {
    let (mut world, attempt) = one_assigned();
    world.worker(7, 2, 4, vec![attempt], 2);
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    assert!(world.tables.active.contains_key(&attempt.run));
}

#[test]
fn a_drained_worker_gets_nothing_after_the_answer() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    world.event(
        1,
        WorkerEvent::Recalled {
            id: 3,
            stays: false,
        },
    );
    let effects = world.commit();
    assert!(effects.iter().any(|effect| {
        matches!(
            effect,
            Effect::Send {
                message: ToWorker::RecallAnswer { id: 3, consumed: 0 },
                ..
            }
        )
    }));
    world.trigger("a", None, None).expect("made");
    world.beat(1, 2, 0, vec![]);
    assert!(assignments(&world.commit()).is_empty());
    assert_eq!(
        world.engine.workers(world.now)[0].state,
        WorkerState::Maintenance
    );
}

#[test]
fn a_start_is_written_only_when_the_attempt_lasts() {
    let (mut world, attempt) = one_assigned();
    let at = world.now.wall;
    world.event(1, WorkerEvent::Started { attempt, at });
    world.pass(499);
    world.commit();
    assert_eq!(world.tables.active[&attempt.run].state, RunState::Scheduled);
    world.pass(1);
    world.commit();
    assert_eq!(world.tables.active[&attempt.run].state, RunState::Running);
}

#[test]
fn a_worker_that_was_given_up_is_told_to_dial_again() {
    let (mut world, attempt) = one_assigned();
    world.pass(60_000);
    let effects = world.commit();
    let closed = |effect: &Effect| {
        matches!(
            effect,
            Effect::Close {
                stream: StreamId(1),
                again: true,
                ..
            }
        )
    };
    assert!(
        effects.iter().any(closed),
        "else it would beat into the void for ever"
    );
    assert!(world.tables.history.contains_key(&attempt.run));
}

#[test]
fn a_worker_that_says_goodbye_is_gone_at_once() {
    let (mut world, attempt) = one_assigned();
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    world.event(1, WorkerEvent::Goodbye);
    world.commit();
    assert!(world.engine.workers(world.now).is_empty());
}

#[test]
fn a_worker_that_renews_keeps_its_runs_however_long_they_take() {
    let (mut world, attempt) = one_assigned();
    for number in 2..20 {
        world.pass(3_000);
        world.beat(1, number, 1, vec![attempt]);
        world.commit();
    }
    assert!(world.tables.active.contains_key(&attempt.run));
}

/// After a restart a process is known by its attempts alone: it comes back with the token it always had.
#[test]
fn a_worker_of_one_namespace_takes_its_attempts_up_again_after_a_restart() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["namespace"] = "billing".into();
    world.put(spec);
    let scope = |name: &str| Hello {
        namespace: Some(NamespaceName::new(name).expect("a name")),
        ..hello(1, 1, 4)
    };
    world.event(1, WorkerEvent::Connected(scope("billing")));
    world.beat(1, 1, 0, Vec::new());
    world.event(1, WorkerEvent::Granted { total: 4 });
    let trigger = Trigger::of(JobRef {
        namespace: NamespaceName::new("billing").expect("a name"),
        ..job_ref("a")
    });
    let triggers = vec![trigger];
    world
        .command(Command::TriggerRuns { triggers })
        .expect("made");
    world.restart();
    let is_closed = |effects: Vec<Effect>| {
        let closed = |effect: &Effect| matches!(effect, Effect::Close { .. });
        effects.iter().any(closed)
    };
    world.event(2, WorkerEvent::Connected(scope("other")));
    assert!(is_closed(world.commit()), "another's token");
    world.event(3, WorkerEvent::Connected(scope("billing")));
    assert!(!is_closed(world.commit()), "its own");
}
