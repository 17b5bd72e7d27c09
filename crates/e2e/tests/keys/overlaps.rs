//! Keys of `overlap` beyond the word, and of `breaker`.

use std::time::Duration;

use drumtower_e2e::eventually;
use serde_json::{Value, json};
use ureq::http::Method;

use super::world::{World, world};

const LONG: Duration = Duration::from_secs(60);

/// A trigger that obeys: the run's id, or the code of the refusal.
fn obey(world: &World, job: &str, params: Value) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/default/jobs/{job}/runs");
    let body = json!({"params": params, "overlap": "obey"});
    let answer = world.api.call(Method::POST, &path, Some(&body));
    let answer = answer.expect("an answer");
    match answer.is_success() {
        true => Ok(answer.body["id"].as_str().expect("an id").to_owned()),
        false => Err(answer.code().to_owned()),
    }
}

fn full() -> Result<String, String> {
    Err("overlap_full".to_owned())
}

pub fn limit() {
    let world = world();
    world.job(json!({"name": "two", "overlap": {"limit": 2}}));
    obey(&world, "two", json!({})).expect("the first");
    obey(&world, "two", json!({})).expect("the second");
    assert_eq!(obey(&world, "two", json!({})), full());
}

pub fn key() {
    let world = world();
    world.job(json!({"name": "each", "overlap": {"key": "/customer"}}));
    let customer = |name: &str| json!({"customer": name});
    let run = obey(&world, "each", customer("ann")).expect("the first of ann");
    obey(&world, "each", customer("bob")).expect("the first of bob");
    assert_eq!(obey(&world, "each", customer("ann")), full());
    assert_eq!(world.api.run(&run)["overlap_key"], "\"ann\"");
}

pub fn on_full() {
    let world = world().agent(4);
    let slow = json!({"exec": {"argv": ["sleep", "60"]}});
    let job = |name: &str, on_full: &str| {
        let overlap = json!({"on_full": on_full});
        world.job(json!({"name": name, "task": slow, "overlap": overlap}));
    };
    job("queues", "queue");
    let first = obey(&world, "queues", json!({})).expect("it runs");
    let second = obey(&world, "queues", json!({})).expect("it waits");
    world.api.running(&first);
    assert_eq!(world.api.run(&second)["queued"], true);
    world.api.cancel(&first);
    world.api.running(&second);
    world.api.cancel(&second);

    job("replaces", "cancel_old");
    let old = obey(&world, "replaces", json!({})).expect("it runs");
    world.api.running(&old);
    let new = obey(&world, "replaces", json!({})).expect("it takes the place");
    world.api.running(&new);
    let old = world.api.ended(&old);
    let last = old["transitions"].as_array().and_then(|it| it.last());
    assert_eq!(
        (&old["state"], &last.expect("an end")["reason"]),
        (&json!("CANCELLED"), &json!("superseded"))
    );
    world.api.cancel(&new);

    let every = json!([{"every": "100ms"}]);
    world.job(json!({"name": "fails", "task": slow, "schedule": every, "overlap": "fail"}));
    let failed = eventually("a due time fails", || {
        world.api.runs("job=fails&state=failed").pop()
    });
    let words = failed["error"].as_str().unwrap_or_default();
    assert!(words.contains("overlap: fail"), "{failed:#}");
}

pub fn depth() {
    let world = world();
    let overlap = json!({"on_full": "queue", "depth": 1});
    world.job(json!({"name": "short", "overlap": overlap, "schedule": [{"every": "50ms"}]}));
    let job = eventually("the queue is full", || {
        let job = world.api.job("short");
        (job["last_unfired"]["reason"] == "queue_full").then_some(job)
    });
    assert_eq!(job["queued"], 1);
}

pub fn keep() {
    let world = world();
    let overlap = json!({"on_full": "queue", "depth": 1, "keep": "newest"});
    world.job(json!({"name": "new", "overlap": overlap}));
    obey(&world, "new", json!({})).expect("it waits for a worker");
    let second = obey(&world, "new", json!({})).expect("it waits for its turn");
    obey(&world, "new", json!({})).expect("it takes the place of the second");
    assert_eq!(world.api.ended(&second)["state"], "CANCELLED");
}

fn fail(world: &World, job: &str) {
    let run = world.api.trigger(job, &json!({"params": {"code": 1}}));
    assert_eq!(world.api.ended(&run)["state"], "FAILED");
}

fn breaks(breaker: Value) -> Value {
    let shell = r#"case "$DRUMTOWER_PARAMS" in *1*) exit 1;; esac"#;
    json!({"name": "breaks", "task": {"exec": {"shell": shell}}, "breaker": breaker})
}

fn state(world: &World) -> Value {
    world.api.job("breaks")["breaker"]["state"].clone()
}

pub fn breaker() {
    let world = world().agent(2);
    world.job(breaks(json!({"failures": 2, "cooldown": "1s"})));
    fail(&world, "breaks");
    assert_eq!(state(&world), "closed");
    fail(&world, "breaks");
    let opened = world.api.job("breaks");
    let time = |key: &str| {
        let text = opened["breaker"][key].as_str().expect("a time");
        let time: jiff::Timestamp = text.parse().expect("a time");
        time.as_millisecond()
    };
    assert_eq!(time("until") - time("opened"), 1000, "{opened:#}");
    eventually("the cooldown is over", || {
        (state(&world) == "half_open").then_some(())
    });
    let probe = world.api.trigger("breaks", &json!({}));
    assert_eq!(world.api.ended(&probe)["state"], "COMPLETED");
    assert_eq!(state(&world), "closed");
}

pub fn cooldowns() {
    let world = world().agent(2);
    let breaker = json!({"failures": 1, "cooldown": "300ms", "max_cooldown": "400ms"});
    world.job(breaks(breaker));
    fail(&world, "breaks");
    eventually("the cooldown is over", || {
        (state(&world) == "half_open").then_some(())
    });
    let probe = world.api.trigger("breaks", &json!({"params": {"code": 1}}));
    let ended = world
        .api
        .until(&probe, LONG, |run| run["state"] == "FAILED");
    let until = world.api.job("breaks")["breaker"]["until"].clone();
    let time = |text: &Value| {
        let time: jiff::Timestamp = text.as_str().expect("a time").parse().expect("a time");
        time.as_millisecond()
    };
    let cooldown = time(&until) - time(&ended["finished"]);
    assert_eq!(cooldown, 400, "twice as long, and no longer than the most");
}

pub fn probes() {
    let world = world().agent(2);
    world.job(breaks(
        json!({"failures": 1, "cooldown": "1ms", "probes": 2}),
    ));
    fail(&world, "breaks");
    let probe = || {
        eventually("the cooldown is over", || {
            (state(&world) == "half_open").then_some(())
        });
        let run = world.api.trigger("breaks", &json!({}));
        assert_eq!(world.api.ended(&run)["state"], "COMPLETED");
    };
    probe();
    assert_eq!(state(&world), "half_open", "one is not enough");
    probe();
    assert_eq!(state(&world), "closed");
}
