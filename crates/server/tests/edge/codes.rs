//! Every code of a problem, provoked on a real server, and its page.
//!
//! The match over the kinds is exhaustive: a new code does not compile without someone who can say how it is met.

use drumtower_proto::worker::v1 as wire;
use drumtower_server::api::Kind;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Answer;
use crate::faults::{Fault, Faulty};
use crate::runs::{put_exec, trigger};
use crate::server::{Server, eventually};
use crate::worker::{Worker, hello};

const JOB: &str = "/api/v1/namespaces/default/jobs/x";
const LOCK: &str = "/api/v1/namespaces/default/locks/import";
const DAYS: &str = "/api/v1/namespaces/default/calendars/days";

#[tokio::test(flavor = "multi_thread")]
async fn every_code_can_be_met_and_leads_to_its_page() {
    let server = Server::start().await;
    put_exec(&server.admin(), "x").await;
    for kind in Kind::ALL {
        let problem = provoke(&server, *kind)
            .await
            .problem(kind.status().as_u16(), kind.code());
        let page = problem["type"].as_str().unwrap();
        let read = server.admin().get(page).await;
        assert_eq!(read.header("content-type"), "text/markdown; charset=utf-8");
        let title = format!("# {}\n", kind.code());
        assert!(read.text().starts_with(&title), "{page}");
    }
    server.stop().await;
}

/// A backfill of a day.
fn day() -> serde_json::Value {
    json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"})
}

/// A refusal of this kind: by `server` where a plain one can give it, else by one that is made to fail.
async fn provoke(server: &Server, kind: Kind) -> Answer {
    let admin = server.admin();
    let manifest = json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}});
    let put = async |headers: &[(&str, &str)], body: String| {
        admin.call("PUT", JOB, headers, Some(body)).await
    };
    match kind {
        Kind::MalformedJson => put(&[], "{".to_owned()).await,
        Kind::UnknownField => put(&[], json!({"kinds": 1}).to_string()).await,
        Kind::UnknownParameter => admin.get("/api/v1/runs?stat=x").await,
        Kind::InvalidParameter => admin.get("/api/v1/runs?limit=0").await,
        Kind::InvalidHeader => put(&[("if-match", "3")], manifest.to_string()).await,
        Kind::Unauthenticated => server.with(None).get(JOB).await,
        Kind::ForbiddenRole => server.client("viewer", None).await.delete(JOB).await,
        Kind::ForbiddenNamespace => server.client("viewer", Some("b")).await.get(JOB).await,
        Kind::OtherSite => {
            let signed = admin.post("/api/v1/session", &json!({})).await;
            let (cookie, _) = signed.header("set-cookie").split_once(';').unwrap();
            let browser = server.with(None);
            let cookie = [("cookie", cookie)];
            browser.call("POST", "/api/v1/session", &cookie, None).await
        }
        Kind::NoSuchRoute => admin.get("/api/v1/nothing").await,
        Kind::NoSuchJob => admin.get("/api/v1/namespaces/default/jobs/nobody").await,
        Kind::NoSuchQueue => admin.get("/api/v1/namespaces/default/queues/none").await,
        Kind::NoSuchCalendar => admin.get("/api/v1/namespaces/default/calendars/none").await,
        Kind::NoSuchRun => admin.get("/api/v1/runs/run_0000000000001").await,
        Kind::NoSuchLetter => {
            let path = "/api/v1/namespaces/default/deadletters/run_0000000000001";
            admin.get(path).await
        }
        Kind::NoSuchBackfill => admin.get("/api/v1/backfills/bf_0000000000001").await,
        Kind::BackfillInTheWay => {
            let mut user = manifest.clone();
            user["schedule"] = json!([{"every": "1h"}]);
            let path = "/api/v1/namespaces/default/jobs/hourly";
            admin.put(path, &user).await.success();
            let path = format!("{path}/backfills");
            admin.post(&path, &day()).await.expect(201);
            admin.post(&path, &day()).await
        }
        Kind::BackfillOver => {
            let mut user = manifest.clone();
            user["schedule"] = json!([{"every": "1h"}]);
            let path = "/api/v1/namespaces/default/jobs/over";
            admin.put(path, &user).await.success();
            let path = format!("{path}/backfills");
            let made = admin.post(&path, &day()).await.expect(201);
            let path = format!("/api/v1/backfills/{}", made["id"].as_str().unwrap());
            let cancel = format!("{path}/cancel");
            admin.post(&cancel, &json!({})).await.expect(200);
            admin.post(&format!("{path}/pause"), &json!({})).await
        }
        Kind::NoSuchToken => admin.delete("/api/v1/tokens/tok_0000000000001").await,
        Kind::NoSuchLock => admin.get(LOCK).await,
        Kind::OverlapFull => {
            let job = json!({"kind": "Job", "task": {"handler": {"name": "nobody"}}});
            let path = "/api/v1/namespaces/default/jobs/serial";
            admin.put(path, &job).await.expect(201);
            let runs = format!("{path}/runs");
            let obey = json!({"overlap": "obey"});
            admin.post(&runs, &obey).await.expect(201);
            admin.post(&runs, &obey).await
        }
        Kind::BreakerOpen => open_breaker(server).await,
        Kind::LockHeld => {
            let acquire = format!("{LOCK}/acquire");
            admin
                .post(&acquire, &json!({"owner": "one"}))
                .await
                .expect(200);
            admin.post(&acquire, &json!({"owner": "two"})).await
        }
        Kind::LockLost => {
            admin
                .post(&format!("{LOCK}/renew"), &json!({"fence": "1"}))
                .await
        }
        Kind::NoSuchSetting => {
            admin
                .get("/api/v1/namespaces/default/settings/notify")
                .await
        }
        Kind::NoSuchVersion => admin.get(&format!("{JOB}/versions/99")).await,
        Kind::NoSuchProblem => admin.get("/api/v1/problems/nonsense").await,
        Kind::NoSuchWorker => admin.get("/api/v1/workers/nobody").await,
        Kind::MethodNotAllowed => admin.delete("/api/v1/runs").await,
        Kind::IdempotencyKeyReused => {
            let runs = format!("{JOB}/runs");
            let key = [("idempotency-key", "k")];
            admin.call("POST", &runs, &key, None).await.expect(201);
            let other = json!({"params": 1}).to_string();
            admin.call("POST", &runs, &key, Some(other)).await
        }
        Kind::RunNotEnded => {
            let run = trigger(&admin, "x", serde_json::Value::Null).await;
            admin
                .post(&format!("/api/v1/runs/{run}/rerun"), &json!({}))
                .await
        }
        Kind::TokenNameTaken => {
            let token = json!({"name": "twice", "role": "viewer"});
            admin.post("/api/v1/tokens", &token).await.expect(201);
            admin.post("/api/v1/tokens", &token).await
        }
        Kind::CalendarInUse => {
            let days = json!({"kind": "Calendar", "weekly": ["mon"]});
            admin.put(DAYS, &days).await.expect(201);
            let mut user = manifest.clone();
            user["schedule"] = json!([{"cron": "0 9 * * *"}]);
            user["calendar"] = json!({"only": ["days"]});
            let path = "/api/v1/namespaces/default/jobs/user";
            admin.put(path, &user).await.expect(201);
            admin.delete(DAYS).await
        }
        Kind::BackupUnderWay => {
            let directory = server.file("backups");
            std::fs::create_dir_all(&directory).unwrap();
            let lock = std::fs::File::create(directory.join(".lock")).unwrap();
            lock.lock().unwrap();
            let refused = admin.post("/api/v1/backups", &json!({})).await;
            std::fs::remove_dir_all(&directory).unwrap();
            refused
        }
        Kind::BackupFailed => {
            std::fs::write(server.file("backups"), "in the way").unwrap();
            admin.post("/api/v1/backups", &json!({})).await
        }
        Kind::TooManyCalendars => too_many_calendars().await,
        Kind::LogExpired => log_expired().await,
        Kind::OutputAway => output_away().await,
        Kind::Stale => put(&[("if-match", "\"99\"")], manifest.to_string()).await,
        Kind::AlreadyThere => put(&[("if-none-match", "*")], manifest.to_string()).await,
        Kind::TooLarge => put(&[], "x".repeat((1 << 20) + 1)).await,
        Kind::UnsupportedMediaType => {
            put(&[("content-type", "text/yaml")], "kind: Job".to_owned()).await
        }
        Kind::InvalidField => put(&[], json!({"kind": "Job", "task": 1}).to_string()).await,
        Kind::Overloaded => overloaded().await,
        Kind::TooManyStreams => too_many_streams(server).await,
        Kind::NotReady => not_ready().await,
        Kind::Stopping => stopping().await,
        Kind::OutcomeUnknown => outcome_unknown().await,
        Kind::StoreFailed => store_failed().await,
        Kind::Internal => internal().await,
    }
}

async fn open_breaker(server: &Server) -> Answer {
    let (admin, job) = (server.admin(), "/api/v1/namespaces/default/jobs/broken");
    let manifest = json!({
        "kind": "Job", "task": {"handler": {"name": "breaks"}}, "retry": {"max_attempts": 1},
        "breaker": {"failures": 1, "cooldown": "1h"},
    });
    admin.put(job, &manifest).await.expect(201);
    let mut breaks = hello("breaker");
    breaks.exec = false;
    breaks.handlers = vec!["breaks".to_owned()];
    let mut worker = Worker::join(&server.url, &server.local, breaks).await;
    let run = trigger(&admin, "broken", serde_json::Value::Null).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    let ended = admin.get(&format!("/api/v1/runs/{run}/wait")).await;
    assert_eq!(ended.expect(200)["state"], "FAILED");
    admin.post(&format!("{job}/runs"), &json!({})).await
}

async fn too_many_streams(server: &Server) -> Answer {
    let (admin, path) = (server.admin(), "/api/v1/changes");
    let mut open = Vec::new();
    for _ in 0..drumtower_server::api::changes::STREAMS_OF_TOKEN {
        let mut stream = admin.lines(path);
        stream.recv().await.expect("it is open");
        open.push(stream);
    }
    admin.get(path).await
}

async fn too_many_calendars() -> Answer {
    use futures_util::{StreamExt, stream};
    let server = Server::start().await;
    let admin = server.admin();
    let put = |n: usize| {
        let admin = admin.clone();
        async move {
            let path = format!("/api/v1/namespaces/default/calendars/c{n}");
            let body = json!({"kind": "Calendar", "weekly": ["mon"]});
            admin.put(&path, &body).await
        }
    };
    let puts = stream::iter((0..1000).map(put)).buffer_unordered(64);
    puts.for_each(async |answer| {
        answer.expect(201);
    })
    .await;
    let refused = put(1000).await;
    server.stop().await;
    refused
}

/// A run with a line of output, and the path of its log.
async fn written(server: &Server) -> String {
    let admin = server.admin();
    put_exec(&admin, "x").await;
    let id = trigger(&admin, "x", serde_json::Value::Null).await;
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.start(attempt);
    worker.write(attempt, 1, 1, "one\n");
    worker.log_acked(1).await;
    worker.finish(attempt, wire::Outcome::Succeeded).await;
    let wait = format!("/api/v1/runs/{id}/wait?timeout=60s");
    assert_eq!(admin.get(&wait).await.expect(200)["state"], "COMPLETED");
    format!("/api/v1/runs/{id}/logs")
}

async fn log_expired() -> Answer {
    let server = Server::start().await;
    let path = written(&server).await;
    let server = Server::start_in(server.stop().await).await;
    std::fs::remove_dir_all(server.file("logs")).unwrap();
    let refused = server.admin().get(&path).await;
    server.stop().await;
    refused
}

/// The server that has the output has left, and another follows it.
async fn output_away() -> Answer {
    let memory = drumtower_store::memory::Memory::new();
    let former = crate::cluster::join(&memory, "one").await;
    let path = written(&former).await;
    let server = crate::cluster::join(&memory, "two").await;
    former.stop().await;
    let refused = crate::server::eventually("the former is seen to be gone", async || {
        let answer = server.admin().get(&path).await;
        (answer.status == 503).then_some(answer)
    });
    let refused = refused.await;
    server.stop().await;
    refused
}

/// A log file that is a directory is a fault that no request can be blamed for.
async fn internal() -> Answer {
    let server = Server::start().await;
    let path = written(&server).await;
    let directory = server.stop().await;
    let server = Server::start_in(directory).await;
    for entry in std::fs::read_dir(server.file("logs")).unwrap() {
        let file = entry.unwrap().path();
        if file.metadata().unwrap().len() > 0 {
            std::fs::remove_file(&file).unwrap();
            std::fs::create_dir(&file).unwrap();
        }
    }
    let refused = server.admin().get(&path).await;
    server.stop().await;
    refused
}

async fn store_failed() -> Answer {
    let server = Server::start().await;
    let database = rusqlite::Connection::open(server.file("drumtower.db")).unwrap();
    database
        .execute_batch("ALTER TABLE token RENAME TO gone")
        .unwrap();
    let refused = server.admin().get("/api/v1/tokens").await;
    database
        .execute_batch("ALTER TABLE gone RENAME TO token")
        .unwrap();
    server.stop().await;
    refused
}

async fn not_ready() -> Answer {
    let (faulty, server) = Faulty::start().await;
    put_exec(&server.admin(), "x").await;
    faulty.set(Fault::Full);
    let admin = server.admin();
    let under_way =
        tokio::spawn(async move { admin.post(&format!("{JOB}/pause"), &json!(null)).await });
    let refused = eventually("the server cannot commit", async || {
        let answer = server.admin().get("/readyz").await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    refused.problem(503, "not_ready");
    let refused = server
        .admin()
        .post(&format!("{JOB}/resume"), &json!(null))
        .await;
    faulty.set(Fault::None);
    under_way.await.unwrap();
    server.stop().await;
    refused
}

async fn outcome_unknown() -> Answer {
    let (faulty, server) = Faulty::start().await;
    put_exec(&server.admin(), "x").await;
    faulty.set(Fault::Full);
    let refused = server
        .admin()
        .post(&format!("{JOB}/pause"), &json!(null))
        .await;
    faulty.set(Fault::None);
    eventually("the server can commit again", async || {
        let answer = server.admin().get("/readyz").await;
        (answer.status == 200).then_some(())
    })
    .await;
    server.stop().await;
    refused
}

/// A commit is held, what comes meanwhile fills the next one and then the inbox, which has room for one.
async fn overloaded() -> Answer {
    let (faulty, server) = Faulty::start().await;
    put_exec(&server.admin(), "x").await;
    faulty.set(Fault::Held);
    let runs: Vec<_> = (0..1000).map(|_| json!({"job": "x"})).collect();
    let batch = json!({"runs": runs});
    let mut waiting = Vec::new();
    let refused = loop {
        let (admin, batch) = (server.admin(), batch.clone());
        let mut sent = tokio::spawn(async move { admin.post("/api/v1/runs:batch", &batch).await });
        let patience = std::time::Duration::from_millis(200);
        match tokio::time::timeout(patience, &mut sent).await {
            Ok(answer) => break answer.unwrap(),
            Err(_) => waiting.push(sent),
        }
        assert!(waiting.len() < 100, "nobody was refused");
    };
    assert_eq!(refused.header("retry-after"), "1");
    faulty.set(Fault::None);
    for sent in waiting {
        let answer = sent.await.unwrap();
        assert!(
            [200, 429].contains(&answer.status.as_u16()),
            "{}",
            answer.text()
        );
    }
    server.stop().await;
    refused
}

/// Requests that had begun when the server was told to stop, and whose bodies come later.
async fn stopping() -> Answer {
    let server = Server::start().await;
    put_exec(&server.admin(), "x").await;
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let mut begun = Vec::new();
    for _ in 0..40 {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST {JOB}/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 2\r\n\r\n{{",
            server.local
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        begun.push(socket);
    }
    // All of them are read when this one, which came later, is answered.
    server.admin().get(JOB).await.expect(200);
    let stopped = tokio::spawn(server.stop());
    let mut answers = Vec::new();
    for mut socket in begun {
        let _ = socket.write_all(b"}").await;
        let mut text = String::new();
        let _ = socket.read_to_string(&mut text).await;
        if text.contains("\"stopping\"") {
            answers.push(text);
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    stopped.await.unwrap();
    let text = answers.pop().expect("one of them was too late");
    parsed(&text)
}

/// An answer as it came over the wire, in one piece.
fn parsed(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.parse::<u16>().unwrap().try_into().unwrap(),
        headers: headers
            .map(|(name, value)| {
                (
                    name.parse::<http::HeaderName>().unwrap(),
                    value.parse().unwrap(),
                )
            })
            .collect(),
        body: body.as_bytes().to_vec(),
    }
}
