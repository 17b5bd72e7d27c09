//! What callers are told, and what is in the store, after each way in which a commit can end.

use std::sync::Arc;

use drumtower_core::change::{ChangeSet, JobChange, ScheduleChange};
use drumtower_core::model::{Actor, JobId, JobRow, JobVersion, ScheduleRow, SegmentId, WallMs};
use drumtower_server::driver::{Health, Unavailable};
use drumtower_store::memory::Memory;
use drumtower_store::{Commit, Store};

use crate::faulty::{Fault, World, spec};

#[tokio::test]
async fn an_answer_comes_only_after_the_commit() {
    let world = World::start().await;
    let (arrived, go) = world.hold();
    let put = tokio::spawn({
        let handle = world.handle.clone();
        let spec = crate::faulty::spec("a");
        async move {
            use drumtower_core::engine::{Command, Condition};
            let actor = drumtower_core::model::Actor::new("tester");
            handle
                .command(
                    actor,
                    Command::PutJob {
                        spec,
                        condition: Condition::Any,
                    },
                )
                .await
        }
    });
    tokio::task::spawn_blocking(move || arrived.recv())
        .await
        .expect("joined")
        .expect("the commit arrived");
    assert!(!put.is_finished(), "told before it was durable");
    assert!(!world.stored("a"));
    go.send(()).expect("the writer waits");
    put.await
        .expect("joined")
        .expect("available")
        .expect("accepted");
    assert!(world.stored("a"));
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_sending_the_same_again() {
    for fault in [Fault::UnknownNotApplied, Fault::UnknownApplied] {
        let world = World::start().await;
        world.fault(fault);
        world
            .put("a")
            .await
            .expect("known in the end")
            .expect("accepted");
        assert!(world.stored("a"));
        world
            .put("b")
            .await
            .expect("the loop goes on")
            .expect("accepted");
    }
}

#[tokio::test]
async fn many_lost_answers_in_a_row_still_end_in_one_commit() {
    let world = World::start().await;
    world.fault(Fault::UnknownNotApplied);
    world.fault(Fault::Busy);
    world.fault(Fault::UnknownApplied);
    world
        .put("a")
        .await
        .expect("known in the end")
        .expect("accepted");
    let counters: u64 = world
        .reader
        .counters()
        .expect("readable")
        .iter()
        .map(|(_, row)| row.created)
        .sum();
    assert_eq!(counters, 0);
    world
        .trigger("a")
        .await
        .expect("available")
        .expect("accepted");
    let counters: u64 = world
        .reader
        .counters()
        .expect("readable")
        .iter()
        .map(|(_, row)| row.created)
        .sum();
    assert_eq!(counters, 1);
}

#[tokio::test]
async fn a_full_disk_delays_and_says_so_and_loses_nothing() {
    let world = World::start().await;
    let mut health = world.handle.health();
    for _ in 0..4 {
        world.fault(Fault::Full);
    }
    let impaired = tokio::spawn(async move {
        health
            .wait_for(|health| matches!(health, Health::Impaired(why) if why.contains("full")))
            .await
            .map(|_| ())
    });
    world.put("a").await.expect("available").expect("accepted");
    impaired.await.expect("joined").expect("it was said");
    world.ready().await;
    assert!(world.stored("a"));
}

#[tokio::test]
async fn a_deposed_server_commits_nothing_and_starts_anew() {
    let world = World::start().await;
    world.fault(Fault::Revoked);
    let answer = world.put("a").await;
    assert!(
        matches!(answer, Err(Unavailable::NotReady(_))),
        "{answer:?}"
    );
    assert!(!world.stored("a"));
    world.ready().await;
    world
        .put("a")
        .await
        .expect("the next life")
        .expect("accepted");
    assert!(world.stored("a"));
}

#[tokio::test]
async fn a_commit_that_went_through_before_the_deposition_is_answered() {
    let world = World::start().await;
    world.fault(Fault::AppliedThenRevoked);
    world.put("a").await.expect("committed").expect("accepted");
    assert!(world.stored("a"));
    world.ready().await;
    world
        .put("b")
        .await
        .expect("the next life")
        .expect("accepted");
}

#[tokio::test]
async fn a_broken_invariant_in_the_store_drops_all_state_and_reads_it_anew() {
    let world = World::start().await;
    world.put("a").await.expect("available").expect("accepted");
    world.fault(Fault::Invariant);
    let answer = world.put("b").await;
    assert!(
        matches!(answer, Err(Unavailable::NotReady(_))),
        "{answer:?}"
    );
    assert!(!world.stored("b"));
    world.ready().await;
    world
        .trigger("a")
        .await
        .expect("the next life")
        .expect("a is still known");
}

#[tokio::test]
async fn what_was_accepted_is_committed_before_the_loop_stops() {
    let world = World::start().await;
    let (arrived, go) = world.hold();
    let first = tokio::spawn({
        let handle = world.handle.clone();
        async move {
            use drumtower_core::engine::{Command, Condition};
            let actor = drumtower_core::model::Actor::new("tester");
            handle
                .command(
                    actor,
                    Command::PutJob {
                        spec: crate::faulty::spec("a"),
                        condition: Condition::Any,
                    },
                )
                .await
        }
    });
    tokio::task::spawn_blocking(move || arrived.recv())
        .await
        .expect("joined")
        .expect("the commit arrived");
    let stop = tokio::spawn({
        let handle = world.handle.clone();
        async move { handle.stop().await }
    });
    go.send(()).expect("the writer waits");
    first
        .await
        .expect("joined")
        .expect("available")
        .expect("accepted");
    stop.await.expect("joined");
    assert!(world.stored("a"));
    assert_eq!(world.put("b").await.err(), Some(Unavailable::Stopping));
}

/// A job whose stored definition no server would have accepted.
fn with_impossible_job(store: &mut Memory) {
    let session = store
        .begin_session(&Actor::new("vandal"), 3_000)
        .expect("a session");
    let mut broken = spec("broken");
    broken.timeout = Some("never".into());
    let (id, actor) = (JobId(1 << 22), Actor::new("vandal"));
    let row = JobRow {
        id,
        namespace: broken.namespace.clone(),
        name: broken.name.clone(),
        segment: SegmentId::of("default", "broken"),
        version: 1,
        revision: 1,
        paused: None,
        deleted: false,
        created: WallMs(0),
        updated: WallMs(0),
        actor: actor.clone(),
    };
    let schedule = ScheduleRow {
        job: id,
        fired_through: WallMs(0),
        next_nominal: None,
        next_due: None,
        fires: 0,
    };
    let mut changes = ChangeSet {
        session,
        seq: 1,
        extend_ms: 0,
        ..ChangeSet::default()
    };
    changes.jobs.insert(id, JobChange::Insert(row));
    changes.versions.insert(
        (id, 1),
        JobVersion {
            job: id,
            version: 1,
            spec: broken,
            created: WallMs(0),
            actor,
        },
    );
    changes.schedules.insert(
        id,
        ScheduleChange {
            expected: None,
            row: schedule,
        },
    );
    assert_eq!(store.commit(&changes).expect("commits"), Commit::Done);
}

#[tokio::test]
async fn a_broken_invariant_in_the_engine_ends_its_life_and_not_the_process() {
    let mut store = Memory::new();
    with_impossible_job(&mut store);
    let reader = Arc::new(store.reader());
    let world = World::start_with(store, reader).await;
    world.put("a").await.expect("available").expect("accepted");
    let answer = world.trigger("broken").await;
    assert!(
        matches!(answer, Err(Unavailable::NotReady(_))),
        "{answer:?}"
    );
    world.ready().await;
    world
        .trigger("a")
        .await
        .expect("the next life")
        .expect("a is still known");
}
