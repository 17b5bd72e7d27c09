//! Repeating a run that ended: what it takes from the first, and what it does not.

use serde_json::json;

use super::super::*;
use super::world::*;
use crate::model::*;

fn rerun(world: &mut World, of: &Run, original: bool, key: Option<&str>) -> Result<Run, Refusal> {
    let version = world
        .tables
        .versions
        .get(&(of.job, of.job_version))
        .cloned();
    let trigger = Trigger {
        idempotency_key: key.map(str::to_owned),
        rerun: Some(Box::new(Rerun {
            checkpoint: None,
            of: of.id,
            job: of.job,
            nominal: of.nominal,
            params: of.params.clone(),
            version: version.filter(|_| original),
            letter: false,
        })),
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    let Ok(Reply::Triggered(mut results)) = world.command(Command::TriggerRuns { triggers }) else {
        panic!("no answer");
    };
    let made = results.remove(0)?;
    Ok(world.tables.active[&made.run].clone())
}

/// A run of `a` with parameters of its own that was cancelled, and then another version of the job.
fn world_with_an_ended_run() -> (World, Run) {
    let mut world = World::new();
    world.put(noop("a"));
    let run = world.trigger("a", Some(r#"{"n":1}"#), None).unwrap().run;
    world
        .command(Command::CancelRun { run, scope: None })
        .unwrap();
    let mut heavier = noop("a");
    heavier["weight"] = json!(2);
    heavier["retention"] = json!("1d");
    world.put(heavier);
    let mut ended = world.tables.history[&run].clone();
    ended.nominal = Some(WallMs(1_000));
    (world, ended)
}

#[test]
fn it_repeats_parameters_and_nominal_time_by_the_current_definition() {
    let (mut world, ended) = world_with_an_ended_run();
    let again = rerun(&mut world, &ended, false, None).unwrap();
    assert_eq!(again.rerun_of, Some(ended.id));
    assert_eq!(again.params, ended.params);
    assert_eq!(again.nominal, Some(WallMs(1_000)));
    assert_eq!((again.job_version, again.retention), (2, Retention::Day));
    assert_eq!(
        (again.origin, again.state),
        (Origin::Api, RunState::Pending)
    );
    world.check_conservation();
}

#[test]
fn it_can_repeat_the_definition_too_and_survives_a_restart() {
    let (mut world, ended) = world_with_an_ended_run();
    let again = rerun(&mut world, &ended, true, None).unwrap();
    assert_eq!((again.job_version, again.retention), (1, Retention::Week));
    world.restart();
    world.worker(7, 1, 4, vec![], 1);
    let run = &world.tables.active[&again.id];
    assert_eq!((run.state, run.job_version), (RunState::Scheduled, 1));
}

#[test]
fn a_key_makes_one_repetition_and_is_not_good_for_another() {
    let (mut world, ended) = world_with_an_ended_run();
    let first = rerun(&mut world, &ended, false, Some("k")).unwrap();
    assert_eq!(
        rerun(&mut world, &ended, false, Some("k")).unwrap().id,
        first.id
    );
    let other = rerun(&mut world, &ended, true, Some("k"));
    assert_eq!(other, Err(Refusal::KeyReused("k".to_owned())));
    let plain = world.trigger("a", Some(r#"{"n":1}"#), Some("k"));
    assert_eq!(plain, Err(Refusal::KeyReused("k".to_owned())));
}

#[test]
fn a_job_of_the_same_name_made_later_is_another_job() {
    let (mut world, ended) = world_with_an_ended_run();
    let condition = Condition::Any;
    world
        .command(Command::DeleteJob {
            job: job_ref("a"),
            condition,
        })
        .unwrap();
    world.put(noop("a"));
    let refused = rerun(&mut world, &ended, false, None);
    assert_eq!(refused, Err(Refusal::NoSuchJob(job_ref("a"))));
}
