//! The description of the API against the server that it describes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

struct Described {
    method: String,
    path: String,
    operation: Value,
}

async fn described(admin: &Client) -> Vec<Described> {
    let answer = admin.get("/api/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    let document = answer.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push(Described {
                method: method.to_uppercase(),
                path: path.clone(),
                operation: operation.clone(),
            });
        }
    }
    all
}

/// Settings have names of their own; other things are called as one likes.
fn name<'a>(path: &str, other: &'a str) -> &'a str {
    match path {
        _ if path.starts_with("/api/v1/settings/") => "jobs",
        _ if path.contains("/settings/") => "notify",
        _ => other,
    }
}

/// The path with something in it for each parameter.
fn filled(path: &str) -> String {
    let id = match path {
        path if path.contains("/tokens/") => "tok_0000000000001",
        path if path.contains("/backfills/") => "bf_0000000000001",
        _ => "run_0000000000001",
    };
    path.replace("{namespace}", "default")
        .replace("{name}", name(path, "x"))
        .replace("{id}", id)
        .replace("{code}", "stale")
        .replace("{version}", "1")
}

/// A parameter that nobody knows is refused with the names of those that are known.
#[tokio::test(flavor = "multi_thread")]
async fn it_has_the_query_parameters_that_each_route_knows() {
    let server = Server::start().await;
    let admin = server.admin();
    for Described {
        method,
        path,
        operation,
    } in described(&admin).await
    {
        if operation["security"] == json!([]) {
            continue;
        }
        let query = format!("{}?qqqqqqqqqqqqqqqq=1", filled(&path));
        let body = (method != "GET").then(|| "{}".to_owned());
        let answer = admin.call(&method, &query, &[], body).await;
        let detail = answer.problem(400, "unknown_parameter")["detail"].clone();
        let (_, known) = detail.as_str().unwrap().split_once(": ").unwrap();
        let known: BTreeSet<&str> = match known.strip_prefix("there are ") {
            Some("none here") | None => BTreeSet::new(),
            Some(names) => names.split(", ").collect(),
        };
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let told: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(told, known, "{method} {path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_examples_of_requests_are_taken() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut all = described(&admin).await;
    // What the other examples speak of is made first.
    all.sort_by_key(|one| one.method != "PUT");
    let mut tried = 0;
    for Described {
        method,
        path,
        operation,
    } in all
    {
        let Some(content) = operation["requestBody"]["content"].as_object() else {
            continue;
        };
        // No example knows the fence of a hold.
        let by_fence = path.ends_with("/renew") || path.ends_with("/release");
        if path.contains("{id}") || by_fence {
            continue;
        }
        let path = path
            .replace("{namespace}", "default")
            .replace("{name}", name(&path, "greet"));
        for (kind, content) in content {
            let example = content["examples"]["plain"]["value"].to_string();
            let headers = [("content-type", kind.as_str())];
            let answer = admin.call(&method, &path, &headers, Some(example)).await;
            let status = answer.status.as_u16();
            assert!(status < 300, "{method} {path}: {status} {}", answer.text());
            tried += 1;
        }
    }
    assert!(tried >= 10, "{tried}");
    server.stop().await;
}

/// A wrong token is delayed, and beyond what may wait the answer is 429: that can happen at every door with a lock.
#[tokio::test(flavor = "multi_thread")]
async fn every_guarded_door_may_be_too_busy() {
    let server = Server::start().await;
    let mut guarded = 0;
    for described in described(&server.admin()).await {
        let responses = &described.operation["responses"];
        if responses.get("401").is_some() {
            guarded += 1;
            let told = responses["429"]["description"].as_str();
            let at = format!("{} {}", described.method, described.path);
            assert!(
                told.is_some_and(|text| text.contains("`overloaded`")),
                "{at}"
            );
            assert!(
                responses["429"]["headers"].get("Retry-After").is_some(),
                "{at}"
            );
        }
    }
    assert!(guarded > 20, "{guarded}");
    server.stop().await;
}
