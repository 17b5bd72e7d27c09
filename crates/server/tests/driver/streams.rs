//! Workers' streams through the driver.

use std::collections::BTreeMap;
use std::time::Duration;

use drumtower_core::engine::{
    AttemptRef, Finished, Heartbeat, Hello, Load, Reply, ToWorker, WorkerEvent,
};
use drumtower_core::model::{
    AttemptOutcome, Fence, ProcessId, RunId, RunState, WallMs, WorkerName,
};
use drumtower_server::driver::StreamMessage;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::faulty::{Fault, World};

fn hello(process: u64) -> Hello {
    Hello {
        worker: WorkerName::new("w").expect("a name"),
        process: ProcessId(process),
        stream_number: 1,
        namespace: None,
        host: String::new(),
        version: String::new(),
        labels: BTreeMap::new(),
        exec: false,
        http: false,
        enforcement: Default::default(),
        handlers: vec!["noop".into()],
        capacity: 4,
        links: false,
    }
}

fn finished(attempt: AttemptRef) -> Finished {
    Finished {
        attempt,
        outcome: AttemptOutcome::Succeeded,
        started: Some(WallMs(1)),
        duration_ms: 2,
        exit_code: Some(0),
        signal: None,
        http_status: None,
        verdict: None,
        cpu_ms: 0,
        peak_memory_bytes: 0,
        result: None,
        error: None,
        log: None,
    }
}

async fn next(stream: &mut Receiver<StreamMessage>) -> StreamMessage {
    tokio::time::timeout(Duration::from_secs(30), stream.recv())
        .await
        .expect("in time")
        .expect("open")
}

#[tokio::test]
async fn a_run_goes_to_a_worker_and_comes_back_finished() {
    let world = World::start().await;
    world.put("a").await.expect("available").expect("accepted");
    let (id, mut stream) = world.handle.open_stream().await.expect("open");
    let beat = Heartbeat {
        number: 1,
        acked_position: 0,
        held: vec![],
        load: Load::default(),
        wall: WallMs(0),
    };
    let events = vec![
        WorkerEvent::Connected(hello(7)),
        WorkerEvent::Heartbeat(beat),
        WorkerEvent::Granted { total: 4 },
    ];
    world.handle.worker(id, events).await.expect("taken");
    assert!(matches!(
        next(&mut stream).await,
        StreamMessage::Message(ToWorker::Welcome { .. })
    ));
    assert!(matches!(
        next(&mut stream).await,
        StreamMessage::Message(ToWorker::Renew { beat: 1, .. })
    ));
    let Ok(Ok(Reply::Triggered(results))) = world.trigger("a").await else {
        panic!("refused")
    };
    let run = results[0].as_ref().expect("made").run;
    let StreamMessage::Message(ToWorker::Assign(assign)) = next(&mut stream).await else {
        panic!("no assignment")
    };
    assert_eq!(assign.attempt.run, run);
    let mut watch = world.handle.watch_run(run);
    let finished = finished(assign.attempt);
    world
        .handle
        .worker(id, vec![WorkerEvent::Finished(finished)])
        .await
        .expect("taken");
    assert!(matches!(
        next(&mut stream).await,
        StreamMessage::Message(ToWorker::FinishAck { .. })
    ));
    watch.changed().await;
    let stored = world.reader.run(run).expect("readable").expect("kept");
    assert_eq!(stored.state, RunState::Completed);
}

#[tokio::test]
async fn a_new_life_closes_streams_so_that_workers_dial_again() {
    let world = World::start().await;
    let (id, mut stream) = world.handle.open_stream().await.expect("open");
    world
        .handle
        .worker(id, vec![WorkerEvent::Connected(hello(7))])
        .await
        .expect("taken");
    assert!(matches!(
        next(&mut stream).await,
        StreamMessage::Message(ToWorker::Welcome { .. })
    ));
    world.fault(Fault::Invariant);
    assert!(world.put("a").await.is_err());
    assert!(matches!(
        next(&mut stream).await,
        StreamMessage::Close { again: true, .. }
    ));
}

#[tokio::test]
async fn a_worker_that_does_not_read_loses_its_stream_and_takes_no_memory() {
    let world = World::start().await;
    let (id, mut stream) = world.handle.open_stream().await.expect("open");
    let hello = WorkerEvent::Connected(hello(7));
    world.handle.worker(id, vec![hello]).await.expect("taken");
    let nobodys = AttemptRef {
        run: RunId(1),
        attempt: 1,
        fence: Fence(1),
    };
    for _ in 0..70 {
        let ends = vec![WorkerEvent::Finished(finished(nobodys)); 1_000];
        world.handle.worker(id, ends).await.expect("taken");
    }
    world
        .put("a")
        .await
        .expect("others are served")
        .expect("accepted");
    let mut kept = 0;
    let end = loop {
        match stream.try_recv() {
            Ok(_) => kept += 1,
            Err(end) => break end,
        }
    };
    assert_eq!(
        end,
        TryRecvError::Disconnected,
        "{kept} messages were kept and more may come"
    );
}
