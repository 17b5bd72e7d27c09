//! Backfills: foreseen, created, carried out by a worker, paused, cancelled and found by their runs.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

const JOB: &str = "/api/v1/namespaces/default/jobs/hourly";

async fn put_hourly(admin: &Client, path: &str, schedule: Value) {
    let spec = json!({
        "kind": "Job", "task": {"exec": {"argv": ["true"]}}, "schedule": schedule,
        "retry": {"max_attempts": 1},
    });
    admin.put(path, &spec).await.success();
}

fn hours(from: u32, to: u32) -> Value {
    json!({
        "from": format!("2026-01-01T{from:02}:00:00Z"),
        "to": format!("2026-01-01T{to:02}:00:00Z"),
    })
}

async fn create(admin: &Client, body: &Value) -> Value {
    admin
        .post(&format!("{JOB}/backfills"), body)
        .await
        .expect(201)
}

fn path_of(backfill: &Value) -> String {
    format!("/api/v1/backfills/{}", backfill["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_is_carried_out_and_told() {
    let server = Server::start().await;
    let admin = server.admin();
    put_hourly(&admin, JOB, json!([{"cron": "0 * * * *"}])).await;
    let mut body = hours(0, 6);
    body["params"] = json!({"why": "backfill"});
    let preview = format!("{JOB}/backfills:preview");
    let foreseen = admin.post(&preview, &body).await.expect(200);
    assert_eq!(
        (&foreseen["times"], &foreseen["runs"]),
        (&json!(6), &json!(6))
    );
    assert_eq!(foreseen["fates"]["missing"]["count"], 6);
    let first = &foreseen["fates"]["missing"]["first"][0];
    assert_eq!(first, "2026-01-01T00:00:00.000Z");
    let none = admin.get("/api/v1/backfills").await.expect(200);
    assert_eq!(none["items"], json!([]), "a preview makes nothing");

    let made = create(&admin, &body).await;
    assert_eq!(
        (&made["state"], &made["job_version"]),
        (&json!("RUNNING"), &json!(1))
    );
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    for n in 0..6 {
        let assign = worker.assignment().await;
        assert_eq!(
            assign.nominal_wall_ms,
            Some(1_767_225_600_000 + n * 3_600_000)
        );
        let outcome = match n {
            5 => wire::Outcome::Failed,
            _ => wire::Outcome::Succeeded,
        };
        worker.finish(assign.attempt.unwrap(), outcome).await;
    }
    let path = path_of(&made);
    let over = eventually("the backfill is over", async || {
        let shown = admin.get(&path).await.expect(200);
        (shown["state"] == "COMPLETED").then_some(shown)
    })
    .await;
    assert_eq!((&over["made"], &over["completed"]), (&json!(6), &json!(5)));
    assert_eq!((&over["failed"], &over["active"]), (&json!(1), &json!(0)));

    let id = made["id"].as_str().unwrap();
    let runs = admin.get(&format!("/api/v1/runs?backfill={id}")).await;
    let runs = runs.expect(200)["items"].as_array().unwrap().clone();
    assert_eq!(runs.len(), 6);
    assert!(runs.iter().all(|run| run["origin"] == "backfill"));
    let run = format!("/api/v1/runs/{}", runs[0]["id"].as_str().unwrap());
    let run = admin.get(&run).await.expect(200);
    assert_eq!(
        (&run["backfill"], &run["params"]["why"]),
        (&json!(id), &json!("backfill"))
    );
    let other = admin.get("/api/v1/runs?origin=backfill&state=FAILED").await;
    assert_eq!(other.expect(200)["items"].as_array().unwrap().len(), 1);

    // What has a run is not missing; what failed can be made again.
    let again = create(&admin, &hours(0, 6)).await;
    let path = path_of(&again);
    let again = eventually("nothing is missing", async || {
        let shown = admin.get(&path).await.expect(200);
        (shown["state"] == "COMPLETED").then_some(shown)
    })
    .await;
    assert_eq!((&again["made"], &again["skipped"]), (&json!(0), &json!(6)));
    let mut failed = hours(0, 6);
    failed["which"] = json!("failed");
    let foreseen = admin.post(&preview, &failed).await.expect(200);
    assert_eq!(foreseen["runs"], 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_pause_resume_and_cancel() {
    let server = Server::start().await;
    let admin = server.admin();
    put_hourly(&admin, JOB, json!([{"every": "1h"}])).await;
    let made = create(&admin, &hours(0, 10)).await;
    let path = path_of(&made);
    eventually("a run is made", async || {
        let shown = admin.get(&path).await.expect(200);
        (shown["active"] == 1).then_some(())
    })
    .await;
    let shown = admin.get(&path).await;
    let tag = shown.header("etag").to_owned();
    assert!(tag.starts_with("\"b1."), "{tag}");
    let stale = [("if-match", "\"b7\"")];
    let pause = format!("{path}/pause");
    let refused = admin.call("POST", &pause, &stale, None).await;
    refused.problem(412, "stale");
    let fresh = [("if-match", tag.as_str())];
    let paused = admin.call("POST", &pause, &fresh, None).await.expect(200);
    assert_eq!(
        (&paused["state"], &paused["revision"]),
        (&json!("PAUSED"), &json!(2))
    );
    let listed = admin.get(&format!("{JOB}/backfills?state=paused")).await;
    assert_eq!(listed.expect(200)["items"][0]["id"], made["id"]);
    let empty = admin.get("/api/v1/backfills?state=RUNNING").await;
    assert_eq!(empty.expect(200)["items"], json!([]));
    let resumed = admin.post(&format!("{path}/resume"), &json!({})).await;
    assert_eq!(resumed.expect(200)["state"], "RUNNING");
    let cancel = format!("{path}/cancel?runs=true");
    let over = admin.post(&cancel, &json!({})).await.expect(200);
    assert_eq!(
        (&over["state"], &over["cancelled"]),
        (&json!("CANCELLED"), &json!(1))
    );
    let log = admin.get("/api/v1/audit?kind=backfill").await.expect(200);
    let deeds: Vec<&str> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(deeds, ["cancelled", "resumed", "paused", "created"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_wishes_are_refused_by_field() {
    let server = Server::start().await;
    let admin = server.admin();
    put_hourly(&admin, JOB, json!([{"every": "1h"}])).await;
    let path = format!("{JOB}/backfills");
    let with = |key: &str, value: Value| {
        let mut body = hours(0, 2);
        body[key] = value;
        body
    };
    let cases = [
        ("to", with("to", json!("2999-01-01T00:00:00Z"))),
        ("to", with("to", json!("2026-01-01T00:00:00Z"))),
        ("from", with("from", json!("yesterday"))),
        // A hundred years of hours are more than one backfill goes through.
        ("to", with("from", json!("1970-01-01T00:00:00Z"))),
        ("max_active", with("max_active", json!(0))),
        ("max_active", with("max_active", json!(101))),
        ("priority", with("priority", json!(10))),
        ("params", with("params", json!("x".repeat(16 * 1024)))),
    ];
    for (field, body) in cases {
        for path in [path.clone(), format!("{path}:preview")] {
            let problem = admin.post(&path, &body).await.problem(422, "invalid_field");
            assert_eq!(problem["field"], field, "{problem}");
        }
    }
    admin
        .post(&path, &with("which", json!("some")))
        .await
        .problem(422, "invalid_field");
    admin
        .post(&path, &with("surprise", json!(1)))
        .await
        .problem(400, "unknown_field");
    for (name, schedule) in [("bare", json!([])), ("chain", json!([{"after_end": "5s"}]))] {
        let job = format!("/api/v1/namespaces/default/jobs/{name}");
        put_hourly(&admin, &job, schedule).await;
        let refused = admin.post(&format!("{job}/backfills"), &hours(0, 2)).await;
        let problem = refused.problem(422, "invalid_field");
        assert_eq!(problem["field"], "schedule", "{problem}");
    }
    let nobody = "/api/v1/namespaces/default/jobs/nobody/backfills";
    let refused = admin.post(nobody, &hours(0, 2)).await;
    refused.problem(404, "no_such_job");
    let wrong = admin.get("/api/v1/backfills?state=odd").await;
    wrong.problem(400, "invalid_parameter");
    let wrong = admin.get("/api/v1/backfills/run_0000000000001").await;
    wrong.problem(400, "invalid_parameter");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_makes_one_and_a_restart_goes_on() {
    let server = Server::start().await;
    let admin = server.admin();
    put_hourly(&admin, JOB, json!([{"every": "1h"}])).await;
    let path = format!("{JOB}/backfills");
    let key = [("idempotency-key", "once")];
    let body = hours(0, 4).to_string();
    let call = async |client: &Client, body: &str| {
        client
            .call("POST", &path, &key, Some(body.to_owned()))
            .await
    };
    let made = call(&admin, &body).await.expect(201);
    assert_eq!(call(&admin, &body).await.expect(200)["id"], made["id"]);
    let other = hours(0, 5).to_string();
    call(&admin, &other)
        .await
        .problem(409, "idempotency_key_reused");
    let server = Server::start_in(server.stop().await).await;
    let admin = server.admin();
    assert_eq!(call(&admin, &body).await.expect(200)["id"], made["id"]);
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    for _ in 0..4 {
        let assign = worker.assignment().await;
        worker
            .finish(assign.attempt.unwrap(), wire::Outcome::Succeeded)
            .await;
    }
    let path = path_of(&made);
    let over = eventually("the backfill is over", async || {
        let shown = admin.get(&path).await.expect(200);
        (shown["state"] == "COMPLETED").then_some(shown)
    })
    .await;
    assert_eq!(over["completed"], 4);
    server.stop().await;
}
