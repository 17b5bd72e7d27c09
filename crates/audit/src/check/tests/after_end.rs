//! Jobs that wait for the end of their last run.

use drumtower_core::model::{MisfirePolicy, RunState, Unfired, UnfiredReason, WallMs};
use drumtower_core::schedule::Bounds;
use serde_json::json;

use super::breaks;
use super::world::{JOBS, START, World, version};

const DELAY_MS: i64 = 20_000;
/// How long each run takes.
const TAKES_MS: i64 = 9;

/// The nominal times, when nothing disturbs the job.
fn link(number: i64) -> WallMs {
    START.plus(number * DELAY_MS + (number - 1) * TAKES_MS)
}

/// Five runs, each a delay after the last.
fn chain(world: &mut World) {
    chain_of(world, [1, 2, 3, 4, 5].map(link));
}

fn chain_of(world: &mut World, times: [WallMs; 5]) {
    world.restart(json!([{"after_end": "20s"}]));
    for at in times {
        world.completed(JOBS[0], at, Some(at), None);
    }
    // Those that were triggered came first into the list.
    world.runs.rotate_left(3);
    world.fired_through = times[4];
    world.next_due = Some(times[4].plus(TAKES_MS + DELAY_MS));
    world.options.now = world.next_due;
}

#[test]
fn runs_that_follow_each_other_are_clean() {
    let report = breaks(&[], chain);
    assert_eq!(report.counts.fired_times, 5);
}

#[test]
fn a_run_before_the_delay_is_early() {
    let mut times = [1, 2, 3, 4, 5].map(link);
    times[4] = times[4].plus(-1);
    let report = breaks(&["V3"], |world| chain_of(world, times));
    assert_eq!(report.early, 1);
}

#[test]
fn a_run_after_the_delay_needs_a_cause() {
    let mut times = [1, 2, 3, 4, 5].map(link);
    times[4] = times[4].plus(1);
    breaks(&["V4"], |world| chain_of(world, times));
    breaks(&[], |world| {
        chain_of(world, times);
        world.rows[0].revision = 3;
    });
    breaks(&[], |world| {
        chain_of(world, times);
        let at = times[3].plus(100);
        world.unfired.push(Unfired {
            job: JOBS[0],
            first: at,
            last: at,
            version: 1,
            count: 1,
            reason: UnfiredReason::Misfire,
            server: world.runs[0].actor.clone(),
        });
    });
    breaks(&[], |world| {
        chain_of(world, times);
        let edited = version(JOBS[0], 2, times[3].plus(1), json!([{"after_end": "20s"}]));
        world.versions.push(edited);
        (world.rows[0].version, world.rows[0].revision) = (2, 2);
        let last = world.runs.iter_mut().rfind(|run| run.job == JOBS[0]);
        last.expect("a run").job_version = 2;
    });
}

#[test]
fn two_are_never_live_at_once() {
    let live = |world: &mut World, index: usize| {
        let run = &mut world.runs[index];
        run.state = RunState::Running;
        run.transitions.truncate(3);
        run.attempts[0].end = None;
    };
    let report = breaks(&["V11"], |world| {
        chain(world);
        live(world, 3);
    });
    assert_eq!(report.duplicated, 1);
    breaks(&[], |world| {
        chain(world);
        live(world, 4);
        world.next_due = None;
    });
}

#[test]
fn an_active_job_goes_on() {
    let report = breaks(&["V1"], |world| {
        chain(world);
        world.next_due = None;
    });
    assert_eq!(report.lost, 1);
    breaks(&["V1"], |world| {
        chain(world);
        world.options.now = world.next_due.map(|due| due.plus(600_000));
    });
    breaks(&[], |world| {
        chain(world);
        world.next_due = None;
        world.spec().bounds = Some(Bounds {
            max_fires: Some(5),
            ..Bounds::default()
        });
    });
    breaks(&["V10"], |world| {
        chain(world);
        world.spec().bounds = Some(Bounds {
            max_fires: Some(4),
            ..Bounds::default()
        });
    });
}

/// A clock that was set back shows the same millisecond twice; no two of such runs were made by one decision.
#[test]
fn runs_of_one_millisecond_were_made_in_turn() {
    let mut times = [1, 2, 3, 4, 5].map(link);
    times[4] = times[3].plus(TAKES_MS + 1);
    breaks(&[], |world| {
        chain_of(world, times);
        world.options.clock_back_ms = DELAY_MS;
        world.spec().misfire.policy = Some(MisfirePolicy::Skip);
        world.runs[3].created = times[4];
    });
}
