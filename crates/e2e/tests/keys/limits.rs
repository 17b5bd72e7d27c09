//! Limits: what is over one waits, and says for what.

use drumtower_e2e::eventually;
use serde_json::{Value, json};
use ureq::http::Method;

use super::world::{World, id, world};

fn sleeping(world: &World) -> Value {
    json!({"exec": {"argv": ["sleep", world.site.marker()]}})
}

/// What a run waits for, once it says so.
fn waits_for(world: &World, run: &str, words: &str) {
    eventually(&format!("{run} to wait for {words}"), || {
        let run = world.api.run(run);
        let waiting = run["waiting"].as_str().unwrap_or_default();
        waiting.contains(words).then_some(())
    });
}

/// One attempt at once: the second run starts when the first has ended.
pub fn concurrency() {
    let world = world().agent(8);
    let task = sleeping(&world);
    world.job(json!({"name": "one", "task": task, "limits": {"concurrency": 1}}));
    let first = world.api.trigger("one", &json!({}));
    world.api.running(&first);
    let second = world.api.trigger("one", &json!({}));
    waits_for(&world, &second, "1 of 1 attempts of its job run");
    world.api.cancel(&first);
    world.api.running(&second);
}

/// One for each customer: another customer's run starts at once.
pub fn per_key() {
    let world = world().agent(8);
    let task = sleeping(&world);
    let limits = json!({"key": "/customer", "per_key": 1});
    world.job(json!({"name": "keyed", "task": task, "limits": limits}));
    let of = |customer: &str| json!({"params": {"customer": customer}});
    let first = world.api.trigger("keyed", &of("a"));
    world.api.running(&first);
    let second = world.api.trigger("keyed", &of("a"));
    let other = world.api.trigger("keyed", &of("b"));
    world.api.running(&other);
    waits_for(&world, &second, "with the key \"a\"");
    world.api.cancel(&first);
    world.api.running(&second);
}

/// Two at once and then one in a while that no test waits for.
pub fn rate() {
    let world = world().agent(8);
    let limits = json!({"rate": "2/1d", "burst": 2});
    world.job(json!({"name": "rated", "limits": limits}));
    for _ in 0..2 {
        let run = world.api.trigger("rated", &json!({}));
        assert_eq!(world.api.ended(&run)["state"], "COMPLETED");
    }
    let third = world.api.trigger("rated", &json!({}));
    waits_for(&world, &third, "`limits.rate` of its job");
    assert_eq!(id(&world.api.run(&third)), third);
}

/// Jobs of a queue share its limits; a paused one gives nothing out.
pub fn queue() {
    let world = world().agent(8);
    let task = sleeping(&world);
    let path = "/api/v1/namespaces/default/queues/shared";
    let spec = json!({"kind": "Queue", "concurrency": 1});
    world.api.send(Method::PUT, path, Some(&spec));
    world.job(json!({"name": "left", "task": task, "queue": "shared"}));
    world.job(json!({"name": "right", "task": task, "queue": "shared"}));
    let left = world.api.trigger("left", &json!({}));
    world.api.running(&left);
    let right = world.api.trigger("right", &json!({}));
    waits_for(&world, &right, "attempts of queue `shared`");
    let queue = world.api.get(path);
    assert_eq!((&queue["running"], &queue["depth"]), (&json!(1), &json!(1)));
    assert_eq!(queue["holders"], json!([left]));
    world.api.send(Method::POST, &format!("{path}/pause"), None);
    world.api.cancel(&left);
    waits_for(&world, &right, "queue `shared` is paused");
    world
        .api
        .send(Method::POST, &format!("{path}/resume"), None);
    world.api.running(&right);
}
