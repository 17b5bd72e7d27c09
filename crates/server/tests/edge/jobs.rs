//! Jobs: put, show, list, pause, resume, delete, and the conditions on them.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

const JOB: &str = "/api/v1/namespaces/team/jobs/report";

fn manifest() -> Value {
    json!({"kind": "Job", "labels": {"team": "billing"}, "task": {"exec": {"argv": ["echo", "hi"]}}, "params": {"a": 1}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_lives_from_put_to_delete() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin.put(JOB, &manifest()).await;
    assert_eq!(
        (made.status.as_u16(), made.header("etag")),
        (201, "\"1\""),
        "{}",
        made.text()
    );
    let job = made.json();
    assert_eq!(
        (&job["namespace"], &job["name"], &job["version"]),
        (&json!("team"), &json!("report"), &json!(1))
    );
    assert_eq!(job["spec"]["task"], manifest()["task"]);
    assert_eq!(
        (&job["actor"], &job["paused"], &job["next_due"]),
        (&json!("local"), &Value::Null, &Value::Null)
    );

    let mut changed = manifest();
    changed["description"] = json!("more");
    let answer = admin.put(JOB, &changed).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("etag")),
        (200, "\"2\""),
        "{}",
        answer.text()
    );
    assert_eq!(answer.json()["version"], 2);

    let paused = admin
        .post(&format!("{JOB}/pause"), &Value::Null)
        .await
        .expect(200);
    assert_eq!(paused["paused"]["actor"], "local");
    let shown = admin.get(JOB).await;
    assert!(shown.header("etag").starts_with("\"3."));
    assert_eq!(shown.json()["paused"]["actor"], "local");
    assert_eq!(
        admin
            .post(&format!("{JOB}/resume"), &Value::Null)
            .await
            .expect(200)["paused"],
        Value::Null
    );

    admin.delete(JOB).await.expect(204);
    admin.get(JOB).await.problem(404, "no_such_job");
    admin.delete(JOB).await.problem(404, "no_such_job");
    admin
        .post(&format!("{JOB}/pause"), &Value::Null)
        .await
        .problem(404, "no_such_job");
    admin
        .post(&format!("{JOB}/runs"), &json!({}))
        .await
        .problem(404, "no_such_job");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_has_changed_is_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    let put = async |headers: &[(&str, &str)], weight: u32| {
        let mut manifest = manifest();
        manifest["weight"] = json!(weight);
        admin
            .call("PUT", JOB, headers, Some(manifest.to_string()))
            .await
    };
    put(&[("if-match", "\"1\"")], 1)
        .await
        .problem(404, "no_such_job");
    put(&[("if-none-match", "*")], 1).await.expect(201);
    put(&[("if-none-match", "*")], 2)
        .await
        .problem(412, "already_there");
    put(&[("if-match", "\"1\"")], 2).await.expect(200);
    let stale = put(&[("if-match", "\"1\"")], 3).await.problem(412, "stale");
    assert!(
        stale["detail"].as_str().unwrap().contains("revision 2"),
        "{stale}"
    );
    put(&[("if-match", "1")], 3)
        .await
        .problem(400, "invalid_header");
    for (method, path) in [
        ("DELETE", JOB.to_owned()),
        ("POST", format!("{JOB}/pause")),
        ("POST", format!("{JOB}/resume")),
    ] {
        admin
            .call(method, &path, &[("if-match", "\"1\"")], None)
            .await
            .problem(412, "stale");
        admin
            .call(method, &path, &[("if-none-match", "*")], None)
            .await
            .problem(400, "invalid_header");
    }
    assert_eq!(admin.get(JOB).await.expect(200)["spec"]["weight"], 2);
    admin
        .call("DELETE", JOB, &[("if-match", "\"2\"")], None)
        .await
        .expect(204);
    server.stop().await;
}

async fn names(client: &Client, path: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let joiner = if path.contains('?') { '&' } else { '?' };
        let page = client
            .get(&format!("{path}{joiner}limit=2{cursor}"))
            .await
            .expect(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        names.extend(items.iter().map(|job| {
            format!(
                "{}/{}",
                job["namespace"].as_str().unwrap(),
                job["name"].as_str().unwrap()
            )
        }));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_filter_and_continue() {
    let server = Server::start().await;
    let admin = server.admin();
    for (namespace, name, team) in [
        ("a", "x", "1"),
        ("a", "y", "2"),
        ("b", "x", "1"),
        ("b", "y", "1"),
        ("b", "z", "2"),
    ] {
        let manifest = json!({"kind": "Job", "labels": {"team": team, "all": "yes"}, "task": {"handler": {"name": "h"}}});
        admin
            .put(
                &format!("/api/v1/namespaces/{namespace}/jobs/{name}"),
                &manifest,
            )
            .await
            .expect(201);
    }
    admin
        .post("/api/v1/namespaces/b/jobs/y/pause", &Value::Null)
        .await
        .expect(200);
    assert_eq!(
        names(&admin, "/api/v1/jobs").await,
        ["a/x", "a/y", "b/x", "b/y", "b/z"]
    );
    assert_eq!(
        names(&admin, "/api/v1/jobs?namespace=a").await,
        ["a/x", "a/y"]
    );
    assert_eq!(
        names(&admin, "/api/v1/namespaces/b/jobs").await,
        ["b/x", "b/y", "b/z"]
    );
    assert_eq!(
        names(&admin, "/api/v1/jobs?label=team=1&label=all=yes").await,
        ["a/x", "b/x", "b/y"]
    );
    assert_eq!(names(&admin, "/api/v1/jobs?paused=true").await, ["b/y"]);
    assert_eq!(
        names(
            &admin,
            "/api/v1/namespaces/b/jobs?paused=false&label=team=1"
        )
        .await,
        ["b/x"]
    );
    let viewer = server.client("viewer", Some("a")).await;
    assert_eq!(names(&viewer, "/api/v1/jobs").await, ["a/x", "a/y"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_names_every_key_of_a_manifest() {
    let server = Server::start().await;
    let schema = server.admin().get("/api/v1/schema/job").await;
    assert_eq!(schema.header("content-type"), "application/schema+json");
    let schema = schema.expect(200);
    for key in ["kind", "name", "namespace", "task", "schedule", "params"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    server.stop().await;
}
