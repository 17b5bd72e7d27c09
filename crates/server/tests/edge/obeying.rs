//! What people ask for beside the schedule says whether it counts for the overlap: reruns, requeued letters, backfills.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

const JOB: &str = "/api/v1/namespaces/default/jobs/hourly";
const LETTERS: &str = "/api/v1/namespaces/default/deadletters";

async fn put(admin: &Client, keys: Value) {
    let mut spec = json!({
        "kind": "Job", "task": {"exec": {"argv": ["true"]}}, "schedule": [{"cron": "0 0 1 1 *"}],
        "retry": {"max_attempts": 1},
    });
    for (key, value) in keys.as_object().unwrap() {
        spec[key] = value.clone();
    }
    admin.put(JOB, &spec).await.success();
}

async fn trigger(admin: &Client, body: Value) -> String {
    let made = admin.post(&format!("{JOB}/runs"), &body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

async fn ends(admin: &Client, run: &str) {
    let path = format!("/api/v1/runs/{run}/wait");
    admin.get(&path).await.expect(200);
}

/// A backfill of the first days of three years.
async fn backfill(admin: &Client, keys: Value) -> String {
    let mut body = json!({
        "from": "2023-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z", "max_active": 2,
    });
    for (key, value) in keys.as_object().unwrap() {
        body[key] = value.clone();
    }
    let made = admin.post(&format!("{JOB}/backfills"), &body).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    format!("/api/v1/backfills/{id}")
}

async fn becomes(admin: &Client, path: &str, fields: Value) {
    eventually(&format!("{path} has {fields}"), async || {
        let shown = admin.get(path).await.expect(200);
        let fields = fields.as_object().unwrap().iter();
        let fits = |(key, value): (&String, &Value)| shown[key] == *value;
        fields.into_iter().all(fits).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_obeys_is_refused_or_waits_while_the_job_is_full() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, json!({"overlap": "skip"})).await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let failed = trigger(&admin, json!({})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    ends(&admin, &failed).await;
    trigger(&admin, json!({"overlap": "obey"})).await;
    let busy = worker.assignment().await.attempt.unwrap();

    let rerun = format!("/api/v1/runs/{failed}/rerun");
    let obey = json!({"overlap": "obey"});
    admin.post(&rerun, &obey).await.problem(409, "overlap_full");
    let requeue = format!("{LETTERS}:requeue");
    let letter = json!({"runs": [failed], "overlap": "obey"});
    let refused = admin.post(&requeue, &letter).await.expect(200);
    assert_eq!(refused["items"][0]["problem"]["code"], "overlap_full");
    let there = admin.get(&format!("{LETTERS}/{failed}")).await;
    there.expect(200);
    let path = backfill(&admin, obey).await;
    let waits = json!({"made": 0, "held": "overlap", "overlap": "obey", "state": "RUNNING"});
    becomes(&admin, &path, waits).await;

    worker.finish(busy, wire::Outcome::Succeeded).await;
    for _ in 0..3 {
        let assign = worker.assignment().await;
        assert!(assign.nominal_wall_ms.is_some(), "one of the backfill");
        let shown = admin.get(&path).await.expect(200);
        assert_eq!(shown["active"], 1, "one at a time");
        worker
            .finish(assign.attempt.unwrap(), wire::Outcome::Succeeded)
            .await;
    }
    let over = json!({"state": "COMPLETED", "completed": 3, "held": null});
    becomes(&admin, &path, over).await;
    let done = admin.post(&requeue, &letter).await.expect(200);
    assert_eq!(done["changed"], 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_waits_for_the_breaker_unless_it_is_forced() {
    let server = Server::start().await;
    let admin = server.admin();
    let breaker = json!({"failures": 1, "cooldown": "1h"});
    put(&admin, json!({"breaker": breaker})).await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let failed = trigger(&admin, json!({})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    ends(&admin, &failed).await;

    let path = backfill(&admin, json!({})).await;
    let waits = json!({"made": 0, "held": "breaker"});
    becomes(&admin, &path, waits).await;
    admin
        .post(&format!("{path}/cancel"), &json!({}))
        .await
        .success();
    let path = backfill(&admin, json!({"force": true})).await;
    becomes(&admin, &path, json!({"made": 2, "held": null})).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_found_by_every_reason_that_a_run_can_fail_for() {
    let server = Server::start().await;
    let admin = server.admin();
    let schedule = json!([{"every": "1s"}]);
    put(&admin, json!({"overlap": "fail", "schedule": schedule})).await;
    let path = format!("{LETTERS}?reason=overlap");
    eventually("a due time has failed", async || {
        let found = admin.get(&path).await.expect(200);
        (found["items"][0]["reason"] == "overlap").then_some(())
    })
    .await;
    let wrong = admin.get(&format!("{LETTERS}?reason=created")).await;
    let words = wrong.problem(400, "invalid_parameter")["detail"].to_string();
    assert!(
        words.contains("`created`") && words.contains("overlap"),
        "{words}"
    );
    let discard = format!("{LETTERS}:discard");
    for body in [
        json!({"reason": "created"}),
        json!({"all": true, "overlap": "obey"}),
    ] {
        let refused = admin.post(&discard, &body).await;
        refused.problem(422, "invalid_field");
    }
    server.stop().await;
}
