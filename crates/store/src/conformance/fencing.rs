//! The fence of a session, and that a set is applied whole or not at all.

use drumtower_core::change::{ChangeSet, JobChange, RunChange};
use drumtower_core::model::{Actor, Epoch, SegmentId, SegmentRow, SessionId};

use super::World;
use super::sample::{self, job_id, run_id};
use crate::{Commit, Error};

fn raise_mark(segment: u16, owner: SessionId, epoch: u64, id_mark: u64) -> ChangeSet {
    let id = SegmentId(segment);
    let row = SegmentRow {
        id,
        owner,
        epoch: Epoch(epoch),
        id_mark,
    };
    ChangeSet {
        segments: [(id, row)].into(),
        ..ChangeSet::default()
    }
}

pub fn commits_in_order(world: &mut World) {
    for seq in 1..=3 {
        world.commit(ChangeSet::default());
        let id = world.session();
        let row = world
            .store()
            .session(id)
            .expect("it is read")
            .expect("it is there");
        assert_eq!((row.seq, row.revoked), (seq, false));
        let clock = world.store().clock().expect("there is a clock");
        assert!(
            row.expires.since(clock) > 0 && row.expires.since(clock) <= 3_000,
            "it ends within its extension"
        );
    }
    let live = world.store().live_sessions().expect("they are read");
    assert_eq!(
        live.iter().map(|row| row.id).collect::<Vec<_>>(),
        [world.session()]
    );
}

pub fn fences(world: &mut World) {
    world.commit(ChangeSet::default());
    let session = world.session();
    let mut changes = sample::new_jobs([sample::job_row(1, "default", "one")]);
    changes.session = session;
    for seq in [0, 1, 3, 99] {
        changes.seq = seq;
        assert_eq!(
            world.store().commit(&changes).expect("it is answered"),
            Commit::Fenced,
            "at seq {seq}"
        );
    }
    changes.session = SessionId(session.0 + 40);
    changes.seq = 2;
    assert_eq!(
        world.store().commit(&changes).expect("it is answered"),
        Commit::Fenced,
        "in no session"
    );
    assert_eq!(world.read().job(job_id(1)).expect("it is read"), None);
    world.commit(ChangeSet::default());
}

pub fn revoked(world: &mut World) {
    let old = world.session();
    world.commit(ChangeSet::default());
    let seq = world.seq();
    world.new_session();
    world.commit(ChangeSet {
        revoke: vec![old],
        ..ChangeSet::default()
    });
    let row = world
        .store()
        .session(old)
        .expect("it is read")
        .expect("it is kept");
    assert!(row.revoked);
    assert_eq!(row.seq, seq);
    let taker = (world.session(), world.seq());
    world.use_session(old, seq);
    assert_eq!(
        world
            .try_commit(ChangeSet::default())
            .expect("it is answered"),
        Commit::Fenced
    );
    world.use_session(taker.0, taker.1);
    let live = world.store().live_sessions().expect("they are read");
    assert_eq!(live.iter().map(|row| row.id).collect::<Vec<_>>(), [taker.0]);
    let revoked = |session| world.read().is_revoked(session).expect("it is read");
    let nobody = SessionId(taker.0.0 + 40);
    assert_eq!([old, taker.0, nobody].map(revoked), [true, false, true]);
    world.refuse(ChangeSet {
        revoke: vec![SessionId(999)],
        ..ChangeSet::default()
    });
    world.refuse(ChangeSet {
        revoke: vec![taker.0],
        ..ChangeSet::default()
    });
}

pub fn resubmission(world: &mut World) {
    world.commit(sample::new_jobs([sample::job_row(1, "default", "one")]));
    let changes = world.next(sample::runs([RunChange::Insert(sample::run(
        0,
        1,
        job_id(1),
    ))]));
    assert_eq!(
        world.store().commit(&changes).expect("it is answered"),
        Commit::Done
    );
    assert_eq!(
        world.store().commit(&changes).expect("it is answered"),
        Commit::Fenced
    );
    let session = world.session();
    let row = world
        .store()
        .session(session)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(row.seq, changes.seq);
    assert!(
        world
            .read()
            .run(run_id(0, 1))
            .expect("it is read")
            .is_some()
    );
}

pub fn take_over(world: &mut World) {
    let old = world.session();
    world.commit(raise_mark(5, old, 1, 100));
    let taker = world.new_session();
    let changes = ChangeSet {
        revoke: vec![old],
        ..raise_mark(5, taker, 2, 100)
    };
    world.commit(changes);
    let segments = world.read().segments().expect("they are read");
    assert_eq!(
        segments[5],
        SegmentRow {
            id: SegmentId(5),
            owner: taker,
            epoch: Epoch(2),
            id_mark: 100
        }
    );
    assert_eq!(segments[6].owner, SessionId(0));
}

pub fn segments_only_grow(world: &mut World) {
    let me = world.session();
    world.commit(raise_mark(5, me, 3, 100));
    world.refuse(raise_mark(5, me, 2, 200));
    world.refuse(raise_mark(5, me, 3, 99));
    world.commit(raise_mark(5, SessionId(0), 3, 100));
    world.refuse(raise_mark(1024, me, 9, 9));
}

pub fn session_ids(world: &mut World) {
    let mut last = world.session();
    for _ in 0..3 {
        let id = world
            .store()
            .begin_session(&Actor::new("server-2"), 1_000)
            .expect("a session begins");
        assert!(id > last);
        last = id;
    }
}

pub fn atomic(world: &mut World) {
    let me = world.session();
    let mut changes = sample::new_jobs([sample::job_row(1, "default", "one")]);
    changes.segments = raise_mark(5, me, 4, 4).segments;
    changes.runs = sample::runs([
        RunChange::Insert(sample::run(0, 1, job_id(1))),
        RunChange::Update(sample::run(0, 2, job_id(1))),
    ])
    .runs;
    world.refuse(changes.clone());
    assert_eq!(world.read().job(job_id(1)).expect("it is read"), None);
    assert_eq!(world.read().run(run_id(0, 1)).expect("it is read"), None);
    assert_eq!(
        world.read().segments().expect("they are read")[5].epoch,
        Epoch(0)
    );
    let row = world
        .store()
        .session(me)
        .expect("it is read")
        .expect("it is there");
    assert_eq!(row.seq, 0, "the session did not move");
    changes.runs.remove(&run_id(0, 2));
    world.commit(changes);
    assert!(
        world
            .read()
            .run(run_id(0, 1))
            .expect("it is read")
            .is_some()
    );
}

pub fn shape(world: &mut World) {
    let job = job_id(1);
    let done = sample::ended(
        sample::run(0, 1, job),
        drumtower_core::model::RunState::Completed,
        5,
    );
    world.refuse(sample::runs([RunChange::Insert(done.clone())]));
    world.refuse(sample::runs([RunChange::InsertFinished(sample::run(
        0, 1, job,
    ))]));
    let mut changes = ChangeSet::default();
    changes
        .runs
        .insert(run_id(0, 2), RunChange::InsertFinished(done));
    world.refuse(changes);
    let mut changes = ChangeSet::default();
    changes.jobs.insert(
        job_id(2),
        JobChange::Insert(sample::job_row(1, "default", "one")),
    );
    world.refuse(changes);
    let outcome = world.try_commit(ChangeSet {
        session: SessionId(u64::MAX),
        ..ChangeSet::default()
    });
    assert!(!matches!(outcome, Err(Error::Corrupt(_) | Error::Io(_))));
}
