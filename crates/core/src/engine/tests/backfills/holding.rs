//! Backfills that wait for their job: while it is full, if they obey its overlap, and while its breaker is open.

use serde_json::json;

use super::*;

/// A job that fires each second, with these keys, paused for a minute: all of the minute is missing.
fn missed(keys: serde_json::Value) -> World {
    let mut world = World::new();
    let mut spec = once(every("a", "1s", "skip"));
    for (key, value) in keys.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    world.put(spec);
    let (job, condition) = (job_ref("a"), Condition::Any);
    let pause = Command::PauseJob { job, condition };
    world.command(pause).expect("paused");
    world.pass(60_000);
    world.commit();
    world
}

fn obeying(from: i64, to: i64) -> BackfillPlan {
    BackfillPlan {
        overlap: Obedience::Obey,
        max_active: 5,
        ..seconds(from, to)
    }
}

fn trigger(world: &mut World, overlap: Obedience) -> Result<Triggered, Refusal> {
    let triggers = vec![Trigger {
        overlap,
        ..Trigger::of(job_ref("a"))
    }];
    match world.command(Command::TriggerRuns { triggers })? {
        Reply::Triggered(mut results) => results.remove(0),
        other => panic!("{other:?}"),
    }
}

fn row(world: &World, id: BackfillId) -> &BackfillRow {
    &world.tables.backfills[&id]
}

fn full() -> Option<BackfillHold> {
    Some(BackfillHold::Overlap)
}

/// The worker's one assignment ends; what is given out because of it.
fn end(world: &mut World, given: &[(u64, AttemptRef)], outcome: AttemptOutcome) -> Given {
    assert_eq!(given.len(), 1);
    assignments(&world.finish(given[0].0, given[0].1, outcome))
}

type Given = Vec<(u64, AttemptRef)>;

#[test]
fn one_that_obeys_waits_while_the_job_is_full_and_loses_no_time() {
    for mode in ["skip", "queue", "cancel_old", "fail"] {
        let mut world = missed(json!({"overlap": mode}));
        trigger(&mut world, Obedience::Obey).expect("made");
        let mut given = assignments(&world.worker(7, 1, 50, vec![], 1));
        let id = create(&mut world, "a", obeying(0, 3)).expect("made").id;
        world.tick_through(5_000, 500);
        world.beat(1, 2, 99, vec![given[0].1]);
        assert_eq!(
            (row(&world, id).made, row(&world, id).held),
            (0, full()),
            "{mode}"
        );
        for n in 0..3 {
            given = end(&mut world, &given, AttemptOutcome::Succeeded);
            assert_eq!(nominals(&world, id).len(), n + 1, "{mode}: one at a time");
            let waits = if n < 2 { full() } else { None };
            assert_eq!(row(&world, id).held, waits, "{mode}");
        }
        end(&mut world, &given, AttemptOutcome::Succeeded);
        let row = row(&world, id);
        assert_eq!(
            (row.state, row.completed),
            (BackfillState::Completed, 3),
            "{mode}"
        );
        world.check_conservation();
    }
}

#[test]
fn its_runs_count_as_others_do() {
    let mut world = missed(json!({"overlap": "skip"}));
    let id = create(&mut world, "a", obeying(0, 3)).expect("made").id;
    assert_eq!(nominals(&world, id), [0]);
    let refused = trigger(&mut world, Obedience::Obey);
    assert!(
        matches!(refused, Err(Refusal::OverlapFull { .. })),
        "{refused:?}"
    );
    trigger(&mut world, Obedience::Ignore).expect("made beside it");
    let other = create(&mut world, "a", seconds(10, 12)).expect("made").id;
    assert_eq!(nominals(&world, other), [10], "it does not obey");
}

#[test]
fn what_stands_in_the_queue_goes_first() {
    let mut world = missed(json!({"overlap": "queue"}));
    for _ in 0..2 {
        trigger(&mut world, Obedience::Obey).expect("made");
    }
    let first = assignments(&world.worker(7, 1, 50, vec![], 1));
    let id = create(&mut world, "a", obeying(0, 1)).expect("made").id;
    let second = end(&mut world, &first, AttemptOutcome::Succeeded);
    assert_eq!(row(&world, id).made, 0);
    let third = end(&mut world, &second, AttemptOutcome::Succeeded);
    assert_eq!(nominals(&world, id), [0]);
    end(&mut world, &third, AttemptOutcome::Succeeded);
}

#[test]
fn it_counts_under_the_key_of_its_own_parameters() {
    let overlap = json!({"key": "/customer"});
    let mut world = missed(json!({"overlap": overlap, "params": {"customer": 1}}));
    trigger(&mut world, Obedience::Obey).expect("customer 1");
    let same = create(&mut world, "a", obeying(0, 1)).expect("made").id;
    assert_eq!(row(&world, same).held, full());
    let params = JsonText::parse("params", r#"{"customer": 2}"#).ok();
    let plan = BackfillPlan {
        params,
        ..obeying(10, 11)
    };
    let other = create(&mut world, "a", plan).expect("made").id;
    assert_eq!(
        (row(&world, other).held, row(&world, other).made),
        (None, 1)
    );
}

#[test]
fn an_edit_lets_it_go_on_and_a_restart_does_not() {
    let mut world = missed(json!({}));
    trigger(&mut world, Obedience::Obey).expect("made");
    let id = create(&mut world, "a", obeying(0, 3)).expect("made").id;
    world.restart();
    world.tick_through(1_000, 500);
    assert_eq!((row(&world, id).made, row(&world, id).held), (0, full()));
    let mut wider = once(every("a", "1s", "skip"));
    wider["overlap"] = json!({"limit": 3});
    world.put(wider);
    world.tick_through(1_000, 500);
    assert_eq!(nominals(&world, id), [0, 1]);
}

#[test]
fn one_that_waits_can_be_paused_and_cancelled() {
    let mut world = missed(json!({}));
    trigger(&mut world, Obedience::Obey).expect("made");
    let given = assignments(&world.worker(7, 1, 50, vec![], 1));
    let id = create(&mut world, "a", obeying(0, 3)).expect("made").id;
    pause(&mut world, id).expect("paused");
    assert_eq!(row(&world, id).held, None);
    assert_eq!(end(&mut world, &given, AttemptOutcome::Succeeded), []);
    trigger(&mut world, Obedience::Obey).expect("made");
    resume(&mut world, id).expect("resumed");
    assert_eq!((row(&world, id).made, row(&world, id).held), (0, full()));
    cancel(&mut world, id, false).expect("cancelled");
    let row = row(&world, id);
    assert_eq!((row.state, row.held), (BackfillState::Cancelled, None));
}

/// A job whose breaker has just opened, for five seconds, and its worker.
fn broken() -> World {
    let breaker = json!({"failures": 1, "cooldown": "5s"});
    let mut world = missed(json!({"breaker": breaker, "overlap": "allow"}));
    trigger(&mut world, Obedience::Ignore).expect("made");
    let given = assignments(&world.worker(7, 1, 50, vec![], 1));
    end(&mut world, &given, AttemptOutcome::Failed);
    world
}

fn many(from: i64, to: i64) -> BackfillPlan {
    BackfillPlan {
        max_active: 5,
        ..seconds(from, to)
    }
}

#[test]
fn it_waits_while_the_breaker_is_open_and_makes_one_probe() {
    let mut world = broken();
    let id = create(&mut world, "a", many(0, 4)).expect("made").id;
    let open = Some(BackfillHold::Breaker);
    let given = assignments(&world.tick_through(4_500, 500));
    assert_eq!((given.len(), row(&world, id).held), (0, open));
    world.beat(1, 2, 99, vec![]);
    let probe = assignments(&world.tick_through(1_000, 500));
    assert_eq!((probe.len(), row(&world, id).held), (1, open));
    assert_eq!(end(&mut world, &probe, AttemptOutcome::Failed), []);
    world.beat(1, 3, 99, vec![]);
    assert_eq!(assignments(&world.tick_through(9_500, 500)), []);
    world.beat(1, 4, 99, vec![]);
    let probe = assignments(&world.tick_through(1_000, 500));
    let rest = end(&mut world, &probe, AttemptOutcome::Succeeded);
    assert_eq!((rest.len(), row(&world, id).held), (2, None));
    assert_eq!(nominals(&world, id), [0, 1, 2, 3]);
}

#[test]
fn a_reset_of_the_breaker_lets_it_go_on_and_force_passes_it() {
    let mut world = broken();
    let waiting = create(&mut world, "a", many(0, 2)).expect("made").id;
    let plan = BackfillPlan {
        force: true,
        ..many(10, 12)
    };
    let forced = create(&mut world, "a", plan).expect("made").id;
    assert_eq!(nominals(&world, forced), [10, 11]);
    assert_eq!(row(&world, waiting).made, 0);
    let reset = Command::ResetBreaker { job: job_ref("a") };
    world.command(reset).expect("reset");
    assert_eq!(nominals(&world, waiting), [0, 1]);
}

#[test]
fn it_waits_for_the_breaker_also_after_a_restart_and_a_clock_that_went_back() {
    let mut world = broken();
    let id = create(&mut world, "a", many(0, 2)).expect("made").id;
    world.restart();
    world.tick_through(1_000, 500);
    assert_eq!(row(&world, id).made, 0);
    // Behind the moment at which it opened, the cooldown is over.
    world.step_clock(-3_600_000);
    world.tick_through(1_000, 500);
    assert_eq!(row(&world, id).made, 1);
}

#[test]
fn what_it_is_told_belongs_to_its_key() {
    let mut world = missed(json!({}));
    let with_key = |world: &World, plan: BackfillPlan| {
        let mut new = asked(world, "a", plan);
        new.idempotency_key = Some("k".to_owned());
        let backfill = Box::new(new);
        Command::CreateBackfill { backfill }
    };
    let first = with_key(&world, seconds(0, 2));
    world.command(first.clone()).expect("made");
    world.command(first).expect("the same");
    for plan in [
        BackfillPlan {
            overlap: Obedience::Obey,
            ..seconds(0, 2)
        },
        BackfillPlan {
            force: true,
            ..seconds(0, 2)
        },
    ] {
        let other = with_key(&world, plan);
        let reused = Refusal::KeyReused("k".to_owned());
        assert_eq!(world.command(other).expect_err("another"), reused);
    }
}
