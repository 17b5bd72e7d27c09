//! What the server and the way to it do at the worst moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{Run, RunState, SegmentSet, SessionId};
use drumtower_store::conformance::all_runs;
use drumtower_store::conformance::sample::{self, T0, job_id, run_id};
use drumtower_store::postgres::{Reader, Target, Writer};
use drumtower_store::{Commit, Error, Read, RunFilter, Store};
use drumtower_testpg::{Cluster, Purpose, ROLE};

use super::proxy::{At, Proxy};
use super::{begin, done, inserted, numbered, open, small, target};

/// Only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, and another way to it that a test can cut.
fn behind_proxy() -> (Target, Target, Proxy) {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let database = url.rsplit('/').next().expect("a name").to_owned();
    let proxy = Proxy::start(cluster.port());
    let through = cluster.url_at(proxy.port(), ROLE, "", &database);
    (target(&url), target(&through), proxy)
}

fn ended(number: u64) -> Run {
    sample::ended(sample::run(0, number, job_id(1)), RunState::Completed, 40)
}

fn counted(reader: &Reader) -> u64 {
    let minute = T0.0 / 60_000;
    let rollups = reader.rollups(None, minute - 5, minute + 5);
    let rollups = rollups.expect("they are read");
    rollups.iter().map(|row| row.completed).sum()
}

/// Sends a set until its outcome is known, as a driver does. True when it is durable.
fn send(writer: &mut Writer, changes: &ChangeSet) -> bool {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "it never gets through");
        match writer.commit(changes) {
            Ok(Commit::Done) => return true,
            Ok(Commit::Fenced) => {}
            Err(Error::Unknown(_) | Error::Busy(_) | Error::Io(_)) => {
                thread::sleep(Duration::from_millis(5));
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        match writer.session(changes.session) {
            Ok(Some(row)) => return row.seq == changes.seq,
            Ok(None) => panic!("the session is gone"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn a_connection_cut_behind_commit_leaves_an_outcome_that_is_found_out() {
    let (direct, through, proxy) = behind_proxy();
    let (_, reader) = open(&direct, small());
    let (mut writer, _) = open(&through, small());
    let session = begin(&mut writer);
    let changes = numbered(sample::finished([ended(1)]), session, 1);
    proxy.arm(At::After);
    let outcome = writer.commit(&changes);
    assert!(matches!(outcome, Err(Error::Unknown(_))), "{outcome:?}");
    // The first copy may still be on its way: the row says what became of it once it is free.
    let again = writer.commit(&changes);
    assert!(matches!(again, Ok(Commit::Fenced)), "{again:?}");
    let row = writer.session(session).expect("it is read").expect("a row");
    assert_eq!((row.seq, row.revoked), (1, false));
    done(writer.commit(&numbered(sample::finished([ended(2)]), session, 2)));
    assert_eq!(all_runs(&reader, &RunFilter::default(), 10).len(), 2);
    assert_eq!(counted(&reader), 2, "each run is rolled up once");
}

#[test]
fn a_connection_cut_in_front_of_commit_is_unknown_too_and_the_copy_is_done() {
    let (direct, through, proxy) = behind_proxy();
    let (_, reader) = open(&direct, small());
    let (mut writer, _) = open(&through, small());
    let session = begin(&mut writer);
    let changes = numbered(sample::finished([ended(1)]), session, 1);
    proxy.arm(At::Before);
    let outcome = writer.commit(&changes);
    assert!(matches!(outcome, Err(Error::Unknown(_))), "{outcome:?}");
    assert!(send(&mut writer, &changes));
    assert_eq!(all_runs(&reader, &RunFilter::default(), 10).len(), 1);
    assert_eq!(counted(&reader), 1);
}

#[test]
fn a_connection_cut_before_commit_has_changed_nothing() {
    let (_, through, proxy) = behind_proxy();
    let (mut writer, _) = open(&through, small());
    let session = begin(&mut writer);
    done(writer.commit(&numbered(ChangeSet::default(), session, 1)));
    let changes = numbered(inserted(&[sample::run(0, 1, job_id(1))]), session, 2);
    proxy.arm(At::Begin);
    let outcome = writer.commit(&changes);
    assert!(
        matches!(outcome, Err(Error::Io(_) | Error::Busy(_))),
        "{outcome:?}"
    );
    done(writer.commit(&changes));
}

#[test]
fn a_frozen_owner_holds_up_a_take_over_only_for_a_while_and_is_fenced() {
    let (direct, through, proxy) = behind_proxy();
    let (mut taker, reader) = open(&direct, small());
    let (mut owner, _) = open(&through, small());
    let session = begin(&mut owner);
    done(owner.commit(&numbered(ChangeSet::default(), session, 1)));
    let changes = numbered(inserted(&[sample::run(0, 1, job_id(1))]), session, 2);
    proxy.arm(At::Hold);
    let (outcome, seq) = thread::scope(|scope| {
        let frozen = scope.spawn(|| {
            let outcome = owner.commit(&changes);
            (outcome, send(&mut owner, &changes))
        });
        proxy.wait();
        // Its transaction is open and has moved its row on; the server ends it, and the row is free.
        let mine = begin(&mut taker);
        let take = ChangeSet {
            revoke: vec![session],
            ..ChangeSet::default()
        };
        assert!(send(&mut taker, &numbered(take, mine, 1)));
        proxy.release();
        frozen.join().expect("it ends")
    });
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(!seq, "what a deposed owner sends is never done");
    assert_eq!(reader.run(run_id(0, 1)).expect("it is read"), None);
}

#[test]
fn nothing_that_was_acknowledged_is_lost_when_the_server_crashes_under_load() {
    let cluster = Cluster::start(Purpose::Test).expect("a server");
    let target = target(&cluster.database().expect("a database"));
    let (mut writer, reader) = open(&target, small());
    let session = begin(&mut writer);
    let over = AtomicBool::new(false);
    let commits = thread::scope(|scope| {
        let loader = scope.spawn(|| load(&mut writer, session, &over));
        for _ in 0..4 {
            let before = rows(&reader);
            // Some work between the crashes.
            while rows(&reader) < before + 40 {
                thread::yield_now();
            }
            cluster.crash_and_restart().expect("it comes up again");
        }
        over.store(true, Ordering::SeqCst);
        loader.join().expect("it ends")
    });
    let all = all_runs(&reader, &RunFilter::default(), 500);
    assert_eq!(all.len() as u64, commits * 10, "every run is there once");
    let active = reader.active_runs(&SegmentSet::ALL, None, 1_000);
    assert_eq!(active.expect("they are read").len(), 10);
    assert_eq!(counted(&reader), (commits - 1) * 10);
}

fn rows(reader: &Reader) -> usize {
    match reader.runs(&RunFilter::default(), None, 100_000) {
        Ok(page) => page.runs.len(),
        Err(_) => 0,
    }
}

/// Commits ten new runs and finishes the ten before, again and again.
fn load(writer: &mut Writer, session: SessionId, over: &AtomicBool) -> u64 {
    let mut seq = 0;
    while !over.load(Ordering::SeqCst) {
        seq += 1;
        let new = (0..10).map(|n| sample::run(0, seq * 10 + n, job_id(n)));
        let inserts = new.map(|run| RunChange::Insert(Box::new(run)));
        let old = (0..10).filter(|_| seq > 1);
        let old = old.map(|n| sample::run(0, (seq - 1) * 10 + n, job_id(n)));
        let finishes =
            old.map(|run| RunChange::Finish(Box::new(sample::ended(run, RunState::Completed, 40))));
        let changes = sample::runs(inserts.chain(finishes).collect::<Vec<_>>());
        assert!(
            send(writer, &numbered(changes, session, seq)),
            "nobody else takes over"
        );
    }
    seq
}
