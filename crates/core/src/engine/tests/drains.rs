//! Workers that are drained: nothing new, a deadline, and back into service.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn workers(name: &str, namespace: Option<&str>) -> WorkerRef {
    WorkerRef {
        name: WorkerName::new(name).expect("a name"),
        namespace: namespace.map(|it| NamespaceName::new(it).expect("a name")),
    }
}

fn drain(world: &mut World, name: &str, deadline_ms: Option<u64>) -> DrainRow {
    let worker = workers(name, None);
    match world.command(Command::DrainWorker {
        worker,
        deadline_ms,
    }) {
        Ok(Reply::Drain(Some(row))) => *row,
        other => panic!("{other:?}"),
    }
}

fn resume(world: &mut World, name: &str) {
    let worker = workers(name, None);
    let reply = world.command(Command::ResumeWorker { worker });
    assert!(matches!(reply, Ok(Reply::Drain(None))), "{reply:?}");
}

fn stops(effects: &[Effect], stream: u64) -> Vec<RunId> {
    let stops = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            stream: on,
            message: ToWorker::Cancel { attempt, .. },
        } if on.0 == stream => Some(attempt.run),
        _ => None,
    });
    stops.collect()
}

fn held(world: &World, run: RunId) -> AttemptRef {
    let last = world.tables.active[&run]
        .attempts
        .last()
        .expect("an attempt");
    AttemptRef {
        run,
        attempt: last.number,
        fence: last.fence,
    }
}

#[test]
fn a_drained_worker_gets_nothing_and_what_it_runs_ends() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = held(&world, run);
    let row = drain(&mut world, "w7", None);
    assert_eq!((row.deadline, row.forced), (None, None));
    let waiting = world.trigger("a", None, None).expect("made").run;
    assert!(world.tables.active[&waiting].attempts.is_empty());
    let view = world.engine.workers(world.now).remove(0);
    assert_eq!(view.state, WorkerState::Maintenance);
    assert_eq!(
        view.why.as_deref(),
        Some("drained by tester: one run has to end")
    );
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    world.event(1, WorkerEvent::Granted { total: 5 });
    world.commit();
    assert_eq!(world.tables.history[&run].state, RunState::Completed);
    assert!(world.tables.active[&waiting].attempts.is_empty());
    resume(&mut world, "w7");
    assert_eq!(world.tables.active[&waiting].attempts.len(), 1);
    assert_eq!(
        world.engine.workers(world.now)[0].state,
        WorkerState::Online
    );
}

#[test]
fn neither_a_restart_of_the_server_nor_one_of_the_worker_ends_a_drain() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    drain(&mut world, "w7", None);
    world.restart();
    world.worker(7, 2, 4, vec![], 1);
    let other = Hello {
        process: ProcessId(77),
        ..hello(7, 1, 4)
    };
    world.event(3, WorkerEvent::Connected(other));
    world.beat(3, 1, 0, vec![]);
    world.event(3, WorkerEvent::Granted { total: 4 });
    let run = world.trigger("a", None, None).expect("made").run;
    assert!(world.tables.active[&run].attempts.is_empty());
    resume(&mut world, "w7");
    assert_eq!(world.tables.active[&run].attempts.len(), 1);
    assert!(world.tables.drains.is_empty());
}

#[test]
fn at_the_deadline_what_runs_is_stopped_and_moves_with_its_checkpoint() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = held(&world, run);
    let checkpoint = Checkpoint {
        number: 1,
        body: vec![7].into(),
    };
    world.event(
        1,
        WorkerEvent::Checkpoint {
            attempt,
            checkpoint,
        },
    );
    drain(&mut world, "w7", Some(60_000));
    world.worker(8, 2, 4, vec![], 1);
    for beat in 2..31 {
        world.pass(2_000);
        world.beat(1, beat, 1, vec![attempt]);
        world.beat(2, beat, 0, vec![]);
        let effects = world.commit();
        let expected = if beat == 31 { vec![run] } else { vec![] };
        assert_eq!(stops(&effects, 1), expected, "beat {beat}");
    }
    world.pass(2_000);
    assert_eq!(stops(&world.commit(), 1), vec![run]);
    assert!(world.tables.drains.values().all(|row| row.forced.is_some()));
    world.finish(1, attempt, AttemptOutcome::Cancelled);
    let moved = &world.tables.active[&run];
    let first = moved.attempts[0].end.as_ref().expect("an end");
    assert_eq!(first.outcome, AttemptOutcome::Cancelled);
    let row = world.tables.drains.values().next().expect("a drain");
    let told = row.forced.map(instant).expect("it was forced");
    let words = format!(
        "its worker was drained by {} at {}, and told at {told} to stop what it ran",
        row.actor,
        instant(row.since)
    );
    assert_eq!(first.error, Some(words));
    assert!(first.outcome.ends_with_worker() && !moved.has_failed());
    assert_eq!(
        moved.attempts.last().map(|it| it.process),
        Some(ProcessId(8))
    );
    assert_eq!(moved.checkpoint.map(|mark| mark.number), Some(1));
}

/// A planned stop is no loss: as many as there are deployments, within reason, and none for what must not be repeated.
#[test]
fn stops_do_not_count_as_losses_but_are_bounded() {
    for (max_lost, stops) in [(2, Limits::STOPS), (1, 1)] {
        let mut world = World::new();
        let mut spec = noop("a");
        spec["retry"] = json!({"max_attempts": 1, "max_lost": max_lost});
        world.put(spec);
        world.worker(7, 1, 4, vec![], 1);
        let run = world.trigger("a", None, None).expect("made").run;
        for n in 1..=stops {
            let attempt = held(&world, run);
            world.finish(1, attempt, AttemptOutcome::Cancelled);
            if n == stops {
                break;
            }
            assert!(world.tables.active.contains_key(&run), "stop {n}");
            let total = 4 + n as u64;
            world.event(1, WorkerEvent::Granted { total });
            let given = |world: &World| world.tables.active[&run].current_attempt().is_some();
            let mut beat = 100 * total;
            while !given(&world) {
                beat += 1;
                world.pass(2_000);
                world.beat(1, beat, 1_000_000, vec![]);
                world.commit();
            }
        }
        let ended = &world.tables.history[&run];
        assert_eq!(ended.state, RunState::Failed);
        assert_eq!(ended.attempts.len(), stops);
        assert_eq!(ended.ends_in(AttemptOutcome::is_loss), 0);
    }
}

#[test]
fn one_that_was_away_at_the_deadline_is_told_when_it_is_back() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = held(&world, run);
    drain(&mut world, "w7", Some(1_000));
    world.event(1, WorkerEvent::Disconnected);
    world.pass(1_000);
    assert!(stops(&world.commit(), 1).is_empty());
    world.restart();
    world.event(2, WorkerEvent::Connected(hello(7, 2, 4)));
    world.beat(2, 2, 0, vec![attempt]);
    assert_eq!(stops(&world.commit(), 2), vec![run]);
}

#[test]
fn a_repetition_changes_nothing_but_the_deadline() {
    let mut world = World::new();
    world.worker(7, 1, 4, vec![], 1);
    let first = drain(&mut world, "w7", Some(60_000));
    world.pass(1_000);
    assert_eq!(drain(&mut world, "w7", None), first);
    let moved = drain(&mut world, "w7", Some(5_000));
    assert_eq!(moved.deadline, Some(world.now.wall.plus(5_000)));
    assert_eq!((moved.since, moved.forced), (first.since, None));
    world.pass(5_000);
    world.commit();
    assert!(world.tables.drains[&workers("w7", None)].forced.is_some());
    let drained = |it: &&AuditEntry| it.action == AuditAction::Drained;
    assert_eq!(world.tables.audit.values().filter(drained).count(), 2);
    resume(&mut world, "w7");
    resume(&mut world, "w7");
    let resumed = |it: &&AuditEntry| it.action == AuditAction::Resumed;
    assert_eq!(world.tables.audit.values().filter(resumed).count(), 1);
}

#[test]
fn the_deadline_follows_the_wall_clock() {
    let mut world = World::new();
    world.worker(7, 1, 4, vec![], 1);
    drain(&mut world, "w7", Some(50_000));
    let forced = |world: &World| world.tables.drains.values().any(|row| row.forced.is_some());
    world.step_clock(-30_000);
    world.pass(50_000);
    world.commit();
    assert!(!forced(&world), "the clock went back");
    world.step_clock(30_000);
    world.commit();
    world.pass(1);
    world.commit();
    assert!(forced(&world));
}

#[test]
fn a_drain_of_a_namespace_is_of_its_own_workers_only() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let worker = workers("w7", Some("billing"));
    let command = Command::DrainWorker {
        worker: worker.clone(),
        deadline_ms: None,
    };
    world.command(command).expect("drained");
    let run = world.trigger("a", None, None).expect("made").run;
    assert_eq!(
        world.tables.active[&run].attempts.len(),
        1,
        "its token is bound to none"
    );
    resume(&mut world, "w7");
    assert!(
        world.tables.drains.is_empty(),
        "whoever may do all ends all"
    );
}

#[test]
fn who_is_not_there_can_be_drained_but_not_resumed_or_too_late() {
    let mut world = World::new();
    world.put(noop("a"));
    drain(&mut world, "w7", None);
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    assert!(world.tables.active[&run].attempts.is_empty());
    let worker = workers("nobody", None);
    let reply = world.command(Command::ResumeWorker {
        worker: worker.clone(),
    });
    assert!(matches!(reply, Err(Refusal::NoSuchWorker(_))));
    let deadline_ms = Some(Limits::DRAIN_MS + 1);
    let reply = world.command(Command::DrainWorker {
        worker,
        deadline_ms,
    });
    assert!(matches!(reply, Err(Refusal::Invalid(fault)) if fault.field == "deadline"));
}

#[test]
fn losing_a_drained_worker_is_not_held_against_it() {
    let mut world = World::new();
    drain(&mut world, "w7", None);
    for stream in 1..5 {
        let process = Hello {
            process: ProcessId(stream),
            ..hello(7, 1, 4)
        };
        world.event(stream, WorkerEvent::Connected(process));
        world.beat(stream, 1, 0, vec![]);
        world.tick_through(20_000, 100);
    }
    assert!(
        world.engine.workers(world.now).is_empty(),
        "lost, and forgotten"
    );
}
