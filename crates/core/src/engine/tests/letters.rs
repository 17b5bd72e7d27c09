//! Runs that failed for good: kept, requeued once, discarded.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

/// A world in which one run of the job has failed for good.
fn one_dead(keys: serde_json::Value) -> (World, RunId) {
    let mut world = World::new();
    let mut spec = once(noop("a"));
    for (key, value) in keys.as_object().expect("keys") {
        spec[key] = value.clone();
    }
    world.put(spec);
    world.worker(7, 1, 100, vec![], 1);
    let params = Some(r#"{"n": 1}"#);
    let run = world.trigger("a", params, None).expect("made").run;
    let attempt = &world.tables.active[&run].attempts[0];
    let attempt = AttemptRef {
        run,
        attempt: 1,
        fence: attempt.fence,
    };
    world.finish(1, attempt, AttemptOutcome::Failed);
    (world, run)
}

fn requeue(world: &mut World, run: RunId) -> Result<Triggered, Refusal> {
    let letter = &world.tables.history[&run];
    let rerun = Rerun {
        of: run,
        job: letter.job,
        nominal: None,
        params: letter.params.clone(),
        version: None,
        checkpoint: None,
        letter: true,
    };
    let trigger = Trigger {
        rerun: Some(Box::new(rerun)),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    match world.command(Command::TriggerRuns { triggers })? {
        Reply::Triggered(mut results) => results.remove(0),
        other => panic!("{other:?}"),
    }
}

fn discard(world: &mut World, run: RunId) -> Vec<RunId> {
    let command = Command::DiscardLetters {
        namespace: NamespaceName::default(),
        runs: vec![run],
    };
    match world.command(command) {
        Ok(Reply::Discarded(runs)) => runs,
        other => panic!("{other:?}"),
    }
}

fn deeds(world: &World) -> Vec<AuditAction> {
    let entries = world.tables.audit.values();
    let of_runs = entries.filter(|entry| entry.object.kind == AuditKind::Run);
    of_runs.map(|entry| entry.action).collect()
}

#[test]
fn a_run_that_failed_for_good_is_kept_whole() {
    let (world, run) = one_dead(json!({}));
    assert_eq!(world.tables.letters[&run], world.tables.history[&run]);
    let (world, _) = one_dead(json!({"retry": {"max_attempts": 1, "dead_letter": "drop"}}));
    assert!(world.tables.letters.is_empty());
    assert_eq!(world.tables.history.len(), 1);
}

#[test]
fn what_is_tried_again_completed_or_cancelled_is_no_dead_letter() {
    for outcome in [AttemptOutcome::Succeeded, AttemptOutcome::Failed] {
        let mut world = World::new();
        world.put(noop("a"));
        let effects = world.worker(7, 1, 1, vec![], 1);
        assert!(assignments(&effects).is_empty());
        let run = world.trigger("a", None, None).expect("made").run;
        let fence = world.tables.active[&run].attempts[0].fence;
        let attempt = AttemptRef {
            run,
            attempt: 1,
            fence,
        };
        world.finish(1, attempt, outcome);
        if world.tables.active.contains_key(&run) {
            let command = Command::CancelRun { run, scope: None };
            world.command(command).expect("cancelled");
        }
        assert!(world.tables.letters.is_empty());
    }
}

#[test]
fn a_letter_is_requeued_once_as_a_run_that_names_it() {
    let (mut world, run) = one_dead(json!({}));
    let new = requeue(&mut world, run).expect("made").run;
    let made = &world.tables.active[&new];
    assert_eq!((made.rerun_of, made.params.is_some()), (Some(run), true));
    assert!(world.tables.letters.is_empty());
    assert_eq!(deeds(&world), [AuditAction::Requeued]);
    assert_eq!(requeue(&mut world, run), Err(Refusal::NoSuchLetter(run)));
    world.restart();
    assert_eq!(requeue(&mut world, run), Err(Refusal::NoSuchLetter(run)));
    assert_eq!(discard(&mut world, run), []);
    world.check_conservation();
}

/// A letter whose job is full stays one; where the overlap has a queue, the new run waits in it.
#[test]
fn a_requeue_can_obey_the_overlap() {
    for (mode, waits) in [("skip", false), ("queue", true)] {
        let (mut world, run) = one_dead(json!({"overlap": mode}));
        let again = |overlap: Obedience, world: &World| {
            let letter = &world.tables.history[&run];
            let rerun = Rerun {
                of: run,
                job: letter.job,
                nominal: None,
                params: None,
                version: None,
                checkpoint: None,
                letter: true,
            };
            let triggers = vec![Trigger {
                rerun: Some(Box::new(rerun)),
                overlap,
                ..Trigger::of(job_ref("a"))
            }];
            Command::TriggerRuns { triggers }
        };
        let busy = Command::TriggerRuns {
            triggers: vec![Trigger {
                overlap: Obedience::Obey,
                ..Trigger::of(job_ref("a"))
            }],
        };
        world.command(busy).expect("the job is full");
        let obeying = again(Obedience::Obey, &world);
        let Ok(Reply::Triggered(results)) = world.command(obeying) else {
            panic!("no answer");
        };
        match &results[0] {
            Ok(made) => assert!(waits && world.tables.active[&made.run].standing.queued),
            Err(refusal) => assert!(!waits, "{mode}: {refusal}"),
        }
        assert_eq!(world.tables.letters.contains_key(&run), !waits, "{mode}");
    }
}

#[test]
fn two_requests_in_one_batch_make_one_run() {
    let (mut world, run) = one_dead(json!({}));
    let letter = world.tables.history[&run].clone();
    let rerun = Rerun {
        of: run,
        job: letter.job,
        nominal: None,
        params: None,
        version: None,
        checkpoint: None,
        letter: true,
    };
    let trigger = Trigger {
        rerun: Some(Box::new(rerun)),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger.clone(), trigger];
    match world.command(Command::TriggerRuns { triggers }) {
        Ok(Reply::Triggered(results)) => {
            assert!(results[0].is_ok());
            assert_eq!(results[1], Err(Refusal::NoSuchLetter(run)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_letter_is_discarded_and_the_run_stays() {
    let (mut world, run) = one_dead(json!({}));
    assert_eq!(discard(&mut world, run), [run]);
    assert!(world.tables.letters.is_empty());
    assert!(world.tables.history.contains_key(&run));
    assert_eq!(deeds(&world), [AuditAction::Discarded]);
    assert_eq!(discard(&mut world, run), []);
    assert_eq!(requeue(&mut world, run), Err(Refusal::NoSuchLetter(run)));
}
