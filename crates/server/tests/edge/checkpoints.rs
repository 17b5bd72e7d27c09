//! Progress and checkpoints over the wire: who saves, who fetches, and what people see of it.

use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::worker::v1::worker_message::Body as ToServer;
use serde_json::json;

use crate::client::Client;
use crate::runs::{put_exec, trigger};
use crate::server::Server;
use crate::worker::{Worker, fetch_checkpoint, hello};

async fn shown(admin: &Client, run: &str) -> serde_json::Value {
    admin.get(&format!("/api/v1/runs/{run}")).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_for_the_holder_of_the_attempt_alone() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let run = trigger(&admin, "x", json!({})).await;
    let assign = worker.assignment().await;
    assert_eq!(assign.checkpoint, None);
    let (attempt, process) = (assign.attempt.unwrap(), hello("w1").process);
    let body = vec![0xfe; Limits::CHECKPOINT_BYTES];
    assert!(worker.save(attempt, 1, &body).await);
    let token = Some(server.local.as_str());
    let fetched = fetch_checkpoint(&server.url, token, (attempt, process)).await;
    let fetched = fetched.unwrap();
    assert!(fetched.number == 1 && fetched.body == body);
    let refused = async |attempt: wire::AttemptRef, process: u64, token: &str| {
        let answer = fetch_checkpoint(&server.url, Some(token), (attempt, process)).await;
        answer.unwrap_err().code() == tonic::Code::Aborted
    };
    assert!(refused(attempt, process + 1, &server.local).await);
    let older = wire::AttemptRef {
        fence: attempt.fence - 1,
        ..attempt
    };
    assert!(refused(older, process, &server.local).await);
    let elsewhere = server.token("worker", Some("b")).await;
    assert!(refused(attempt, process, &elsewhere).await);
    let view = shown(&admin, &run).await;
    assert_eq!(view["checkpoint"]["number"], 1);
    assert_eq!(view["checkpoint"]["attempt"], 1);
    assert_eq!(view["checkpoint"]["bytes"], Limits::CHECKPOINT_BYTES);
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    assert_eq!(shown(&admin, &run).await["checkpoint"], json!(null));
    assert!(refused(attempt, process, &server.local).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_goes_on_from_where_a_failed_run_was() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let run = trigger(&admin, "x", json!({})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    assert!(worker.save(attempt, 1, b"page 7").await);
    worker.finish(attempt, wire::Outcome::Failed).await;
    let rerun = async |run: &str, body| {
        let path = format!("/api/v1/runs/{run}/rerun");
        admin.post(&path, &body).await
    };
    let again = rerun(&run, json!({"resume": true})).await.expect(201);
    let again = again["id"].as_str().unwrap().to_owned();
    let view = shown(&admin, &again).await;
    assert_eq!(view["checkpoint"]["attempt"], 0, "{view}");
    worker.grant(8);
    let assign = worker.assignment().await;
    let mark = assign.checkpoint.unwrap();
    assert_eq!((mark.number, mark.bytes), (1, 6));
    let (attempt, process) = (assign.attempt.unwrap(), hello("w1").process);
    let token = Some(server.local.as_str());
    let fetched = fetch_checkpoint(&server.url, token, (attempt, process)).await;
    assert_eq!(fetched.unwrap().body, b"page 7");
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    let problem = rerun(&again, json!({"resume": true})).await;
    let problem = problem.expect(422);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("no checkpoint"),
        "{problem}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_with_the_run_and_told_as_it_comes() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let run = trigger(&admin, "x", json!({})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    let mut changes = admin.lines("/api/v1/changes?kind=run");
    while changes.recv().await.expect("a greeting") != "event: ready" {}
    worker.send(vec![ToServer::Progress(wire::Progress {
        attempt: Some(attempt),
        percent: 42,
        message: "copying".to_owned(),
    })]);
    loop {
        let line = changes.recv().await.expect("the stream goes on");
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        if data["progress"]["percent"] == 42 {
            assert_eq!(data["id"], json!(run));
            break;
        }
    }
    let view = shown(&admin, &run).await;
    assert_eq!(view["progress"]["percent"], 42);
    assert_eq!(view["progress"]["message"], "copying");
    worker.finish(attempt, wire::Outcome::Succeeded).await;
}
