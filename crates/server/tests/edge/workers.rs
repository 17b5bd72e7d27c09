//! Workers' streams: hello, and everything a worker can get wrong.

use drumtower_proto::worker::v1 as wire;
use drumtower_proto::worker::v1::worker_message::Body as ToServer;
use serde_json::{Value, json};

use crate::runs::{put_exec, trigger};
use crate::server::Server;
use crate::worker::{Worker, hello};

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_that_cannot_be_answered_is_closed_for_good() {
    let server = Server::start().await;
    let said = async |first: Vec<ToServer>| {
        let mut worker = Worker::dial(&server.url, Some(&server.local))
            .await
            .unwrap();
        worker.send(first);
        let close = worker.closed().await;
        assert!(!close.again, "{close:?}");
        close.reason
    };
    let future = wire::Hello {
        protocol_min: 99,
        protocol_max: 100,
        ..hello("w")
    };
    assert!(
        said(vec![ToServer::Hello(future)])
            .await
            .contains("upgrade the server")
    );
    assert!(
        said(vec![ToServer::Hello(hello("Bad Name"))])
            .await
            .contains("worker name")
    );
    assert!(
        said(vec![ToServer::Hello(wire::Hello {
            capacity: 0,
            ..hello("w")
        })])
        .await
        .contains("capacity")
    );
    assert!(
        said(vec![ToServer::Grant(wire::Grant { total: 1 })])
            .await
            .contains("hello")
    );
    assert!(said(Vec::new()).await.contains("hello"));
    assert!(
        said(vec![
            ToServer::Hello(hello("w")),
            ToServer::Hello(hello("w"))
        ])
        .await
        .contains("second hello")
    );
    assert!(
        said(vec![
            ToServer::Hello(hello("w")),
            ToServer::Started(wire::Started::default())
        ])
        .await
        .contains("protocol")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_listed_while_it_is_there() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    worker.beat();
    worker
        .wait_for(|body| matches!(body, wire::server_message::Body::Renew(_)).then_some(()))
        .await;
    let items = admin.get("/api/v1/workers").await.expect(200)["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
    let shown = &items[0];
    assert_eq!(
        (&shown["name"], &shown["host"], &shown["capacity"]),
        (&json!("w1"), &json!("here"), &json!(8))
    );
    assert_eq!(
        (&shown["namespace"], &shown["load"]["cpu_permille"]),
        (&Value::Null, &json!(5))
    );
    assert!(shown["last_heartbeat"].as_str().unwrap().ends_with('Z'));

    let bound = server.token("worker", Some("team")).await;
    let _bound = Worker::join(&server.url, &bound, hello("w2")).await;
    let names = async |namespace: Option<&str>| {
        let client = server.client("viewer", namespace).await;
        let items = client.get("/api/v1/workers").await.expect(200)["items"].clone();
        let names = items
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(None).await, ["w1", "w2"]);
    assert_eq!(names(Some("team")).await, ["w1", "w2"]);
    assert_eq!(names(Some("other")).await, ["w1"]);

    let shown = admin.get("/api/v1/workers/w2").await.expect(200);
    assert_eq!(
        (&shown["name"], &shown["executors"], &shown["running"]),
        (&json!("w2"), &json!(["exec", "script", "http"]), &json!([]))
    );
    let other = server.client("viewer", Some("other")).await;
    for (client, name) in [(&other, "w2"), (&admin, "nobody")] {
        let path = format!("/api/v1/workers/{name}");
        client.get(&path).await.problem(404, "no_such_worker");
    }
    admin
        .get("/api/v1/workers/Bad%20Name")
        .await
        .problem(400, "invalid_parameter");

    worker.send(vec![ToServer::Goodbye(wire::Goodbye {})]);
    assert!(!worker.closed().await.again);
    assert_eq!(names(None).await, ["w2"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_worker_gets_only_runs_of_its_namespace() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    admin
        .put("/api/v1/namespaces/team/jobs/x", &manifest)
        .await
        .expect(201);
    let bound = server.token("worker", Some("team")).await;
    let mut worker = Worker::join(&server.url, &bound, hello("w1")).await;
    trigger(&admin, "x", Value::Null).await;
    admin
        .post("/api/v1/namespaces/team/jobs/x/runs", &json!({}))
        .await
        .expect(201);
    assert_eq!(worker.assignment().await.namespace, "team");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exceeds_a_bound_fails_the_attempt_in_words() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let ends: [fn(&mut wire::Finished); 3] = [
        |end| (end.outcome, end.result) = (1, "x".repeat(70_000)),
        |end| (end.outcome, end.result) = (1, "not json".to_owned()),
        |end| end.outcome = 42,
    ];
    for (change, word) in ends.into_iter().zip(["bytes", "JSON", "42"]) {
        let id = trigger(&admin, "x", Value::Null).await;
        let attempt = worker.assignment().await.attempt.unwrap();
        worker.finish_with(attempt, change).await;
        let run = admin
            .get(&format!("/api/v1/runs/{id}/wait"))
            .await
            .expect(200);
        assert_eq!(run["state"], "FAILED");
        assert!(run["error"].as_str().unwrap().contains(word), "{run}");
    }
    server.stop().await;
}
