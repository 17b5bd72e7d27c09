//! Keys of `retry`: how often, after how long, and when not at all.

use std::time::Duration;

use drumtower_e2e::web::{Web, reply};
use drumtower_e2e::{Worker, eventually};
use serde_json::{Value, json};

use super::world::{World, id, world};

const LEASE_AND_MORE: Duration = Duration::from_secs(90);

fn attempts(run: &Value) -> usize {
    run["attempts"].as_array().map_or(0, Vec::len)
}

/// Whether a run failed for good, and after how many attempts.
#[track_caller]
fn failed_after(world: &World, task: Value, retry: Value) -> usize {
    let run = world.ended(json!({"task": task, "retry": retry, "timeout": "6s"}));
    assert_eq!(run["state"], "FAILED", "{run:#}");
    attempts(&run)
}

fn exits(code: u32) -> Value {
    json!({"exec": {"shell": format!("exit {code}")}})
}

/// How long a run that has failed so often waits, in milliseconds.
#[track_caller]
fn wait(world: &World, retry: Value, failures: usize) -> i64 {
    let job = world.job(json!({"name": "waits", "task": exits(3), "retry": retry}));
    let name = job["name"].as_str().expect("a name");
    let run = world.api.trigger(name, &json!({}));
    let waiting = world.api.until(&run, LEASE_AND_MORE, |run| {
        run["state"] == "PENDING" && attempts(run) == failures
    });
    let said = waiting["waiting"].as_str().unwrap_or_default();
    let words = format!("its attempt {failures} failed: it is tried again at ");
    assert!(said.starts_with(&words), "{waiting:#}");
    world.api.cancel(&run);
    let time = |text: &Value| {
        let text = text.as_str().expect("a time");
        let time: jiff::Timestamp = text.parse().expect("a time");
        time.as_millisecond()
    };
    time(&waiting["not_before"]) - time(&waiting["attempts"][failures - 1]["end"]["at"])
}

pub fn max_attempts() {
    let world = world().agent(4);
    let tries = |most: u32| {
        let retry = json!({"max_attempts": most, "initial": "10ms"});
        failed_after(&world, exits(3), retry)
    };
    assert_eq!(tries(1), 1);
    assert_eq!(tries(4), 4);
    let keys = json!({"task": exits(3), "retry": {}});
    let run = world.ended(keys);
    assert_eq!(attempts(&run), 3, "three unless given: {run:#}");
}

/// The second wait is twice the first, unless it is fixed or too long.
pub fn backoff() {
    let world = world().agent(4);
    let second = |keys: Value| {
        let mut retry = json!({"initial": "4s", "jitter": false});
        let keys = keys.as_object().expect("keys");
        retry.as_object_mut().expect("keys").extend(keys.clone());
        wait(&world, retry, 2)
    };
    assert_eq!(second(json!({})), 8_000);
    assert_eq!(second(json!({"backoff": "fixed"})), 4_000);
    assert_eq!(second(json!({"max": "6s"})), 6_000);
}

pub fn initial() {
    let world = world().agent(4);
    let plain = json!({"initial": "1h", "jitter": false});
    assert_eq!(wait(&world, plain, 1), 3_600_000);
    let spread: Vec<i64> = (0..4)
        .map(|_| wait(&world, json!({"initial": "1h"}), 1))
        .collect();
    let within = |wait: &i64| (3_600_000..=5_400_000).contains(wait);
    assert!(spread.iter().all(within), "{spread:?}");
    assert!(spread.iter().any(|wait| *wait != spread[0]), "{spread:?}");
}

/// A run that is tried again goes before others that its own priority puts it behind.
pub fn priority() {
    let world = world().agent(1);
    let go = world.site.path().join("go");
    let waits = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; exit 3",
        go.display()
    );
    let retry = json!({"initial": "0s", "max_attempts": 2, "priority": 9});
    let task = json!({"exec": {"shell": waits}});
    world.job(json!({"name": "again", "task": task, "priority": 0, "retry": retry}));
    world.job(json!({"name": "other"}));
    let again = world.api.trigger("again", &json!({}));
    world.api.running(&again);
    let others: Vec<String> = (0..5)
        .map(|_| world.api.trigger("other", &json!({})))
        .collect();
    std::fs::write(&go, "").expect("a file in the site");
    let again = world.api.ended(&again);
    let second = again["attempts"][1]["assigned"].as_str().expect("a time");
    for other in others {
        let other = world.api.ended(&other);
        let first = other["attempts"][0]["assigned"].as_str().expect("a time");
        assert!(first > second, "{again:#} came after {other:#}");
    }
}

pub fn max_lost() {
    let world = world();
    let mut worker = Worker::start(&world.site, &world.server, "doomed");
    let marker = world.site.marker();
    let task = json!({"exec": {"argv": ["sleep", marker]}});
    world.job(json!({"name": "lost", "task": task, "retry": {"max_lost": 1}}));
    let run = world.api.trigger("lost", &json!({}));
    world.api.running(&run);
    worker.kill();
    let ended = world.api.until(&run, LEASE_AND_MORE, |run| {
        run["state"] != "RUNNING" && run["state"] != "SCHEDULED"
    });
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["end"]["outcome"]),
        (&json!("FAILED"), &json!("lost")),
        "{ended:#}"
    );
}

/// A failure that a rule fits is not tried again, and any other is.
pub fn on() {
    let world = world().agent(4);
    let rules = json!([
        {"exit_codes": [2, 3], "action": "give_up"},
        {"signals": [11], "timeout": true, "action": "give_up"},
    ]);
    let tries = |task: Value| {
        let retry = json!({"max_attempts": 2, "initial": "10ms", "on": rules});
        failed_after(&world, task, retry)
    };
    assert_eq!(tries(exits(3)), 1);
    assert_eq!(tries(exits(4)), 2);
    assert_eq!(tries(json!({"exec": {"shell": "kill -SEGV $$"}})), 1);
    assert_eq!(tries(json!({"exec": {"shell": "kill -TERM $$"}})), 2);
    let marker = world.site.marker();
    assert_eq!(tries(json!({"exec": {"argv": ["sleep", marker]}})), 1);
}

pub fn http_status() {
    let web = Web::start(|head| {
        let busy = head.contains("/busy");
        Some(reply(if busy { 503 } else { 404 }, &[], ""))
    });
    let world = world().agent_with(&["--allow-outbound", "127.0.0.1"]);
    let tries = |path: &str| {
        let task = json!({"http": {"url": web.url(path)}});
        let rules = json!([{"http_status": ["4xx"], "action": "give_up"}]);
        let retry = json!({"max_attempts": 2, "initial": "10ms", "on": rules});
        failed_after(&world, task, retry)
    };
    assert_eq!((tries("/none"), tries("/busy")), (1, 2));
    let run = world.ended(json!({"task": {"http": {"url": web.url("/none")}}}));
    assert_eq!(
        run["attempts"][0]["end"]["http_status"],
        404,
        "{}",
        id(&run)
    );
}

pub fn after() {
    let world = world().agent(4);
    let rules = json!([{"exit_codes": [3], "action": "retry", "after": "30m"}]);
    assert_eq!(wait(&world, json!({"on": rules}), 1), 1_800_000);
    eventually("nothing of it runs", || {
        let live = world.api.runs("state=RUNNING");
        live.is_empty().then_some(())
    });
}

pub fn dead_letter() {
    let world = world().agent(4);
    let letters = || {
        let page = world.api.get("/api/v1/namespaces/default/deadletters");
        page["items"].as_array().map_or(0, Vec::len)
    };
    let ends = |what: &str| {
        let retry = json!({"max_attempts": 1, "dead_letter": what});
        failed_after(&world, exits(3), retry);
        letters()
    };
    assert_eq!((ends("drop"), ends("keep")), (0, 1));
}
