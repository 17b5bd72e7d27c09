//! Output: written by a worker, read and followed by callers, kept apart by run, kept over a restart.

use drumtower_proto::worker::v1 as wire;
use drumtower_proto::worker::v1::worker_message::Body as ToServer;
use serde_json::{Value, json};

use crate::runs::{put_exec, trigger};
use crate::server::{PATIENCE, Server};
use crate::worker::{Worker, hello};

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_followed_as_it_comes_and_read_afterwards() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let path = format!("/api/v1/runs/{id}/logs");
    let mut following = admin.lines(&format!("{path}?follow=true"));
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.start(attempt);

    worker.write(attempt, 1, 1, "one\ntwo\n");
    worker.log_acked(1).await;
    let mut next = async || {
        tokio::time::timeout(PATIENCE, following.recv())
            .await
            .expect("a line")
    };
    assert_eq!(
        line(&next().await.unwrap())["text"],
        "one\n",
        "before the run has ended"
    );
    assert_eq!(line(&next().await.unwrap())["text"], "two\n");
    worker.write(attempt, 1, 1, "one\ntwo\n");
    worker.write(attempt, 2, 2, "wrong\n");
    worker.log_acked(2).await;
    let wrong = line(&next().await.unwrap());
    assert_eq!(
        (&wrong["text"], &wrong["stream"], &wrong["attempt"]),
        (&json!("wrong\n"), &json!("stderr"), &json!(1))
    );
    let live = admin
        .call("GET", &path, &[("accept", "text/plain")], None)
        .await;
    assert_eq!(live.text(), "one\ntwo\nwrong\n");

    // The last words and the end in one frame: the end carries their place.
    let last = wire::LogChunk {
        attempt: Some(attempt),
        seq: 3,
        stream: 1,
        wall_ms: 0,
        data: b"three".to_vec(),
    };
    let end = wire::Finished {
        attempt: Some(attempt),
        outcome: wire::Outcome::Succeeded.into(),
        ..Default::default()
    };
    worker.send(vec![ToServer::Log(last), ToServer::Finished(end)]);
    assert_eq!(line(&next().await.unwrap())["text"], "three");
    assert_eq!(next().await, None, "it ends with the run");
    let run = admin.get(&format!("/api/v1/runs/{id}")).await.expect(200);
    assert_eq!(
        run["attempts"][0]["end"]["log"],
        json!({"bytes": 19, "truncated": false})
    );
    let errors = admin
        .call(
            "GET",
            &format!("{path}?stream=stderr&attempt=1"),
            &[("accept", "text/plain")],
            None,
        )
        .await;
    assert_eq!(
        (errors.text().as_str(), errors.header("content-type")),
        ("wrong\n", "text/plain; charset=utf-8")
    );
    assert_eq!(admin.get(&format!("{path}?attempt=2")).await.text(), "");

    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    let kept = server
        .admin()
        .call("GET", &path, &[("accept", "text/plain")], None)
        .await;
    assert_eq!(kept.text(), "one\ntwo\nwrong\nthree");
    std::fs::remove_dir_all(server.file("logs")).unwrap();
    server.admin().get(&path).await.problem(410, "log_expired");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_run_has_an_empty_log() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let path = format!("/api/v1/runs/{id}/logs");
    let empty = admin.get(&path).await;
    assert_eq!((empty.status.as_u16(), empty.text().as_str()), (200, ""));
    assert_eq!(empty.header("content-type"), "application/x-ndjson");
    admin
        .post(&format!("/api/v1/runs/{id}/cancel"), &Value::Null)
        .await
        .expect(200);
    let mut following = admin.lines(&format!("{path}?follow=true"));
    assert_eq!(following.recv().await, None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_into_the_log_of_another() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    let stranger = server.token("worker", Some("elsewhere")).await;
    for (token, hello) in [
        (stranger.as_str(), hello("w3")),
        (&server.local, hello("w2")),
    ] {
        let mut forger = Worker::join(&server.url, token, hello).await;
        forger.write(attempt, 1, 1, "forged\n");
        forger.log_acked(1).await;
    }
    worker.write(attempt, 1, 1, "true\n");
    worker.log_acked(1).await;
    worker.write(
        wire::AttemptRef {
            attempt: 9,
            ..attempt
        },
        1,
        1,
        "no such attempt\n",
    );
    worker.log_acked(1).await;
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    let log = admin
        .call(
            "GET",
            &format!("/api/v1/runs/{id}/logs"),
            &[("accept", "text/plain")],
            None,
        )
        .await;
    assert_eq!(log.text(), "true\n");
    server.stop().await;
}

/// The texts of a log, each line of the answer one.
fn texts(answer: &str) -> Vec<String> {
    let text = |it: &str| line(it)["text"].as_str().unwrap().to_owned();
    answer.lines().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_is_read_without_the_rest_and_lines_are_looked_for() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let path = format!("/api/v1/runs/{id}/logs");
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.start(attempt);
    for seq in 1..=9 {
        worker.write(attempt, seq, 1, &format!("line {seq}\n"));
    }
    worker.write(attempt, 10, 2, "\u{1b}[31mERR\u{1b}[0mor on two");
    worker.write(attempt, 11, 1, "line 10\npart");
    worker.write(attempt, 12, 2, " pieces\n");
    worker.log_acked(12).await;
    let read = async |query: &str| texts(&admin.get(&format!("{path}?{query}")).await.text());
    assert_eq!(
        read("tail=3").await,
        [
            "line 10\n",
            "\u{1b}[31mERR\u{1b}[0mor on two pieces\n",
            "part"
        ]
    );
    assert_eq!(read("tail=2&stream=stdout").await, ["line 10\n", "part"]);
    assert!(read("tail=0").await.is_empty());
    assert_eq!(read("tail=10000").await.len(), 12);
    assert_eq!(
        read("grep=line%20[12]").await,
        ["line 1\n", "line 2\n", "line 10\n"]
    );
    assert_eq!(read("grep=line&tail=2").await, ["line 9\n", "line 10\n"]);
    assert_eq!(read("grep=(?i)^error%20on%20two%20pieces$").await.len(), 1);
    assert_eq!(read("since=2100-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(
        read("since=1960-01-01T00:00:00Z&stream=stdout&tail=1").await,
        ["part"]
    );
    for query in [
        "tail=10001",
        "tail=-1",
        "tail=x",
        "grep=(",
        "since=yesterday",
    ] {
        let refused = admin.get(&format!("{path}?{query}")).await;
        assert_eq!(refused.status.as_u16(), 400, "{query}");
        assert_eq!(
            line(&refused.text())["field"],
            query.split('=').next().unwrap()
        );
    }

    let mut following = admin.lines(&format!("{path}?follow=true&tail=1"));
    let mut sifting = admin.lines(&format!("{path}?follow=true&tail=1&grep=part|last"));
    assert_eq!(line(&following.recv().await.unwrap())["text"], "part");
    worker.write(attempt, 13, 1, " whole\nother\nlast");
    for expected in [" whole\n", "other\n", "last"] {
        assert_eq!(line(&following.recv().await.unwrap())["text"], expected);
    }
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    assert_eq!(following.recv().await, None);
    for expected in ["part whole\n", "last"] {
        assert_eq!(line(&sifting.recv().await.unwrap())["text"], expected);
    }
    assert_eq!(sifting.recv().await, None);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_output_is_noted() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.write(attempt, 1, 1, "kept\n");
    worker
        .finish_with(attempt, |end| {
            end.outcome = wire::Outcome::Failed.into();
            end.log_truncated = true;
        })
        .await;
    let text = admin.get(&format!("/api/v1/runs/{id}/logs")).await.text();
    let lines: Vec<Value> = text.lines().map(line).collect();
    assert_eq!(
        (&lines[0]["text"], &lines[1]["stream"]),
        (&json!("kept\n"), &json!("note"))
    );
    assert!(lines[1]["text"].as_str().unwrap().contains("dropped"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_ends_with_the_token() {
    let server = Server::start().await;
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", Value::Null).await;
    let token = json!({"name": "eye", "role": "viewer"});
    let made = admin.post("/api/v1/tokens", &token).await.expect(201);
    let viewer = server.with(made["secret"].as_str());
    let mut following = viewer.lines(&format!("/api/v1/runs/{id}/logs?follow=true"));
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.write(attempt, 1, 1, "seen\n");
    assert_eq!(line(&following.recv().await.unwrap())["text"], "seen\n");
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    admin.delete(&path).await.expect(204);
    let next = tokio::time::timeout(PATIENCE, following.recv()).await;
    assert_eq!(next.expect("the end"), None);
    server.stop().await;
}
