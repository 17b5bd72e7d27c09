//! Editing jobs in parts and in numbers: patches, and verbs over many.

use serde_json::{Value, json};

use crate::client::Client;
use crate::faults::{Fault, Faulty};
use crate::server::{Server, eventually};

const JOB: &str = "/api/v1/namespaces/default/jobs/report";

fn manifest() -> Value {
    json!({
        "kind": "Job",
        "labels": {"team": "docs", "tier": "2"},
        "params": {"deep": {"a": 1, "b": 2}},
        "task": {"exec": {"argv": ["true"]}},
    })
}

async fn patch(client: &Client, headers: &[(&str, &str)], body: Value) -> crate::client::Answer {
    client
        .call("PATCH", JOB, headers, Some(body.to_string()))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_to_another_kind_of_task_takes_the_old_one_away() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.put(JOB, &manifest()).await.expect(201);
    let http = json!({"url": "https://example.com/x"});
    let refused = patch(&admin, &[], json!({"task": {"http": http}})).await;
    let told = refused.problem(422, "invalid_field");
    assert_eq!(told["field"], "task");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("set \"exec\": null"), "{detail}");
    let done = patch(&admin, &[], json!({"task": {"exec": null, "http": http}})).await;
    let task = done.expect(200)["spec"]["task"].clone();
    assert_eq!(task["http"]["url"], http["url"]);
    assert!(task.get("exec").is_none());
    server.stop().await;
}

/// Requests that take their turn after what was sent before them, as far as one can tell from outside.
async fn some_turns(client: &Client) {
    for _ in 0..10 {
        client.get("/healthz").await;
    }
}

/// A commit is held, so the store shows the job as it was before an edit that the engine knows already.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_edited_after_it_was_chosen_is_left_alone() {
    let (faulty, server) = Faulty::start().await;
    let admin = server.admin();
    let told = eventually("the edit comes between choosing and deleting", async || {
        admin.put(JOB, &manifest()).await;
        faulty.set(Fault::Held);
        let client = server.admin();
        let editing =
            tokio::spawn(
                async move { patch(&client, &[], json!({"labels": {"team": "web"}})).await },
            );
        some_turns(&admin).await;
        let client = server.admin();
        let deleting = tokio::spawn(async move {
            let body = json!({"labels": {"team": "docs"}});
            client.post(&format!("{BULK}:delete"), &body).await
        });
        some_turns(&admin).await;
        faulty.set(Fault::None);
        let (edited, told) = (editing.await.unwrap(), deleting.await.unwrap().expect(200));
        // Otherwise the two did not meet: the job was deleted first, or chosen when it was edited, or had to wait.
        let met = edited.status == 200
            && told["matched"] == 1
            && told["items"][0]["problem"]["code"] != "overloaded";
        met.then_some(told)
    })
    .await;
    assert_eq!(told["items"][0]["result"], "failed", "{told}");
    assert_eq!(told["items"][0]["problem"]["code"], "stale", "{told}");
    assert_eq!(told["changed"], 0);
    admin.get(JOB).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names_and_nothing_else() {
    let server = Server::start().await;
    let admin = server.admin();
    patch(&admin, &[], json!({"priority": 7}))
        .await
        .problem(404, "no_such_job");
    admin.put(JOB, &manifest()).await.expect(201);
    let change = json!({
        "priority": 7,
        "labels": {"team": "web", "tier": null},
        "params": {"deep": {"b": null}},
    });
    let merge = [("content-type", "application/merge-patch+json")];
    let answer = patch(&admin, &merge, change.clone()).await;
    assert_eq!(answer.header("etag"), "\"2\"");
    let job = answer.expect(200);
    assert_eq!(job["version"], 2);
    let spec = &job["spec"];
    assert_eq!(spec["priority"], 7);
    assert_eq!(spec["labels"], json!({"team": "web"}));
    assert_eq!(spec["params"], json!({"deep": {"a": 1}}));
    assert_eq!(spec["task"], manifest()["task"]);

    let again = patch(&admin, &[], change).await.expect(200);
    assert_eq!(
        again["version"], 2,
        "a patch that changes nothing makes no version"
    );
    let cleared = patch(&admin, &[], json!({"params": null}))
        .await
        .expect(200);
    assert!(cleared["spec"].get("params").is_none());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_is_held_to_the_rules_of_a_definition() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.put(JOB, &manifest()).await.expect(201);
    let refused = [
        (json!({"name": "other"}), 422, "invalid_field"),
        (json!({"task": null}), 422, "invalid_field"),
        (json!({"priority": 10}), 422, "invalid_field"),
        (
            json!({"schedule": [{"cron": "nonsense"}]}),
            422,
            "invalid_field",
        ),
        (
            json!({"calendar": {"only": ["missing"]}}),
            422,
            "invalid_field",
        ),
        (json!({"prority": 1}), 400, "unknown_field"),
        (json!([]), 422, "invalid_field"),
    ];
    for (body, status, code) in refused {
        patch(&admin, &[], body).await.problem(status, code);
    }
    patch(&admin, &[("if-match", "\"9\"")], json!({"priority": 1}))
        .await
        .problem(412, "stale");
    patch(&admin, &[("if-none-match", "*")], json!({"priority": 1}))
        .await
        .problem(400, "invalid_header");
    assert_eq!(admin.get(JOB).await.expect(200)["revision"], 1);
    let read = admin.get(JOB).await;
    let tag = read.header("etag").to_owned();
    patch(&admin, &[("if-match", &tag)], json!({"priority": 1}))
        .await
        .expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_without_a_condition_do_not_lose_each_other() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.put(JOB, &manifest()).await.expect(201);
    let patches = (0..4).map(|n| {
        let (admin, body) = (admin.clone(), json!({"labels": {format!("n{n}"): "x"}}));
        tokio::spawn(async move { patch(&admin, &[], body).await.expect(200) })
    });
    for patch in patches.collect::<Vec<_>>() {
        patch.await.unwrap();
    }
    let labels = admin.get(JOB).await.expect(200)["spec"]["labels"].clone();
    assert_eq!(labels.as_object().unwrap().len(), 6, "{labels}");
    server.stop().await;
}

async fn put_many(admin: &Client, count: usize) {
    for n in 0..count {
        let path = format!("/api/v1/namespaces/default/jobs/job-{n:03}");
        let team = if n % 2 == 0 { "even" } else { "odd" };
        let mut body = manifest();
        body["labels"] = json!({"team": team});
        admin.put(&path, &body).await.expect(201);
    }
}

const BULK: &str = "/api/v1/namespaces/default/jobs";

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_chosen_by_label_or_name() {
    let server = Server::start().await;
    let admin = server.admin();
    put_many(&admin, 7).await;
    let even = json!({"labels": {"team": "even"}});
    let dry = json!({"labels": {"team": "even"}, "dry_run": true});
    let verb = |verb: &str| format!("{BULK}:{verb}");

    let told = admin.post(&verb("pause"), &dry).await.expect(200);
    assert_eq!((&told["matched"], &told["changed"]), (&json!(4), &json!(4)));
    let listed = admin.get(&format!("{BULK}?paused=true")).await.expect(200);
    assert_eq!(listed["items"], json!([]), "a dry run changes nothing");

    let told = admin.post(&verb("pause"), &even).await.expect(200);
    assert_eq!((&told["matched"], &told["changed"]), (&json!(4), &json!(4)));
    assert_eq!(told["next"], Value::Null);
    let first = json!({"namespace": "default", "name": "job-000", "result": "changed"});
    assert_eq!(told["items"][0], first);
    let again = admin.post(&verb("pause"), &even).await.expect(200);
    assert_eq!(again["changed"], 0);
    assert_eq!(again["items"][0]["result"], "unchanged");

    let names = json!({"names": ["job-000", "job-001", "nobody"]});
    let told = admin.post(&verb("resume"), &names).await.expect(200);
    let results: Vec<&str> = told["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["changed", "unchanged", "failed"]);
    assert_eq!(told["items"][2]["problem"]["code"], "no_such_job");

    let both = json!({"labels": {"team": "odd"}, "names": ["job-000", "job-001"]});
    let told = admin.post(&verb("delete"), &both).await.expect(200);
    assert_eq!(told["matched"], 1, "a name without the label is not meant");
    let left = admin.get(BULK).await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 6);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_names_something_and_is_bounded() {
    let server = Server::start().await;
    let admin = server.admin();
    put_many(&admin, 1).await;
    let names: Vec<String> = (0..1001).map(|n| format!("n{n}")).collect();
    for body in [
        json!({}),
        json!({"labels": {}}),
        json!({"names": []}),
        json!({"names": names}),
        json!({"names": ["A"]}),
        json!({"labels": {"team": "even"}, "cursor": "00"}),
        json!({"names": ["job-000"], "cursor": "00"}),
    ] {
        for verb in ["pause", "resume", "delete"] {
            let answer = admin.post(&format!("{BULK}:{verb}"), &body).await;
            answer.problem(422, "invalid_field");
        }
    }
    admin.get(&format!("{BULK}/job-000")).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_call_takes_goes_on_where_it_ended() {
    let server = Server::start().await;
    let admin = server.admin();
    let puts = (0..1005).map(|n| {
        let admin = admin.clone();
        async move {
            let path = format!("{BULK}/wide-{n:04}");
            admin.put(&path, &manifest()).await.expect(201);
        }
    });
    use futures_util::{StreamExt, stream};
    stream::iter(puts)
        .buffer_unordered(64)
        .collect::<Vec<()>>()
        .await;
    let body = json!({"labels": {"team": "docs"}});
    let first = admin
        .post(&format!("{BULK}:pause"), &body)
        .await
        .expect(200);
    assert_eq!(first["matched"], 1000);
    let rest = json!({"labels": {"team": "docs"}, "cursor": first["next"]});
    let last = admin
        .post(&format!("{BULK}:pause"), &rest)
        .await
        .expect(200);
    assert_eq!((&last["changed"], &last["next"]), (&json!(5), &Value::Null));
    let other = json!({"labels": {"team": "web"}, "cursor": first["next"]});
    let refused = admin.post(&format!("{BULK}:pause"), &other).await;
    assert_eq!(refused.problem(422, "invalid_field")["field"], "cursor");
    server.stop().await;
}
