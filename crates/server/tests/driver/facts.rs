//! What listeners of the tap hear after each way in which a commit can end.

use std::time::Duration;

use drumtower_core::model::RunState;
use drumtower_server::driver::tap::{Fact, Heard, Interest, JobDeed, Subscription};

use crate::faulty::{Fault, World};

async fn next(facts: &mut Subscription) -> Heard {
    tokio::time::timeout(Duration::from_secs(30), facts.next())
        .await
        .expect("in time")
        .expect("the driver lives")
}

/// The next facts, which must be there without a hole before them.
async fn told(facts: &mut Subscription) -> Vec<Fact> {
    match next(facts).await {
        Heard::Facts(chunk) => chunk.facts.clone(),
        Heard::Missed(count) => panic!("missed {count}"),
    }
}

#[tokio::test]
async fn facts_come_after_their_commit_and_name_their_job() {
    let world = World::start().await;
    let mut facts = world.handle.tap().subscribe(Interest::Committed);
    let (arrived, go) = world.hold();
    let putting = world.put("a");
    let watching = async {
        tokio::task::spawn_blocking(move || arrived.recv())
            .await
            .expect("joined")
            .expect("the commit arrived");
        assert!(facts.ready().is_none(), "told before it was durable");
        go.send(()).expect("the writer waits");
    };
    let (put, ()) = tokio::join!(putting, watching);
    put.expect("available").expect("accepted");
    let all = told(&mut facts).await;
    let [Fact::Job(job)] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (job.job.name.as_str(), job.deed, job.version),
        ("a", JobDeed::Put, 1)
    );

    world
        .trigger("a")
        .await
        .expect("available")
        .expect("accepted");
    let all = told(&mut facts).await;
    let [Fact::Run(run)] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(run.job.name.as_str(), "a");
    assert_eq!(
        (run.state, run.made, run.attempts),
        (RunState::Pending, true, 0)
    );
    assert!(run.end.is_none());
}

#[tokio::test]
async fn a_commit_that_was_on_its_way_is_missed_and_not_passed_over() {
    let world = World::start().await;
    let (arrived, go) = world.hold();
    let putting = world.put("a");
    let subscribing = async {
        tokio::task::spawn_blocking(move || arrived.recv())
            .await
            .expect("joined")
            .expect("the commit arrived");
        let facts = world.handle.tap().subscribe(Interest::Committed);
        go.send(()).expect("the writer waits");
        facts
    };
    let (put, mut facts) = tokio::join!(putting, subscribing);
    put.expect("available").expect("accepted");
    let heard = next(&mut facts).await;
    assert!(matches!(heard, Heard::Missed(1)), "{heard:?}");
}

#[tokio::test]
async fn what_never_happened_is_not_told_and_what_did_is() {
    let world = World::start().await;
    let mut facts = world.handle.tap().subscribe(Interest::Committed);
    world.fault(Fault::Invariant);
    world.put("a").await.expect_err("the loop starts anew");
    world.ready().await;
    world.put("b").await.expect("available").expect("accepted");
    let all = told(&mut facts).await;
    let [Fact::Job(job)] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(job.job.name.as_str(), "b");

    world.fault(Fault::AppliedThenRevoked);
    let _ = world.put("c").await;
    let all = told(&mut facts).await;
    let [Fact::Job(job)] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        job.job.name.as_str(),
        "c",
        "durable, though the session is gone"
    );
}

#[tokio::test]
async fn listeners_are_let_go_when_the_driver_ends() {
    let world = World::start().await;
    let mut facts = world.handle.tap().subscribe(Interest::Committed);
    world.handle.stop().await;
    let ended = async { while facts.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .expect("in time");
}
