//! Orders of events that once broke a rule, or would if the rule were loosened.

use super::super::*;
use super::world::*;
use crate::model::*;

fn many(count: usize) -> Command {
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
    Command::TriggerRuns {
        triggers: vec![trigger; count],
    }
}

fn by(ticket: u64, command: Command) -> Input {
    Input::Command {
        ticket: Ticket(ticket),
        actor: Actor::new("tester"),
        command,
    }
}

fn one_assigned(world: &mut World) -> AttemptRef {
    world.put(once(noop("a")));
    world.worker(7, 1, 1, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let fence = world.tables.active[&run].attempts[0].fence;
    AttemptRef {
        run,
        attempt: 1,
        fence,
    }
}

#[test]
fn a_cancel_that_reads_the_row_before_the_end_lands_does_not_revive_the_run() {
    let mut world = World::new();
    let attempt = one_assigned(&mut world);
    world.report(1, attempt, AttemptOutcome::Succeeded);
    let ending = world.engine.take_batch(world.now).expect("a batch");
    let cancel = Command::CancelRun {
        run: attempt.run,
        scope: None,
    };
    let Step::Need { request, input } = world.engine.step(world.now, by(900, cancel)) else {
        panic!("the run had left memory");
    };
    let before_the_end = world.tables.load(request);
    let changes = ending.changes.expect("rows");
    let seq = changes.seq;
    world.tables.apply(changes);
    world.engine.acknowledge(seq);
    world.step(Input::Loaded(before_the_end));
    assert!(world.engine.resident_runs().is_empty(), "revived");
    world.step(*input);
    let effects = world.commit();
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Reply {
            reply: Ok(Reply::Run(run)),
            ..
        } => Some(run.state),
        _ => None,
    });
    assert_eq!(
        told,
        Some(RunState::Completed),
        "the outcome that committed first stands"
    );
}

#[test]
fn two_cancels_of_a_waiting_run_in_one_batch_end_it_once() {
    let mut world = World::new();
    world.put(noop("a"));
    let run = world.trigger("a", None, None).expect("made").run;
    let cancel = || Command::CancelRun { run, scope: None };
    world.step(by(900, cancel()));
    world.step(by(901, cancel()));
    let effects = world.commit();
    let answers = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Reply { .. }));
    assert_eq!(answers.count(), 2);
    assert_eq!(world.tables.history[&run].state, RunState::Cancelled);
    world.check_conservation();
}

#[test]
fn runs_parked_in_the_batch_in_which_a_scan_begins_are_found_by_the_next() {
    let mut world = World::with_window(20_000);
    world.put(noop("a"));
    for _ in 0..21 {
        world.command(many(1000)).expect("made");
    }
    world.event(1, WorkerEvent::Connected(hello(7, 1, 1_000_000)));
    world.beat(1, 1, 0, vec![]);
    let above_the_low_mark = 14_900;
    world.event(
        1,
        WorkerEvent::Granted {
            total: above_the_low_mark,
        },
    );
    world.commit();
    world.step(by(900, many(7)));
    world.event(
        1,
        WorkerEvent::Granted {
            total: above_the_low_mark + 200,
        },
    );
    let batch = world.engine.take_batch(world.now).expect("a batch");
    let requests = world.engine.take_loads();
    assert!(!requests.is_empty(), "the line became short");
    let too_early: Vec<Loaded> = requests
        .into_iter()
        .map(|request| world.tables.load(request))
        .collect();
    let changes = batch.changes.expect("rows");
    let seq = changes.seq;
    world.tables.apply(changes);
    world.engine.acknowledge(seq);
    for loaded in too_early {
        world.step(Input::Loaded(loaded));
    }
    world.event(1, WorkerEvent::Granted { total: 1_000_000 });
    world.commit();
    let parked = world
        .tables
        .active
        .values()
        .filter(|run| run.parked.is_some());
    assert_eq!(parked.count(), 0, "never read back");
}

#[test]
fn a_long_line_does_not_starve_its_neighbour() {
    let mut world = World::new();
    world.put(noop("a"));
    let mut other = noop("b");
    other["namespace"] = "other".into();
    world.put(other);
    world.command(many(100)).expect("made");
    let namespace = NamespaceName::new("other").expect("a name");
    let name = JobName::new("b").expect("a name");
    let trigger = Trigger {
        job: JobRef {
            namespace: namespace.clone(),
            name,
        },
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
            triggers: vec![trigger],
        })
        .expect("made");
    let mut effects = world.worker(7, 1, 1, vec![], 1);
    for granted in 2..5 {
        let (_, attempt) = assignments(&effects)[0];
        if world.tables.active[&attempt.run].namespace == namespace {
            return;
        }
        world.finish(1, attempt, AttemptOutcome::Succeeded);
        world.event(1, WorkerEvent::Granted { total: granted });
        effects = world.commit();
    }
    panic!("one place, two lines, and the second was not served");
}

#[test]
fn a_stranger_has_no_say_in_an_attempt() {
    let mut world = World::new();
    let attempt = one_assigned(&mut world);
    world.event(2, WorkerEvent::Connected(hello(8, 1, 1)));
    world.event(
        2,
        WorkerEvent::Refused {
            attempt,
            reason: "mischief".into(),
        },
    );
    world.event(
        2,
        WorkerEvent::Started {
            attempt,
            at: WallMs(1),
        },
    );
    let effects = world.finish(2, attempt, AttemptOutcome::Succeeded);
    assert!(assignments(&effects).is_empty());
    let run = &world.tables.active[&attempt.run];
    assert_eq!((run.state, run.attempts.len()), (RunState::Scheduled, 1));
    assert_eq!(run.attempts[0].started, None);
}

#[test]
fn a_late_refusal_of_an_older_attempt_leaves_the_newer_one_tracked() {
    let mut world = World::new();
    let first = one_assigned(&mut world);
    world.event(1, WorkerEvent::Disconnected);
    let effects = world.worker(7, 2, 1, vec![], 2);
    let (_, second) = assignments(&effects)[0];
    world.event(
        2,
        WorkerEvent::Refused {
            attempt: first,
            reason: "late".into(),
        },
    );
    world.event(2, WorkerEvent::Disconnected);
    world.pass(60_000);
    world.commit();
    assert_eq!(second.attempt, 2);
    assert_eq!(
        world.tables.history[&first.run].state,
        RunState::Failed,
        "its loss was noticed"
    );
}

#[test]
fn an_old_hello_that_was_held_up_is_refused() {
    let mut world = World::new();
    let attempt = one_assigned(&mut world);
    world.worker(7, 3, 1, vec![attempt], 2);
    world.event(3, WorkerEvent::Disconnected);
    world.event(4, WorkerEvent::Connected(hello(7, 2, 1)));
    world.beat(4, 3, 0, vec![]);
    world.commit();
    assert_eq!(world.tables.active[&attempt.run].attempts.len(), 1);
}

#[test]
fn a_boastful_worker_does_not_break_placement() {
    let mut world = World::new();
    let mut spec = noop("a");
    spec["placement"] = "least_loaded".into();
    world.put(spec);
    for process in [7, 8] {
        world.event(process, WorkerEvent::Connected(hello(process, 1, 2)));
        let load = Load {
            cpu_permille: u32::MAX,
            ..Load::default()
        };
        let wall = world.now.wall;
        let heartbeat = Heartbeat {
            number: 1,
            acked_position: 0,
            held: vec![],
            load,
            wall,
        };
        world.event(process, WorkerEvent::Heartbeat(heartbeat));
        world.event(process, WorkerEvent::Granted { total: 1 });
    }
    let run = world.trigger("a", None, None).expect("made").run;
    assert_eq!(world.tables.active[&run].state, RunState::Scheduled);
}

#[test]
fn large_parameters_take_more_of_the_window() {
    let mut world = World::with_window(20_000);
    world.put(noop("a"));
    let params = format!("\"{}\"", "x".repeat(60_000));
    for _ in 0..400 {
        world.trigger("a", Some(&params), None).expect("made");
    }
    let parked = world
        .tables
        .active
        .values()
        .filter(|run| run.parked.is_some());
    assert!(parked.count() > 200, "memory would hold them all");
}

#[test]
fn a_stored_definition_that_is_not_valid_any_more_stops_only_itself() {
    let mut world = World::new();
    let job = world.put(every("a", "1s", "allow"));
    world.put(every("b", "1s", "allow"));
    let version = world.tables.versions.get_mut(&(job, 1)).expect("kept");
    version.spec.schedule[0].every = Some("never".into());
    world.engine = World::boot(&world.tables, world.now, Options::default(), None);
    let effects = world.tick_through(2_000, 100);
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Alarm { text } if text.contains("`a`")))
    );
    let fired: Vec<JobId> = world.tables.active.values().map(|run| run.job).collect();
    assert!(!fired.is_empty() && !fired.contains(&job));
}
