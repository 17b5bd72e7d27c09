//! The past of a job, the way back to it, and runs made once more.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

const JOB: &str = "/api/v1/namespaces/default/jobs/report";

async fn put(admin: &Client, weight: u32, params: Value) {
    let body = json!({
        "kind": "Job", "weight": weight, "params": params,
        "task": {"exec": {"argv": ["true"]}},
    });
    let status = admin.put(JOB, &body).await.status.as_u16();
    assert!([200, 201].contains(&status));
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_listed_shown_compared_and_restored() {
    let server = Server::start().await;
    let admin = server.admin();
    for weight in 1..=3 {
        put(&admin, weight, json!({"n": weight})).await;
    }
    let path = format!("{JOB}/versions");
    let all = admin.get(&path).await.expect(200);
    let items = all["items"].as_array().unwrap();
    let numbers: Vec<&Value> = items.iter().map(|item| &item["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let current: Vec<&Value> = items.iter().map(|item| &item["current"]).collect();
    assert_eq!(current, [true, false, false]);
    assert_eq!(items[0]["actor"], "local");
    assert_eq!(
        (&items[1]["spec"]["weight"], &all["next"]),
        (&json!(2), &Value::Null)
    );

    let first = admin.get(&format!("{path}?limit=2")).await.expect(200);
    let next = first["next"].as_str().unwrap();
    let rest = admin
        .get(&format!("{path}?limit=2&cursor={next}"))
        .await
        .expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&rest["items"][0]["version"], &rest["next"]),
        (&json!(1), &Value::Null)
    );

    assert_eq!(admin.get(&format!("{path}/2")).await.expect(200), items[1]);
    for (version, status, code) in [
        ("4", 404, "no_such_version"),
        ("0", 404, "no_such_version"),
        ("x", 400, "invalid_parameter"),
        ("-1", 400, "invalid_parameter"),
    ] {
        let answer = admin.get(&format!("{path}/{version}")).await;
        answer.problem(status, code);
    }

    let diff = admin
        .get(&format!("{JOB}/diff?from=1&to=3"))
        .await
        .expect(200);
    let expected = json!({"from": 1, "to": 3, "changes": [
        {"field": "params.n", "before": 1, "after": 3},
        {"field": "weight", "before": null, "after": 3},
    ]});
    assert_eq!(diff, expected);
    let last = admin.get(&format!("{JOB}/diff")).await.expect(200);
    assert_eq!((&last["from"], &last["to"]), (&json!(2), &json!(3)));
    admin
        .get(&format!("{JOB}/diff?from=9"))
        .await
        .problem(404, "no_such_version");

    let restore = format!("{JOB}/restore");
    let stale = [("if-match", "\"1\"")];
    let body = json!({"version": 1}).to_string();
    let refused = admin
        .call("POST", &restore, &stale, Some(body.clone()))
        .await;
    refused.problem(412, "stale");
    let answer = admin
        .call("POST", &restore, &[("if-match", "\"3\"")], Some(body))
        .await;
    assert_eq!(answer.header("etag"), "\"4\"");
    let job = answer.expect(200);
    assert_eq!(
        (&job["version"], &job["spec"]["params"]["n"]),
        (&json!(4), &json!(1))
    );
    let again = admin
        .post(&restore, &json!({"version": 4}))
        .await
        .expect(200);
    assert_eq!(again["version"], 4, "nothing to change");
    admin
        .post(&restore, &json!({"version": 9}))
        .await
        .problem(404, "no_such_version");
    admin
        .post(&restore, &json!({"version": "1"}))
        .await
        .problem(422, "invalid_field");
    server.stop().await;
}

/// A run that ended: cancelled before any worker took it.
async fn ended(admin: &Client, body: &Value) -> String {
    let run = admin.post(&format!("{JOB}/runs"), body).await.expect(201);
    let id = run["id"].as_str().unwrap().to_owned();
    admin
        .post(&format!("/api/v1/runs/{id}/cancel"), &Value::Null)
        .await
        .expect(200);
    id
}

async fn rerun(admin: &Client, id: &str, body: Value) -> Value {
    let made = admin
        .post(&format!("/api/v1/runs/{id}/rerun"), &body)
        .await
        .expect(201);
    let id = made["id"].as_str().unwrap();
    admin.get(&format!("/api/v1/runs/{id}")).await.expect(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_repeated_with_its_parameters_or_others() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, 1, json!({"from": "job"})).await;
    let plain = ended(&admin, &json!({})).await;
    let own = ended(&admin, &json!({"params": {"from": "trigger"}})).await;
    put(&admin, 2, json!({"from": "new"})).await;

    let again = rerun(&admin, &plain, json!({})).await;
    assert_eq!(again["rerun_of"], json!(plain));
    assert_eq!(
        (&again["job_version"], &again["params"]),
        (&json!(2), &json!({"from": "job"}))
    );
    let original = rerun(&admin, &plain, json!({"version": "original"})).await;
    assert_eq!(
        (&original["job_version"], &original["origin"]),
        (&json!(1), &json!("api"))
    );
    let again = rerun(&admin, &own, json!({})).await;
    assert_eq!(again["params"], json!({"from": "trigger"}));
    let other = rerun(
        &admin,
        &own,
        json!({"params": {"from": "rerun"}, "delay": "1h"}),
    )
    .await;
    assert_eq!(
        (&other["params"], &other["state"]),
        (&json!({"from": "rerun"}), &json!("PENDING"))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repetition_can_be_repeated_and_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, 1, Value::Null).await;
    let id = ended(&admin, &json!({})).await;
    let path = format!("/api/v1/runs/{id}/rerun");
    let key = [("idempotency-key", "again")];
    let first = admin.call("POST", &path, &key, None).await.expect(201);
    let second = admin.call("POST", &path, &key, None).await.expect(200);
    assert_eq!(
        (&first["id"], &second["repeated"]),
        (&second["id"], &json!(true))
    );
    let in_body = json!({"idempotency_key": "again"});
    let third = admin.post(&path, &in_body).await.expect(200);
    assert_eq!(
        third["id"], first["id"],
        "the key in the body is the same key"
    );
    let other = json!({"params": 1}).to_string();
    let reused = admin.call("POST", &path, &key, Some(other)).await;
    reused.problem(409, "idempotency_key_reused");
    let both = admin
        .call("POST", &path, &key, Some(in_body.to_string()))
        .await;
    both.problem(422, "invalid_field");
    admin
        .post(&path, &json!({"version": "old"}))
        .await
        .problem(422, "invalid_field");
    admin
        .post(&path, &json!({"vresion": "original"}))
        .await
        .problem(400, "unknown_field");
    let living = first["id"].as_str().unwrap();
    let early = admin
        .post(&format!("/api/v1/runs/{living}/rerun"), &json!({}))
        .await;
    early.problem(409, "run_not_ended");
    admin.delete(JOB).await;
    admin
        .post(&path, &json!({}))
        .await
        .problem(404, "no_such_job");
    server.stop().await;
}
