//! Backfills: made twice, too many at once, not told of.

use drumtower_core::model::{
    Actor, BackfillId, BackfillMark, BackfillOrder, BackfillRow, BackfillState, BackfillWhich,
    JobName, NamespaceName, Obedience, Origin, Run, WallMs,
};

use super::breaks;
use super::world::{JOBS, START, World, step};

const ID: BackfillId = BackfillId(900);

fn row(made: u64) -> BackfillRow {
    BackfillRow {
        id: ID,
        namespace: NamespaceName::default(),
        job: JOBS[0],
        job_name: JobName::new("a").expect("a name"),
        job_version: 1,
        from: step(-10),
        to: START,
        which: BackfillWhich::Missing,
        order: BackfillOrder::OldestFirst,
        max_active: 1,
        priority: 0,
        params: None,
        overlap: Obedience::Ignore,
        force: false,
        held: None,
        state: BackfillState::Completed,
        cursor: Some(START),
        times: 10,
        made,
        completed: made,
        failed: 0,
        cancelled: 0,
        skipped: 10 - made,
        live: Vec::new(),
        created: START,
        actor: Actor::new("ann"),
        ended: Some(step(9)),
        revision: 1,
        step: 7,
    }
}

/// Runs of the times before the start, one after the other, as a backfill makes them.
fn backfilled(world: &mut World, times: &[i64]) {
    for (place, time) in times.iter().enumerate() {
        let made = step(1).plus(place as i64 * 100);
        let run = world.completed(JOBS[0], made, None, None);
        let run: &mut Run = world.runs.iter_mut().find(|it| it.id == run).expect("made");
        run.origin = Origin::Backfill;
        run.nominal = Some(step(*time));
        run.backfill = Some(BackfillMark {
            backfill: ID,
            priority: 0,
        });
    }
    world.backfills.push(row(times.len() as u64));
}

#[test]
fn runs_of_a_backfill_are_no_occurrences_of_the_schedule() {
    breaks(&[], |world| backfilled(world, &[-5, -4, -3]));
}

#[test]
fn a_time_that_is_made_twice_is_found() {
    breaks(&["V2"], |world| backfilled(world, &[-5, -4, -5]));
}

#[test]
fn a_time_outside_the_interval_is_found() {
    breaks(&["V2"], |world| backfilled(world, &[-11]));
    breaks(&["V2"], |world| backfilled(world, &[0]));
}

#[test]
fn more_at_once_than_allowed_is_found() {
    let both = |world: &mut World| {
        backfilled(world, &[-5, -4]);
        let last = world.runs.len() - 1;
        let before = world.runs[last - 1].clone();
        let run = &mut world.runs[last];
        let back = run.created.since(before.created);
        let earlier = |at: WallMs| at.plus(-back);
        run.created = earlier(run.created);
        run.transitions[0].at = earlier(run.transitions[0].at);
    };
    breaks(&["V11"], both);
    breaks(&[], |world| {
        both(world);
        world.backfills[0].max_active = 2;
    });
}

#[test]
fn a_row_that_tells_something_else_is_found() {
    breaks(&["V8"], |world| {
        backfilled(world, &[-5, -4]);
        world.backfills[0].made = 3;
        world.backfills[0].completed = 3;
    });
    breaks(&["V8"], |world| {
        backfilled(world, &[-5, -4]);
        let row = &mut world.backfills[0];
        (row.completed, row.failed) = (1, 1);
    });
    breaks(&["V8"], |world| {
        backfilled(world, &[-5, -4]);
        let run = world.runs[world.runs.len() - 1].id;
        world.backfills[0].live = vec![run];
        world.backfills[0].completed = 1;
    });
    breaks(&["V2"], |world| world.backfills.push(row(2)));
}

#[test]
fn a_run_of_a_backfill_says_which_and_what_time() {
    breaks(&["V2", "V8"], |world| {
        backfilled(world, &[-5, -4]);
        let last = world.runs.len() - 1;
        world.runs[last].backfill = None;
    });
}
