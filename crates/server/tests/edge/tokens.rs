//! Tokens: made, listed, revoked; the bootstrap token and its death; the local token of each start.

use drumtower_server::auth::first_start::Bootstrap;
use serde_json::{Value, json};

use crate::server::Server;
use crate::worker::{Worker, hello};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_at_once_and_not_after_it_was_revoked() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin
        .post(
            "/api/v1/tokens",
            &json!({"name": "ci", "role": "operator", "namespace": "team"}),
        )
        .await
        .expect(201);
    assert_eq!(
        (&made["role"], &made["namespace"], &made["actor"]),
        (&json!("operator"), &json!("team"), &json!("local"))
    );
    let ci = server.with(made["secret"].as_str());
    ci.get("/api/v1/jobs").await.expect(200);
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    let job = ci
        .put("/api/v1/namespaces/team/jobs/x", &manifest)
        .await
        .expect(201);
    assert_eq!(job["actor"], "ci");

    let listed = admin.get("/api/v1/tokens").await.expect(200);
    let row = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["name"] == "ci")
        .unwrap()
        .clone();
    assert_eq!((&row["id"], row.get("secret")), (&made["id"], None));
    admin
        .post("/api/v1/tokens", &json!({"name": "ci", "role": "viewer"}))
        .await
        .problem(409, "token_name_taken");

    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    admin.delete(&path).await.expect(204);
    ci.get("/api/v1/jobs").await.problem(401, "unauthenticated");
    admin.delete(&path).await.problem(404, "no_such_token");
    let listed = admin.get("/api/v1/tokens").await.expect(200);
    assert!(
        !listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|token| token["name"] == "ci")
    );
    admin
        .post("/api/v1/tokens", &json!({"name": "ci", "role": "viewer"}))
        .await
        .expect(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_roles_are_checked() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in [
        "",
        "Upper",
        "a b",
        "bootstrap",
        "local",
        "server",
        "schedule",
        &"x".repeat(129),
    ] {
        let problem = admin
            .post("/api/v1/tokens", &json!({"name": name, "role": "viewer"}))
            .await
            .problem(422, "invalid_field");
        assert_eq!(problem["field"], "name", "{name}");
    }
    let problem = admin
        .post("/api/v1/tokens", &json!({"name": "x", "role": "amdin"}))
        .await
        .problem(422, "invalid_field");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `admin`?"),
        "{problem}"
    );
    admin
        .post(
            "/api/v1/tokens",
            &json!({"name": "x", "role": "viewer", "namespace": "A"}),
        )
        .await
        .problem(422, "invalid_field");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bootstrap_token_opens_the_door_once() {
    let server = Server::start().await;
    let Bootstrap::Made(secret) = &server.bootstrap else {
        panic!("{:?}", server.bootstrap)
    };
    let file = server.file("bootstrap.token");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().trim(),
        secret.text()
    );
    let secret = secret.text().to_owned();

    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    assert_eq!(server.bootstrap, Bootstrap::Waiting, "a restart keeps it");
    let first = server.with(Some(&secret));
    first
        .post(
            "/api/v1/tokens",
            &json!({"name": "team-admin", "role": "admin", "namespace": "team"}),
        )
        .await
        .expect(201);
    first.get("/api/v1/jobs").await.expect(200);
    let made = first
        .post("/api/v1/tokens", &json!({"name": "root", "role": "admin"}))
        .await
        .expect(201);
    assert!(!file.exists(), "it dies with the first admin of everything");
    first
        .get("/api/v1/jobs")
        .await
        .problem(401, "unauthenticated");
    server
        .with(made["secret"].as_str())
        .get("/api/v1/tokens")
        .await
        .expect(200);

    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    assert_eq!(server.bootstrap, Bootstrap::NotNeeded);
    let file = server.file("bootstrap.token");
    assert!(!file.exists());

    let root = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    server.admin().delete(&root).await.expect(204);
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    assert!(
        matches!(server.bootstrap, Bootstrap::Made(_)),
        "without an admin there is a way in again"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_token_whose_file_was_lost_is_replaced() {
    let server = Server::start().await;
    let Bootstrap::Made(old) = &server.bootstrap else {
        panic!("{:?}", server.bootstrap)
    };
    let old = old.text().to_owned();
    std::fs::remove_file(server.file("bootstrap.token")).unwrap();
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    let Bootstrap::Made(fresh) = &server.bootstrap else {
        panic!("{:?}", server.bootstrap)
    };
    server
        .with(Some(fresh.text()))
        .get("/api/v1/tokens")
        .await
        .expect(200);
    server
        .with(Some(&old))
        .get("/api/v1/tokens")
        .await
        .problem(401, "unauthenticated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_token_is_fresh_at_every_start_and_gone_at_the_end() {
    let server = Server::start().await;
    let old = server.local.clone();
    assert_eq!(
        std::fs::read_to_string(server.file("local.token"))
            .unwrap()
            .trim(),
        old
    );
    assert_eq!(
        std::fs::read_to_string(server.file("server.url"))
            .unwrap()
            .trim(),
        server.url
    );
    let directory = server.stop().await;
    assert!(!directory.path().join("local.token").exists());
    let server = Server::start_in(directory).await;
    assert_ne!(server.local, old);
    server
        .with(Some(&old))
        .get("/api/v1/jobs")
        .await
        .problem(401, "unauthenticated");
    let listed = server.admin().get("/api/v1/tokens").await.expect(200);
    assert!(
        listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|token| token["name"] != "local")
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_token_is_revoked_is_sent_away() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin
        .post("/api/v1/tokens", &json!({"name": "w", "role": "worker"}))
        .await
        .expect(201);
    let mut worker = Worker::join(&server.url, made["secret"].as_str().unwrap(), hello("w1")).await;
    let mut kept = Worker::join(&server.url, &server.local, hello("w2")).await;
    admin
        .delete(&format!("/api/v1/tokens/{}", made["id"].as_str().unwrap()))
        .await
        .expect(204);
    let close = worker.closed().await;
    assert!(
        !close.again && close.reason.contains("revoked"),
        "{close:?}"
    );
    kept.beat();
    kept.wait_for(|body| {
        matches!(
            body,
            drumtower_proto::worker::v1::server_message::Body::Renew(_)
        )
        .then_some(())
    })
    .await;
    let _: Value = admin.get("/api/v1/workers").await.expect(200);
    server.stop().await;
}

/// Who guesses is answered later and later, at the door of workers as at that of people; who knows a token is not.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_answered_slower_and_right_ones_are_not() {
    let server = Server::start().await;
    let began = std::time::Instant::now();
    for guess in 0..7 {
        let token = format!("drt_guess{guess}");
        let refused = server.with(Some(&token)).get("/api/v1/jobs").await;
        refused.problem(401, "unauthenticated");
    }
    // The sixth waits for a tenth of a second, the seventh for two.
    assert!(began.elapsed() >= std::time::Duration::from_millis(300));
    let began = std::time::Instant::now();
    assert!(Worker::dial(&server.url, Some("drt_guess")).await.is_err());
    assert!(began.elapsed() >= std::time::Duration::from_millis(400));
    // The next ones wait for seconds; meanwhile the right token is answered.
    let guesser = server.with(Some("drt_guess"));
    let mut late = tokio::spawn(async move {
        guesser.get("/api/v1/jobs").await;
        guesser.get("/api/v1/jobs").await;
        guesser.get("/api/v1/jobs").await
    });
    server.admin().get("/api/v1/jobs").await.expect(200);
    let early = tokio::time::timeout(std::time::Duration::ZERO, &mut late).await;
    assert!(early.is_err(), "the guesser is answered as soon");
    late.await.unwrap().problem(401, "unauthenticated");
    server.stop().await;
}
