//! A worker over real sockets with several servers that have work to give.

mod tiny_server;

use std::time::Duration;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::{Error, Leave, Worker};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use tiny_server::{Stream, TOKEN, TinyServer};

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";

struct Running {
    leave: watch::Sender<Leave>,
    worker: JoinHandle<Result<(), Error>>,
}

fn start(server: &TinyServer) -> Running {
    let worker = Worker::builder(&server.url)
        .token(TOKEN)
        .capacity(4)
        .drain_timeout(Duration::from_secs(30))
        .handler("double", |_, number: i64| async move { Ok(2 * number) })
        .build()
        .expect("settings are right");
    let (leave, left) = watch::channel(Leave::No);
    Running {
        leave,
        worker: tokio::spawn(worker.run_until(left)),
    }
}

/// Servers that each have work to give, and tell so.
async fn cluster(count: usize) -> Vec<TinyServer> {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(TinyServer::start().await);
    }
    let urls: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
    for server in &mut servers {
        server.address.clone_from(&server.url);
        server.others.clone_from(&urls);
        server.owners.clone_from(&urls);
    }
    servers
}

/// Answers a worker that leaves until it has said goodbye.
async fn let_go(stream: &mut Stream) {
    loop {
        match stream.next_telling().await {
            FromWorker::Recall(recall) => stream.send(Body::RecallAnswer(wire::RecallAnswer {
                id: recall.id,
                consumed: 0,
            })),
            FromWorker::Goodbye(_) => return,
            other => panic!("{other:?}"),
        }
    }
}

/// Answers the first recall, having assigned nothing.
async fn give_back(stream: &mut Stream) {
    loop {
        match stream.next().await {
            FromWorker::Recall(recall) => {
                assert!(recall.stays);
                return stream.send(Body::RecallAnswer(wire::RecallAnswer {
                    id: recall.id,
                    consumed: 0,
                }));
            }
            FromWorker::Heartbeat(_) | FromWorker::Grant(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn each_server_with_work_has_a_link_and_is_told_goodbye() {
    let mut servers = cluster(3).await;
    let running = start(&servers[0]);
    let mut streams = Vec::new();
    for server in &mut servers {
        streams.push(server.welcome().await);
    }
    assert_eq!(streams[0].meant, None, "it was not known who it is");
    for (server, stream) in servers.iter().zip(&streams).skip(1) {
        assert_eq!(stream.meant.as_ref(), Some(&server.url));
    }
    running.leave.send(Leave::Drained).expect("it listens");
    for stream in &mut streams {
        let_go(stream).await;
    }
    drop(streams);
    let left = running.worker.await.expect("no panic");
    left.expect("a clean end");
}

#[tokio::test]
async fn runs_of_every_server_are_carried_out() {
    let mut servers = cluster(2).await;
    let _running = start(&servers[0]);
    let mut streams = Vec::new();
    for server in &mut servers {
        streams.push(server.welcome().await);
    }
    // The first was granted everything before the second came.
    let mut second = streams.pop().expect("two");
    let mut first = streams.pop().expect("two");
    give_back(&mut first).await;
    for (stream, run) in [(&mut first, 1), (&mut second, 2)] {
        while !matches!(stream.next().await, FromWorker::Grant(_)) {}
        stream.assign_handler(run, "double", "21");
        let end = stream.next_end().await;
        assert_eq!(end.result, "42");
        stream.acknowledge(&end);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_asked_for_by_way_of_another() {
    let mut servers = cluster(1).await;
    let mut server = servers.pop().expect("one");
    server.owners.push(NOBODY.to_owned());
    let _running = start(&server);
    let mut first = server.welcome().await;
    server.address = NOBODY.to_owned();
    let mut relayed = server.welcome().await;
    assert_eq!(relayed.meant.as_deref(), Some(NOBODY));
    give_back(&mut first).await;
    while !matches!(relayed.next().await, FromWorker::Grant(_)) {}
    relayed.assign_handler(1, "double", "4");
    assert_eq!(relayed.next_end().await.result, "8");
}

#[tokio::test]
async fn a_server_that_is_named_later_gets_a_link() {
    let mut servers = cluster(2).await;
    let second_url = servers[1].url.clone();
    servers[0].owners.truncate(1);
    let _running = start(&servers[0]);
    let first = servers[0].welcome().await;
    first.send(Body::Owners(wire::Owners {
        servers: vec![servers[0].url.clone(), second_url.clone()],
    }));
    let second = servers[1].welcome().await;
    assert_eq!(second.meant, Some(second_url));
}

#[tokio::test]
async fn a_worker_whose_server_is_gone_for_good_finds_another_one() {
    let mut servers = cluster(2).await;
    servers[0].owners.truncate(1);
    servers[0].address = NOBODY.to_owned();
    servers[0].owners = vec![NOBODY.to_owned()];
    servers[1].owners = vec![servers[1].url.clone()];
    let _running = start(&servers[0]);
    let first = servers[0].welcome().await;
    let gone = servers.remove(0);
    drop((first, gone));
    // By now it asks for the one that greeted; whoever answers is its server from then on.
    let second = servers[0].welcome().await;
    assert_eq!(second.meant.as_deref(), Some(NOBODY));
}

#[tokio::test]
async fn one_server_that_refuses_the_worker_does_not_end_it() {
    let mut servers = cluster(2).await;
    let running = start(&servers[0]);
    let first = servers[0].welcome().await;
    let mut second = servers[1].welcome().await;
    first.send(Body::Close(wire::Close {
        reason: "not here".to_owned(),
        again: false,
    }));
    // What the first had is the second's.
    let mut granted = 0;
    while granted < 4 {
        if let FromWorker::Grant(grant) = second.next().await {
            granted = grant.total;
        }
    }
    second.send(Body::Close(wire::Close {
        reason: "nor here".to_owned(),
        again: false,
    }));
    let error = running.worker.await.expect("no panic");
    let error = error.expect_err("the last one");
    assert!(error.to_string().contains("nor here"), "{error}");
}
