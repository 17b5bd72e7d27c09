//! What the settings of the installation add to definitions, and what plans say of it.

use serde_json::{Value, json};

use crate::world::world;

const JOBS: &str = "\
kind: Job
name: plain
task: {exec: {argv: ['true']}}
---
kind: Job
name: own
timeout: 5m
task: {exec: {argv: ['true']}}
";

#[test]
fn a_plan_knows_what_settings_add_to_a_job() {
    let world = world();
    let jobs = world.site.file("jobs.yaml", JOBS).display().to_string();
    let apply = ["apply", "-f", jobs.as_str()];
    let diff = ["diff", "-f", jobs.as_str()];
    world.cli.ok(&apply);
    world.cli.fails(3, &["settings", "show"]);
    let set = |yaml: &str| {
        world
            .cli
            .run_with_input(&["settings", "set", "-f", "-"], yaml)
    };
    let done = set("defaults: {timeout: 30m}\nlimits: {timeout: 1h}\n");
    assert_eq!(done.code, 0, "{done:?}");
    let shown = world.cli.ok(&["settings", "show"]);
    assert!(
        shown.contains("default timeout") && shown.contains("30m"),
        "{shown}"
    );
    // A job that exists stays as it is; what applying it again would bring is told, and brought.
    assert_eq!(world.spec("plain").get("timeout"), None::<&Value>);
    let told = world.cli.run(&diff);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(
        told.stdout.contains("timeout: (none) \u{2192} \"30m\""),
        "{told:?}"
    );
    assert!(
        told.stdout
            .contains("1 to change, 0 to delete, 1 unchanged"),
        "{told:?}"
    );
    world.cli.ok(&apply);
    assert_eq!(world.spec("plain")["timeout"], json!("30m"));
    assert_eq!(world.spec("own")["timeout"], json!("5m"));
    assert_eq!(world.cli.run(&diff).code, 0);
    // What would be refused is told before anything is changed.
    let long = JOBS.replace("5m", "2h");
    let long = world.site.file("long.yaml", &long).display().to_string();
    let told = world.cli.run(&["apply", "-f", &long, "--dry-run"]);
    assert!(
        told.code != 0 && told.stderr.contains("`2h` is longer than `1h`"),
        "{told:?}"
    );
    let refused = set("defaults: {timeuot: 30m}\n");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("timeuot"), "{refused:?}");
    let stale = ["settings", "set", "-f", "-", "--if-revision", "7"];
    let told = world.cli.run_with_input(&stale, "limits: {timeout: 2h}\n");
    assert!(
        told.code != 0 && told.stderr.contains("revision 1"),
        "{told:?}"
    );
    world.cli.ok(&["settings", "unset"]);
    assert_eq!(
        world.cli.run(&diff).code,
        1,
        "what was added goes with the next apply"
    );
}
