//! Several servers on one store: any of them takes any request, and the work goes on when the owner leaves.

use drumtower_core::model::Member;
use drumtower_proto::worker::v1 as wire;
use drumtower_store::Store;
use drumtower_store::memory::Memory;
use serde_json::{Value, json};

use crate::client::Client;
use crate::runs::trigger;
use crate::server::{PATIENCE, Server, eventually, rand_name};
use crate::shares::Pair;
use crate::worker::{Worker, hello};

pub async fn join(memory: &Memory, name: &str) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let name = name.to_owned();
    let open = |_: &_| {
        let store = memory.share();
        let reader = store.reader();
        let reader: std::sync::Arc<dyn drumtower_store::Read> = std::sync::Arc::new(reader);
        (Box::new(store) as Box<dyn drumtower_store::Store>, reader)
    };
    Server::launch_on(directory, |options| options.name = name, open).await
}

async fn status_of(client: &Client) -> Value {
    client.get("/readyz").await.json()["status"].clone()
}

fn job(name: &str) -> Value {
    json!({"kind": "Job", "name": name, "task": {"exec": {"argv": ["true"]}}})
}

async fn put(client: &Client, name: &str) {
    let path = format!("/api/v1/namespaces/default/jobs/{name}");
    client.put(&path, &job(name)).await.success();
}

#[tokio::test]
async fn any_server_answers() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    for server in [&owner, &standby] {
        let status = status_of(&server.admin()).await;
        assert!(status == "ready" || status == "standby", "{status}");
    }
    // The token of this machine's own admin, which the owner does not know.
    let name = rand_name();
    put(&standby.admin(), &name).await;
    let path = format!("/api/v1/namespaces/default/jobs/{name}");
    let made = owner.admin().get(&path).await.expect(200);
    assert_eq!(made["name"], name.as_str());
    let audit = standby.admin().get("/api/v1/audit?kind=job").await;
    assert_eq!(audit.expect(200)["items"][0]["actor"], "local");
    // A token that was made by the owner is good everywhere at once, with what it may do and no more.
    let viewer = owner.token("viewer", None).await;
    let viewer = standby.with(Some(&viewer));
    let seen = viewer.get(&path).await;
    assert!(!seen.header("etag").is_empty());
    seen.expect(200);
    viewer
        .put(&path, &job(&name))
        .await
        .problem(403, "forbidden_role");
    standby
        .with(None)
        .get(&path)
        .await
        .problem(401, "unauthenticated");
    let nobody = standby.with(Some("drt_nobody"));
    nobody.get(&path).await.problem(401, "unauthenticated");
    // What the owner refuses is told as it tells it.
    let wrong = json!({"kind": "Job", "name": name, "task": {"exec": {"argv": []}}});
    let refused = standby.admin().put(&path, &wrong).await;
    refused.problem(422, "invalid_field");
    standby.stop().await;
    owner.stop().await;
}

/// Of those who show it at once, one has the tokens read again while the others are being refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_just_made_is_good_at_another_server_for_all_who_show_it() {
    let memory = Memory::new();
    let one = join(&memory, "one").await;
    let other = join(&memory, "two").await;
    for _ in 0..50 {
        let token = one.token("viewer", None).await;
        let client = || other.with(Some(&token));
        let ask = |_| {
            let client = client();
            tokio::spawn(async move { client.get("/api/v1/jobs").await.expect(200) })
        };
        let asked: Vec<_> = (0..8).map(ask).collect();
        for answer in asked {
            answer.await.expect("it was let in");
        }
    }
    other.stop().await;
    one.stop().await;
}

#[tokio::test]
async fn nobody_can_pretend_to_be_sent_on() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    let forged = [("drumtower-forwarded", "29000000 127.0.0.1 1 1 00")];
    for server in [&owner, &standby] {
        let client = server.with(None);
        let answer = client.call("GET", "/api/v1/jobs", &forged, None).await;
        answer.problem(401, "unauthenticated");
    }
    standby.stop().await;
    owner.stop().await;
}

#[tokio::test]
async fn what_one_server_is_told_another_carries_out() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    let token = owner.token("worker", None).await;
    // One that keeps no stream to each server gets only what the one that it reached owns.
    let mut near = Worker::join_at(&standby.url, &token, hello("near")).await;
    let mut far = Worker::join_at(&owner.url, &token, hello("far")).await;
    let name = rand_name();
    put(&owner.admin(), &name).await;
    let path = format!("/api/v1/namespaces/default/jobs/{name}/runs");
    let run = standby.admin().post(&path, &json!({})).await.expect(201);
    let (worker, assigned) = tokio::select! {
        assigned = near.assignment() => (&mut near, assigned),
        assigned = far.assignment() => (&mut far, assigned),
    };
    let attempt = assigned.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    let path = format!("/api/v1/runs/{}/wait", run["id"].as_str().unwrap());
    let ended = standby.admin().get(&path).await.expect(200);
    assert_eq!(ended["state"], "COMPLETED");
    standby.stop().await;
    owner.stop().await;
}

#[tokio::test]
async fn when_the_owner_leaves_callers_see_a_delay_and_no_error() {
    let memory = Memory::new();
    let mut servers = vec![join(&memory, "one").await];
    for name in ["two", "three"] {
        servers.push(join(&memory, name).await);
    }
    let admin = servers[0].token("admin", None).await;
    let last = servers.pop().unwrap();
    let client = last.with(Some(&admin));
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let (tell, mut count) = tokio::sync::watch::channel(0);
    let calling = tokio::spawn(async move {
        let mut made = Vec::new();
        while stopped.try_recv().is_err() {
            let name = rand_name();
            put(&client, &name).await;
            made.push(name);
            tell.send_replace(made.len());
        }
        made
    });
    // The owner leaves while requests come in, then the one that followed it.
    for server in servers {
        let more = *count.borrow() + 3;
        count.wait_for(|count| *count > more).await.unwrap();
        server.stop().await;
        let more = *count.borrow() + 3;
        count.wait_for(|count| *count > more).await.unwrap();
    }
    let _ = stop.send(());
    let made = tokio::time::timeout(PATIENCE, calling)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status_of(&last.admin()).await, "ready");
    for name in made {
        let path = format!("/api/v1/namespaces/default/jobs/{name}");
        last.admin().get(&path).await.expect(200);
    }
    last.stop().await;
}

#[tokio::test]
async fn output_and_changes_are_followed_through_any_server() {
    let pair = Pair::start().await;
    let token = pair.one.token("worker", None).await;
    let mut lines = pair.two.admin().lines("/api/v1/changes");
    let mut heard = async |wanted: &str| {
        let heard = async { while !lines.recv().await.unwrap().contains(wanted) {} };
        tokio::time::timeout(PATIENCE, heard).await.unwrap();
    };
    heard("event: ready").await;
    for (second, owner, other) in [(true, &pair.two, &pair.one), (false, &pair.one, &pair.two)] {
        let (admin, name) = (other.admin(), pair.name_of(second));
        put(&admin, &name).await;
        heard(&name).await;
        let run = trigger(&admin, &name, Value::Null).await;
        let logs = format!("/api/v1/runs/{run}/logs?follow=true");
        // Only servers ask for parts: from a caller the mark means nothing.
        let mark = [("drumtower-own-part", "1")];
        let mut followed = [admin.lines(&logs), admin.lines_with(&logs, &mark)];
        let mut told = async |wanted: Option<&str>| {
            for lines in &mut followed {
                let line = tokio::time::timeout(PATIENCE, lines.recv()).await.unwrap();
                let line = line.map(|line| serde_json::from_str::<Value>(&line).unwrap());
                let words = line.as_ref().map(|line| line["text"].as_str().unwrap());
                assert_eq!(words, wanted);
            }
        };
        let mut worker = Worker::join_at(&owner.url, &token, hello(&name)).await;
        let attempt = worker.assignment().await.attempt.unwrap();
        worker.start(attempt);
        worker.write(attempt, 1, 1, "one\ntwo\n");
        told(Some("one\n")).await;
        told(Some("two\n")).await;
        worker.write(attempt, 2, 2, "three\n");
        told(Some("three\n")).await;
        worker.finish(attempt, wire::Outcome::Succeeded).await;
        told(None).await;
    }
    // The stream goes on at the server that it comes from, whoever owns.
    let Pair { one, two, .. } = pair;
    one.stop().await;
    let name = rand_name();
    put(&two.admin(), &name).await;
    heard(&name).await;
    drop(lines);
    two.stop().await;
}

#[tokio::test]
async fn a_listing_goes_on_at_the_server_that_follows() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    for name in ["a", "b", "c"] {
        put(&owner.admin(), name).await;
    }
    let first = owner.admin().get("/api/v1/jobs?limit=1").await.expect(200);
    let next = first["next"].as_str().expect("there is more").to_owned();
    owner.stop().await;
    let path = format!("/api/v1/jobs?limit=1&cursor={next}");
    let second = standby.admin().get(&path).await.expect(200);
    assert_eq!(second["items"][0]["name"], "b");
    standby.stop().await;
}

#[tokio::test]
async fn each_server_tells_who_is_there_and_who_owns_what() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    let seen = |cluster: &Value, name: &str| {
        let servers = cluster["servers"].as_array().unwrap().clone();
        servers.into_iter().find(|it| it["name"] == name).unwrap()
    };
    for (asked, name, other) in [(&owner, "one", "two"), (&standby, "two", "one")] {
        // Who has just come is seen a moment later, and asked from then on.
        let cluster = eventually("both tell of themselves", async || {
            let cluster = asked.admin().get("/api/v1/cluster").await.expect(200);
            let servers = cluster["servers"].as_array().unwrap();
            let told = servers.iter().filter(|it| it["answered"] == true).count();
            (told == 2).then_some(cluster)
        })
        .await;
        assert_eq!(cluster["servers"].as_array().unwrap().len(), 2);
        let (here, there) = (seen(&cluster, name), seen(&cluster, other));
        assert_eq!(
            (&here["here"], &there["here"]),
            (&json!(true), &json!(false))
        );
        // Each of them tells what only it knows.
        for server in [&here, &there] {
            assert_eq!(server["answered"], true, "{server}");
            assert!(
                server["started"].is_string() && server["skew_ms"].is_i64(),
                "{server}"
            );
            assert!(
                server["lag_ms"].is_u64() && server["tied"].is_u64(),
                "{server}"
            );
        }
        assert!(there["address"].as_str().unwrap().starts_with("http://"));
        // All segments are somebody's, and what the servers are said to own is what the map says.
        let segments = &cluster["segments"];
        assert_eq!(
            (&segments["count"], &segments["unowned"]),
            (&json!(1024), &json!(0))
        );
        for server in [&here, &there] {
            let ranges = segments["ranges"].as_array().unwrap().iter();
            let own = ranges.filter(|range| range["session"] == server["session"]);
            let width = |range: &Value| {
                range["last"].as_u64().unwrap() + 1 - range["first"].as_u64().unwrap()
            };
            assert_eq!(own.map(width).sum::<u64>(), server["segments"]);
            let state = if server["segments"] == 0 {
                "standby"
            } else {
                "active"
            };
            assert_eq!(server["state"], state);
        }
    }
    standby.stop().await;
    owner.stop().await;
}

/// The cookie of a session of a client's token.
async fn signed_in(client: &Client) -> String {
    let answer = client.post("/api/v1/session", &json!({})).await;
    let cookie = answer.header("set-cookie").split(';').next();
    cookie.unwrap().to_owned()
}

#[tokio::test]
async fn a_session_of_a_token_that_another_server_made_is_known_to_a_server_that_answers_itself() {
    let memory = Memory::new();
    let owner = join(&memory, "one").await;
    let standby = join(&memory, "two").await;
    let token = owner.token("viewer", None).await;
    let cookie = signed_in(&owner.with(Some(&token))).await;
    let headers = [("cookie", cookie.as_str())];
    // It looks again for tokens once in a while, not at each call.
    let client = standby.with(None);
    eventually("the session is known", async || {
        let answer = client.call("GET", "/api/v1/cluster", &headers, None).await;
        (answer.status == 200).then_some(())
    })
    .await;
    standby.stop().await;
    owner.stop().await;
}

/// Its token is drawn by each server for itself and known to no other.
#[tokio::test]
async fn a_session_of_the_machines_own_admin_is_good_for_what_another_server_owns() {
    let pair = Pair::start().await;
    let token = pair.one.token("worker", None).await;
    for (second, owner, other) in [(true, &pair.two, &pair.one), (false, &pair.one, &pair.two)] {
        let cookie = signed_in(&other.admin()).await;
        let console = [("cookie", cookie.as_str()), ("x-drumtower-console", "1")];
        let client = other.with(None);
        let (name, worker) = (pair.name_of(second), rand_name());
        put(&other.admin(), &name).await;
        let path = format!("/api/v1/namespaces/default/jobs/{name}");
        let pause = format!("{path}/pause");
        client.call("POST", &pause, &console, None).await.success();
        let paused = owner.admin().get(&path).await.expect(200);
        assert_eq!(paused["paused"]["actor"], "local", "{paused}");
        // One that is known to the owner only.
        let _worker = Worker::join_at(&owner.url, &token, hello(&worker)).await;
        for (told, workers) in [
            ("/api/v1/overview", "workers"),
            ("/api/v1/workers", "items"),
        ] {
            let seen = client.call("GET", told, &console, None).await.expect(200);
            assert!(
                seen.get("silent").is_none_or(|it| *it == json!([])),
                "{seen}"
            );
            let mut workers = seen[workers].as_array().unwrap().iter();
            assert!(workers.any(|it| it["name"] == worker.as_str()), "{seen}");
        }
    }
    pair.stop().await;
}

#[tokio::test]
async fn of_a_server_that_cannot_be_asked_the_database_tells() {
    let memory = Memory::new();
    let server = join(&memory, "one").await;
    // Its session holds, and nobody listens where it says that it is.
    let silent = Member {
        address: Some("http://127.0.0.1:1".to_owned()),
        version: "0.0.1".to_owned(),
        ..Member::alone("silent")
    };
    let mut store = memory.share();
    store.begin_session(&silent, 60_000).unwrap();
    let cluster = server.admin().get("/api/v1/cluster").await.expect(200);
    let servers = cluster["servers"].as_array().unwrap();
    let named = |name: &str| servers.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(named("one")["answered"], true);
    let silent = named("silent");
    assert_eq!(
        (&silent["answered"], &silent["version"]),
        (&json!(false), &json!("0.0.1"))
    );
    for untold in ["started", "skew_ms", "lag_ms", "commit_p50_ms"] {
        assert!(silent[untold].is_null(), "{silent}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_with_a_store_of_its_own_owns_everything() {
    let server = Server::start().await;
    let cluster = server.admin().get("/api/v1/cluster").await.expect(200);
    assert_eq!(cluster["store"], "sqlite");
    let servers = cluster["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1);
    assert_eq!(
        (&servers[0]["state"], &servers[0]["here"]),
        (&json!("active"), &json!(true))
    );
    let ranges = cluster["segments"]["ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), 1);
    assert_eq!(
        (&ranges[0]["first"], &ranges[0]["last"]),
        (&json!(0), &json!(1023))
    );
    let refused = server.admin().get("/api/v1/cluster?all=1").await;
    refused.problem(400, "unknown_parameter");
    server.stop().await;
}
