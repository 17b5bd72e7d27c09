//! Many jobs at once, and listings that are narrowed.

use serde_json::{Value, json};

use crate::world::world;

#[test]
fn all_jobs_with_a_label_are_paused_resumed_and_deleted_at_once() {
    let world = world();
    for name in ["a", "b"] {
        world.create(&[name, "--label", "team=x", "--", "true"]);
    }
    world.create(&["c", "--", "true"]);
    let act = |verb: &str, more: &[&str]| {
        world
            .cli
            .run(&[&["job", verb, "--label", "team=x"], more].concat())
    };
    assert_eq!(
        act("pause", &["--dry-run"]).stdout,
        "job default/a would be paused\njob default/b would be paused\n"
    );
    assert_eq!(world.cli.json(&["job", "list", "--paused"]), json!([]));
    assert_eq!(
        act("pause", &[]).stdout,
        "job default/a paused\njob default/b paused\n"
    );
    assert_eq!(
        act("pause", &[]).stdout,
        "job default/a unchanged\njob default/b unchanged\n"
    );
    assert_eq!(
        world
            .cli
            .json(&["job", "list", "--paused"])
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(act("resume", &["-o", "json"]).code, 0);
    assert_eq!(world.cli.json(&["job", "list", "--paused"]), json!([]));
    let said = act("delete", &[]).failed(2);
    assert!(
        said.contains("delete 2 jobs of namespace `default`?"),
        "{said}"
    );
    assert_eq!(
        act("delete", &["--yes"]).stdout,
        "job default/a deleted\njob default/b deleted\n"
    );
    assert_eq!(world.cli.json(&["job", "list"])[0]["name"], "c");
    world.cli.fails(2, &["job", "delete"]);
    let none = act("pause", &[]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
}

#[test]
fn listings_are_narrowed_by_age_origin_and_prefix() {
    let world = world();
    world.create(&["alpha", "--", "true"]);
    world.create(&["beta", "--", "true"]);
    world.cli.ok(&["job", "trigger", "alpha"]);
    let count = |arguments: &[&str]| world.cli.json(arguments).as_array().map(Vec::len);
    assert_eq!(count(&["job", "list", "--prefix", "al"]), Some(1));
    assert_eq!(count(&["run", "list", "--since", "-1h"]), Some(1));
    assert_eq!(count(&["run", "list", "--until", "-1h"]), Some(0));
    assert_eq!(count(&["run", "list", "--origin", "api"]), Some(1));
    assert_eq!(count(&["run", "list", "--origin", "schedule"]), Some(0));
}

#[test]
fn one_name_that_is_wrong_does_not_keep_the_others() {
    let world = world();
    for name in ["a", "b"] {
        world.create(&[name, "--every", "1h", "--", "true"]);
    }
    let done = world.cli.run(&["job", "pause", "a", "nothing", "b"]);
    assert_eq!(done.stdout, "job default/a paused\njob default/b paused\n");
    let said = done.failed(3);
    assert!(said.starts_with("error: job default/nothing: "), "{said}");
    let done = world
        .cli
        .run(&["job", "resume", "a", "nothing", "b", "-o", "json"]);
    assert_eq!(done.code, 3);
    let told: Value = serde_json::from_str(&done.stdout).expect("one array");
    assert_eq!(told[1]["result"], "failed");
    assert_eq!(told[1]["problem"]["code"], "no_such_job");
    assert_eq!(
        (&told[0]["paused"], &told[2]["name"]),
        (&Value::Null, &json!("b"))
    );
}

#[test]
fn readiness_is_an_exit_code() {
    let mut world = world();
    assert_eq!(world.cli.ok(&["ready"]), "ready\n");
    world.server.kill();
    world.cli.fails(5, &["ready"]);
}
