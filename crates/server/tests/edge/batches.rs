//! Many triggers at once, and triggers that are repeated.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::server::Server;

async fn with_job() -> Server {
    let server = Server::start().await;
    let manifest = json!({"kind": "Job", "task": {"handler": {"name": "nobody-has-it"}}});
    server
        .admin()
        .put("/api/v1/namespaces/default/jobs/x", &manifest)
        .await
        .expect(201);
    server
}

const RUNS: &str = "/api/v1/namespaces/default/jobs/x/runs";
const BATCH: &str = "/api/v1/runs:batch";

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_gives_the_same_run_and_another_request_under_it_is_refused() {
    let server = with_job().await;
    let admin = server.admin();
    let trigger = async |key: &str, body: &str| {
        admin
            .call(
                "POST",
                RUNS,
                &[("idempotency-key", key)],
                Some(body.to_owned()),
            )
            .await
    };
    let first = trigger("k1", "{\"params\":{\"n\":1}}").await.expect(201);
    assert_eq!(first["repeated"], false);
    let again = trigger("k1", "{\"params\":{\"n\":1}}").await.expect(200);
    assert_eq!(
        (&again["id"], &again["repeated"]),
        (&first["id"], &json!(true))
    );
    trigger("k1", "{\"params\":{\"n\":2}}")
        .await
        .problem(409, "idempotency_key_reused");
    assert_ne!(
        trigger("k2", "{\"params\":{\"n\":1}}").await.expect(201)["id"],
        first["id"]
    );
    let plain = admin.call("POST", RUNS, &[], None).await.expect(201);
    assert_ne!(plain["id"], first["id"]);
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    let after = server
        .admin()
        .call(
            "POST",
            RUNS,
            &[("idempotency-key", "k1")],
            Some("{\"params\":{\"n\":1}}".to_owned()),
        )
        .await;
    assert_eq!(after.expect(200)["id"], first["id"], "also after a restart");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_item_of_a_batch_has_its_own_fate() {
    let server = with_job().await;
    let admin = server.admin();
    let items = json!({"runs": [
        {"job": "x"},
        {"job": "missing"},
        {"job": "NOT A NAME"},
        {"job": "x", "namespace": "default", "params": {"deep": [1, 2.50, "é"]}, "idempotency_key": "k"},
        {"job": "x", "idempotency_key": "k", "params": {"deep": [1, 2.50, "é"]}},
        {"job": "x", "idempotency_key": "k"},
        {"job": "x", "idempotency_key": ""},
        {"job": "x", "params": "x".repeat(65_536)},
    ]});
    let answer = admin.post(BATCH, &items).await.expect(200);
    let runs = answer["runs"].as_array().unwrap();
    let code = |at: usize| runs[at]["problem"]["code"].as_str().unwrap_or("none");
    assert_eq!(runs.len(), 8);
    assert!(runs[0]["id"].as_str().unwrap().starts_with("run_"));
    assert_eq!(
        (code(1), code(2), code(5), code(6), code(7)),
        (
            "no_such_job",
            "invalid_field",
            "idempotency_key_reused",
            "invalid_field",
            "invalid_field"
        )
    );
    assert_eq!(runs[2]["problem"]["field"], "job");
    assert_eq!(
        (&runs[4]["id"], &runs[4]["repeated"]),
        (&runs[3]["id"], &json!(true))
    );
    let run = admin
        .get(&format!("/api/v1/runs/{}", runs[3]["id"].as_str().unwrap()))
        .await
        .expect(200);
    assert_eq!(run["params"], json!({"deep": [1, 2.5, "é"]}));
    assert_eq!(run["idempotency_key"], "k");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_a_bound_and_may_be_full() {
    let server = with_job().await;
    let admin = server.admin();
    let batch = |count: usize| json!({"runs": vec![json!({"job": "x"}); count]});
    assert_eq!(
        admin.post(BATCH, &batch(0)).await.expect(200)["runs"],
        json!([])
    );
    let answer = admin.post(BATCH, &batch(1000)).await.expect(200);
    let ids: BTreeSet<&str> = answer["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 1000);
    assert_eq!(
        admin
            .post(BATCH, &batch(1001))
            .await
            .problem(422, "invalid_field")["field"],
        "runs"
    );
    let problem = admin
        .post(BATCH, &json!({"runs": [{"job": "x", "param": 1}]}))
        .await
        .problem(400, "unknown_field");
    assert_eq!(problem["field"], "runs[0].param", "{problem}");
    admin
        .post(BATCH, &json!({"runs": "x".repeat(9 << 20)}))
        .await
        .problem(413, "too_large");

    let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = admin
            .get(&format!("/api/v1/runs?job=x&limit=300{cursor}"))
            .await
            .expect(200);
        for run in page["items"].as_array().unwrap() {
            assert!(
                seen.insert(run["id"].as_str().unwrap().to_owned()),
                "{run} came twice"
            );
        }
        match &page["next"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => break,
        }
    }
    assert_eq!(
        seen.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        ids
    );
    server.stop().await;
}
