//! Refusals: whatever is wrong, the caller gets a problem with a code and a remedy.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::server::Server;

const JOB: &str = "/api/v1/namespaces/default/jobs/x";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_places_and_methods() {
    let server = Server::start().await;
    let admin = server.admin();
    for path in [
        "/api/v1",
        "/api/v1/nothing",
        "/api/v2/jobs",
        "/api/v1/runs/x/y/z",
        "/metric",
    ] {
        admin.get(path).await.problem(404, "no_such_route");
    }
    let answer = admin.call("DELETE", "/api/v1/runs", &[], None).await;
    assert!(
        answer.header("allow").contains("GET"),
        "{:?}",
        answer.headers
    );
    answer.problem(405, "method_not_allowed");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_invalid_parameters() {
    let server = Server::start().await;
    let admin = server.admin();
    let problem = admin
        .get("/api/v1/runs?stat=FAILED")
        .await
        .problem(400, "unknown_parameter");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `state`?"),
        "{problem}"
    );
    assert_eq!(problem["field"], "stat");
    for query in [
        "state=DONE",
        "limit=0",
        "limit=1001",
        "cursor=zz",
        "cursor=00",
        "job_id=x",
        "job=A",
        "namespace=A+",
        "limit=1&limit=2",
    ] {
        admin
            .get(&format!("/api/v1/runs?{query}"))
            .await
            .problem(400, "invalid_parameter");
    }
    for query in ["label=x", "paused=yes", "cursor=abc", "cursor=2f"] {
        admin
            .get(&format!("/api/v1/jobs?{query}"))
            .await
            .problem(400, "invalid_parameter");
    }
    for path in [
        "/api/v1/runs/run_1",
        "/api/v1/runs/x/logs",
        "/api/v1/namespaces/A/jobs",
        "/api/v1/namespaces/a/jobs/B",
        "/api/v1/namespaces/%ff/jobs",
        "/api/v1/namespaces/a/jobs/%00",
    ] {
        admin.get(path).await.problem(400, "invalid_parameter");
    }
    admin
        .get("/api/v1/runs?job=missing")
        .await
        .problem(404, "no_such_job");
    admin
        .get("/api/v1/runs/run_0000000000001/wait?timeout=1y")
        .await
        .problem(400, "invalid_parameter");
    admin
        .get("/api/v1/runs/run_0000000000001/wait?timeout=6m")
        .await
        .problem(400, "invalid_parameter");
    admin
        .get("/api/v1/runs/run_0000000000001/logs?stream=both")
        .await
        .problem(400, "invalid_parameter");
    admin
        .get("/api/v1/runs/run_0000000000001/logs")
        .await
        .problem(404, "no_such_run");
    server.stop().await;
}

async fn put(admin: &Client, body: &str) -> crate::client::Answer {
    admin.call("PUT", JOB, &[], Some(body.to_owned())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_cannot_be_taken() {
    let server = Server::start().await;
    let admin = server.admin();
    for body in ["", "{", "\u{0}", "{\"kind\":"] {
        put(&admin, body).await.problem(400, "malformed_json");
    }
    let problem = put(&admin, r#"{"kind":"Job","taks":{}}"#)
        .await
        .problem(400, "unknown_field");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `task`?"),
        "{problem}"
    );
    let problem = put(&admin, r#"{"kind":"Job","task":{"exec":{"argv":[]}}}"#)
        .await
        .problem(422, "invalid_field");
    assert_eq!(problem["field"], "task.exec.argv");
    put(
        &admin,
        r#"{"kind":"Job","task":{"exec":{"argv":["x"]}},"schedule":[{"cron":"nonsense"}]}"#,
    )
    .await
    .problem(422, "invalid_field");
    let problem = put(
        &admin,
        r#"{"kind":"Job","name":"y","task":{"exec":{"argv":["x"]}}}"#,
    )
    .await
    .problem(422, "invalid_field");
    assert_eq!(problem["field"], "name");
    let large = format!(
        "{{\"kind\":\"Job\",\"description\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    put(&admin, &large).await.problem(413, "too_large");
    admin
        .call(
            "PUT",
            JOB,
            &[("content-type", "text/yaml")],
            Some("kind: Job".to_owned()),
        )
        .await
        .problem(415, "unsupported_media_type");

    put(&admin, r#"{"kind":"Job","task":{"exec":{"argv":["x"]}}}"#)
        .await
        .expect(201);
    let runs = format!("{JOB}/runs");
    let wide = json!({"params": "x".repeat(64 * 1024)});
    assert_eq!(
        admin.post(&runs, &wide).await.problem(422, "invalid_field")["field"],
        "params"
    );
    admin
        .post(&runs, &json!({"parms": 1}))
        .await
        .problem(400, "unknown_field");
    admin
        .call("POST", &runs, &[("idempotency-key", "")], None)
        .await
        .problem(400, "invalid_header");
    admin
        .call(
            "POST",
            &runs,
            &[("idempotency-key", &"k".repeat(257))],
            None,
        )
        .await
        .problem(400, "invalid_header");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_is_asked_for_and_a_foreign_scheme_is_none() {
    let server = Server::start().await;
    let nobody = server.with(None);
    let answer = nobody.get("/api/v1/jobs").await;
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    answer.problem(401, "unauthenticated");
    for header in ["Basic abc", "Bearer", "Bearer ", "drt_x", "Bearer drt_x"] {
        nobody
            .call("GET", "/api/v1/jobs", &[("authorization", header)], None)
            .await
            .problem(401, "unauthenticated");
    }
    let lower = format!("bearer {}", server.local);
    nobody
        .call("GET", "/api/v1/jobs", &[("authorization", &lower)], None)
        .await
        .expect(200);
    assert_eq!(nobody.get("/healthz").await.expect(200)["status"], "ok");
    assert_eq!(nobody.get("/readyz").await.expect(200)["status"], "ready");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_outlives_a_body_that_nobody_wanted() {
    let server = Server::start().await;
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    for (path, token) in [
        (format!("{JOB}/pause"), server.local.as_str()),
        (format!("{JOB}/pause"), "wrong"),
        ("/api/v1/nothing".to_owned(), server.local.as_str()),
    ] {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 4\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        // The head is read when this request, which came later, is answered.
        server.admin().get(JOB).await.problem(404, "no_such_job");
        let rest = "nullGET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        socket.write_all(rest.as_bytes()).await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{path}: {text}");
        assert!(text.contains("HTTP/1.1 200 OK"), "{path}: {text}");
    }
    server.stop().await;
}
