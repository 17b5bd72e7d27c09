//! The stream of changes as a client reads it.

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use drumtower_proto::worker::v1 as wire;
use drumtower_server::api::changes::{STREAMS, STREAMS_OF_TOKEN};

use crate::client::Client;
use crate::server::{PATIENCE, Server, eventually, rand_name};
use crate::worker::{Worker, hello};

const PATH: &str = "/api/v1/changes";

/// One server-sent event.
#[derive(Clone, Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

struct Stream(UnboundedReceiver<String>);

impl Stream {
    /// Opens a stream and waits until it listens.
    async fn open(client: &Client, query: &str) -> Self {
        Self::resume(client, query, &[]).await.0
    }

    async fn resume(client: &Client, query: &str, headers: &[(&str, &str)]) -> (Self, Event) {
        let mut stream = Self(client.lines_with(&format!("{PATH}{query}"), headers));
        let ready = stream.next().await.expect("a greeting");
        assert_eq!(ready.name, "ready", "{ready:?}");
        (stream, ready)
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Event> {
        let (mut name, mut id, mut data) = (String::new(), String::new(), Value::Null);
        loop {
            let line = tokio::time::timeout(PATIENCE, self.0.recv())
                .await
                .expect("no event")?;
            match line.split_once(": ") {
                Some(("event", text)) => name = text.to_owned(),
                Some(("id", text)) => id = text.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                _ if line.is_empty() && !name.is_empty() => return Some(Event { name, id, data }),
                _ => {}
            }
        }
    }

    async fn named(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.name == name {
                return event;
            }
        }
    }

    /// Reads on until the run is in this state, and returns the states on the way.
    async fn run_until(&mut self, run: &str, state: &str) -> Vec<String> {
        let mut states = Vec::new();
        loop {
            let event = self.named("run").await;
            if event.data["id"] == run {
                states.push(event.data["state"].as_str().unwrap().to_owned());
                if event.data["state"] == state {
                    return states;
                }
            }
        }
    }
}

async fn put(client: &Client, namespace: &str, name: &str) {
    let manifest =
        json!({"kind": "Job", "task": {"exec": {"argv": ["true"]}}, "retry": {"max_attempts": 1}});
    client
        .put(
            &format!("/api/v1/namespaces/{namespace}/jobs/{name}"),
            &manifest,
        )
        .await
        .expect(201);
}

async fn trigger(client: &Client, namespace: &str, name: &str) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/jobs/{name}/runs");
    let run = client.post(&path, &json!({})).await.expect(201);
    run["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_from_its_making_to_its_end() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut stream = Stream::open(&admin, "").await;
    put(&admin, "a", "one").await;
    let job = stream.named("job").await;
    assert_eq!(
        (&job.data["name"], &job.data["change"]),
        (&json!("one"), &json!("put"))
    );

    let run = trigger(&admin, "a", "one").await;
    let made = stream.named("run").await;
    assert_eq!(made.data["id"], run);
    assert_eq!(made.data["job"], "one");
    assert_eq!(made.data["made"], true);
    assert_eq!(made.data["state"], "PENDING");

    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    let joined = stream.named("worker").await;
    assert_eq!(
        (&joined.data["name"], &joined.data["change"]),
        (&json!("w1"), &json!("joined"))
    );
    let assigned = worker.assignment().await.attempt.unwrap();
    worker
        .finish_with(assigned, |end| {
            end.outcome = wire::Outcome::Failed.into();
            end.exit_code = Some(3);
            end.error = "boom".to_owned();
        })
        .await;
    let states = stream.run_until(&run, "FAILED").await;
    assert!(
        !states.contains(&"PENDING".to_owned()),
        "told twice: {states:?}"
    );
    let path = "/api/v1/namespaces/a/jobs/one";
    admin
        .post(&format!("{path}/pause"), &json!({}))
        .await
        .expect(200);
    assert_eq!(stream.named("job").await.data["change"], "paused");
    admin.delete(path).await;
    assert_eq!(stream.named("job").await.data["change"], "deleted");
    drop(worker);
    server.stop().await;
    while stream.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_hold_back_everything_else() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["one", "two"] {
        put(&admin, "a", name).await;
        put(&admin, "b", name).await;
    }
    let mut job = Stream::open(&admin, "?namespace=a&job=two&kind=run").await;
    let mut state = Stream::open(&admin, "?state=cancelled").await;
    let mut calendars = Stream::open(&admin, "?kind=calendar").await;
    trigger(&admin, "a", "one").await;
    trigger(&admin, "b", "two").await;
    let wanted = trigger(&admin, "a", "two").await;
    assert_eq!(job.next().await.unwrap().data["id"], wanted);
    admin
        .post(&format!("/api/v1/runs/{wanted}/cancel"), &json!({}))
        .await
        .expect(200);
    let cancelled = state.next().await.unwrap();
    assert_eq!(
        (&cancelled.data["id"], &cancelled.data["state"]),
        (&json!(wanted), &json!("CANCELLED"))
    );
    let days = json!({"kind": "Calendar", "weekly": ["mon"]});
    admin
        .put("/api/v1/namespaces/a/calendars/days", &days)
        .await
        .expect(201);
    let calendar = calendars.next().await.unwrap();
    assert_eq!(
        (calendar.name.as_str(), &calendar.data["change"]),
        ("calendar", &json!("put"))
    );
    for query in ["?state=ill", "?kind=event", "?max_rate=0", "?nonsense=1"] {
        let answer = admin.get(&format!("{PATH}{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_hears_only_its_namespace_and_a_revoked_one_nothing() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "a", "secret").await;
    put(&admin, "b", "own").await;
    let body = json!({"name": rand_name(), "role": "viewer", "namespace": "b"});
    let token = admin.post("/api/v1/tokens", &body).await.expect(201);
    let tenant = server.with(token["secret"].as_str());
    tenant
        .get(&format!("{PATH}?namespace=a"))
        .await
        .problem(403, "forbidden_namespace");
    let (mut stream, ready) = Stream::resume(&tenant, "?kind=run", &[]).await;
    trigger(&admin, "a", "secret").await;
    let own = trigger(&admin, "b", "own").await;
    let event = stream.next().await.unwrap();
    assert_eq!(
        (&event.data["id"], &event.data["namespace"]),
        (&json!(own), &json!("b"))
    );
    // Coming back gives no more than staying would have.
    let (mut again, _) =
        Stream::resume(&tenant, "?kind=run", &[("last-event-id", &ready.id)]).await;
    assert_eq!(again.next().await.unwrap().data["id"], own);
    admin
        .delete(&format!("/api/v1/tokens/{}", token["id"].as_str().unwrap()))
        .await;
    assert!(stream.next().await.is_none(), "a revoked token is cut off");
    assert!(again.next().await.is_none());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_hears_what_happened_meanwhile_and_a_restart_is_seen() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "a", "one").await;
    let (mut stream, _) = Stream::resume(&admin, "?kind=run", &[]).await;
    let first = trigger(&admin, "a", "one").await;
    let last = stream.next().await.unwrap();
    assert_eq!(last.data["id"], first);
    drop(stream);
    let missed = trigger(&admin, "a", "one").await;
    let (mut back, _) = Stream::resume(&admin, "?kind=run", &[("last-event-id", &last.id)]).await;
    assert_eq!(back.next().await.unwrap().data["id"], missed);
    admin
        .call("GET", PATH, &[("last-event-id", "yesterday")], None)
        .await
        .problem(400, "invalid_header");

    let server = Server::start_in(server.stop().await).await;
    let admin = server.admin();
    let (mut back, ready) =
        Stream::resume(&admin, "?kind=run", &[("last-event-id", &last.id)]).await;
    let resync = back.next().await.unwrap();
    assert_eq!(
        (resync.name.as_str(), &resync.data["reason"]),
        ("resync", &json!("restarted"))
    );
    assert_ne!(ready.id.split('-').next(), last.id.split('-').next());
    trigger(&admin, "a", "one").await;
    assert_eq!(
        back.next().await.unwrap().name,
        "run",
        "it goes on after the gap"
    );
    server.stop().await;
}

/// Runs triggered in batches until so many were made.
async fn flood(client: &Client, namespace: &str, name: &str, count: usize) {
    let runs: Vec<Value> = (0..1000)
        .map(|_| json!({"namespace": namespace, "job": name}))
        .collect();
    let batch = json!({"runs": runs});
    for _ in 0..count / 1000 {
        client.post("/api/v1/runs:batch", &batch).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_becomes_counts_that_add_up() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "a", "busy").await;
    let mut stream = Stream::open(&admin, "?kind=run&max_rate=50").await;
    flood(&admin, "a", "busy", 20_000).await;
    let (mut made, mut messages) = (0, 0);
    while made < 20_000 {
        let event = stream.next().await.unwrap();
        messages += 1;
        made += match event.name.as_str() {
            "runs" => {
                assert_eq!(
                    (&event.data["job"], &event.data["namespace"]),
                    (&json!("busy"), &json!("a"))
                );
                event.data["made"].as_u64().unwrap()
            }
            "run" => 1,
            name => panic!("{name}"),
        };
    }
    assert_eq!(made, 20_000);
    assert!(messages < 1000, "{messages} messages for 20,000 runs");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ring_no_longer_holds_is_a_gap() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "a", "busy").await;
    let (stream, ready) = Stream::resume(&admin, "?kind=run", &[]).await;
    drop(stream);
    flood(&admin, "a", "busy", 70_000).await;
    let (mut back, _) = Stream::resume(&admin, "?kind=run", &[("last-event-id", &ready.id)]).await;
    let resync = back.next().await.unwrap();
    assert_eq!(
        (resync.name.as_str(), &resync.data["reason"]),
        ("resync", &json!("missed"))
    );
    assert!(resync.data["missed"].as_u64().unwrap() > 4000, "{resync:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_for_each_token_and_their_places_are_given_back() {
    let server = Server::start().await;
    let mut open = Vec::new();
    let mut viewers = Vec::new();
    for _ in 0..STREAMS / STREAMS_OF_TOKEN {
        let viewer = server.client("viewer", None).await;
        for _ in 0..STREAMS_OF_TOKEN {
            let mut stream = viewer.lines(PATH);
            stream.recv().await.expect("it is open");
            open.push(stream);
        }
        if viewers.is_empty() {
            let refused = viewer.get(PATH).await;
            assert!(!refused.header("retry-after").is_empty());
            let told = refused.problem(429, "too_many_streams");
            let detail = told["detail"].as_str().unwrap();
            assert!(detail.starts_with("this token has 16 streams"), "{detail}");
        }
        viewers.push(viewer);
    }
    let late = server.client("viewer", None).await;
    late.get(PATH).await.problem(429, "too_many_streams");
    open.clear();
    // Readers notice at the next line that nobody listens to them.
    for viewer in [&viewers[0], &late] {
        eventually("a place is free", async || {
            put(&server.admin(), "a", &rand_name()).await;
            (viewer.status(PATH).await == 200).then_some(())
        })
        .await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_token_does_not_learn_how_much_its_neighbours_do() {
    let server = Server::start().await;
    let admin = server.admin();
    put(&admin, "a", "busy").await;
    put(&admin, "b", "own").await;
    let tenant = server.client("viewer", Some("b")).await;
    let (stream, ready) = Stream::resume(&tenant, "?kind=run", &[]).await;
    drop(stream);
    flood(&admin, "a", "busy", 70_000).await;
    let (mut back, again) =
        Stream::resume(&tenant, "?kind=run", &[("last-event-id", &ready.id)]).await;
    let resync = back.next().await.unwrap();
    assert_eq!(resync.data, json!({"reason": "missed"}));
    let place = |id: &str| id.split_once('-').unwrap().1.to_owned();
    for id in [&ready.id, &again.id, &resync.id] {
        assert_eq!(
            place(id).len(),
            48,
            "of one length whatever the number: {id}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_backfills_and_breakers_are_told_as_they_change() {
    let server = Server::start().await;
    let admin = server.admin();
    let query = "?kind=queue&kind=backfill&kind=breaker";
    let mut stream = Stream::open(&admin, query).await;
    let queue = "/api/v1/namespaces/a/queues/slow";
    let spec = json!({"kind": "Queue", "concurrency": 1});
    admin.put(queue, &spec).await.expect(201);
    for (verb, change) in [("", "put"), ("pause", "paused"), ("resume", "resumed")] {
        if !verb.is_empty() {
            let path = format!("{queue}/{verb}");
            admin.post(&path, &json!({})).await.success();
        }
        let told = stream.named("queue").await.data;
        assert_eq!(
            (&told["name"], &told["change"]),
            (&json!("slow"), &json!(change))
        );
    }

    let job = "/api/v1/namespaces/a/jobs/one";
    let spec = json!({
        "kind": "Job", "task": {"exec": {"argv": ["true"]}}, "retry": {"max_attempts": 1},
        "schedule": [{"cron": "0 0 1 1 *"}], "breaker": {"failures": 2, "cooldown": "1h"},
    });
    admin.put(job, &spec).await.expect(201);
    let body = json!({"from": "2024-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"});
    let made = admin.post(&format!("{job}/backfills"), &body).await;
    let id = made.expect(201)["id"].clone();
    let mut worker = Worker::join(&server.url, &server.local, hello("w1")).await;
    for _ in 0..2 {
        let attempt = worker.assignment().await.attempt.unwrap();
        worker.finish(attempt, wire::Outcome::Failed).await;
    }
    let (mut opened, mut over) = (false, false);
    while !opened || !over {
        let event = stream.next().await.expect("the stream goes on");
        match event.name.as_str() {
            "breaker" => {
                assert!(!opened, "one failure is no change: {event:?}");
                assert_eq!(event.data["change"], "opened");
                assert_eq!(event.data["job"], "one");
                assert!(event.data["until"].is_string());
                opened = true;
            }
            "backfill" => {
                assert_eq!(event.data["id"], id);
                over = event.data["state"] == "COMPLETED" && event.data["failed"] == 2;
            }
            other => panic!("{other}: {event:?}"),
        }
    }
    let reset = format!("{job}/reset-breaker");
    admin.post(&reset, &json!({})).await.success();
    let closed = stream.named("breaker").await.data;
    assert_eq!(
        (&closed["change"], &closed["until"]),
        (&json!("closed"), &Value::Null)
    );
    eventually("both are counted", async || {
        let text = admin.get("/metrics").await.text();
        let line = |change: &str| {
            format!(
                "drumtower_breaker_changes_total{{namespace=\"a\",job_name=\"one\",change=\"{change}\"}} 1"
            )
        };
        (text.contains(&line("opened")) && text.contains(&line("closed"))).then_some(())
    })
    .await;
    admin
        .get(&format!("{PATH}?kind=brake"))
        .await
        .problem(400, "invalid_parameter");
    server.stop().await;
}
