//! Suspicion, loss and isolation: who is given work, and what is told.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::lease::Terms;
use crate::model::*;

fn state_of(world: &World, name: &str) -> WorkerState {
    let views = world.engine.workers(world.now);
    let view = views.iter().find(|view| view.name.as_str() == name);
    view.unwrap_or_else(|| panic!("{name} is not shown")).state
}

fn named(name: &str, process: u64, stream: u64) -> Hello {
    Hello {
        worker: WorkerName::new(name).expect("a name"),
        ..hello(process, stream, 4)
    }
}

/// A process of that name dials in, beats and grants; its beats go on from `beat`.
fn dial(world: &mut World, name: &str, process: u64, beat: u64) -> Vec<Effect> {
    world.event(
        process,
        WorkerEvent::Connected(named(name, process, process)),
    );
    world.beat(process, beat, 0, Vec::new());
    world.event(process, WorkerEvent::Granted { total: 4 });
    world.commit()
}

/// What a process has been given, which has the number of its stream.
fn held_by(world: &World, process: u64) -> Vec<AttemptRef> {
    let runs = world.tables.active.values();
    let held = runs.filter_map(|run| {
        let current = run.current_attempt()?;
        (current.process == ProcessId(process)).then_some(AttemptRef {
            run: run.id,
            attempt: current.number,
            fence: current.fence,
        })
    });
    held.collect()
}

/// Time passes in small steps, in which the given streams beat every other second.
fn live(world: &mut World, seconds: u64, streams: &[u64]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for second in 0..seconds * 10 {
        world.pass(100);
        if second % 20 == 0 {
            for stream in streams {
                let (number, held) = (world.now.mono.0, held_by(world, *stream));
                world.beat(*stream, number, 1_000, held);
            }
        }
        effects.extend(world.commit());
    }
    effects
}

/// `flaky` dials in and is lost, so many times.
fn lose(world: &mut World, times: u64, streams: &[u64]) {
    for turn in 0..times {
        let process = 100 + world.now.mono.0 + turn;
        dial(world, "flaky", process, 1);
        live(world, 20, streams);
    }
}

#[test]
fn a_silent_worker_is_suspected_and_gets_nothing_until_it_is_heard_again() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    assert_eq!(state_of(&world, "w7"), WorkerState::Online);
    world.pass(Terms::default().suspect_ms() - 1);
    world.commit();
    assert_eq!(state_of(&world, "w7"), WorkerState::Online);
    world.pass(1);
    world.trigger("a", None, None).expect("made");
    assert_eq!(state_of(&world, "w7"), WorkerState::Offline);
    let why = world.engine.workers(world.now)[0].why.clone();
    assert_eq!(why.as_deref(), Some("nothing was heard of it for 6s"));
    assert!(assignments(&world.commit()).is_empty());
    world.beat(1, 2, 0, vec![]);
    assert_eq!(assignments(&world.commit()).len(), 1, "heard again");
    assert_eq!(state_of(&world, "w7"), WorkerState::Online);
}

#[test]
fn a_broken_stream_is_suspicion_too_and_concludes_nothing() {
    let mut world = World::new();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    world.event(1, WorkerEvent::Disconnected);
    world.commit();
    assert_eq!(state_of(&world, "w7"), WorkerState::Offline);
    let why = world.engine.workers(world.now)[0].why.clone();
    assert_eq!(why.as_deref(), Some("its connection is broken"));
    assert!(world.tables.active[&run].current_attempt().is_some());
    world.event(2, WorkerEvent::Connected(hello(7, 2, 4)));
    world.event(2, WorkerEvent::Granted { total: 4 });
    world.trigger("a", None, None).expect("made");
    assert!(
        assignments(&world.commit()).is_empty(),
        "not heard on it yet"
    );
    let fence = world.tables.active[&run].attempts[0].fence;
    let attempt = 1;
    world.beat(
        2,
        2,
        0,
        vec![AttemptRef {
            run,
            attempt,
            fence,
        }],
    );
    assert_eq!(assignments(&world.commit()).len(), 1);
}

#[test]
fn one_that_is_lost_again_and_again_is_faulty_then_on_probation_then_trusted() {
    let mut world = World::new();
    world.put(noop("a"));
    dial(&mut world, "steady", 1, 1);
    lose(&mut world, 2, &[1]);
    assert_eq!(
        state_of(&world, "flaky"),
        WorkerState::Offline,
        "lost, and shown"
    );
    let told = {
        dial(&mut world, "flaky", 500, 1);
        live(&mut world, 20, &[1])
    };
    let alarm = |effect: &&Effect| matches!(effect, Effect::Alarm { .. });
    assert_eq!(told.iter().filter(alarm).count(), 1, "{told:?}");
    assert_eq!(state_of(&world, "flaky"), WorkerState::Faulty);
    dial(&mut world, "flaky", 501, 1);
    assert_eq!(
        state_of(&world, "flaky"),
        WorkerState::Faulty,
        "connected or not"
    );
    world.event(
        1,
        WorkerEvent::Recalled {
            id: 1,
            stays: false,
        },
    );
    world.commit();
    let view = |world: &World| {
        let views = world.engine.workers(world.now);
        views
            .into_iter()
            .find(|view| view.name.as_str() == "flaky")
            .expect("shown")
    };
    assert!(view(&world).faulty_until.expect("a time") > world.now.wall);
    world.event(1, WorkerEvent::Granted { total: 4 });
    live(&mut world, 1, &[1]);
    for _ in 0..4 {
        world.trigger("a", None, None).expect("made");
    }
    let runs = world.tables.active.values();
    assert!(
        runs.clone().count() == 4
            && runs.clone().all(|run| {
                run.attempts
                    .iter()
                    .all(|attempt| attempt.worker.as_str() == "steady")
            })
    );
    live(&mut world, 60, &[1, 501]);
    let given = |world: &World| {
        let attempts = world
            .tables
            .active
            .values()
            .chain(world.tables.history.values());
        let attempts = attempts.flat_map(|run| run.attempts.clone());
        attempts.filter(|it| it.process == ProcessId(501)).count()
    };
    assert!(view(&world).probation, "{:?}", view(&world));
    for _ in 0..6 {
        world.trigger("a", None, None).expect("made");
    }
    assert_eq!(given(&world), 1, "one run at a time");
    let run = world.tables.active.values().find(|run| {
        run.current_attempt()
            .is_some_and(|it| it.process == ProcessId(501))
    });
    let run = run.expect("it has one");
    let attempt = AttemptRef {
        run: run.id,
        attempt: run.attempts.len() as u32,
        fence: run.attempts.last().expect("one").fence,
    };
    world.finish(501, attempt, AttemptOutcome::Failed);
    world.event(501, WorkerEvent::Granted { total: 5 });
    world.commit();
    assert!(!view(&world).probation);
    assert!(given(&world) >= 3, "trusted with all: {}", given(&world));
}

#[test]
fn a_reset_trusts_at_once() {
    let mut world = World::new();
    dial(&mut world, "steady", 1, 1);
    lose(&mut world, 3, &[1]);
    assert_eq!(state_of(&world, "flaky"), WorkerState::Faulty);
    dial(&mut world, "flaky", 500, 1);
    let worker = WorkerRef {
        name: WorkerName::new("flaky").expect("a name"),
        namespace: None,
    };
    let reset = world.command(Command::ResetWorker {
        worker: worker.clone(),
    });
    assert!(matches!(reset, Ok(Reply::Reset { changed: true })));
    assert_eq!(state_of(&world, "flaky"), WorkerState::Online);
    let again = world.command(Command::ResetWorker { worker });
    assert!(matches!(again, Ok(Reply::Reset { changed: false })));
    let deeds = world.tables.audit.values();
    assert_eq!(
        deeds.filter(|it| it.action == AuditAction::Reset).count(),
        1
    );
    let nobody = WorkerRef {
        name: WorkerName::new("nobody").expect("a name"),
        namespace: None,
    };
    let unknown = world.command(Command::ResetWorker { worker: nobody });
    assert!(matches!(unknown, Err(Refusal::NoSuchWorker(_))));
}

#[test]
fn the_only_one_that_can_do_the_work_is_not_kept_from_it() {
    let mut world = World::new();
    world.put(noop("a"));
    lose(&mut world, 4, &[]);
    dial(&mut world, "flaky", 500, 1);
    world.trigger("a", None, None).expect("made");
    world.trigger("a", None, None).expect("made");
    let attempts = world.tables.active.values().map(|run| run.attempts.len());
    assert_eq!(attempts.sum::<usize>(), 1, "on probation");
}

#[test]
fn a_server_that_was_away_holds_nothing_against_anyone() {
    let mut world = World::new();
    dial(&mut world, "steady", 1, 1);
    for process in 2..8 {
        dial(&mut world, "flaky", process, 1);
        world.pass(30_000);
        world.commit();
    }
    dial(&mut world, "flaky", 9, 1);
    assert_eq!(state_of(&world, "flaky"), WorkerState::Online);
}

/// A worker of a namespace died three times while the server was away too: the store knows three processes by what they ran.
/// Whose tokens they had it does not know, so another worker of that name, bound to no namespace, must not pay for it.
#[test]
fn what_died_before_the_server_was_started_is_held_against_nobody() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["retry"] = json!({"max_lost": 50});
    world.put(spec);
    dial(&mut world, "steady", 1, 1);
    for process in 2..5 {
        let mut bound = named("twin", process, process);
        bound.namespace = Some(NamespaceName::new("default").expect("a name"));
        world.event(process, WorkerEvent::Connected(bound));
        world.beat(process, 1, 0, Vec::new());
        world.event(process, WorkerEvent::Granted { total: 4 });
        world.event(1, WorkerEvent::Disconnected);
        world.trigger("a", None, None).expect("made");
        world.commit();
        assert_eq!(held_by(&world, process).len(), 1, "process {process}");
        world.event(process, WorkerEvent::Disconnected);
        dial(&mut world, "steady", 1, 1 + process);
    }
    world.restart();
    live(&mut world, 20, &[]);
    let lost = world.engine.workers(world.now);
    assert!(lost.is_empty(), "{lost:?}");
    // Runs wait for it, and one heartbeat is enough.
    let given = dial(&mut world, "twin", 7, 1);
    assert_eq!(assignments(&given).len(), 3);
    assert_eq!(state_of(&world, "twin"), WorkerState::Online);
}

#[test]
fn what_a_worker_names_before_its_lease_is_over_is_its_own_and_after_that_is_not() {
    for (wait, kept) in [(15_000, true), (17_000, false)] {
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
        world.worker(8, 2, 4, vec![], 1);
        for second in 0..wait / 1_000 {
            world.pass(1_000);
            world.beat(2, 2 + second, 1_000, vec![]);
            world.commit();
        }
        world.event(3, WorkerEvent::Connected(hello(7, 3, 4)));
        world.beat(3, 2, 0, vec![attempt]);
        let effects = world.commit();
        let stopped = effects.iter().any(|effect| {
            matches!(
                effect,
                Effect::Send {
                    stream: StreamId(3),
                    message: ToWorker::Cancel { .. }
                }
            )
        });
        assert_eq!(stopped, !kept);
        let held = world.tables.active[&run]
            .current_attempt()
            .expect("one")
            .process;
        assert_eq!(held, ProcessId(if kept { 7 } else { 8 }));
    }
}

#[test]
fn a_cancel_while_suspected_reaches_the_worker_when_it_is_back() {
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
    world.event(1, WorkerEvent::Disconnected);
    world
        .command(Command::CancelRun { run, scope: None })
        .expect("asked");
    assert!(world.tables.active.contains_key(&run), "it keeps its place");
    world.event(2, WorkerEvent::Connected(hello(7, 2, 4)));
    world.beat(2, 2, 0, vec![attempt]);
    let told = world.commit().into_iter().any(|effect| {
        matches!(
            effect,
            Effect::Send {
                stream: StreamId(2),
                message: ToWorker::Cancel {
                    reason: "cancelled",
                    ..
                }
            }
        )
    });
    assert!(told);
    world.finish(2, attempt, AttemptOutcome::Cancelled);
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
}

/// The only worker that is large enough is not isolated because smaller ones are there.
#[test]
fn a_faulty_worker_that_alone_is_large_enough_is_on_probation_at_once() {
    let mut world = World::new();
    let mut heavy = noop("heavy");
    heavy["weight"] = 100.into();
    heavy["retry"] = json!({"max_lost": 50});
    world.put(heavy);
    world.trigger("heavy", None, None).expect("made");
    let small = |world: &mut World, beat: u64| {
        world.beat(900, beat, 0, vec![]);
    };
    world.worker(90, 900, 4, vec![], 1);
    let mut beat = 2;
    let mut given = 0;
    // The large one dies with its run, three times.
    for life in 1..=3 {
        let mut large = hello(life, life, 1_000);
        large.worker = WorkerName::new("large").expect("a name");
        world.event(life, WorkerEvent::Connected(large));
        for number in 1..=3 {
            world.beat(life, number, 0, vec![]);
            world.event(life, WorkerEvent::Granted { total: 1_000 });
            small(&mut world, beat);
            beat += 1;
            given += assignments(&world.tick_through(1_000, 100)).len();
        }
        world.event(life, WorkerEvent::Disconnected);
        for _ in 0..10 {
            small(&mut world, beat);
            beat += 1;
            world.tick_through(2_000, 100);
        }
    }
    assert_eq!(given, 3);
    let mut large = hello(4, 4, 1_000);
    large.worker = WorkerName::new("large").expect("a name");
    world.event(4, WorkerEvent::Connected(large));
    let mut again = 0;
    for number in 1..=10 {
        world.beat(4, number, 0, vec![]);
        world.event(4, WorkerEvent::Granted { total: 1_000 });
        small(&mut world, beat);
        beat += 1;
        again += assignments(&world.tick_through(1_000, 100)).len();
    }
    assert!(
        again > 0,
        "nobody can run it, and the one that could gets nothing"
    );
}
