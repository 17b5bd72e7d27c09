//! Two servers that own a share of the segments each: whichever is asked, the answer is the same.

use std::collections::BTreeSet;

use drumtower_core::model::SegmentId;
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::worker::v1::server_message::Body as FromServer;
use drumtower_store::memory::Memory;
use serde_json::{Value, json};

use crate::client::Client;
use crate::cluster::join;
use crate::runs::{put_exec, trigger};
use crate::server::{PATIENCE, Server, eventually, rand_name};
use crate::worker::{Worker, hello};

pub struct Pair {
    pub one: Server,
    pub two: Server,
    /// The segments of the second; the rest is the first one's.
    of_two: Vec<(u64, u64)>,
}

impl Pair {
    pub async fn start() -> Self {
        let memory = Memory::new();
        let one = join(&memory, "one").await;
        let two = join(&memory, "two").await;
        let of_two = eventually("each has its share", async || settled(&one).await).await;
        Self { one, two, of_two }
    }

    /// A name for a job that the second server owns, or the first.
    pub fn name_of(&self, second: bool) -> String {
        loop {
            let name = rand_name();
            let segment = u64::from(SegmentId::of("default", &name).0);
            let mut ranges = self.of_two.iter();
            if ranges.any(|(first, last)| (*first..=*last).contains(&segment)) == second {
                return name;
            }
        }
    }

    fn both(&self) -> [&Server; 2] {
        [&self.one, &self.two]
    }

    pub async fn stop(self) {
        self.two.stop().await;
        self.one.stop().await;
    }
}

/// What the second server owns, once nothing is to move any more.
async fn settled(server: &Server) -> Option<Vec<(u64, u64)>> {
    let cluster = server.admin().get("/api/v1/cluster").await.json();
    let servers = cluster["servers"].as_array()?;
    let two = servers.iter().find(|it| it["name"] == "two")?;
    let owned = servers.iter().filter_map(|it| it["segments"].as_u64());
    let shares: Vec<u64> = owned.filter(|count| *count > 300).collect();
    let ranges = cluster["segments"]["ranges"].as_array()?.iter();
    let own = ranges.filter(|range| range["session"] == two["session"]);
    let bounds = own.filter_map(|it| Some((it["first"].as_u64()?, it["last"].as_u64()?)));
    (shares.len() == 2 && shares.iter().sum::<u64>() == 1024).then(|| bounds.collect())
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/default/jobs/{name}")
}

fn job(name: &str) -> Value {
    json!({"kind": "Job", "name": name, "labels": {"of": "pair"}, "task": {"exec": {"argv": ["true"]}}})
}

async fn put(client: &Client, name: &str) {
    client.put(&path(name), &job(name)).await.success();
}

#[tokio::test]
async fn whichever_server_is_asked_carries_a_command_out() {
    let pair = Pair::start().await;
    for asked in pair.both() {
        for second in [false, true] {
            let (admin, name) = (asked.admin(), pair.name_of(second));
            put(&admin, &name).await;
            for reader in pair.both() {
                reader.admin().get(&path(&name)).await.expect(200);
            }
            let runs = format!("{}/runs", path(&name));
            let run = admin.post(&runs, &json!({})).await.expect(201);
            let run = format!("/api/v1/runs/{}", run["id"].as_str().unwrap());
            // Why it waits is in the memory of its owner.
            for reader in pair.both() {
                let shown = reader.admin().get(&run).await.expect(200);
                assert_eq!(shown["state"], "PENDING");
                assert!(shown["waiting"].is_string(), "{shown}");
                let why = reader.admin().get(&format!("{run}/explain")).await;
                why.expect(200);
                let why = format!("{}/explain", path(&name));
                reader.admin().get(&why).await.expect(200);
            }
            let cancelled = admin.post(&format!("{run}/cancel"), &json!({})).await;
            assert_eq!(cancelled.expect(200)["state"], "CANCELLED");
            admin.delete(&path(&name)).await.success();
        }
        // What all segments share is with the owner of the first.
        let token = asked.token("viewer", None).await;
        for reader in pair.both() {
            let seen = reader.with(Some(&token)).get("/api/v1/jobs").await;
            seen.expect(200);
        }
        let name = rand_name();
        let queue = json!({"kind": "Queue", "name": name, "concurrency": 3});
        let queue_path = format!("/api/v1/namespaces/default/queues/{name}");
        let made = asked.admin().put(&queue_path, &queue).await;
        made.success();
        for reader in pair.both() {
            reader.admin().get(&queue_path).await.expect(200);
        }
        let lock = format!("/api/v1/namespaces/default/locks/{name}");
        let hold = asked
            .admin()
            .post(&format!("{lock}/acquire"), &json!({"owner": "me"}))
            .await;
        hold.expect(200);
        for reader in pair.both() {
            assert_eq!(reader.admin().get(&lock).await.expect(200)["waiting"], 0);
            let locks = reader.admin().get("/api/v1/locks").await.expect(200);
            let all = locks["items"].as_array().unwrap().iter();
            assert!(all.clone().all(|lock| lock["waiting"] == 0), "{locks}");
        }
    }
    pair.stop().await;
}

#[tokio::test]
async fn a_setting_of_the_installation_holds_at_every_server() {
    const SETTING: &str = "/api/v1/settings/jobs";
    let pair = Pair::start().await;
    for (number, asked) in pair.both().into_iter().enumerate() {
        let timeout = format!("{}m", number + 10);
        let settings = json!({"defaults": {"timeout": timeout}});
        asked.admin().put(SETTING, &settings).await.success();
        for reader in pair.both() {
            let seen = reader.admin().get(SETTING).await.expect(200);
            assert_eq!(seen["value"], settings);
        }
        // A job of each server: one of them wrote the setting, the other one hears of it.
        for second in [false, true] {
            let name = pair.name_of(second);
            eventually("the default holds", async || {
                let put = asked.admin().put(&path(&name), &job(&name)).await;
                (put.json()["spec"]["timeout"] == timeout.as_str()).then_some(())
            })
            .await;
        }
    }
    // What one of them takes back is taken back at the other.
    pair.two.admin().delete(SETTING).await.success();
    for second in [false, true] {
        let name = pair.name_of(second);
        eventually("no default holds", async || {
            let put = pair.one.admin().put(&path(&name), &job(&name)).await;
            put.json()["spec"].get("timeout").is_none().then_some(())
        })
        .await;
    }
    pair.stop().await;
}

#[tokio::test]
async fn what_a_server_refuses_of_its_own_is_told_as_it_is() {
    let pair = Pair::start().await;
    for asked in pair.both() {
        for second in [false, true] {
            let name = pair.name_of(second);
            let wrong = json!({"kind": "Job", "name": name, "task": {"exec": {"argv": []}}});
            let refused = asked.admin().put(&path(&name), &wrong).await;
            refused.problem(422, "invalid_field");
            let runs = format!("{}/runs", path(&name));
            let refused = asked.admin().post(&runs, &json!({})).await;
            refused.problem(404, "no_such_job");
            let nobody = asked.with(Some("drt_nobody"));
            let refused = nobody.put(&path(&name), &job(&name)).await;
            refused.problem(401, "unauthenticated");
        }
    }
    pair.stop().await;
}

#[tokio::test]
async fn a_batch_is_taken_apart_and_answered_in_its_order() {
    let pair = Pair::start().await;
    let names = [
        pair.name_of(true),
        pair.name_of(false),
        pair.name_of(true),
        pair.name_of(false),
    ];
    for name in &names {
        put(&pair.one.admin(), name).await;
    }
    let mut runs: Vec<Value> = names.iter().map(|name| json!({"job": name})).collect();
    runs.insert(2, json!({"job": "Not A Name"}));
    runs.insert(4, json!({"job": pair.name_of(true)}));
    runs.push(json!({"job": names[0], "idempotency_key": "own", "params": {"a": [1, 2]}}));
    let batch = json!({"runs": runs}).to_string();
    let key = [
        ("idempotency-key", "batch-1"),
        ("content-type", "application/json"),
    ];
    let send = async |server: &Server| {
        let (admin, batch) = (server.admin(), Some(batch.clone()));
        let sent = admin.call("POST", "/api/v1/runs:batch", &key, batch).await;
        sent.expect(200)["runs"].as_array().unwrap().clone()
    };
    let first = send(&pair.one).await;
    assert_eq!(first.len(), 7);
    assert_eq!(first[2]["problem"]["code"], "invalid_field");
    assert_eq!(first[4]["problem"]["code"], "no_such_job");
    let id = |entry: &Value| entry["id"].as_str().map(str::to_owned);
    for (entry, name) in [(0, 0), (1, 1), (3, 2), (5, 3), (6, 0)] {
        assert_eq!(first[entry]["repeated"], false, "{first:?}");
        let run = id(&first[entry]).unwrap();
        let shown = pair.two.admin().get(&format!("/api/v1/runs/{run}")).await;
        assert_eq!(shown.expect(200)["job"], names[name].as_str());
    }
    // The same batch once more, by the other server: the same runs.
    let again = send(&pair.two).await;
    for (one, other) in first.iter().zip(&again) {
        assert_eq!(id(one), id(other));
        if id(one).is_some() {
            assert_eq!(other["repeated"], true, "{other}");
        }
    }
    pair.stop().await;
}

#[tokio::test]
async fn many_jobs_are_changed_wherever_they_are() {
    let pair = Pair::start().await;
    let names: Vec<String> = (0..6).map(|number| pair.name_of(number % 2 == 0)).collect();
    for name in &names {
        put(&pair.two.admin(), name).await;
    }
    let all = json!({"labels": {"of": "pair"}});
    for (asked, deed) in [
        (&pair.one, "pause"),
        (&pair.two, "resume"),
        (&pair.one, "pause"),
    ] {
        let route = format!("/api/v1/namespaces/default/jobs:{deed}");
        let told = asked.admin().post(&route, &all).await.expect(200);
        assert_eq!(
            (&told["matched"], &told["changed"]),
            (&json!(6), &json!(6)),
            "{told}"
        );
        let items = told["items"].as_array().unwrap();
        assert!(items.is_sorted_by_key(|item| item["name"].to_string()));
    }
    let route = "/api/v1/namespaces/default/jobs:delete";
    let named = json!({"names": [names[0], names[1], "no-such-job"]});
    let told = pair.two.admin().post(route, &named).await.expect(200);
    assert_eq!(told["changed"], 2);
    let item = |name: &str| {
        let mut items = told["items"].as_array().unwrap().iter();
        items.find(|item| item["name"] == name).unwrap().clone()
    };
    assert_eq!(item("no-such-job")["problem"]["code"], "no_such_job");
    assert_eq!(item(&names[0])["result"], "changed");
    pair.stop().await;
}

/// A run that failed for good, of a job of the second server or of the first, and the name of the job.
async fn dead(pair: &Pair, second: bool, worker: &mut Worker) -> (String, String) {
    let (admin, name) = (pair.one.admin(), pair.name_of(second));
    put_exec(&admin, &name).await;
    let run = trigger(&admin, &name, json!({})).await;
    let attempt = worker.assignment().await.attempt.unwrap();
    worker.finish(attempt, wire::Outcome::Failed).await;
    let ended = admin.get(&format!("/api/v1/runs/{run}/wait")).await;
    assert_eq!(ended.expect(200)["state"], "FAILED");
    (run, name)
}

/// The runs that an answer or a page tells of.
fn runs_of(told: &Value) -> Vec<&str> {
    let items = told["items"].as_array().unwrap().iter();
    items.map(|item| item["run"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn many_letters_are_changed_wherever_they_are() {
    const LETTERS: &str = "/api/v1/namespaces/default/deadletters";
    let pair = Pair::start().await;
    let token = pair.one.token("worker", None).await;
    let mut of_one = Worker::join_at(&pair.one.url, &token, hello("one")).await;
    let mut of_two = Worker::join_at(&pair.two.url, &token, hello("two")).await;
    let mut letters = Vec::new();
    for _ in 0..8 {
        letters.push(dead(&pair, true, &mut of_two).await);
        letters.push(dead(&pair, false, &mut of_one).await);
    }
    // The order in which an answer tells of those that it was asked for.
    letters.sort();
    let deeds = [
        (&pair.one, &pair.two, "requeue"),
        (&pair.two, &pair.one, "discard"),
        (&pair.two, &pair.one, "requeue"),
        (&pair.one, &pair.two, "discard"),
    ];
    for (done, (asked, other, verb)) in deeds.into_iter().enumerate() {
        let (meant, left) = letters[done * 4..].split_at(4);
        let runs: Vec<&str> = meant.iter().map(|(run, _)| run.as_str()).collect();
        let (path, selection) = (format!("{LETTERS}:{verb}"), json!({"runs": runs}));
        let told = asked.admin().post(&path, &selection).await.expect(200);
        assert_eq!(
            (&told["matched"], &told["changed"]),
            (&json!(4), &json!(4)),
            "{told}"
        );
        assert_eq!(runs_of(&told), runs);
        let items = told["items"].as_array().unwrap();
        for (item, (run, name)) in items.iter().zip(meant) {
            assert_eq!(item["done"], true, "{item}");
            let Some(new) = item["new_run"].as_str() else {
                assert_eq!(verb, "discard", "{item}");
                continue;
            };
            assert_eq!(verb, "requeue", "{item}");
            let made = other.admin().get(&format!("/api/v1/runs/{new}")).await;
            let made = made.expect(200);
            assert_eq!(
                (&made["rerun_of"], &made["job"]),
                (&json!(run), &json!(name))
            );
        }
        // They are gone, and the rest is as it was.
        let page = other.admin().get(LETTERS).await.expect(200);
        let left = left.iter().rev().map(|(run, _)| run.as_str());
        assert_eq!(runs_of(&page), left.collect::<Vec<_>>());
        let told = other.admin().post(&path, &selection).await.expect(200);
        assert_eq!((&told["changed"], runs_of(&told)), (&json!(0), runs));
        for item in told["items"].as_array().unwrap() {
            assert_eq!(item["problem"]["code"], "no_such_letter", "{item}");
        }
    }
    pair.stop().await;
}

#[tokio::test]
async fn workers_keep_a_stream_to_each_owner_through_any_server() {
    let pair = Pair::start().await;
    let token = pair.one.token("worker", None).await;
    let (one, two) = (&pair.one.url, &pair.two.url);
    let linked = wire::Hello {
        features: vec![drumtower_proto::LINKS.to_owned()],
        ..hello("w")
    };
    // The second stream goes through the first server, and a third to nobody's server nowhere.
    let mut near = Worker::dial_for(one, Some(&token), Some(one))
        .await
        .unwrap();
    let welcome = near.greet(linked.clone()).await;
    assert_eq!(welcome.address, *one);
    // Who owns is said at once, or as soon as it is seen.
    let both = BTreeSet::from([one.clone(), two.clone()]);
    let is_both = |owners: &[String]| owners.iter().cloned().collect::<BTreeSet<_>>() == both;
    if !is_both(&welcome.owners) {
        near.wait_for(|body| match body {
            FromServer::Owners(owners) => is_both(&owners.servers).then_some(()),
            _ => None,
        })
        .await;
    }
    let mut far = Worker::dial_for(one, Some(&token), Some(two))
        .await
        .unwrap();
    let welcome = far.greet(linked.clone()).await;
    assert_eq!(welcome.address, *two);
    let nowhere = "http://127.0.0.1:1";
    let refused = Worker::dial_for(one, Some(&token), Some(nowhere)).await;
    assert_eq!(refused.err().unwrap().code(), tonic::Code::Unavailable);
    // Each gives what it owns.
    let mut held = Vec::new();
    for (second, worker) in [(false, &mut near), (true, &mut far)] {
        let name = pair.name_of(second);
        put(&pair.one.admin(), &name).await;
        let runs = format!("{}/runs", path(&name));
        pair.one.admin().post(&runs, &json!({})).await.expect(201);
        let assigned = worker.assignment().await;
        assert_eq!(assigned.job, name);
        held.push(assigned.attempt.unwrap());
    }
    // Either server tells of one worker that holds both.
    for server in pair.both() {
        let workers = server.admin().get("/api/v1/workers").await.expect(200);
        let workers = workers["items"].as_array().unwrap().clone();
        assert_eq!(workers.len(), 1, "{workers:?}");
        assert_eq!(workers[0]["attempts"], 2);
        let worker = server.admin().get("/api/v1/workers/w").await.expect(200);
        assert_eq!(worker["running"].as_array().unwrap().len(), 2, "{worker}");
        let overview = server.admin().get("/api/v1/overview").await.expect(200);
        assert_eq!(overview["runs"]["live"], 2, "{overview}");
        assert_eq!(overview["workers"][0]["attempts"], 2);
        // Only servers ask for parts: from a caller the mark means nothing.
        let (admin, mark) = (server.admin(), [("drumtower-own-part", "1")]);
        let drained = admin
            .call("POST", "/api/v1/workers/w/drain", &mark, None)
            .await;
        assert_eq!(drained.expect(200)["attempts"], 2);
        let reset = server
            .admin()
            .post("/api/v1/workers/w/reset", &json!({}))
            .await;
        assert_eq!(reset.expect(200)["attempts"], 2);
        let resumed = server
            .admin()
            .post("/api/v1/workers/w/resume", &json!({}))
            .await;
        resumed.expect(200);
    }
    let unknown = pair.two.admin().get("/api/v1/workers/nobody").await;
    unknown.problem(404, "no_such_worker");
    for (worker, attempt) in [(&mut near, held[0]), (&mut far, held[1])] {
        worker.finish(attempt, wire::Outcome::Succeeded).await;
    }
    // When the other gives its segments up, the worker is told who is left.
    let Pair { one, two, .. } = pair;
    let left = [one.url.clone()];
    two.stop().await;
    near.wait_for(|body| match body {
        FromServer::Owners(owners) => (owners.servers == left).then_some(()),
        _ => None,
    })
    .await;
    one.stop().await;
}

#[tokio::test]
async fn changes_and_ends_are_heard_at_whichever_server() {
    let pair = Pair::start().await;
    let token = pair.one.token("worker", None).await;
    for (second, owner, other) in [(true, &pair.two, &pair.one), (false, &pair.one, &pair.two)] {
        let mut worker = Worker::join_at(&owner.url, &token, hello(&rand_name())).await;
        let mut lines = other.admin().lines("/api/v1/changes");
        let mut heard = async |wanted: &str| {
            let heard = async { while !lines.recv().await.unwrap().contains(wanted) {} };
            tokio::time::timeout(PATIENCE, heard).await.unwrap();
        };
        heard("event: ready").await;
        let name = pair.name_of(second);
        put(&other.admin(), &name).await;
        heard(&name).await;
        let runs = format!("{}/runs", path(&name));
        let run = other.admin().post(&runs, &json!({})).await.expect(201);
        let run = run["id"].as_str().unwrap().to_owned();
        heard(&run).await;
        let attempt = worker.assignment().await.attempt.unwrap();
        let (client, wait) = (other.admin(), format!("/api/v1/runs/{run}/wait?timeout=5m"));
        let waiting = tokio::spawn(async move { client.get(&wait).await.expect(200) });
        let (client, logs) = (
            other.admin(),
            format!("/api/v1/runs/{run}/logs?follow=true"),
        );
        let following = tokio::spawn(async move { client.get(&logs).await });
        worker.finish(attempt, wire::Outcome::Succeeded).await;
        let ended = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        assert_eq!(ended.unwrap()["state"], "COMPLETED");
        let told = tokio::time::timeout(PATIENCE, following).await.unwrap();
        assert_eq!(told.unwrap().status, 200);
        heard("COMPLETED").await;
    }
    pair.stop().await;
}

#[tokio::test]
async fn a_job_comes_to_the_server_that_has_its_queue() {
    let pair = Pair::start().await;
    let queue = rand_name();
    let queue_path = format!("/api/v1/namespaces/default/queues/{queue}");
    let made = json!({"kind": "Queue", "name": queue, "concurrency": 1});
    pair.one.admin().put(&queue_path, &made).await.success();
    for (asked, second) in [(&pair.one, true), (&pair.two, false)] {
        for name in [pair.name_of(second), pair.name_of(!second)] {
            let mut queued = job(&name);
            queued["queue"] = Value::from(queue.as_str());
            asked.admin().put(&path(&name), &queued).await.expect(201);
            let runs = format!("{}/runs", path(&name));
            asked.admin().post(&runs, &json!({})).await.expect(201);
        }
    }
    for server in pair.both() {
        let seen = server.admin().get(&queue_path).await.expect(200);
        assert_eq!(seen["depth"], 4, "{seen}");
    }
    pair.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_lock_waits_on_when_its_owner_leaves() {
    let pair = Pair::start().await;
    let is_second = |lock: &str| {
        let segment = u64::from(SegmentId::of("default", &format!("lock {lock}")).0);
        let mut ranges = pair.of_two.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&segment))
    };
    let mut names = std::iter::repeat_with(rand_name);
    let name = names.find(|name| is_second(name)).unwrap();
    let lock = format!("/api/v1/namespaces/default/locks/{name}");
    let (client, acquire) = (pair.one.admin(), format!("{lock}/acquire"));
    let held = client.post(&acquire, &json!({"owner": "a"})).await;
    let fence = held.expect(200)["fence"].clone();
    let wish = json!({"owner": "b", "wait": "5m"});
    let waiting = tokio::spawn(async move { client.post(&acquire, &wish).await });
    eventually("somebody waits", async || {
        let shown = pair.one.admin().get(&lock).await.json();
        (shown["waiting"] == 1).then_some(())
    })
    .await;
    let Pair { one, two, .. } = pair;
    two.stop().await;
    eventually("somebody waits again", async || {
        let shown = one.admin().get(&lock).await.json();
        (shown["waiting"] == 1).then_some(())
    })
    .await;
    let release = format!("{lock}/release");
    let released = one.admin().post(&release, &json!({"fence": fence})).await;
    released.success();
    let answer = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(answer.unwrap().expect(200)["owner"], "b");
    one.stop().await;
}

#[tokio::test]
async fn a_token_that_is_revoked_at_one_is_good_at_none() {
    let pair = Pair::start().await;
    let made = json!({"name": "guest", "role": "viewer"});
    let made = pair.two.admin().post("/api/v1/tokens", &made).await;
    let made = made.expect(201);
    let guest = pair.two.with(made["secret"].as_str());
    guest.get("/api/v1/jobs").await.expect(200);
    let token = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    pair.two.admin().delete(&token).await.success();
    eventually("the token is refused", async || {
        let answer = guest.get("/api/v1/jobs").await;
        (answer.status == 401).then_some(())
    })
    .await;
    pair.stop().await;
}

#[tokio::test]
async fn only_a_server_is_told_facts() {
    let pair = Pair::start().await;
    let forged = [("drumtower-peer", "00")];
    for headers in [&forged[..], &[]] {
        let client = pair.one.admin();
        let answer = client.call("GET", "/cluster/v1/facts", headers, None).await;
        answer.problem(404, "no_such_route");
    }
    pair.stop().await;
}
