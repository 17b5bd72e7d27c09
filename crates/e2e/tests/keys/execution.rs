//! Keys that say what runs, where and for how long.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::{World, id, world};

pub fn task() {
    let world = world();
    let without = world.try_job(json!({"task": {}}));
    assert_eq!(
        (without.status, without.code()),
        (422, "invalid_field"),
        "{without:?}"
    );
    let both =
        world.try_job(json!({"task": {"exec": {"argv": ["true"]}, "handler": {"name": "echo"}}}));
    assert_eq!(
        (both.status, both.code()),
        (422, "invalid_field"),
        "{both:?}"
    );
}

/// The words reach the program as they are.
pub fn argv() {
    let world = world().agent(4);
    let run =
        world.ended(json!({"task": {"exec": {"argv": ["printf", "%s|%s", "$HOME", "two words"]}}}));
    assert_eq!(run["state"], "COMPLETED", "{run:#}");
    assert_eq!(world.api.output(id(&run)), "$HOME|two words");
}

pub fn handler() {
    let world = world().handlers("functions");
    let run = world.ended(json!({"task": {"handler": {"name": "echo"}}, "params": [1, "two"]}));
    assert_eq!(
        (&run["state"], &run["result"]),
        (&json!("COMPLETED"), &json!([1, "two"]))
    );
    world.job(json!({"name": "unknown", "task": {"handler": {"name": "nobody-has-it"}}}));
    let waits = world.api.trigger("unknown", &json!({}));
    world.ended(json!({"name": "later", "task": {"handler": {"name": "echo"}}}));
    assert_eq!(world.api.run(&waits)["state"], "PENDING");
}

pub fn params() {
    let world = world().agent(4);
    let argv = json!({"exec": {"argv": ["sh", "-c", "printf %s \"$DRUMTOWER_PARAMS\""]}});
    let run = world.ended(json!({"name": "told", "task": argv, "params": {"month": "2026-01"}}));
    assert_eq!(world.api.output(id(&run)), "{\"month\":\"2026-01\"}");
    let own = world.api.ended(
        &world
            .api
            .trigger("told", &json!({"params": {"month": "2026-02"}})),
    );
    assert_eq!(
        own["params"],
        json!({"month": "2026-02"}),
        "a trigger may bring its own"
    );
}

/// Runs that wait for the only worker are given to it in the order of their priority.
pub fn priority() {
    let world = world();
    let mut waiting = Vec::new();
    for priority in [1_i64, 5, 9, 0] {
        let name = format!("urgent-{priority}");
        world.job(json!({"name": name, "priority": priority}));
        waiting.push((priority, world.api.trigger(&name, &json!({}))));
    }
    let world = world.agent(1);
    let mut given: Vec<(String, i64)> = waiting
        .iter()
        .map(|(priority, run)| {
            let run = world.api.ended(run);
            let at = run["attempts"][0]["assigned"].as_str().expect("a time");
            (at.to_owned(), -priority)
        })
        .collect();
    given.sort();
    let order: Vec<i64> = given.iter().map(|(_, priority)| -priority).collect();
    assert_eq!(order, [9, 5, 1, 0]);
}

/// Of two runs that weigh three, a worker of capacity four has room for one.
pub fn weight() {
    let world = world().agent(4);
    let marker = world.site.marker();
    let sleep = json!({"exec": {"argv": ["sleep", marker]}});
    world.job(json!({"name": "heavy", "task": sleep, "weight": 3}));
    world.job(json!({"name": "light", "task": sleep}));
    let first = world.api.trigger("heavy", &json!({}));
    world.api.running(&first);
    let second = world.api.trigger("heavy", &json!({}));
    world.api.running(&world.api.trigger("light", &json!({})));
    assert_eq!(
        world.api.run(&second)["state"],
        "PENDING",
        "there was room for a light one only"
    );
    world.api.cancel(&first);
    world.api.running(&second);
}

/// With one of two workers nearly full, one policy takes turns all the same and the other spares it.
pub fn placement() {
    let world = world().handlers("left").handlers("right");
    let journal = json!({"handler": {"name": "journal"}});
    world.job(json!({"name": "big", "task": journal, "weight": 60, "params": {"ms": 600_000}}));
    let big = world.api.running(&world.api.trigger("big", &json!({})));
    let busy = big["attempts"][0]["worker"]
        .as_str()
        .expect("a worker")
        .to_owned();
    let in_turn = shares(
        &world,
        json!({"name": "in-turn", "task": journal, "placement": "round_robin"}),
    );
    assert_eq!(in_turn.get(&busy), Some(&(RUNS / 2)), "{in_turn:?}");
    let spared = shares(
        &world,
        json!({"name": "spared", "task": journal, "placement": "least_loaded"}),
    );
    assert!(
        spared.get(&busy).copied().unwrap_or(0) < RUNS * 2 / 5,
        "{busy} is busy: {spared:?}"
    );
}

const RUNS: usize = 40;

/// How many of the runs of a job each worker got, one run after the other.
fn shares(world: &World, keys: Value) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..RUNS {
        let run = world.ended(keys.clone());
        let worker = run["attempts"][0]["worker"].as_str().expect("a worker");
        *shares.entry(worker.to_owned()).or_default() += 1;
    }
    shares
}

pub fn timeout() {
    let world = world().agent(4);
    let marker = world.site.marker();
    let run =
        world.ended(json!({"task": {"exec": {"argv": ["sleep", marker]}}, "timeout": "300ms"}));
    assert_eq!(
        (&run["state"], &run["attempts"][0]["end"]["outcome"]),
        (&json!("FAILED"), &json!("timed_out"))
    );
}

pub fn progress_timeout() {
    let world = world().agent(4);
    let marker = world.site.marker();
    let run = world.ended(json!({
        "task": {"exec": {"shell": format!("echo 1 > $DRUMTOWER_PROGRESS; sleep {marker}")}},
        "progress_timeout": "3s",
        "retry": {"max_attempts": 1},
    }));
    let end = &run["attempts"][0]["end"];
    assert_eq!(
        (&run["state"], &end["outcome"], &end["error"]),
        (
            &json!("FAILED"),
            &json!("timed_out"),
            &json!("no progress for 3s")
        )
    );
}

pub fn start_timeout() {
    // Nobody is there to take it.
    let world = world();
    let run = world.ended(json!({"task": {"exec": {"argv": ["true"]}}, "start_timeout": "300ms"}));
    let last = run["transitions"].as_array().and_then(|all| all.last());
    assert_eq!(
        (&run["state"], last.map(|it| &it["reason"])),
        (&json!("FAILED"), Some(&json!("start_timed_out")))
    );
}
