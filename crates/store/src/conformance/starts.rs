//! Parked runs in the order of when they must start.

use drumtower_core::change::RunChange::{Finish, Insert, Update};
use drumtower_core::model::{Reason, Run, RunId, RunState, SegmentSet, WallMs};

use super::World;
use super::sample::{self, T0, job_id, run_id, runs};

fn waiting(counter: u64, by: i64) -> Run {
    Run {
        parked: Some("k".to_owned()),
        start_by: Some(T0.plus(by)),
        ..sample::run(0, counter, job_id(1))
    }
}

type Place = (WallMs, RunId);

fn page(world: &World, by: i64, after: Option<Place>, limit: usize) -> (Vec<RunId>, Option<i64>) {
    let page = world
        .read()
        .parked_starts(&SegmentSet::ALL, T0.plus(by), after, limit);
    let page = page.expect("it is read");
    let next = page.next.map(|next| next.since(T0));
    (page.runs.into_iter().map(|run| run.id).collect(), next)
}

pub fn parked_starts(world: &mut World) {
    let [one, two, three, four] = [1, 2, 3, 4].map(|counter| run_id(0, counter));
    assert_eq!(page(world, 99, None, 9), (vec![], None));
    let resident = Run {
        parked: None,
        ..waiting(6, 10)
    };
    let for_ever = Run {
        start_by: None,
        ..waiting(7, 10)
    };
    let started = sample::running(waiting(8, 10));
    world.commit(runs(
        [
            waiting(1, 30),
            waiting(2, 10),
            waiting(3, 10),
            waiting(4, 50),
            resident.clone(),
            for_ever,
            started,
        ]
        .map(|run| Insert(Box::new(run))),
    ));
    assert_eq!(page(world, 9, None, 9), (vec![], Some(10)));
    assert_eq!(page(world, 30, None, 9), (vec![two, three, one], Some(50)));
    assert_eq!(page(world, 30, None, 1), (vec![two], Some(10)));
    assert_eq!(page(world, 30, None, 2), (vec![two, three], Some(30)));
    let after = Some((T0.plus(10), two));
    assert_eq!(page(world, 30, after, 9), (vec![three, one], Some(50)));
    let after = Some((T0.plus(30), one));
    assert_eq!(page(world, 30, after, 9), (vec![], Some(50)));
    // One is read back, one ends, one that was in memory is parked.
    let read_back = Run {
        parked: None,
        ..waiting(2, 10)
    };
    let mut ended = waiting(3, 10);
    ended.transition(RunState::Failed, T0.plus(10), Reason::StartTimedOut);
    ended.parked = None;
    let put_back = Run {
        parked: Some("j".to_owned()),
        ..resident
    };
    let moved = put_back.id;
    world.commit(runs([
        Update(Box::new(read_back)),
        Finish(Box::new(ended)),
        Update(Box::new(put_back)),
    ]));
    assert_eq!(page(world, 99, None, 9), (vec![moved, one, four], None));
}
