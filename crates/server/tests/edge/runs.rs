//! Runs: from trigger to end as seen from outside, cancelling, waiting, listing.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;
use crate::worker::{Worker, hello};

pub async fn put_exec(client: &Client, name: &str) {
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "params": {"from": "job"}, "retry": {"max_attempts": 1, "max_lost": 1}});
    client
        .put(
            &format!("/api/v1/namespaces/default/jobs/{name}"),
            &manifest,
        )
        .await
        .expect(201);
}

pub async fn trigger(client: &Client, name: &str, params: Value) -> String {
    let body = json!({"params": params});
    let answer = client
        .post(
            &format!("/api/v1/namespaces/default/jobs/{name}/runs"),
            &body,
        )
        .await
        .expect(201);
    answer["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_assigned_runs_and_ends_with_its_story() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let id = trigger(&admin, "x", json!({"from": "call"})).await;
    let waiting = tokio::spawn({
        let (admin, path) = (admin.clone(), format!("/api/v1/runs/{id}/wait?timeout=60s"));
        async move { admin.get(&path).await }
    });
    let assign = worker.assignment().await;
    assert_eq!(
        (assign.namespace.as_str(), assign.job.as_str()),
        ("default", "x")
    );
    assert_eq!(
        (assign.params.as_str(), assign.idempotency_key.as_str()),
        ("{\"from\":\"call\"}", id.as_str())
    );
    assert!(matches!(&assign.task, Some(wire::assign::Task::Exec(exec)) if exec.argv == ["true"]));
    let attempt = assign.attempt.unwrap();
    worker.start(attempt);
    worker
        .finish_with(attempt, |end| {
            end.outcome = wire::Outcome::Succeeded.into();
            end.result = "{\"rows\":3}".to_owned();
            end.exit_code = Some(0);
        })
        .await;
    let run = waiting.await.unwrap().expect(200);
    assert_eq!(
        (&run["state"], &run["job"], &run["origin"]),
        (&json!("COMPLETED"), &json!("x"), &json!("api"))
    );
    assert_eq!(
        (&run["result"], &run["params"]),
        (&json!({"rows": 3}), &json!({"from": "call"}))
    );
    let path: Vec<&str> = run["transitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["to"].as_str().unwrap())
        .collect();
    assert_eq!(
        (path.first(), path.last()),
        (Some(&"PENDING"), Some(&"COMPLETED"))
    );
    let attempt = &run["attempts"][0];
    assert_eq!(
        (
            &attempt["worker"],
            &attempt["end"]["outcome"],
            &attempt["end"]["log"]
        ),
        (&json!("w1"), &json!("succeeded"), &Value::Null)
    );
    assert!(
        attempt["fence"].is_string(),
        "a fence outgrows the integers of JSON readers"
    );
    assert!(run["finished"].as_str().unwrap().ends_with('Z'));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_reaches_the_worker_and_is_repeatable() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let waiting = trigger(&admin, "x", Value::Null).await;
    let path = |id: &str, verb: &str| format!("/api/v1/runs/{id}/{verb}");
    let run = admin
        .post(&path(&waiting, "cancel"), &Value::Null)
        .await
        .expect(200);
    assert_eq!(
        (&run["state"], &run["cancel"]["actor"]),
        (&json!("CANCELLED"), &json!("local"))
    );

    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let running = trigger(&admin, "x", Value::Null).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.start(attempt);
    let run = admin
        .post(&path(&running, "cancel"), &Value::Null)
        .await
        .expect(200);
    assert_ne!(
        run["state"], "CANCELLED",
        "it keeps its place until the worker confirms"
    );
    use wire::server_message::Body;
    worker
        .wait_for(|body| {
            matches!(body, Body::Cancel(cancel) if cancel.attempt == Some(attempt)).then_some(())
        })
        .await;
    worker.finish(attempt, wire::Outcome::Cancelled).await;
    assert_eq!(
        admin.get(&path(&running, "wait")).await.expect(200)["state"],
        "CANCELLED"
    );
    assert_eq!(
        admin
            .post(&path(&running, "cancel"), &Value::Null)
            .await
            .expect(200)["state"],
        "CANCELLED"
    );
    admin
        .post(&path("run_0000000000001", "cancel"), &Value::Null)
        .await
        .problem(404, "no_such_run");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_filter_by_job_and_state() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    put_exec(&admin, "y").await;
    let cancelled = trigger(&admin, "x", Value::Null).await;
    admin
        .post(&format!("/api/v1/runs/{cancelled}/cancel"), &Value::Null)
        .await
        .expect(200);
    let (other, newest) = (
        trigger(&admin, "y", Value::Null).await,
        trigger(&admin, "x", Value::Null).await,
    );
    let ids = async |query: &str| -> Vec<String> {
        let page = admin
            .get(&format!("/api/v1/runs?{query}"))
            .await
            .expect(200);
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids("").await.len(), 3);
    assert_eq!(ids("job=x").await, [newest.clone(), cancelled.clone()]);
    assert_eq!(ids("state=cancelled").await, [cancelled.as_str()]);
    assert_eq!(ids("state=PENDING&job=y").await, [other.as_str()]);
    assert_eq!(
        ids("state=PENDING&state=CANCELLED&namespace=default")
            .await
            .len(),
        3
    );
    assert!(ids("namespace=elsewhere").await.is_empty());
    let run = admin.get("/api/v1/runs?job=y").await.expect(200)["items"][0].clone();
    assert_eq!(
        (&run["job"], &run["attempt"], &run["worker"]),
        (&json!("y"), &json!(0), &Value::Null)
    );
    let shown = admin
        .get(&format!("/api/v1/runs/{other}"))
        .await
        .expect(200);
    assert_eq!(
        shown["params"],
        json!({"from": "job"}),
        "without its own, those of the job's version"
    );
    admin
        .delete("/api/v1/namespaces/default/jobs/y")
        .await
        .expect(204);
    let id = shown["job_id"].as_str().unwrap();
    let kept = admin
        .get(&format!("/api/v1/runs?job_id={id}"))
        .await
        .expect(200);
    assert_eq!(
        kept["items"][0]["job"], "y",
        "runs outlive their job and keep its name"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_server() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    assert_eq!(
        admin
            .get(&format!("/api/v1/runs/{id}/wait?timeout=0s"))
            .await
            .expect(200)["state"],
        "PENDING"
    );
    let path = format!("/api/v1/runs/{id}/logs?follow=true");
    let mut following = admin.lines(&path);
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    worker.assignment().await;
    server.stop().await;
    assert!(worker.closed().await.again, "workers dial again");
    let last = following
        .recv()
        .await
        .expect("who follows is told why it ends");
    assert!(last.contains("\"again\":true"), "{last}");
    assert_eq!(following.recv().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_for_later_waits_until_it_is_due() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let runs = "/api/v1/namespaces/default/jobs/x/runs";
    let far = admin.post(runs, &json!({"delay": "1h"})).await.expect(201);
    let path = format!("/api/v1/runs/{}", far["id"].as_str().unwrap());
    let shown = admin.get(&path).await.expect(200);
    let moment = |value: &Value| -> jiff::Timestamp { value.as_str().unwrap().parse().unwrap() };
    let ahead = moment(&shown["due"]).as_millisecond() - moment(&shown["created"]).as_millisecond();
    assert_eq!((&shown["state"], ahead), (&json!("PENDING"), 3_600_000));
    let batch = json!({"runs": [{"job": "x", "delay": "200ms"}]});
    let made = admin.post("/api/v1/runs:batch", &batch).await.expect(200);
    let near = worker.assignment().await;
    assert_eq!(json!(near.idempotency_key), made["runs"][0]["id"]);
    let cancelled = admin
        .post(&format!("{path}/cancel"), &json!({}))
        .await
        .expect(200);
    assert_eq!(cancelled["state"], "CANCELLED");
    for (body, field) in [
        (json!({"delay": "soon"}), "delay"),
        (json!({"delay": "999999d"}), "delay"),
        (json!({"at": "2026-13-01T00:00:00Z"}), "at"),
        (json!({"at": "2030-01-01T00:00:00Z", "delay": "1s"}), "at"),
    ] {
        let problem = admin.post(runs, &body).await.expect(422);
        assert_eq!(problem["field"], field, "{problem}");
    }
}
