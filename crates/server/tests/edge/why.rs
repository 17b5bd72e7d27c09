//! Why a run is where it is, as callers are told. The words themselves are held by the texts beside the core.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::runs::{put_exec, trigger};
use crate::server::Server;
use crate::worker::{Worker, hello};

fn codes(account: &Value, list: &str) -> Vec<String> {
    let list = account[list].as_array().expect("a list");
    let codes = list.iter().map(|it| it["code"].as_str().expect("a code"));
    codes.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_explained_while_it_waits_and_when_it_has_failed() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", json!({})).await;
    let path = format!("/api/v1/runs/{id}/explain");
    let waits = admin.get(&path).await.expect(200);
    assert_eq!(waits["headline"]["code"], "no_worker_connected");
    assert_eq!(waits["advice"][0]["commands"], json!(["drumtower work"]));
    let text = waits["text"].as_str().expect("text");
    assert!(
        text.starts_with(&format!("{id} of default/x is PENDING.\n")),
        "{text}"
    );

    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.expect("an attempt");
    worker.start(attempt);
    worker
        .finish_with(attempt, |end| {
            end.outcome = wire::Outcome::Failed.into();
            end.error = "no database".to_owned();
        })
        .await;
    let ended = format!("/api/v1/runs/{id}/wait?timeout=60s");
    assert_eq!(admin.get(&ended).await.expect(200)["state"], "FAILED");
    let failed = admin.get(&path).await.expect(200);
    assert_eq!(failed["headline"]["code"], "failed_too_often");
    let happened = codes(&failed, "timeline");
    assert_eq!(happened, ["made", "assigned", "started", "failed"]);
    let (first, last) = (&failed["timeline"][0], &failed["timeline"][3]);
    assert_eq!(first["actor"], admin.get(&ended).await.expect(200)["actor"]);
    assert_eq!(
        (&last["worker"], &last["attempt"]),
        (&json!("w1"), &json!(1))
    );
    let requeue = format!("drumtower deadletter requeue {id}");
    assert!(
        failed["text"]
            .as_str()
            .is_some_and(|it| it.contains(&requeue))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_cannot_be_explained() {
    let server = Server::start().await;
    let admin = server.admin();
    let answer = admin.get("/api/v1/runs/run_06d4ztbp00000/explain").await;
    assert_eq!(answer.expect(404)["code"], "no_such_run");
    let answer = admin
        .get("/api/v1/runs/run_06d4ztbp00000/explain?why=1")
        .await;
    answer.expect(400);
}
