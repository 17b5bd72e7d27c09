//! What people do to backfills, and what is refused.

use serde_json::json;

use super::*;

#[test]
fn pausing_stops_it_and_resuming_looks_again() {
    let (mut world, _) = paused_for_a_minute();
    let id = create(&mut world, "a", seconds(0, 5)).expect("made").id;
    let paused = pause(&mut world, id).expect("paused");
    assert_eq!((paused.state, paused.revision), (BackfillState::Paused, 2));
    assert_eq!(pause(&mut world, id).expect("again").revision, 2);
    work_off(&mut world);
    assert_eq!(nominals(&world, id), [0], "no further run");
    world.restart();
    assert_eq!(nominals(&world, id), [0]);
    // Someone else makes a run of the next time meanwhile.
    let rerun = Rerun {
        of: RunId(1),
        job: world.tables.backfills[&id].job,
        nominal: Some(WallMs(START + 1000)),
        params: None,
        version: None,
        checkpoint: None,
        letter: false,
    };
    let trigger = Trigger {
        rerun: Some(Box::new(rerun)),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    world
        .command(Command::TriggerRuns { triggers })
        .expect("made");
    resume(&mut world, id).expect("resumed");
    work_off(&mut world);
    assert_eq!(nominals(&world, id), [0, 2, 3, 4]);
    let row = &world.tables.backfills[&id];
    assert_eq!((row.state, row.skipped), (BackfillState::Completed, 1));
    let over = Refusal::BackfillOver {
        id,
        state: BackfillState::Completed,
    };
    for _ in 0..2 {
        assert_eq!(pause(&mut world, id), Err(over.clone()));
        assert_eq!(resume(&mut world, id), Err(over.clone()));
        world.restart();
    }
}

#[test]
fn cancelling_ends_what_waits_and_what_runs_only_when_told() {
    for (runs, left) in [(false, 2), (true, 0)] {
        let (mut world, _) = paused_for_a_minute();
        let plan = BackfillPlan {
            max_active: 5,
            ..seconds(0, 20)
        };
        let id = create(&mut world, "a", plan).expect("made").id;
        let effects = world.worker(7, 1, 2, vec![], 1);
        assert_eq!(assignments(&effects).len(), 2);
        let row = cancel(&mut world, id, runs).expect("cancelled");
        assert_eq!(row.state, BackfillState::Cancelled);
        assert_eq!((row.live.len(), row.cancelled), (2, 3));
        let asked = world.tables.active.values();
        let asked = asked.filter(|run| run.cancel.is_none()).count();
        assert_eq!(asked, left);
        world.restart();
        let attempts: Vec<AttemptRef> = assignments(&effects).into_iter().map(|it| it.1).collect();
        world.worker(7, 2, 2, attempts.clone(), 2);
        for attempt in attempts {
            world.finish(2, attempt, AttemptOutcome::Succeeded);
        }
        let row = world.tables.backfills[&id].clone();
        assert_eq!((row.completed, row.live.len()), (2, 0));
        // As it stands, whoever asks again.
        assert_eq!(cancel(&mut world, id, true), Ok(row));
        world.check_conservation();
    }
}

#[test]
fn parked_runs_of_it_are_cancelled_too() {
    parked_runs_are_cancelled(serde_json::Value::Null);
    // Those that wait for a limit are parked elsewhere.
    parked_runs_are_cancelled(json!({"concurrency": 1}));
}

fn parked_runs_are_cancelled(limits: serde_json::Value) {
    let mut world = World::with_window(2);
    let mut spec = every("a", "1s", "allow");
    spec["limits"] = limits;
    world.put(spec);
    let pause = Command::PauseJob {
        job: job_ref("a"),
        condition: Condition::Any,
    };
    world.command(pause).expect("paused");
    world.pass(60_000);
    let plan = BackfillPlan {
        max_active: 4,
        ..seconds(0, 4)
    };
    let backfill = Box::new(asked(&world, "a", plan));
    // Cancelled in the batch that makes the runs: those that are parked are not in the store yet.
    world.step(Input::Command {
        ticket: Ticket(0),
        actor: Actor::new("t"),
        command: Command::CreateBackfill { backfill },
    });
    world.loads();
    let job = world.engine.jobs.named(&job_ref("a")).expect("a job");
    let id = world.engine.backfills.of_job(job)[0];
    let row = cancel(&mut world, id, false).expect("cancelled");
    assert_eq!((row.made, row.cancelled, row.live.len()), (4, 4, 0));
    assert!(world.tables.active.is_empty());
    let runs: Vec<RunId> = world.tables.history.keys().copied().collect();
    for run in runs {
        let again = world.command(Command::CancelRun { run, scope: None });
        assert!(again.is_ok(), "{again:?}");
    }
}

#[test]
fn deleting_the_job_ends_its_backfills() {
    let (mut world, _) = paused_for_a_minute();
    let id = create(&mut world, "a", seconds(0, 20)).expect("made").id;
    let (job, condition) = (job_ref("a"), Condition::Any);
    world
        .command(Command::DeleteJob { job, condition })
        .expect("deleted");
    let row = &world.tables.backfills[&id];
    assert_eq!((row.state, row.live.len()), (BackfillState::Cancelled, 1));
    world.restart();
    work_off(&mut world);
    let row = &world.tables.backfills[&id];
    assert_eq!((row.completed, row.made), (1, 1));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let (mut world, _) = paused_for_a_minute();
    world.put(noop("bare"));
    let mut after_end = noop("chain");
    after_end["schedule"] = json!([{"after_end": "5s"}]);
    world.put(after_end);
    for job in ["bare", "chain"] {
        let refused = create(&mut world, job, seconds(0, 5)).expect_err(job);
        assert!(matches!(refused, Refusal::Invalid(_)), "{refused}");
    }
    let future = create(&mut world, "a", seconds(0, 61)).expect_err("the future");
    assert!(future.to_string().contains("future"), "{future}");
    let first = create(&mut world, "a", seconds(0, 10)).expect("made").id;
    let refused = create(&mut world, "a", seconds(9, 20));
    assert_eq!(refused, Err(Refusal::BackfillInTheWay(first)));
    for n in 1..Limits::BACKFILLS as i64 {
        create(&mut world, "a", seconds(-10 * n, -10 * n + 1)).expect("made");
    }
    let most = Limits::BACKFILLS;
    let refused = create(&mut world, "a", seconds(30, 31));
    assert_eq!(refused, Err(Refusal::TooManyBackfills(most)));
    cancel(&mut world, first, false).expect("cancelled");
    create(&mut world, "a", seconds(0, 10)).expect("there is room");
    let unknown = BackfillId(5);
    for reply in [
        pause(&mut world, unknown),
        cancel(&mut world, unknown, false),
    ] {
        assert_eq!(reply, Err(Refusal::NoSuchBackfill(unknown)));
    }
}

#[test]
fn conditions_and_scopes_are_kept() {
    let (mut world, _) = paused_for_a_minute();
    let id = create(&mut world, "a", seconds(0, 10)).expect("made").id;
    let elsewhere = NamespaceName::new("elsewhere").expect("a name");
    let foreign = world.command(Command::PauseBackfill {
        backfill: id,
        scope: Some(elsewhere),
        condition: Condition::Any,
    });
    assert_eq!(row_of(foreign), Err(Refusal::NoSuchBackfill(id)));
    let stale = world.command(Command::CancelBackfill {
        backfill: id,
        scope: None,
        condition: Condition::Revision(7),
        runs: false,
    });
    let (given, current) = (7, 1);
    assert_eq!(
        row_of(stale),
        Err(Refusal::StaleBackfill { id, given, current })
    );
    let fresh = world.command(Command::PauseBackfill {
        backfill: id,
        scope: Some(NamespaceName::default()),
        condition: Condition::Revision(1),
    });
    assert_eq!(row_of(fresh).expect("paused").revision, 2);
    let deeds = world.tables.audit.values();
    let deeds = deeds.filter(|entry| entry.object.kind == AuditKind::Backfill);
    let deeds: Vec<AuditAction> = deeds.map(|entry| entry.action).collect();
    assert_eq!(deeds, [AuditAction::Created, AuditAction::Paused]);
}

#[test]
fn a_repeated_key_makes_one_backfill() {
    let (mut world, _) = paused_for_a_minute();
    let new = NewBackfill {
        idempotency_key: Some("k".to_owned()),
        ..asked(&world, "a", seconds(0, 3))
    };
    let create = |world: &mut World, new: &NewBackfill| {
        let backfill = Box::new(new.clone());
        match world.command(Command::CreateBackfill { backfill })? {
            Reply::Backfill { row, repeated } => Ok((row.id, repeated)),
            other => panic!("{other:?}"),
        }
    };
    let (id, repeated) = create(&mut world, &new).expect("made");
    assert!(!repeated);
    assert_eq!(create(&mut world, &new), Ok((id, true)));
    work_off(&mut world);
    world.restart();
    assert_eq!(
        create(&mut world, &new),
        Ok((id, true)),
        "also when it is over"
    );
    let other = NewBackfill {
        plan: seconds(0, 4),
        ..new.clone()
    };
    let refused = Err(Refusal::KeyReused("k".to_owned()));
    assert_eq!(create(&mut world, &other), refused);
    let trigger = world.trigger("a", None, Some("k"));
    assert_eq!(trigger, Err(Refusal::KeyReused("k".to_owned())));
    assert_eq!(world.tables.backfills.len(), 1);
}
