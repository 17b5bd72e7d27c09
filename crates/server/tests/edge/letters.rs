//! Dead letters: listed by filter, shown, requeued once, discarded.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::client::Client;
use crate::runs::{put_exec, trigger};
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

const LETTERS: &str = "/api/v1/namespaces/default/deadletters";

/// A run of the job that failed for good.
async fn dead(admin: &Client, worker: &mut Worker, job: &str, outcome: wire::Outcome) -> String {
    let run = trigger(admin, job, json!({"n": 1})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker
        .finish_with(attempt, |end| {
            end.outcome = outcome.into();
            end.error = "no way out".to_owned();
        })
        .await;
    let ended = admin.get(&format!("/api/v1/runs/{run}/wait")).await;
    assert_eq!(ended.expect(200)["state"], "FAILED");
    run
}

async fn listed(admin: &Client, query: &str) -> Vec<String> {
    let page = admin.get(&format!("{LETTERS}{query}")).await.expect(200);
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| item["run"].as_str().unwrap().to_owned())
        .collect()
}

async fn act(admin: &Client, verb: &str, body: Value) -> Value {
    let path = format!("{LETTERS}:{verb}");
    admin.post(&path, &body).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_found_requeued_once_and_discarded() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    put_exec(&admin, "y").await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let failed = dead(&admin, &mut worker, "x", wire::Outcome::Failed).await;
    let slow = dead(&admin, &mut worker, "x", wire::Outcome::TimedOut).await;
    let other = dead(&admin, &mut worker, "y", wire::Outcome::Failed).await;

    let all = [other.clone(), slow.clone(), failed.clone()];
    assert_eq!(listed(&admin, "").await, all);
    assert_eq!(listed(&admin, "?job=x").await, all[1..]);
    assert_eq!(listed(&admin, "?job=x&reason=timed_out").await, all[1..2]);
    assert_eq!(listed(&admin, "?until=2020-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(listed(&admin, "?limit=1").await, all[..1]);
    // The same without a namespace in the path, each caller its own.
    let everywhere = async |client: &Client, query: &str| {
        let page = client.get(&format!("/api/v1/deadletters{query}")).await;
        let items = page.expect(200)["items"].as_array().unwrap().clone();
        let ids = items
            .iter()
            .map(|item| item["run"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(everywhere(&admin, "").await, all);
    assert_eq!(
        everywhere(&admin, "?reason=timed_out&namespace=default").await,
        all[1..2]
    );
    assert_eq!(everywhere(&admin, "?namespace=other").await.len(), 0);
    let stranger = server.client("viewer", Some("other")).await;
    assert_eq!(everywhere(&stranger, "").await.len(), 0);
    let own = server.client("viewer", Some("default")).await;
    assert_eq!(everywhere(&own, "").await, all);
    let shown = admin.get(&format!("{LETTERS}/{failed}")).await.expect(200);
    assert_eq!(shown["attempts"][0]["end"]["error"], "no way out");

    let selection = json!({"job": "x", "dry_run": true});
    let foreseen = act(&admin, "requeue", selection).await;
    assert_eq!(
        (&foreseen["matched"], &foreseen["changed"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(listed(&admin, "").await.len(), 3, "only told");

    let done = act(&admin, "requeue", json!({"runs": [failed]})).await;
    let new = done["items"][0]["new_run"].as_str().unwrap();
    let made = admin.get(&format!("/api/v1/runs/{new}")).await.expect(200);
    assert_eq!(
        (&made["rerun_of"], &made["params"]),
        (&json!(failed), &json!({"n": 1}))
    );
    let again = act(&admin, "requeue", json!({"runs": [failed]})).await;
    assert_eq!(again["changed"], 0);
    assert_eq!(again["items"][0]["problem"]["code"], "no_such_letter");

    let gone = act(&admin, "discard", json!({"reason": "timed_out"})).await;
    assert_eq!(gone["changed"], 1);
    assert_eq!(listed(&admin, "").await, all[..1]);
    let path = format!("/api/v1/runs/{slow}");
    assert_eq!(
        admin.get(&path).await.expect(200)["state"],
        "FAILED",
        "the run stays"
    );

    for nothing in [json!({}), json!({"runs": [other], "all": true})] {
        let refused = admin.post(&format!("{LETTERS}:discard"), &nothing).await;
        refused.problem(422, "invalid_field");
    }
    eventually("both deeds are in the audit log", async || {
        let log = admin.get("/api/v1/audit?kind=run").await.expect(200);
        let deeds = log["items"].as_array().unwrap().iter();
        let deeds: Vec<_> = deeds.map(|deed| deed["action"].clone()).collect();
        (deeds == [json!("discarded"), json!("requeued")]).then_some(())
    })
    .await;
    server.stop().await;
}
