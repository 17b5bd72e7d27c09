//! Queues: put, show, list, pause, resume, delete, and the conditions on them.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

const MAIL: &str = "/api/v1/namespaces/team/queues/mail";

fn manifest() -> Value {
    json!({"kind": "Queue", "concurrency": 2, "key": "/customer", "per_key": 1, "rate": "100/1m"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_lives_from_put_to_delete() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin.put(MAIL, &manifest()).await;
    assert_eq!(
        (made.status.as_u16(), made.header("etag")),
        (201, "\"q1\""),
        "{}",
        made.text()
    );
    let queue = made.json();
    assert_eq!(
        (&queue["namespace"], &queue["name"], &queue["running"]),
        (&json!("team"), &json!("mail"), &json!(0))
    );
    assert_eq!(queue["spec"]["rate"], "100/1m");
    let again = admin.put(MAIL, &manifest()).await;
    assert_eq!(
        (again.status.as_u16(), again.header("etag")),
        (200, "\"q1\"")
    );
    let paused = admin.post(&format!("{MAIL}/pause"), &json!({})).await;
    assert!(paused.expect(200)["paused"]["actor"].is_string());
    let mut changed = manifest();
    changed["concurrency"] = json!(3);
    let answer = admin.put(MAIL, &changed).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("etag")),
        (200, "\"q3\"")
    );
    assert!(
        answer.json()["paused"].is_object(),
        "applying resumes nothing"
    );
    let resumed = admin.post(&format!("{MAIL}/resume"), &json!({})).await;
    assert!(resumed.expect(200)["paused"].is_null());

    let listed = admin.get("/api/v1/queues?namespace=team").await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    admin.delete(MAIL).await.expect(204);
    admin.get(MAIL).await.problem(404, "no_such_queue");
    admin.delete(MAIL).await.problem(404, "no_such_queue");
    let pause = admin.post(&format!("{MAIL}/pause"), &json!({})).await;
    pause.problem(404, "no_such_queue");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_queue_cannot_be_is_refused() {
    let server = Server::start().await;
    let admin: Client = server.admin();
    for (key, value) in [
        ("concurrency", json!(0)),
        ("rate", json!("fast")),
        ("burst", json!(3)),
        ("key", json!("customer")),
    ] {
        let spec = json!({"kind": "Queue", key: value, "per_key": 1});
        let spec = match key {
            "key" => spec,
            _ => json!({"kind": "Queue", key: value}),
        };
        let refused = admin.put(MAIL, &spec).await.problem(422, "invalid_field");
        assert_eq!(refused["field"], key, "{refused}");
    }
    let unknown = admin
        .put(MAIL, &json!({"kind": "Queue", "paused": true}))
        .await;
    unknown.problem(400, "unknown_field");
}

/// A run says which limit it waits for, and its queue who waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_names_its_limit() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.put(MAIL, &manifest()).await.expect(201);
    admin
        .post(&format!("{MAIL}/pause"), &json!({}))
        .await
        .expect(200);
    let job = "/api/v1/namespaces/team/jobs/send";
    let spec = json!({"kind": "Job", "queue": "mail", "task": {"exec": {"argv": ["true"]}}});
    admin.put(job, &spec).await.expect(201);
    let run = admin
        .post(&format!("{job}/runs"), &json!({}))
        .await
        .expect(201);
    let run = run["id"].as_str().unwrap_or_default().to_owned();
    let shown = admin.get(&format!("/api/v1/runs/{run}")).await.expect(200);
    assert_eq!(
        shown["waiting"],
        "queue `mail` is paused and gives nothing out"
    );
    let told = admin.get(&format!("/api/v1/runs/{run}/explain")).await;
    assert_eq!(told.expect(200)["headline"]["code"], "queue_paused");
    let queue = admin.get(MAIL).await.expect(200);
    assert_eq!((&queue["depth"], &queue["parked"]), (&json!(1), &json!(0)));
    assert!(queue["oldest"].is_string());
    let metrics = admin.get("/metrics").await.text();
    let line = "drumtower_queue_waiting_runs{namespace=\"team\",queue=\"mail\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}
