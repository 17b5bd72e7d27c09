//! Keys of `after`.

use drumtower_e2e::eventually;
use serde_json::json;

use super::world::world;

/// All of the jobs must have ended; the run names the one that was last.
pub fn jobs() {
    let world = world().agent(4);
    for name in ["extract", "check"] {
        world.job(json!({"name": name}));
    }
    world.job(json!({"name": "load", "after": {"jobs": ["extract", "check"]}}));
    let first = world.api.trigger("extract", &json!({}));
    world.api.ended(&first);
    let job = eventually("the first has come", || {
        let job = world.api.job("load");
        (job["waits"]["arrived"]["extract"]["run"] == json!(first)).then_some(job)
    });
    assert_eq!(job["words"], "after extract and check have completed");
    assert!(world.api.runs("job=load").is_empty());
    let second = world.api.trigger("check", &json!({}));
    let run = eventually("it runs after both", || world.api.runs("job=load").pop());
    let run = world.api.ended(run["id"].as_str().expect("an id"));
    assert_eq!(
        (&run["origin"], &run["state"]),
        (&json!("after"), &json!("COMPLETED"))
    );
    assert_eq!(run["parent_run"], json!(second));
    assert_eq!(run["root_run"], json!(second));
    assert_eq!(world.api.job("load")["waits"]["arrived"], json!({}));
}

/// Each end of any of them makes a run.
pub fn need() {
    let world = world().agent(4);
    for name in ["one", "two"] {
        world.job(json!({"name": name}));
    }
    let after = json!({"jobs": ["one", "two"], "need": "any"});
    world.job(json!({"name": "each", "after": after, "overlap": "allow"}));
    for name in ["one", "two", "one"] {
        let run = world.api.trigger(name, &json!({}));
        world.api.ended(&run);
    }
    eventually("each end made a run", || {
        (world.api.runs("job=each&origin=after").len() == 3).then_some(())
    });
}

/// Only ends of this kind count.
pub fn on() {
    let world = world().agent(4);
    let fails = json!({"exec": {"argv": ["false"]}});
    world.job(json!({"name": "breaks", "task": fails, "retry": {"max_attempts": 1}}));
    let after = |on: &str| json!({"jobs": ["breaks"], "on": on});
    world.job(json!({"name": "hopes", "after": after("success")}));
    world.job(json!({"name": "mends", "after": after("failure")}));
    world.job(json!({"name": "notes", "after": after("either")}));
    let failed = world.api.trigger("breaks", &json!({}));
    assert_eq!(world.api.ended(&failed)["state"], "FAILED");
    for name in ["mends", "notes"] {
        let run = eventually(name, || world.api.runs(&format!("job={name}")).pop());
        let run = world.api.ended(run["id"].as_str().expect("an id"));
        assert_eq!(run["parent_run"], json!(failed));
    }
    assert!(world.api.runs("job=hopes").is_empty());
}
