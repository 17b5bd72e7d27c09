//! Checkpoints of runs.

use drumtower_core::change::{ChangeSet, Prune, RunChange};
use drumtower_core::model::{Checkpoint, Limits, Retention, Run, RunId, RunState};

use super::World;
use super::sample::{self, T0};

fn checkpoint(number: u64, body: &[u8]) -> Checkpoint {
    Checkpoint {
        number,
        body: body.into(),
    }
}

fn put(run: RunId, checkpoint: Option<Checkpoint>) -> ChangeSet {
    ChangeSet {
        checkpoints: [(run, checkpoint)].into(),
        ..ChangeSet::default()
    }
}

fn found(world: &World, run: RunId) -> Option<Checkpoint> {
    world.read().checkpoint(run).expect("it is read")
}

fn made(run: &Run) -> ChangeSet {
    ChangeSet {
        runs: [(run.id, RunChange::Insert(Box::new(run.clone())))].into(),
        ..ChangeSet::default()
    }
}

pub fn never_back(world: &mut World) {
    let run = sample::run(0, 1, sample::job_id(1));
    let other = sample::run(0, 2, sample::job_id(1));
    assert_eq!(found(world, run.id), None);
    assert_eq!(found(world, RunId(u64::MAX)), None);
    let first = checkpoint(3, b"page 7\0\xff");
    world.commit(ChangeSet {
        checkpoints: [(run.id, Some(first.clone()))].into(),
        ..made(&run)
    });
    assert_eq!(found(world, run.id), Some(first.clone()));
    world.refuse(put(run.id, Some(checkpoint(3, b"the same number"))));
    world.refuse(put(run.id, Some(checkpoint(2, b"a smaller one"))));
    assert_eq!(found(world, run.id), Some(first));
    let large = checkpoint(9, &vec![7; Limits::CHECKPOINT_BYTES]);
    world.commit(put(run.id, Some(large.clone())));
    world.commit(put(other.id, Some(checkpoint(1, b""))));
    assert_eq!(found(world, run.id), Some(large));
    assert_eq!(found(world, other.id), Some(checkpoint(1, b"")));
    world.commit(put(run.id, None));
    world.commit(put(run.id, None));
    assert_eq!(found(world, run.id), None);
    assert_eq!(found(world, other.id), Some(checkpoint(1, b"")));
}

pub fn pruned(world: &mut World) {
    let mut run = sample::run(0, 1, sample::job_id(1));
    run.retention = Retention::Day;
    world.commit(made(&run));
    world.commit(put(run.id, Some(checkpoint(1, b"half"))));
    let ended = sample::ended(run.clone(), RunState::Failed, 5);
    world.commit(ChangeSet {
        runs: [(run.id, RunChange::Finish(Box::new(ended)))].into(),
        ..ChangeSet::default()
    });
    assert_eq!(found(world, run.id), Some(checkpoint(1, b"half")));
    world.commit(ChangeSet {
        prune: Some(Prune {
            now: T0.plus(40 * 86_400_000),
            limit: 10,
        }),
        ..ChangeSet::default()
    });
    assert_eq!(world.read().run(run.id).expect("it is read"), None);
    assert_eq!(found(world, run.id), None);
}
