//! Jobs made from flags, without a file.

use serde_json::json;

use crate::world::world;

#[test]
fn a_job_is_made_without_a_file_and_not_overwritten_by_accident() {
    let world = world();
    let arguments = [
        "report",
        "--cron",
        "30 2 * * mon-fri",
        "--timezone",
        "Asia/Shanghai",
        "--every",
        "90m",
        "--label",
        "team=billing",
        "--param",
        "region=east",
        "--timeout",
        "20m",
        "--overlap",
        "allow",
        "--max-fires",
        "7",
        "--",
        "echo",
        "--all",
        "*/5",
    ];
    assert_eq!(world.create(&arguments), "job default/report created\n");
    assert_eq!(
        world.spec("report"),
        json!({
            "kind": "Job",
            "name": "report",
            "namespace": "default",
            "labels": {"team": "billing"},
            "schedule": [{"every": "90m"}, {"cron": "30 2 * * mon-fri", "timezone": "Asia/Shanghai"}],
            "bounds": {"max_fires": 7},
            "overlap": "allow",
            "task": {"exec": {"argv": ["echo", "--all", "*/5"]}},
            "params": {"region": "east"},
            "timeout": "20m",
        })
    );
    let said = world
        .cli
        .fails(4, &["job", "create", "report", "--", "true"]);
    assert_eq!(
        said,
        "error: there is a job `report` in namespace `default` already\n  try: add --replace to change it, or use `drumtower job edit`\n"
    );
    assert_eq!(
        world.create(&["report", "--replace", "--max-attempts", "1", "--", "true"]),
        "job default/report replaced\n"
    );
    assert_eq!(world.spec("report")["retry"], json!({"max_attempts": 1}));
    assert_eq!(
        world.spec("report")["task"]["exec"]["argv"],
        json!(["true"])
    );
    let said = world.cli.fails(
        2,
        &["job", "create", "x", "--timeout", "soon", "--", "true"],
    );
    assert!(said.starts_with("error: --timeout: "), "{said}");
    let said = world.cli.fails(2, &["job", "create", "x", "--every", "5s"]);
    assert!(said.contains("what shall it run?"), "{said}");
    let said = world
        .cli
        .fails(2, &["job", "create", "x", "--every", "5s", "echo"]);
    assert!(said.contains("put `--` before the program"), "{said}");
}

#[test]
fn a_dry_run_prints_what_can_be_applied() {
    let world = world();
    let shown = world.create(&[
        "report",
        "--dry-run",
        "-o",
        "yaml",
        "--cron",
        "*/5 * * * *",
        "--",
        "echo",
        "yes",
        "007",
        "a: b\n#",
    ]);
    world.cli.fails(3, &["job", "show", "report"]);
    let done = world.cli.run_with_input(&["apply", "-f", "-"], &shown);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        done.stdout,
        "+ job default/report\nplan: 1 to create, 0 to change, 0 to delete, 0 unchanged\njob default/report created\n"
    );
    assert_eq!(
        world.spec("report")["task"]["exec"]["argv"],
        json!(["echo", "yes", "007", "a: b\n#"])
    );
}
