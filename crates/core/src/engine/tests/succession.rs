//! Segments come and go while the server works on: what stays, what is handed on, what is another server's.

use super::super::*;
use super::world::*;
use crate::lease::Terms;
use crate::model::*;

fn world() -> World {
    World::with(Options {
        idle_commit_ms: Some(1_000),
        ..Options::default()
    })
}

fn segment_of(job: &str) -> SegmentSet {
    [SegmentId::of("default", job)].into_iter().collect()
}

fn attempt_of(world: &World, run: RunId) -> AttemptRef {
    AttemptRef {
        run,
        attempt: 1,
        fence: world.tables.active[&run].attempts[0].fence,
    }
}

/// What is sent to the worker on a stream.
fn sent(effects: Vec<Effect>) -> Vec<ToWorker> {
    let sent = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send { message, .. } => Some(message),
        _ => None,
    });
    sent.collect()
}

fn renewal(effects: Vec<Effect>) -> Vec<AttemptRef> {
    let renewals = sent(effects)
        .into_iter()
        .filter_map(|message| match message {
            ToWorker::Renew { elsewhere, .. } => Some(elsewhere),
            _ => None,
        });
    let renewals: Vec<_> = renewals.collect();
    assert_eq!(renewals.len(), 1, "one heartbeat, one renewal");
    renewals.concat()
}

#[test]
fn workers_notice_nothing_of_what_stays() {
    let mut world = world();
    world.put(noop("a"));
    world.put(noop("b"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    let at = world.now.wall;
    world.event(1, WorkerEvent::Started { attempt, at });
    world.move_segments(segment_of("b"), SegmentSet::NONE);
    let again = world.trigger("a", None, None).expect("made").run;
    world.commit();
    let row = &world.tables.active[&again];
    assert_eq!(row.state, RunState::Scheduled, "its credit is still there");
    assert_eq!(row.attempts[0].process, ProcessId(7));
    // Long enough for a start to be worth a row of its own.
    world.pass(1_000);
    world.commit();
    assert_eq!(world.tables.active[&run].state, RunState::Running);
    world.beat(1, 2, 2, vec![attempt, attempt_of(&world, again)]);
    assert_eq!(renewal(world.commit()), []);
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    assert_eq!(world.tables.history[&run].state, RunState::Completed);
}

#[test]
fn positions_on_a_stream_go_on() {
    let mut world = world();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    world.trigger("a", None, None).expect("made");
    world.move_segments(segment_of("b"), SegmentSet::NONE);
    let run = world.tables.active.values().next().map(|run| run.id);
    let trigger = Command::TriggerRuns {
        triggers: vec![Trigger::of(job_ref("a"))],
    };
    world.step(Input::Command {
        ticket: Ticket(77),
        actor: Actor::new("tester"),
        command: trigger,
    });
    let assigned = sent(world.commit())
        .into_iter()
        .find_map(|message| match message {
            ToWorker::Assign(assign) => Some(assign),
            _ => None,
        });
    let assigned = assigned.expect("it is assigned");
    assert_eq!(assigned.position, 2);
    assert_ne!(Some(assigned.attempt.run), run);
}

#[test]
fn what_went_is_another_servers_to_prolong_and_to_end() {
    let mut world = world();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    world.move_segments(segment_of("a"), SegmentSet::NONE);
    world.beat(1, 2, 1, vec![attempt]);
    assert_eq!(renewal(world.commit()), [attempt]);
    let said = sent(world.finish(1, attempt, AttemptOutcome::Succeeded));
    assert!(said.is_empty(), "whoever owns it acknowledges it: {said:?}");
    let checkpoint = Checkpoint {
        number: 1,
        body: [].into(),
    };
    let checkpoint = WorkerEvent::Checkpoint {
        attempt,
        checkpoint,
    };
    world.event(1, checkpoint);
    assert!(sent(world.commit()).is_empty());
    assert_eq!(world.tables.active[&run].state, RunState::Scheduled);
}

#[test]
fn what_comes_may_still_be_on_its_way_from_the_server_that_gave_it_out() {
    let mut world = world();
    let terms = Terms::default();
    world.put(once(noop("a")));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    // As if another server had assigned it over a stream of its own.
    world.move_segments(segment_of("a"), SegmentSet::NONE);
    world.move_segments(SegmentSet::NONE, segment_of("a"));
    let mut beat = 1;
    let mut silent = |world: &mut World, ms: u64| {
        for _ in 0..ms / 1_000 {
            world.pass(1_000);
            beat += 1;
            world.beat(1, beat, 1, vec![]);
            world.commit();
        }
    };
    silent(&mut world, terms.lease_ms);
    assert!(world.tables.active.contains_key(&run), "it may arrive");
    silent(&mut world, 3_000);
    assert!(
        !world.tables.active.contains_key(&run)
            || world.tables.active[&run].current_attempt().is_none()
            || attempt_of(&world, run) != attempt
            || world.tables.active[&run].attempts.len() > 1,
        "it never came"
    );
}

#[test]
fn what_comes_is_claimed_by_who_names_it() {
    let mut world = world();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    world.move_segments(segment_of("a"), SegmentSet::NONE);
    world.move_segments(SegmentSet::NONE, segment_of("a"));
    world.beat(1, 2, 1, vec![attempt]);
    assert_eq!(renewal(world.commit()), []);
    let said = sent(world.finish(1, attempt, AttemptOutcome::Succeeded));
    assert!(matches!(said[..], [ToWorker::FinishAck { .. }]), "{said:?}");
    assert_eq!(world.tables.history[&run].state, RunState::Completed);
}

#[test]
fn what_came_back_before_the_worker_knew_is_said_again() {
    let mut world = world();
    world.put(noop("a"));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    world.move_segments(segment_of("a"), SegmentSet::NONE);
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    world.move_segments(SegmentSet::NONE, segment_of("a"));
    world.beat(1, 2, 1, vec![attempt]);
    assert_eq!(renewal(world.commit()), [attempt], "nobody heard the end");
    world.beat(1, 3, 1, vec![attempt]);
    assert_eq!(renewal(world.commit()), [], "it is claimed, and ends");
    world.finish(1, attempt, AttemptOutcome::Succeeded);
    assert_eq!(world.tables.history[&run].state, RunState::Completed);
}

#[test]
fn what_was_tied_since_the_plan_stays_with_the_first_segment_or_goes_with_it() {
    let mut world = world();
    world.put(noop("a"));
    let mut follower = noop("b");
    follower["after"] = serde_json::json!({"jobs": ["a"]});
    let plan = |give| Transfer {
        give,
        ..Transfer::default()
    };
    let mut away = plan(segment_of("b"));
    world.engine.keep_tied(&mut away);
    assert_eq!(away.give, segment_of("b"), "it is tied to nothing yet");
    world.put(follower);
    world.engine.keep_tied(&mut away);
    assert!(away.give.is_empty(), "{away:?}");
    let home: SegmentSet = [SegmentId::HOME].into_iter().collect();
    let mut with_all = plan(home);
    world.engine.keep_tied(&mut with_all);
    let tied = segment_of("a").union(&segment_of("b"));
    assert_eq!(with_all.give, home.union(&tied));
    // Whoever has not the first segment gives what is tied to whoever has.
    world.move_segments(home, SegmentSet::NONE);
    let mut after = plan(segment_of("b"));
    world.engine.keep_tied(&mut after);
    assert_eq!(after.give, tied);
}

#[test]
fn what_is_tied_is_had_with_the_first_segment_or_not_at_all() {
    let mut world = world();
    world.put(noop("a"));
    let mut follower = noop("b");
    follower["after"] = serde_json::json!({"jobs": ["a"]});
    world.put(follower);
    let home: SegmentSet = [SegmentId::HOME].into_iter().collect();
    let tied = segment_of("a").union(&segment_of("b"));
    assert_eq!(world.engine.strays(), None, "it has the first segment too");
    // As if they had been taken by somebody who saw no ties.
    world.move_segments(home, SegmentSet::NONE);
    let strays = world.engine.strays().expect("it may not work on them");
    assert_eq!(strays.give, tied);
    assert!(strays.take.is_empty());
    world.move_segments(tied, SegmentSet::NONE);
    assert_eq!(world.engine.strays(), None);
    let row = |id| SegmentRow {
        id,
        owner: SessionId(0),
        epoch: Epoch(1),
        id_mark: 0,
    };
    let take = |segments: SegmentSet| Transfer {
        take: segments.iter().map(row).collect(),
        ..Transfer::default()
    };
    let mut alone = take(tied);
    world.engine.keep_tied(&mut alone);
    assert!(alone.is_nothing(), "not without the first: {alone:?}");
    let all = take(tied.union(&home));
    let mut kept = all.clone();
    world.engine.keep_tied(&mut kept);
    assert_eq!(kept, all);
}

#[test]
fn credit_that_lies_elsewhere_is_asked_for_once() {
    let mut world = world();
    world.put(noop("a"));
    world.move_segments(segment_of("b"), SegmentSet::NONE);
    world.event(1, WorkerEvent::Connected(hello(7, 1, 4)));
    world.beat(1, 1, 0, vec![]);
    world.commit();
    let wants = |effects: Vec<Effect>| {
        let wanted = |it: &ToWorker| matches!(it, ToWorker::Want { weight: 1 });
        sent(effects).iter().filter(|it| wanted(it)).count()
    };
    let trigger = |world: &mut World| {
        world.step(Input::Command {
            ticket: Ticket(77),
            actor: Actor::new("tester"),
            command: Command::TriggerRuns {
                triggers: vec![Trigger::of(job_ref("a"))],
            },
        });
        wants(world.commit())
    };
    assert_eq!(trigger(&mut world), 1);
    assert_eq!(trigger(&mut world), 0, "it knows");
    world.event(1, WorkerEvent::Granted { total: 1 });
    assert_eq!(wants(world.commit()), 1, "one was given out, and one waits");
}

/// What others had has all come here; they still have workers, whose credit lies with them.
#[test]
fn who_owns_everything_asks_for_credit_too_where_others_may_have_it() {
    let mut world = world();
    assert!(world.engine.owned().is_all());
    world.put(noop("a"));
    world.event(1, WorkerEvent::Connected(hello(7, 1, 4)));
    world.beat(1, 1, 0, vec![]);
    world.commit();
    world.step(Input::Command {
        ticket: Ticket(77),
        actor: Actor::new("tester"),
        command: Command::TriggerRuns {
            triggers: vec![Trigger::of(job_ref("a"))],
        },
    });
    let told = sent(world.commit());
    let wants = |it: &ToWorker| matches!(it, ToWorker::Want { weight: 1 });
    assert!(told.iter().any(wants), "{told:?}");
}

/// Who puts what is refused anyway, or asks a server that does not have the first segment, leaves no tie behind.
#[test]
fn only_what_may_be_put_is_tied_and_only_by_the_owner_of_the_first_segment() {
    let queued = |timeout: &str| {
        let job = serde_json::json!({
            "kind": "Job", "name": "b", "queue": "q", "timeout": timeout,
            "task": {"handler": {"name": "noop"}}
        });
        let spec = serde_json::from_value(job).expect("a job");
        Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        }
    };
    let tied = |world: &World| world.tables.ties.contains(SegmentId::of("default", "b"));
    let mut away = world();
    let home: SegmentSet = [SegmentId::HOME].into_iter().collect();
    away.move_segments(home, SegmentSet::NONE);
    assert!(matches!(
        away.command(queued("1m")),
        Err(Refusal::Elsewhere(_))
    ));
    assert!(!tied(&away));
    let mut world = world();
    world.move_segments(segment_of("b"), SegmentSet::NONE);
    assert!(matches!(
        world.command(queued("0s")),
        Err(Refusal::Elsewhere(_))
    ));
    assert!(!tied(&world));
    assert!(matches!(
        world.command(queued("1m")),
        Err(Refusal::Elsewhere(_))
    ));
    assert!(tied(&world));
}

#[test]
fn a_command_about_what_went_is_refused_whole() {
    let mut world = world();
    world.put(noop("a"));
    world.put(noop("b"));
    world.move_segments(segment_of("b"), SegmentSet::NONE);
    let triggers = ["a", "b"].map(|job| Trigger::of(job_ref(job))).to_vec();
    let refused = world.command(Command::TriggerRuns { triggers });
    assert!(
        matches!(&refused, Err(Refusal::Elsewhere(set)) if **set == segment_of("b")),
        "{refused:?}"
    );
    assert!(world.tables.active.is_empty());
}

#[test]
fn what_comes_is_waited_for_however_long_its_worker_was_silent() {
    let mut world = world();
    let lease_ms = Terms::default().lease_ms;
    world.put(once(noop("a")));
    world.worker(7, 1, 4, vec![], 1);
    let run = world.trigger("a", None, None).expect("made").run;
    let attempt = attempt_of(&world, run);
    world.move_segments(segment_of("a"), SegmentSet::NONE);
    // Another server prolongs it, and this one hears nothing of the worker.
    world.event(1, WorkerEvent::Disconnected);
    world.tick_through(lease_ms - 1_000, 500);
    world.move_segments(SegmentSet::NONE, segment_of("a"));
    world.tick_through(lease_ms, 500);
    let row = &world.tables.active[&run];
    assert_eq!(row.attempts.len(), 1, "it may run");
    assert_eq!(
        row.current_attempt().map(|it| it.fence),
        Some(attempt.fence)
    );
}

/// Whether the stored due time of a job is put right by a sweep, and what it was made to be before.
fn is_swept(world: &mut World, id: JobId) -> bool {
    let spoilt = world.tables.schedules[&id]
        .next_due
        .map(|due| due.plus(3_600_000));
    world
        .tables
        .schedules
        .get_mut(&id)
        .expect("a schedule")
        .next_due = spoilt;
    world.restart();
    world.pass(1_000);
    world.commit();
    world.tables.schedules[&id].next_due != spoilt
}

#[test]
fn what_comes_later_is_swept_for_the_time_zones_too() {
    let mut world = world();
    let mut daily = noop("a");
    daily["schedule"] = serde_json::json!([{"cron": "0 3 * * *"}]);
    let daily = world.put(daily);
    world.commit();
    let row = SweepRow {
        cause: SweepCause::TimeZones,
        version: "2026z".to_owned(),
        after: None,
        looked: 0,
        changed: 0,
        started: world.now.wall,
        finished: Some(world.now.wall),
    };
    world.tables.sweeps.insert(row.cause.clone(), row.clone());
    assert!(
        is_swept(&mut world, daily),
        "another server may have had it"
    );
    let started = world.now.wall.plus(-86_400_000);
    let old = SweepRow { started, ..row };
    world.tables.sweeps.insert(old.cause.clone(), old);
    assert!(!is_swept(&mut world, daily), "all have been upgraded");
}
