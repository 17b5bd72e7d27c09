//! Versions of a job, and runs that are repeated.

use drumtower_e2e::Worker;
use serde_json::{Value, json};

use crate::world::world;

#[test]
fn versions_are_listed_compared_and_restored() {
    let world = world();
    world.create(&["report", "--every", "1h", "--", "true"]);
    world.create(&[
        "report",
        "--replace",
        "--every",
        "2h",
        "--timeout",
        "5m",
        "--",
        "true",
    ]);
    let versions = world.cli.json(&["job", "versions", "report"]);
    let numbers: Vec<&Value> = versions
        .as_array()
        .expect("a list")
        .iter()
        .map(|version| &version["version"])
        .collect();
    assert_eq!(numbers, [2, 1]);
    let lines = world.cli.ok(&["job", "versions", "report"]);
    let first: Vec<&str> = lines
        .lines()
        .next()
        .unwrap_or_default()
        .split('\t')
        .collect();
    assert_eq!(
        (first[0], first[2], first[3], first[4]),
        ("2", "local", "current", "every 2h"),
        "{lines}"
    );
    let changes = "schedule[0].every: \"1h\" → \"2h\"\ntimeout: (none) → \"5m\"\n";
    assert_eq!(world.cli.ok(&["job", "diff", "report"]), changes);
    assert_eq!(
        world
            .cli
            .ok(&["job", "diff", "report", "--from", "1", "--to", "2"]),
        changes
    );
    let told = world
        .cli
        .json(&["job", "diff", "report", "--from", "2", "--to", "1"]);
    assert_eq!(
        told["changes"][0],
        json!({"field": "schedule[0].every", "before": "2h", "after": "1h"})
    );
    assert_eq!(
        world
            .cli
            .ok(&["job", "restore", "report", "--version", "1"]),
        "job default/report is what version 1 was, now as version 3\n"
    );
    assert_eq!(world.spec("report")["schedule"][0]["every"], "1h");
    assert_eq!(
        world.cli.ok(&["job", "diff", "report", "--from", "1"]),
        "versions 1 and 3 are the same\n"
    );
    let said = world
        .cli
        .fails(3, &["job", "restore", "report", "--version", "9"]);
    assert!(said.contains('9'), "{said}");
    world.cli.fails(3, &["job", "versions", "nothing"]);
}

#[test]
fn a_run_is_run_again_with_the_same_or_other_parameters() {
    let world = world();
    let _worker = Worker::start(&world.site, &world.server, "agent");
    world.create(&["echo", "--", "sh", "-c", "echo one $DRUMTOWER_PARAMS"]);
    let trigger = |arguments: &[&str]| world.cli.ok(arguments).trim().to_owned();
    let first = trigger(&["job", "trigger", "echo", "--params", "1"]);
    world.cli.ok(&["run", "wait", &first]);
    world.create(&[
        "echo",
        "--replace",
        "--",
        "sh",
        "-c",
        "echo two $DRUMTOWER_PARAMS",
    ]);
    let logs = |run: &str| {
        world.cli.ok(&["run", "wait", run]);
        world.cli.ok(&["run", "logs", run])
    };
    let again = trigger(&["run", "rerun", &first]);
    assert_ne!(again, first);
    assert_eq!(logs(&again), "two 1\n", "the job as it is now");
    let shown = world.cli.ok(&["run", "show", &again]);
    assert!(shown.contains(&format!("repeats:  {first}\n")), "{shown}");
    assert_eq!(
        logs(&trigger(&["run", "rerun", &first, "--original"])),
        "one 1\n"
    );
    assert_eq!(
        logs(&trigger(&["run", "rerun", &first, "--params", "2"])),
        "two 2\n"
    );
    let key = ["run", "rerun", &first, "--key", "k"];
    assert_eq!(trigger(&key), trigger(&key), "one key, one run");
    assert!(
        world
            .cli
            .ok(&["run", "rerun", &first, "--wait"])
            .contains("COMPLETED")
    );
    world.cli.fails(3, &["run", "rerun", "run_0000000000000"]);
}
