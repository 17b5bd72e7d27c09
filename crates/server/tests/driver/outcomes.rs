//! What callers are told, and what is in the store, after each way in which a commit can end.

use std::sync::Arc;

use drumtower_core::change::{ChangeSet, JobChange, RunChange, ScheduleChange};
use drumtower_core::model::{
    Actor, Attempt, Fence, JobId, JobRow, JobVersion, Member, Origin, ProcessId, Run, RunId,
    RunState, ScheduleRow, SegmentId, WallMs, WorkerName,
};
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
                        spec: Box::new(spec),
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
    world.put("a").await.expect("available").expect("accepted");
    world.fault(Fault::UnknownNotApplied);
    world.fault(Fault::Busy);
    world.fault(Fault::UnknownApplied);
    world
        .trigger("a")
        .await
        .expect("known in the end")
        .expect("accepted");
    assert_eq!(world.created(), 1);
    world
        .trigger("a")
        .await
        .expect("the loop goes on")
        .expect("accepted");
    assert_eq!(world.created(), 2);
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
                        spec: Box::new(crate::faulty::spec("a")),
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

/// A job with a waiting run that has an attempt under way: what no engine writes and none can make sense of.
fn with_impossible_run(store: &mut Memory) {
    let session = store
        .begin_session(&Member::alone("vandal"), 3_000)
        .expect("a session");
    let (id, actor, spec) = (JobId(1 << 22), Actor::new("vandal"), spec("a"));
    let row = JobRow {
        id,
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
        segment: SegmentId::of("default", "a"),
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
        paused_through: None,
    };
    let attempt = Attempt {
        number: 1,
        fence: Fence(1),
        worker: WorkerName::new("w").expect("a name"),
        process: ProcessId(1),
        assigned: WallMs(0),
        started: None,
        end: None,
    };
    let run = Run {
        id: RunId(1 << 22),
        namespace: spec.namespace.clone(),
        job: id,
        job_version: 1,
        state: RunState::Pending,
        origin: Origin::Api,
        actor: actor.clone(),
        nominal: None,
        due: WallMs(0),
        created: WallMs(0),
        retention: spec.retention(),
        params: None,
        idempotency_key: None,
        parent_run: None,
        root_run: None,
        rerun_of: None,
        backfill: None,
        shard: None,
        not_before: None,
        start_by: None,
        parked: None,
        standing: Default::default(),
        progress: None,
        checkpoint: None,
        cancel: None,
        attempts: vec![attempt],
        transitions: Vec::new(),
        result: None,
        error: None,
    };
    let version = JobVersion {
        job: id,
        version: 1,
        spec,
        created: WallMs(0),
        actor,
    };
    let mut changes = ChangeSet {
        session,
        seq: 1,
        ..ChangeSet::default()
    };
    changes.jobs.insert(id, JobChange::Insert(row));
    changes.versions.insert((id, 1), version);
    let expected = None;
    let change = ScheduleChange {
        expected,
        row: schedule,
    };
    changes.schedules.insert(id, change);
    changes
        .runs
        .insert(run.id, RunChange::Insert(Box::new(run)));
    assert_eq!(store.commit(&changes).expect("commits"), Commit::Done);
}

#[tokio::test]
async fn an_engine_that_breaks_an_invariant_does_not_take_the_process_with_it() {
    let mut store = Memory::new();
    with_impossible_run(&mut store);
    let reader = Arc::new(store.reader());
    let world = World::begin(store, reader);
    let mut health = world.handle.health();
    let impaired =
        |health: &Health| matches!(health, Health::Impaired(why) if why.contains("invariant"));
    health.wait_for(impaired).await.expect("the driver lives");
    assert!(matches!(
        world.put("b").await,
        Err(Unavailable::NotReady(_))
    ));
    world.handle.stop().await;
}

#[tokio::test]
async fn a_full_batch_takes_no_more_until_it_is_committed() {
    let world = World::start().await;
    world.put("a").await.expect("available").expect("accepted");
    let (arrived, go) = world.hold();
    let triggers = |count| {
        let trigger = drumtower_core::engine::Trigger {
            job: crate::faulty::job_ref("a"),
            params: None,
            idempotency_key: None,
            request: None,
            when: None,
            rerun: None,
            overlap: Default::default(),
            force: false,
        };
        drumtower_core::engine::Command::TriggerRuns {
            triggers: vec![trigger; count],
        }
    };
    let mut calls = Vec::new();
    for _ in 0..12 {
        let (handle, command) = (world.handle.clone(), triggers(1000));
        calls.push(tokio::spawn(async move {
            handle.command(Actor::new("tester"), command).await
        }));
    }
    tokio::task::spawn_blocking(move || arrived.recv())
        .await
        .expect("joined")
        .expect("the commit arrived");
    go.send(()).expect("the writer waits");
    for call in calls {
        call.await
            .expect("joined")
            .expect("available")
            .expect("accepted");
    }
    let largest = world.largest.load(std::sync::atomic::Ordering::SeqCst);
    assert!(largest <= 4096, "a commit of {largest} changes");
    assert_eq!(world.created(), 12_000);
}

#[tokio::test]
async fn stop_is_heard_while_the_store_cannot_commit() {
    let world = World::start().await;
    for _ in 0..10_000 {
        world.fault(Fault::Full);
    }
    let (handle, spec) = (world.handle.clone(), spec("a"));
    let put = tokio::spawn(async move {
        use drumtower_core::engine::{Command, Condition};
        let command = Command::PutJob {
            spec: Box::new(spec),
            condition: Condition::Any,
        };
        handle.command(Actor::new("tester"), command).await
    });
    let mut health = world.handle.health();
    let impaired = |health: &Health| matches!(health, Health::Impaired(_));
    health.wait_for(impaired).await.expect("the driver lives");
    world.handle.stop().await;
    assert!(put.await.expect("joined").is_err());
    assert!(!world.stored("a"));
}
