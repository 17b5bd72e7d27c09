//! `overlap: cancel_old`: who stops for whom, and when.

use serde_json::json;

use super::super::*;
use super::overlaps::{live, of_state, queued, reasons, with};
use super::world::*;
use crate::model::*;

/// Triggers a run of `a` that obeys, to start after so long.
fn obeying(world: &mut World, after_ms: u64) -> RunId {
    let trigger = Trigger {
        when: (after_ms > 0).then_some(When::After(after_ms)),
        overlap: Obedience::Obey,
        ..Trigger::of(job_ref("a"))
    };
    let triggers = vec![trigger];
    match world.command(Command::TriggerRuns { triggers }) {
        Ok(Reply::Triggered(mut results)) => results.remove(0).expect("made").run,
        other => panic!("{other:?}"),
    }
}

/// A job whose runs take so many places, all of them taken by runs that a worker has.
fn running(limit: u32) -> (World, Vec<(u64, AttemptRef)>) {
    let mut world = World::new();
    let overlap = json!({"on_full": "cancel_old", "limit": limit});
    world.put(with(noop("a"), overlap));
    for _ in 0..limit {
        obeying(&mut world, 0);
    }
    let held = assignments(&world.worker(1, 1, 100, vec![], 1));
    assert_eq!(held.len(), limit as usize);
    (world, held)
}

fn asked_to_stop(world: &World) -> Vec<RunId> {
    let runs = world.engine.resident_runs().into_iter();
    let stopping = |id: &RunId| world.engine.runs.expect(*id).run.cancel.is_some();
    runs.filter(stopping).collect()
}

#[test]
fn an_old_run_is_cancelled_and_the_new_one_waits_for_its_end() {
    let mut world = World::new();
    world.put(every("a", "1s", "cancel_old"));
    world.tick_through(1_000, 500);
    let held = assignments(&world.worker(1, 1, 1000, vec![], 1));
    let (stream, old) = held[0];
    let effects = world.tick_through(1_000, 500);
    let told = |effect: &Effect| matches!(effect, Effect::Send { message: ToWorker::Cancel { attempt, .. }, .. } if *attempt == old);
    assert!(effects.iter().any(told), "its worker is told");
    assert!(assignments(&effects).is_empty(), "it has not confirmed yet");
    assert_eq!((live(&world), queued(&world)), (1, 1));
    // Newest wins, also among those that wait.
    world.tick_through(1_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 1));
    let effects = world.finish(stream, old, AttemptOutcome::Cancelled);
    let next = assignments(&effects);
    assert_eq!(next.len(), 1);
    let run = &world.tables.active[&next[0].1.run];
    assert_eq!(run.nominal, Some(WallMs(START + 3_000)));
    let superseded = (RunState::Cancelled, Reason::Superseded);
    assert_eq!(reasons(&world), [superseded, superseded]);
    let words = world.tables.history[&old.run]
        .error
        .clone()
        .unwrap_or_default();
    assert!(words.starts_with("a newer run took its place"), "{words}");
}

#[test]
fn an_old_run_that_nobody_has_started_goes_at_once() {
    let mut world = World::new();
    world.put(with(
        every("a", "1s", "skip"),
        json!({"limit": 2, "on_full": "cancel_old"}),
    ));
    world.tick_through(5_000, 500);
    assert_eq!((live(&world), queued(&world)), (2, 0));
    let kept: Vec<_> = world
        .tables
        .active
        .values()
        .filter_map(|run| run.nominal)
        .collect();
    assert_eq!(kept, [WallMs(START + 4_000), WallMs(START + 5_000)]);
    assert_eq!(of_state(&world, RunState::Cancelled), 3);
}

#[test]
fn an_outcome_that_came_first_stands_and_frees_the_place() {
    let mut world = World::new();
    world.put(every("a", "1s", "cancel_old"));
    world.tick_through(1_000, 500);
    let (stream, old) = assignments(&world.worker(1, 1, 1000, vec![], 1))[0];
    world.tick_through(1_000, 500);
    let effects = world.finish(stream, old, AttemptOutcome::Succeeded);
    assert_eq!(assignments(&effects).len(), 1);
    assert_eq!(world.tables.history[&old.run].state, RunState::Completed);
}

#[test]
fn nobody_stops_for_a_run_of_later_before_that_is_ready() {
    let (mut world, held) = running(1);
    let later = obeying(&mut world, 8_000);
    world.tick_through(7_500, 500);
    assert_eq!(asked_to_stop(&world), []);
    assert_eq!((live(&world), queued(&world)), (1, 1));
    world.tick_through(1_000, 500);
    let (stream, old) = held[0];
    assert_eq!(asked_to_stop(&world), [old.run]);
    world.beat(1, 2, 99, vec![old]);
    let next = assignments(&world.finish(stream, old, AttemptOutcome::Cancelled));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1.run, later);
}

#[test]
fn as_many_stop_as_are_ready() {
    let (mut world, held) = running(3);
    obeying(&mut world, 5_000);
    obeying(&mut world, 8_000);
    obeying(&mut world, 0);
    assert_eq!(asked_to_stop(&world), [held[0].1.run]);
    world.tick_through(6_000, 500);
    let two = [held[0].1.run, held[1].1.run];
    assert_eq!(asked_to_stop(&world), two);
    world.tick_through(3_000, 500);
    assert_eq!(asked_to_stop(&world).len(), 3);
}

/// The place of the one that was stopped is for the one that it was stopped for, also behind one that is to start later.
#[test]
fn a_run_of_later_takes_no_place_that_was_made_for_another() {
    let (mut world, held) = running(2);
    obeying(&mut world, 3_600_000);
    let ready = obeying(&mut world, 0);
    assert_eq!(asked_to_stop(&world), [held[0].1.run]);
    let (stream, first) = held[0];
    let next = assignments(&world.finish(stream, first, AttemptOutcome::Cancelled));
    let given: Vec<RunId> = next.iter().map(|(_, attempt)| attempt.run).collect();
    assert_eq!(given, [ready]);
    world.tick_through(2_000, 500);
    assert_eq!(asked_to_stop(&world), [], "the other goes on");
}

/// The one that was stopped for starts, though another that is to start later came after it; that one takes over in its
/// own time.
#[test]
fn a_run_of_later_pushes_nobody_out_of_the_queue() {
    let (mut world, held) = running(1);
    let ready = obeying(&mut world, 0);
    let (stream, old) = held[0];
    assert_eq!(asked_to_stop(&world), [old.run]);
    let later = obeying(&mut world, 8_000);
    let latest = obeying(&mut world, 60_000);
    world.tick_through(1_000, 500);
    assert_eq!((live(&world), queued(&world)), (1, 3));
    assert!(world.tables.history.is_empty(), "nobody had to go");
    let next = assignments(&world.finish(stream, old, AttemptOutcome::Cancelled));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].1.run, ready);
    world.tick_through(5_000, 500);
    assert_eq!(asked_to_stop(&world), []);
    world.beat(1, 2, 99, vec![next[0].1]);
    world.tick_through(2_500, 500);
    assert_eq!(asked_to_stop(&world), [ready]);
    let next = assignments(&world.finish(1, next[0].1, AttemptOutcome::Cancelled));
    assert_eq!(next[0].1.run, later);
    assert!(world.tables.active.contains_key(&latest));
}

/// Of those that are ready the newest stay, wherever those stand that are to start later.
#[test]
fn among_those_that_are_ready_the_newest_win() {
    let (mut world, held) = running(2);
    let later = obeying(&mut world, 3_600_000);
    let [first, second, third] = [0, 0, 0].map(|at| obeying(&mut world, at));
    world.tick_through(1_000, 500);
    let ended: Vec<RunId> = world.tables.history.keys().copied().collect();
    assert_eq!(ended, [first]);
    assert_eq!(asked_to_stop(&world).len(), 2);
    let mut given = Vec::new();
    for (stream, old) in held {
        let next = assignments(&world.finish(stream, old, AttemptOutcome::Cancelled));
        given.extend(next.iter().map(|(_, attempt)| attempt.run));
    }
    assert_eq!(given, [second, third]);
    assert!(world.tables.active[&later].standing.queued);
}

#[test]
fn a_queue_that_rests_for_a_run_of_later_does_so_after_a_restart() {
    let (mut world, held) = running(1);
    obeying(&mut world, 8_000);
    world.restart();
    world.worker(1, 2, 100, vec![held[0].1], 2);
    world.tick_through(7_000, 500);
    assert_eq!(asked_to_stop(&world), []);
    world.tick_through(2_000, 500);
    assert_eq!(asked_to_stop(&world), [held[0].1.run]);
}

#[test]
fn a_run_of_later_that_is_cancelled_stops_nobody() {
    let (mut world, _) = running(1);
    let run = obeying(&mut world, 8_000);
    let cancel = Command::CancelRun { run, scope: None };
    world.command(cancel).expect("cancelled");
    world.tick_through(9_000, 500);
    assert_eq!(asked_to_stop(&world), []);
}

/// Of what waits one is ready. It may go after it was seen and before those under way have been read.
#[test]
fn nobody_stops_for_one_that_left_the_queue_meanwhile() {
    for lag in 0..6 {
        for steps in 0..8 {
            let (mut world, _) = running(2);
            obeying(&mut world, 3_600_000);
            world.lag = lag;
            let run = obeying(&mut world, 0);
            for _ in 0..steps {
                world.step(Input::Tick);
                world.loads();
            }
            let before = asked_to_stop(&world);
            let cancel = Command::CancelRun { run, scope: None };
            world.command(cancel).expect("cancelled");
            world.tick_through(3_000, 500);
            assert_eq!(asked_to_stop(&world), before, "lag {lag}, {steps} steps");
        }
    }
}

/// More wait for their time than one look sees without knowing the job, and one behind them is ready.
#[test]
fn one_that_is_ready_does_not_wait_for_many_that_are_to_start_later() {
    let mut world = World::with_window(8);
    let overlap = json!({"on_full": "cancel_old", "limit": 150});
    let job = world.put(with(noop("a"), overlap));
    // All that are under way are to start later too, and neither they nor their job stay in memory.
    for _ in 0..150 {
        obeying(&mut world, 7_200_000);
    }
    for _ in 0..120 {
        obeying(&mut world, 3_600_000);
    }
    let soon = obeying(&mut world, 600_000);
    world.tick_through(60_000, 1_000);
    assert!(!world.engine.jobs.ids().contains(&job), "its job has left");
    assert_eq!((live(&world), queued(&world)), (150, 121));
    world.tick_through(560_000, 1_000);
    assert!(
        !world.tables.active[&soon].standing.queued,
        "it has a place"
    );
    assert_eq!((live(&world), queued(&world)), (150, 120));
    let superseded = (RunState::Cancelled, Reason::Superseded);
    assert_eq!(reasons(&world), [superseded]);
}

/// The clock is set back while those under way are being read: who was ready by it is not any more.
#[test]
fn nobody_stops_for_a_run_that_a_clock_set_back_makes_one_of_later() {
    let (mut world, held) = running(1);
    obeying(&mut world, 1_000);
    world.pass(1_500);
    for _ in 0..9 {
        if world.engine.turns.contending.is_empty() {
            world.commit_once();
        }
    }
    assert_eq!(world.engine.turns.contending.len(), 1);
    world.step_clock(-5_000);
    world.commit();
    assert_eq!(asked_to_stop(&world), []);
    world.step_clock(5_000);
    world.tick_through(1_000, 500);
    assert_eq!(asked_to_stop(&world), [held[0].1.run]);
}
