//! Pages, cursors, filters, and answers that the caller has already.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

async fn put(admin: &Client, name: &str) {
    let path = format!("/api/v1/namespaces/default/jobs/{name}");
    let body = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    admin.put(&path, &body).await.expect(201);
}

async fn trigger(admin: &Client, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/default/jobs/{name}/runs");
    admin.post(&path, &json!({})).await.expect(201)
}

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_serves_its_own_listing_only() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["a1", "a2", "a3", "b1"] {
        put(&admin, name).await;
    }
    let first = admin.get("/api/v1/jobs?limit=1&prefix=a").await.expect(200);
    let next = first["next"].as_str().unwrap();
    let rest = format!("/api/v1/jobs?limit=5&prefix=a&cursor={next}");
    let rest = admin.get(&rest).await.expect(200);
    assert_eq!(names(&rest), ["a2", "a3"], "the limit may differ");
    let mut changed = next.to_owned();
    changed.replace_range(0..2, "61");
    changed.replace_range(2..4, "7a");
    for path in [
        format!("/api/v1/jobs?limit=1&cursor={next}"),
        format!("/api/v1/jobs?limit=1&prefix=b&cursor={next}"),
        format!("/api/v1/jobs?limit=1&prefix=a&paused=false&cursor={next}"),
        format!("/api/v1/namespaces/default/jobs?limit=1&prefix=a&cursor={next}"),
        format!("/api/v1/runs?limit=1&cursor={next}"),
        format!("/api/v1/jobs?limit=1&prefix=a&cursor={changed}"),
    ] {
        let problem = admin.get(&path).await.problem(400, "invalid_parameter");
        assert_eq!(problem["field"], "cursor", "{path}");
    }
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    let path = format!("/api/v1/jobs?prefix=a&cursor={next}");
    let page = server.admin().get(&path).await.expect(200);
    assert_eq!(names(&page), ["a2", "a3"], "it outlives a restart");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_found_by_the_beginning_of_their_name() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["mail", "mail-a", "mail-b", "main"] {
        put(&admin, name).await;
    }
    for path in ["/api/v1/jobs", "/api/v1/namespaces/default/jobs"] {
        let page = admin.get(&format!("{path}?prefix=mail")).await.expect(200);
        assert_eq!(names(&page), ["mail", "mail-a", "mail-b"]);
        let page = admin.get(&format!("{path}?prefix=")).await.expect(200);
        assert_eq!(names(&page).len(), 4);
        let wrong = admin.get(&format!("{path}?prefix=Mail")).await;
        assert_eq!(wrong.problem(400, "invalid_parameter")["field"], "prefix");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_found_by_what_stands_in_their_name_or_labels() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["mail", "send-mail", "main"] {
        put(&admin, name).await;
    }
    let body = json!({
        "kind": "Job", "labels": {"team": "Mailroom"}, "task": {"handler": {"name": "nobody"}},
    });
    let path = "/api/v1/namespaces/default/jobs/stamps";
    admin.put(path, &body).await.expect(201);
    for path in ["/api/v1/jobs", "/api/v1/namespaces/default/jobs"] {
        let found = async |query: &str| {
            let page = admin.get(&format!("{path}?{query}")).await.expect(200);
            names(&page)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("search=MAIL").await, ["mail", "send-mail", "stamps"]);
        assert_eq!(found("search=team%3Dmail").await, ["stamps"]);
        assert_eq!(found("search=default/ma").await, ["mail", "main"]);
        assert_eq!(found("search=%20&limit=10").await.len(), 4);
        assert_eq!(found("search=nobody").await.len(), 0);
        let long = "x".repeat(129);
        let wrong = admin.get(&format!("{path}?search={long}")).await;
        assert_eq!(wrong.problem(400, "invalid_parameter")["field"], "search");
        let most = "x".repeat(128);
        assert_eq!(found(&format!("search={most}")).await.len(), 0);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_age_and_origin() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "x").await;
    let path = "/api/v1/namespaces/default/jobs/ticks";
    let body = json!({
        "kind": "Job", "schedule": [{"every": "100ms"}], "overlap": "allow",
        "task": {"handler": {"name": "nobody"}},
    });
    admin.put(path, &body).await.expect(201);
    // Ids of one millisecond are not told apart by time, so each of the three is of another one.
    let mut made: Vec<(String, String)> = Vec::new();
    while made.len() < 3 {
        let id = trigger(&admin, "x").await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let run = admin.get(&format!("/api/v1/runs/{id}")).await.expect(200);
        let created = run["created"].as_str().unwrap().to_owned();
        match made.last() {
            Some((_, last)) if *last == created => made.clear(),
            _ => made.push((id, created)),
        }
    }
    let list = async |query: &str| -> Vec<String> {
        let page = admin
            .get(&format!("/api/v1/runs?{query}"))
            .await
            .expect(200);
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (first, second, third) = (&made[0], &made[1], &made[2]);
    let since = list(&format!("job=x&since={}", second.1)).await;
    assert_eq!(since, [third.0.as_str(), second.0.as_str()]);
    let until = list(&format!("job=x&until={}", second.1)).await;
    assert_eq!(until.first(), Some(&first.0));
    let between = list(&format!("job=x&since={}&until={}", second.1, third.1)).await;
    assert_eq!(between, [second.0.as_str()]);
    crate::server::eventually("the schedule has made a run", async || {
        let runs = list("origin=schedule&limit=1000").await;
        (!runs.is_empty()).then_some(())
    })
    .await;
    let by_call = list("origin=api").await;
    assert!(by_call.len() >= 3);
    for query in [
        "origin=cron",
        "since=today",
        "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    ] {
        let answer = admin.get(&format!("/api/v1/runs?{query}")).await;
        answer.problem(400, "invalid_parameter");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_has_is_not_sent_again() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "x").await;
    let run = trigger(&admin, "x").await;
    let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
    let job = "/api/v1/namespaces/default/jobs/x";
    let paths = [
        job,
        &run,
        "/api/v1/jobs",
        "/api/v1/runs",
        "/api/v1/schema/job",
        "/api/openapi.json",
        "/api/v1/problems/stale",
    ];
    for path in paths {
        let read = admin.get(path).await;
        let tag = read.header("etag").to_owned();
        assert!(tag.len() > 10, "{path}: {tag}");
        let known = admin
            .call("GET", path, &[("if-none-match", &tag)], None)
            .await;
        assert_eq!(known.status.as_u16(), 304, "{path}");
        assert_eq!((known.header("etag"), known.body.len()), (tag.as_str(), 0));
        let other = admin
            .call("GET", path, &[("if-none-match", "\"x\"")], None)
            .await;
        assert_eq!(other.status.as_u16(), 200, "{path}");
    }
    let tag = admin.get(job).await.header("etag").to_owned();
    admin
        .post(&format!("{job}/pause"), &Value::Null)
        .await
        .expect(200);
    let changed = admin
        .call("GET", job, &[("if-none-match", &tag)], None)
        .await;
    assert_eq!(changed.expect(200)["revision"], 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_makes_no_second_run() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "x").await;
    let body = json!({"runs": [
        {"job": "x"},
        {"job": "x", "idempotency_key": "own"},
        {"job": "nobody"},
        {"job": "x", "params": 1},
    ]});
    let send = async |key: &str, body: &Value| {
        let headers = [("idempotency-key", key)];
        admin
            .call(
                "POST",
                "/api/v1/runs:batch",
                &headers,
                Some(body.to_string()),
            )
            .await
    };
    let first = send("b", &body).await.expect(200);
    let second = send("b", &body).await.expect(200);
    for at in [0, 1, 3] {
        assert_eq!(first["runs"][at]["id"], second["runs"][at]["id"]);
        assert_eq!(first["runs"][at]["repeated"], false);
        assert_eq!(second["runs"][at]["repeated"], true);
    }
    assert_eq!(second["runs"][2]["problem"]["code"], "no_such_job");
    let mut other = body.clone();
    other["runs"][3]["params"] = json!(2);
    let third = send("b", &other).await.expect(200);
    assert_eq!(
        third["runs"][3]["problem"]["code"],
        "idempotency_key_reused"
    );
    let runs = admin.get("/api/v1/runs").await.expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 3);
    send(&"k".repeat(252), &body).await.expect(200);
    send(&"k".repeat(253), &body)
        .await
        .problem(400, "invalid_header");
    let token = json!({"name": "n", "role": "viewer"}).to_string();
    let headers = [("idempotency-key", "t")];
    admin
        .call("POST", "/api/v1/tokens", &headers, Some(token))
        .await
        .problem(400, "invalid_header");
    server.stop().await;
}
