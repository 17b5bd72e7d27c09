//! Who is given many runs that are ready at once: workers in rows where runs are brief, in strict turn where they are not.

use std::collections::BTreeMap;

use super::super::*;
use super::world::*;
use crate::model::*;

/// So many runs of the job are made and given out in one commit. How many each worker got.
fn give_out(world: &mut World, job: &str, count: usize) -> Vec<(u64, AttemptRef)> {
    let trigger = Trigger {
        job: job_ref(job),
        params: None,
        idempotency_key: None,
        request: None,
        when: None,
        rerun: None,
        overlap: Obedience::Ignore,
        force: false,
    };
    world.step(Input::Command {
        ticket: Ticket(77),
        actor: Actor::new("test"),
        command: Command::TriggerRuns {
            triggers: vec![trigger; count],
        },
    });
    assignments(&world.commit())
}

fn shares(given: &[(u64, AttemptRef)]) -> Vec<usize> {
    let mut shares: BTreeMap<u64, usize> = BTreeMap::new();
    for (stream, _) in given {
        *shares.entry(*stream).or_default() += 1;
    }
    let mut shares: Vec<usize> = shares.into_values().collect();
    shares.sort_unstable();
    shares
}

/// A job whose runs have taken so long, and workers with so much room.
fn world(duration_ms: u64, workers: u64, capacity: u32) -> World {
    let mut world = World::new();
    world.put(noop("a"));
    for worker in 1..=workers {
        world.worker(worker, worker, capacity, vec![], 1);
    }
    let given = give_out(&mut world, "a", 1);
    let (stream, attempt) = given[0];
    world.report_with(stream, attempt, |finished| {
        finished.outcome = AttemptOutcome::Succeeded;
        finished.duration_ms = duration_ms;
    });
    world.commit();
    world
}

#[test]
fn brief_runs_go_to_few_workers() {
    let given = give_out(&mut world(1, 8, 100), "a", 24);
    assert_eq!(shares(&given), [8, 8, 8]);
}

#[test]
fn longer_runs_go_to_all_in_turn() {
    let given = give_out(&mut world(500, 8, 100), "a", 24);
    assert_eq!(shares(&given), [3; 8]);
}

#[test]
fn the_row_is_over_with_its_commit() {
    let mut world = world(1, 8, 100);
    let first = give_out(&mut world, "a", 1);
    let second = give_out(&mut world, "a", 1);
    assert_ne!(first[0].0, second[0].0);
}

#[test]
fn a_row_is_no_longer_than_there_is_room() {
    let given = give_out(&mut world(1, 8, 3), "a", 23);
    assert_eq!(shares(&given), [2, 3, 3, 3, 3, 3, 3, 3]);
}
