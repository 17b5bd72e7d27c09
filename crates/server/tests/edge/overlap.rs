//! Overlap and circuit breakers as callers meet them.

use drumtower_core::model::RunId;
use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::runs::trigger;
use crate::server::Server;
use crate::worker::{Worker, hello};

const JOBS: &str = "/api/v1/namespaces/default/jobs";

#[tokio::test(flavor = "multi_thread")]
async fn triggers_that_obey_wait_for_their_turn_by_key() {
    let server = Server::start().await;
    let admin = server.admin();
    let job = format!("{JOBS}/import");
    let overlap = json!({"key": "/customer", "on_full": "queue", "depth": 1});
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "overlap": overlap});
    let made = admin.put(&job, &manifest).await.expect(201);
    assert_eq!(made["spec"]["overlap"], overlap, "as it was written");
    let obey = async |customer: &str| {
        let body = json!({"params": {"customer": customer}, "overlap": "obey"});
        admin.post(&format!("{job}/runs"), &body).await
    };
    let id = |made: Value| made["id"].as_str().unwrap().to_owned();
    let first = id(obey("a").await.expect(201));
    let second = id(obey("a").await.expect(201));
    let refused = obey("a").await.problem(409, "overlap_full");
    let words = refused["detail"].as_str().unwrap().to_owned();
    assert!(words.contains(r#"with the key "a""#), "{words}");
    obey("b").await.expect(201);

    let shown = admin
        .get(&format!("/api/v1/runs/{second}"))
        .await
        .expect(200);
    assert_eq!(
        (&shown["state"], &shown["queued"], &shown["overlap_key"]),
        (&json!("PENDING"), &json!(true), &json!("\"a\""))
    );
    let waiting = shown["waiting"].as_str().unwrap();
    assert!(
        waiting.contains("it starts when it has its turn"),
        "{waiting}"
    );
    assert_eq!(admin.get(&job).await.expect(200)["queued"], 1);

    // Ends free the place, whoever is told first.
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let mut held = vec![
        worker.assignment().await.attempt.unwrap(),
        worker.assignment().await.attempt.unwrap(),
    ];
    // That of `a` last: what has its turn then is not among what is acknowledged before.
    held.sort_by_key(|attempt| RunId(attempt.run).to_string() == first);
    for attempt in held {
        worker.finish(attempt, wire::Outcome::Succeeded).await;
    }
    let attempt = worker.assignment().await.attempt.unwrap();
    assert_eq!(RunId(attempt.run).to_string(), second);
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    for run in [first, second] {
        let ended = admin.get(&format!("/api/v1/runs/{run}/wait")).await;
        assert_eq!(ended.expect(200)["state"], "COMPLETED");
    }
    assert_eq!(admin.get(&job).await.expect(200)["queued"], 0);
    let batch = json!({"runs": [
        {"job": "import", "params": {"customer": "z"}, "overlap": "obey"},
        {"job": "import", "params": {"customer": "z"}, "overlap": "sometimes"},
    ]});
    admin
        .post("/api/v1/runs:batch", &batch)
        .await
        .problem(422, "invalid_field");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breaker_opens_is_seen_and_reset() {
    let server = Server::start().await;
    let admin = server.admin();
    let job = format!("{JOBS}/broken");
    let manifest = json!({
        "kind": "Job", "task": {"exec": {"argv": ["false"]}}, "retry": {"max_attempts": 1},
        "breaker": {"failures": 1, "cooldown": "1h"},
    });
    let made = admin.put(&job, &manifest).await.expect(201);
    assert_eq!(made["breaker"]["state"], "closed");
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let run = trigger(&admin, "broken", Value::Null).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    admin
        .get(&format!("/api/v1/runs/{run}/wait"))
        .await
        .expect(200);

    let shown = admin.get(&job).await.expect(200);
    assert_eq!(
        (&shown["breaker"]["state"], &shown["breaker"]["failures"]),
        (&json!("open"), &json!(1))
    );
    assert!(shown["breaker"]["until"].is_string());
    let runs = format!("{job}/runs");
    let refused = admin
        .post(&runs, &json!({}))
        .await
        .problem(409, "breaker_open");
    assert!(refused["detail"].as_str().unwrap().contains("force"));
    admin.post(&runs, &json!({"force": true})).await.expect(201);

    let reset = format!("{job}/reset-breaker");
    let closed = admin.post(&reset, &json!({})).await.expect(200);
    assert_eq!(closed["breaker"]["state"], "closed");
    admin.post(&reset, &json!({})).await.expect(200);
    admin.post(&runs, &json!({})).await.expect(201);
    let log = admin
        .get("/api/v1/audit?kind=job&action=reset")
        .await
        .expect(200);
    let deeds = log["items"].as_array().unwrap();
    assert_eq!((deeds.len(), &deeds[0]["name"]), (1, &json!("broken")));
    let nobody = format!("{JOBS}/nobody/reset-breaker");
    admin
        .post(&nobody, &json!({}))
        .await
        .problem(404, "no_such_job");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_an_open_breaker_keeps_in_its_queue_is_told_so() {
    let server = Server::start().await;
    let admin = server.admin();
    let job = format!("{JOBS}/broken");
    let mut manifest = json!({
        "kind": "Job", "task": {"exec": {"argv": ["false"]}}, "retry": {"max_attempts": 1},
        "overlap": "queue", "breaker": {"failures": 1, "cooldown": "1h"},
    });
    admin.put(&job, &manifest).await.expect(201);
    let obey = async || {
        let body = json!({"overlap": "obey"});
        let made = admin.post(&format!("{job}/runs"), &body).await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    };
    let (failing, queued) = (obey().await, obey().await);
    let explain = format!("/api/v1/runs/{queued}/explain");
    let waits = admin.get(&explain).await.expect(200);
    assert_eq!(waits["headline"]["code"], "waits_for_its_turn");

    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    let ended = admin.get(&format!("/api/v1/runs/{failing}/wait")).await;
    assert_eq!(ended.expect(200)["state"], "FAILED");
    let held = admin.get(&explain).await.expect(200);
    assert_eq!(held["headline"]["code"], "breaker_open");
    let reset = json!(["drumtower job reset-breaker broken"]);
    let advice = held["advice"].as_array().unwrap();
    assert!(advice.iter().any(|it| it["commands"] == reset), "{held}");
    let shown = admin.get(&format!("/api/v1/runs/{queued}")).await;
    let shown = shown.expect(200);
    let waiting = shown["waiting"].as_str().unwrap();
    assert!(waiting.contains("circuit breaker"), "{waiting}");

    // A breaker that was taken out of the job holds nothing back.
    manifest.as_object_mut().unwrap().remove("breaker");
    admin.put(&job, &manifest).await.expect(200);
    let attempt = worker.assignment().await.attempt.unwrap();
    assert_eq!(RunId(attempt.run).to_string(), queued);
    server.stop().await;
}
