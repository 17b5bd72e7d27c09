//! The fence of a session, and that a set is applied whole or not at all.

use drumtower_core::change::{ChangeSet, JobChange, RunChange};
use drumtower_core::model::{
    Actor, Epoch, Home, Member, SegmentId, SegmentRow, SegmentSet, SessionId, WallMs,
};

use super::sample::{self, job_id, run_id};
use super::{SESSION_MS, World};
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
            row.expires.since(clock) > 0 && row.expires.since(clock) <= SESSION_MS,
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
}

pub fn resubmission(world: &mut World) {
    world.commit(sample::new_jobs([sample::job_row(1, "default", "one")]));
    let changes = world.next(sample::runs([RunChange::Insert(Box::new(sample::run(
        0,
        1,
        job_id(1),
    )))]));
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
    world.refuse(raise_mark(5, me, 0, 100));
    world.refuse(raise_mark(5, me, 2, 100));
    world.commit(raise_mark(5, me, 1, 100));
    world.refuse(raise_mark(5, me, 0, 200));
    world.refuse(raise_mark(5, me, 1, 99));
    world.commit(raise_mark(5, me, 1, 300));
    world.refuse(raise_mark(5, SessionId(999), 1, 300));
    world.commit(raise_mark(5, SessionId(0), 1, 300));
    world.refuse(raise_mark(5, me, 1, 400));
    world.commit(raise_mark(5, me, 2, 400));
    world.refuse(raise_mark(1024, me, 1, 9));
}

/// Of several that find a segment without an owner, or one whose session has ended, one takes it.
pub fn taken_once(world: &mut World) {
    let dead = world.session();
    world.commit(raise_mark(5, dead, 1, 100));
    let take = |revoke: &[SessionId], taker, epoch| ChangeSet {
        revoke: revoke.to_vec(),
        ..raise_mark(5, taker, epoch, 100)
    };
    let second = world.new_session();
    world.refuse(take(&[], second, 2));
    world.commit(take(&[dead], second, 2));
    let third = world.new_session();
    // It read the row before: nothing of what it sends is done.
    world.refuse(take(&[dead], third, 2));
    world.refuse(take(&[], third, 3));
    let segments = world.read().segments().expect("they are read");
    assert_eq!((segments[5].owner, segments[5].epoch), (second, Epoch(2)));
}

pub fn session_ids(world: &mut World) {
    let mut last = world.session();
    for _ in 0..3 {
        let id = world
            .store()
            .begin_session(&Member::alone("server-2"), 1_000)
            .expect("a session begins");
        assert!(id > last);
        last = id;
    }
}

pub fn members(world: &mut World) {
    let member = Member {
        server: Actor::new("server-3"),
        address: Some("https://server-3:7070".to_owned()),
        version: "1.2.3".to_owned(),
        home: world.store().is_shared().then_some(Home(u64::MAX - 7)),
        lease_ms: 44_000,
    };
    let id = world
        .store()
        .begin_session(&member, 1_000)
        .expect("a session begins");
    world.reopen();
    let row = world.store().session(id).expect("it is read");
    assert_eq!(row.map(|row| row.member), Some(member.clone()));
    let live = world.store().live_sessions().expect("they are read");
    assert!(live.iter().any(|row| row.id == id && row.member == member));
    let (now, seen) = world.read().sessions().expect("they are read");
    assert_eq!(seen, live);
    let left = live.last().map(|row| row.expires.since(now));
    assert!(left.is_some_and(|left| left <= 1_000), "by the same clock");
    let longest = |since| world.read().longest_lease(since).expect("it is read");
    assert_eq!(longest(now.plus(-60_000)), member.lease_ms);
    assert_eq!(longest(now.plus(3_600_000)), 0, "all have ended before");
}

pub fn owners(world: &mut World) {
    let all = usize::from(SegmentId::COUNT);
    let owners = |world: &mut World| {
        let owners = world.read().owners().expect("they are read").into_iter();
        let owners = owners.map(|it| (it.session, it.segments.len()));
        owners.collect::<Vec<_>>()
    };
    assert_eq!(owners(world), [(SessionId(0), all)]);
    let (me, is_shared) = (world.session(), world.store().is_shared());
    let tenures = |world: &mut World, since| {
        let rows = world.read().tenures(since).expect("they are read");
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    // A session that owns nothing is not remembered as an owner, whatever it commits.
    world.commit(ChangeSet::default());
    assert_eq!(tenures(world, WallMs(0)), []);
    world.commit(raise_mark(0, me, 1, 4));
    world.commit(raise_mark(7, me, 1, 4));
    assert_eq!(owners(world), [(SessionId(0), all - 2), (me, 2)]);
    let found = world.read().owners().expect("they are read");
    let mine: SegmentSet = [SegmentId(0), SegmentId(7)].into_iter().collect();
    assert!(
        found
            .iter()
            .any(|it| it.session == me && it.segments == mine)
    );
    let row = world.store().session(me).expect("it is read");
    let row = row.expect("it is there");
    let kept: &[SessionId] = if is_shared { &[me] } else { &[] };
    assert_eq!(tenures(world, WallMs(0)), kept);
    assert_eq!(tenures(world, row.expires), kept);
    assert_eq!(tenures(world, row.expires.plus(1)), []);
    let took = row.took;
    // Once it is revoked it is remembered, and so is when it began to own.
    let taker = world.new_session();
    world.commit(ChangeSet {
        revoke: vec![me],
        ..raise_mark(0, taker, 2, 4)
    });
    world.reopen();
    let both = if is_shared {
        vec![me, taker]
    } else {
        Vec::new()
    };
    assert_eq!(tenures(world, WallMs(0)), both);
    let old = world.store().session(me).expect("it is read");
    assert_eq!(old.map(|row| row.took), Some(took));
    assert!(!is_shared || took.is_some_and(|at| at <= row.expires));
}

/// Who gives up everything it has may end its own session with it.
pub fn leaves(world: &mut World) {
    let me = world.session();
    let kept = ChangeSet {
        revoke: vec![me],
        ..raise_mark(3, me, 1, 4)
    };
    world.refuse(kept);
    world.commit(raise_mark(3, me, 1, 4));
    let mut given = raise_mark(3, me, 1, 4);
    for row in given.segments.values_mut() {
        row.owner = SessionId(0);
    }
    given.revoke = vec![me];
    world.commit(given);
    let (_, sessions) = world.read().sessions().expect("they are read");
    assert!(sessions.iter().all(|row| row.id != me), "it has ended");
    let taker = world.new_session();
    world.commit(raise_mark(3, taker, 2, 4));
}

pub fn atomic(world: &mut World) {
    let me = world.session();
    let mut changes = sample::new_jobs([sample::job_row(1, "default", "one")]);
    changes.segments = raise_mark(5, me, 1, 4).segments;
    changes.runs = sample::runs([
        RunChange::Insert(Box::new(sample::run(0, 1, job_id(1)))),
        RunChange::Update(Box::new(sample::run(0, 2, job_id(1)))),
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
    world.refuse(sample::runs([RunChange::Insert(Box::new(done.clone()))]));
    world.refuse(sample::runs([RunChange::InsertFinished(Box::new(
        sample::run(0, 1, job),
    ))]));
    let mut changes = ChangeSet::default();
    changes
        .runs
        .insert(run_id(0, 2), RunChange::InsertFinished(Box::new(done)));
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
