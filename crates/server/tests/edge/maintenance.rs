//! Workers taken out of service and put back, and runs that nobody takes in time.

use drumtower_proto::worker::v1 as wire;
use serde_json::{Value, json};

use crate::runs::{put_exec, trigger};
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_worker_gets_nothing_until_it_is_resumed() {
    let server = Server::start().await;
    let admin = server.admin();
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    admin
        .put("/api/v1/namespaces/default/jobs/x", &manifest)
        .await
        .expect(201);
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let running = trigger(&admin, "x", Value::Null).await;
    let attempt = worker.assignment().await.attempt.unwrap();

    let drain = "/api/v1/workers/w1/drain";
    let drained = admin.post(drain, &json!({"deadline": "1h"})).await;
    let drained = drained.expect(200);
    assert_eq!(
        (&drained["processes"], &drained["attempts"]),
        (&json!(1), &json!(1))
    );
    let deadline = drained["maintenance"]["deadline"].clone();
    assert!(deadline.is_string(), "{drained}");
    let again = admin.call("POST", drain, &[], None).await.expect(200);
    assert_eq!(again["maintenance"]["deadline"], deadline);

    let waiting = trigger(&admin, "x", Value::Null).await;
    let shown = admin.get("/api/v1/workers/w1").await.expect(200);
    assert_eq!(shown["state"], "MAINTENANCE");
    assert_eq!(shown["why"], "drained by local: one run has to end");
    let run = admin.get(&format!("/api/v1/runs/{waiting}")).await;
    let run = run.expect(200);
    assert!(
        run["waiting"]
            .as_str()
            .unwrap_or_default()
            .contains("maintenance"),
        "{run}"
    );

    let now = admin.post(drain, &json!({"deadline": "0s"})).await;
    now.expect(200);
    worker
        .wait_for(|body| matches!(body, wire::server_message::Body::Cancel(_)).then_some(()))
        .await;
    worker.finish(attempt, wire::Outcome::Cancelled).await;
    let moved = eventually("the run waits for another worker", async || {
        let run = admin
            .get(&format!("/api/v1/runs/{running}"))
            .await
            .expect(200);
        (run["state"] == "PENDING").then_some(run)
    })
    .await;
    let first = &moved["attempts"][0]["end"];
    assert!(
        first["error"].as_str().unwrap().contains("drained"),
        "{moved}"
    );

    let resume = "/api/v1/workers/w1/resume";
    let resumed = admin.call("POST", resume, &[], None).await.expect(200);
    assert_eq!(resumed["maintenance"], Value::Null);
    worker.beat();
    worker.grant(1);
    worker.assignment().await;
    admin.call("POST", resume, &[], None).await.expect(200);
    let log = admin.get("/api/v1/audit?kind=worker").await.expect(200);
    let actions: Vec<&str> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["resumed", "drained", "drained"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_outlives_the_server() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let drained = admin.post("/api/v1/workers/w1/drain", &json!({})).await;
    assert_eq!(drained.expect(200)["processes"], 0, "nobody is there");
    let server = Server::start_in(server.stop().await).await;
    let admin = server.admin();
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let mut other = Worker::join(&server.url, &server.local, hello("w2")).await;
    trigger(&admin, "x", Value::Null).await;
    other.assignment().await;
    worker.beat();
    let shown = admin.get("/api/v1/workers/w1").await.expect(200);
    assert_eq!(
        (&shown["state"], &shown["attempts"]),
        (&json!("MAINTENANCE"), &json!(0))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_and_what_cannot_be_is_told() {
    let server = Server::start().await;
    let admin = server.admin();
    let _shared = Worker::join(&server.url, &server.local, hello("shared")).await;
    let bound = server.token("worker", Some("team")).await;
    let _bound = Worker::join(&server.url, &bound, hello("bound")).await;
    let team = server.client("operator", Some("team")).await;
    for verb in ["drain", "resume", "reset"] {
        let of = |name: &str| format!("/api/v1/workers/{name}/{verb}");
        let post = async |name: &str| team.call("POST", &of(name), &[], None).await;
        post("shared").await.problem(403, "forbidden_namespace");
        post("bound").await.expect(200);
        let elsewhere = format!("{}?namespace=other", of("bound"));
        let refused = team.call("POST", &elsewhere, &[], None).await;
        refused.problem(403, "forbidden_namespace");
    }
    for verb in ["resume", "reset"] {
        let path = format!("/api/v1/workers/nobody/{verb}");
        let refused = admin.call("POST", &path, &[], None).await;
        refused.problem(404, "no_such_worker");
    }
    let drain = "/api/v1/workers/shared/drain";
    for (deadline, words) in [("soon", "soon"), ("31d", "30 days")] {
        let refused = admin.post(drain, &json!({"deadline": deadline})).await;
        let problem = refused.problem(422, "invalid_field");
        assert!(
            problem["detail"].as_str().unwrap().contains(words),
            "{problem}"
        );
    }
    let refused = admin.post(drain, &json!({"until": "12:00"})).await;
    refused.problem(400, "unknown_field");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_nobody_takes_in_time_is_a_dead_letter() {
    let server = Server::start().await;
    let admin = server.admin();
    let manifest =
        json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "start_timeout": "50ms"});
    admin
        .put("/api/v1/namespaces/default/jobs/x", &manifest)
        .await
        .expect(201);
    let run = trigger(&admin, "x", Value::Null).await;
    let ended = admin
        .get(&format!("/api/v1/runs/{run}/wait"))
        .await
        .expect(200);
    assert_eq!(ended["state"], "FAILED");
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("start_timeout of 50ms"), "{ended}");
    let letters = admin
        .get("/api/v1/namespaces/default/deadletters?reason=start_timed_out")
        .await;
    assert_eq!(letters.expect(200)["items"][0]["run"], json!(run));
    server.stop().await;
}
