//! Keys that say what a job is called and where it is found.

use drumtower_e2e::{Cli, shell};
use serde_json::json;
use ureq::http::Method;

use super::world::{id, world};

pub fn kind() {
    let world = world();
    let refused = world.try_job(json!({"kind": "Workflow"}));
    assert_eq!(
        (refused.status, &refused.body["field"]),
        (422, &json!("kind")),
        "{refused:?}"
    );
    assert_eq!(world.try_job(json!({"kind": "Job"})).status, 201);
}

pub fn name() {
    let world = world();
    world.job(json!({"name": "by-its-name"}));
    assert_eq!(world.api.job("by-its-name")["name"], "by-its-name");
    let missing = world
        .api
        .call(Method::GET, "/api/v1/namespaces/default/jobs/plain", None)
        .expect("an answer");
    assert_eq!(missing.code(), "no_such_job");
}

pub fn namespace() {
    let world = world().agent(4);
    let mut spec = shell("tenant", "echo $DRUMTOWER_NAMESPACE");
    spec["namespace"] = json!("billing");
    world.api.put_job(&spec);
    let listed = world.api.get("/api/v1/namespaces/billing/jobs");
    assert_eq!(listed["items"][0]["name"], "tenant");
    assert_eq!(
        world.api.get("/api/v1/namespaces/default/jobs")["items"],
        json!([])
    );
    let run = world
        .api
        .post("/api/v1/namespaces/billing/jobs/tenant/runs", &json!({}));
    assert_eq!(world.api.ended(id(&run))["namespace"], "billing");
    assert_eq!(world.api.output(id(&run)), "billing\n");
}

pub fn labels() {
    let world = world();
    world.job(json!({"name": "a", "labels": {"team": "billing", "tier": "1"}}));
    world.job(json!({"name": "b", "labels": {"team": "core"}}));
    let found = world
        .api
        .get("/api/v1/jobs?label=team=billing&label=tier=1");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["items"][0]["name"], "a");
}

/// It is shown wherever the job is shown.
pub fn description() {
    let world = world();
    world.job(json!({"name": "told", "description": "Sends the numbers of the day."}));
    assert_eq!(
        world.api.job("told")["spec"]["description"],
        "Sends the numbers of the day."
    );
    let cli = Cli::new(world.site.dir("home"))
        .env("DRUMTOWER_DATA", world.server.data().display().to_string());
    let shown = cli.ok(&["job", "show", "told"]);
    assert!(shown.contains("Sends the numbers of the day."), "{shown}");
}
