//! Several servers on one database.

use std::thread;

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Epoch, RunState, SegmentId, SegmentRow};
use drumtower_store::conformance::sample::{self, T0, job_id};
use drumtower_store::{Commit, Error, Read, Store};

use super::{begin, done, fresh, numbered, open, small};

#[test]
fn servers_that_start_at_once_on_an_empty_database_make_its_tables_once() {
    let target = fresh();
    let opened: Vec<_> = thread::scope(|scope| {
        let starts = [(); 4].map(|()| scope.spawn(|| open(&target, small())));
        starts.map(|start| start.join().expect("it opens")).into()
    });
    let clusters: Vec<String> = opened
        .iter()
        .map(|(_, reader)| reader.meta().expect("it is read").cluster)
        .collect();
    assert!(clusters.iter().all(|cluster| *cluster == clusters[0]));
    let key = |at: usize| opened[at].1.peer_key().expect("it is read");
    assert!(key(0).is_some() && key(0) == key(3));
}

#[test]
fn of_two_that_take_a_segment_at_once_one_gets_it() {
    let target = fresh();
    let (mut one, reader) = open(&target, small());
    let (mut other, _) = open(&target, small());
    let sessions = [begin(&mut one), begin(&mut other)];
    let take = |session| {
        let row = |id| SegmentRow {
            id: SegmentId(id),
            owner: session,
            epoch: Epoch(1),
            id_mark: 0,
        };
        let segments = (0..SegmentId::COUNT).map(|id| (SegmentId(id), row(id)));
        ChangeSet {
            segments: segments.collect(),
            ..ChangeSet::default()
        }
    };
    let outcomes = thread::scope(|scope| {
        let writers = [&mut one, &mut other].into_iter().zip(sessions);
        let takes = writers.map(|(writer, session)| {
            scope.spawn(move || writer.commit(&numbered(take(session), session, 1)))
        });
        let takes: Vec<_> = takes.collect();
        takes
            .into_iter()
            .map(|take| take.join().expect("it ends"))
            .collect::<Vec<_>>()
    });
    let won = |outcome: &Result<Commit, Error>| matches!(outcome, Ok(Commit::Done));
    assert_eq!(
        outcomes.iter().filter(|it| won(it)).count(),
        1,
        "{outcomes:?}"
    );
    let winner = sessions[outcomes.iter().position(won).expect("one won")];
    let segments = reader.segments().expect("they are read");
    assert!(segments.iter().all(|row| row.owner == winner));
}

#[test]
fn a_session_that_is_over_leaves_its_roll_ups_to_the_next() {
    let target = fresh();
    let (mut gone, reader) = open(&target, small());
    let before = begin(&mut gone);
    for seq in 1..=7 {
        let runs = (0..5).map(|n| {
            let run = sample::run(0, seq * 5 + n, job_id(n));
            sample::ended(run, RunState::Completed, 40)
        });
        done(gone.commit(&numbered(sample::finished(runs), before, seq)));
    }
    let minute = T0.0 / 60_000;
    let counted = || -> u64 {
        let rollups = reader.rollups(None, minute - 1, minute + 1);
        let rollups = rollups.expect("they are read");
        rollups.iter().map(|row| row.completed).sum()
    };
    assert_eq!(counted(), 35);
    let (mut next, _) = open(&target, small());
    let session = begin(&mut next);
    let take = ChangeSet {
        revoke: vec![before],
        ..ChangeSet::default()
    };
    done(next.commit(&numbered(take, session, 1)));
    for seq in 2..40 {
        done(next.commit(&numbered(ChangeSet::default(), session, seq)));
        assert_eq!(counted(), 35, "after commit {seq}");
    }
    let url = target.to_string();
    let database = url.rsplit('/').next().expect("a name");
    let left = "SELECT count(*) FROM drumtower.rollup_journal WHERE session = ";
    let left = drumtower_testpg::Cluster::shared().sql(database, &format!("{left}{}", before.0));
    assert_eq!(left.expect("it is read"), "0");
}
