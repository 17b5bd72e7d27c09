//! Files applied with a plan, pruned, and exported so that they apply back.

use std::path::Path;

use serde_json::json;

use crate::world::{World, world};

const JOBS: &str = "\
kind: Job
name: settle
labels: {from: git}
schedule: [{cron: '0 9 * * *'}]
calendar: {only: [working-days]}
task: {exec: {argv: ['true']}}
---
kind: Calendar
name: working-days
weekly: [mon, tue]
---
kind: Job
name: other
namespace: billing
labels: {from: git}
task: {exec: {argv: ['true']}}
";

#[test]
fn a_plan_is_printed_and_then_carried_out() {
    let world = world();
    let dir = world.site.dir("jobs/deep");
    std::fs::write(dir.join("jobs.yml"), JOBS).expect("a file");
    let dir = world.site.path().join("jobs").display().to_string();
    let plan = "+ calendar default/working-days\n+ job default/settle\n+ job billing/other\n\
                plan: 3 to create, 0 to change, 0 to delete, 0 unchanged\n";
    assert_eq!(world.cli.ok(&["apply", "-f", &dir, "--dry-run"]), plan);
    let diff = world.cli.run(&["diff", "-f", &dir]);
    assert_eq!(
        (diff.code, diff.stdout.as_str(), diff.stderr.as_str()),
        (1, plan, "")
    );
    assert_eq!(
        world.cli.json(&["job", "list"]),
        json!([]),
        "nothing was changed yet"
    );
    let done = "calendar default/working-days created\njob default/settle created\njob billing/other created\n";
    assert_eq!(
        world.cli.ok(&["apply", "-f", &dir]),
        format!("{plan}{done}")
    );
    assert_eq!(world.cli.run(&["diff", "-f", &dir]).code, 0);
    let changed = JOBS.replace("0 9", "0 10").replace("tue]", "wed]");
    std::fs::write(world.site.path().join("jobs/deep/jobs.yml"), changed).expect("a file");
    let plan = "~ calendar default/working-days\n    weekly[1]: \"tue\" → \"wed\"\n\
                ~ job default/settle\n    schedule[0].cron: \"0 9 * * *\" → \"0 10 * * *\"\n\
                = job billing/other\nplan: 0 to create, 2 to change, 0 to delete, 1 unchanged\n";
    let done = "calendar default/working-days changed\njob default/settle changed\n";
    assert_eq!(
        world.cli.ok(&["apply", "-f", &dir]),
        format!("{plan}{done}")
    );
    let told = world.cli.json(&["apply", "-f", &dir]);
    assert_eq!(
        told[1],
        json!({"action": "unchanged", "kind": "Job", "namespace": "default", "name": "settle", "changes": [], "result": "done"})
    );
}

#[test]
fn pruning_deletes_only_what_has_the_label_and_is_asked_for() {
    let world = world();
    world.create(&["old", "--label", "from=git", "--", "true"]);
    world.create(&["old", "-n", "billing", "--label", "from=git", "--", "true"]);
    world.create(&["mine", "--", "true"]);
    // The files say nothing of this namespace.
    world.create(&["old", "-n", "audit", "--label", "from=git", "--", "true"]);
    let file = world.site.file("jobs.yaml", JOBS).display().to_string();
    let prune = ["apply", "-f", &file, "--prune", "--label", "from=git"];
    let names = |world: &World| -> Vec<String> {
        let jobs = world.cli.json(&["job", "list"]);
        let jobs = jobs.as_array().expect("a list").iter();
        jobs.map(|job| {
            format!(
                "{}/{}",
                job["namespace"].as_str().unwrap(),
                job["name"].as_str().unwrap()
            )
        })
        .collect()
    };
    world.cli.fails(2, &["apply", "-f", &file, "--prune"]);
    let refused = world.cli.run(&prune);
    assert!(
        refused.stdout.contains("- job default/old\n"),
        "{refused:?}"
    );
    let said = refused.failed(2);
    assert!(
        said.contains("delete 2 jobs?") && said.contains("--yes"),
        "{said}"
    );
    assert_eq!(
        names(&world),
        ["audit/old", "billing/old", "default/mine", "default/old"],
        "nothing was changed"
    );
    let elsewhere = world.cli.clone().env("DRUMTOWER_NAMESPACE", "nowhere");
    let done = elsewhere.ok(&[&prune[..], &["--yes"]].concat());
    assert!(!done.contains("deleted"), "{done}");
    let done = world
        .cli
        .ok(&[&prune[..], &["-n", "billing", "--yes"]].concat());
    assert!(
        done.ends_with("job billing/old deleted\n") && !done.contains("default/old"),
        "{done}"
    );
    let done = world.cli.ok(&[&prune[..], &["--yes"]].concat());
    assert!(done.ends_with("job default/old deleted\n"), "{done}");
    assert_eq!(
        names(&world),
        [
            "audit/old",
            "billing/other",
            "default/mine",
            "default/settle"
        ]
    );
    let done = world.cli.ok(&[&prune[..], &["-A", "--yes"]].concat());
    assert!(done.ends_with("job audit/old deleted\n"), "{done}");
}

#[test]
fn nothing_is_changed_unless_everything_is_understood() {
    let world = world();
    let apply = |text: &str| world.cli.run_with_input(&["apply", "-f", "-"], text);
    let said = apply(&format!("{JOBS}overlap: skpi\n")).failed(2);
    assert!(
        said.starts_with(
            "error: (standard input):17:10: overlap: unknown value `skpi`: did you mean `skip`?"
        ),
        "{said}"
    );
    let said = apply(&JOBS.replace("only: [working-days]", "only: [working-day]")).failed(4);
    assert!(
        said.contains("there is no calendar `working-day` in namespace `default`"),
        "{said}"
    );
    assert_eq!(world.cli.json(&["job", "list"]), json!([]));
    assert_eq!(world.cli.json(&["calendar", "list"]), json!([]));
    let viewer = world
        .cli
        .clone()
        .env("DRUMTOWER_TOKEN", world.server.token("eve", "viewer"));
    let said = viewer.run_with_input(&["apply", "-f", "-"], JOBS).failed(4);
    assert!(
        said.contains("\n  done before: nothing\n  not done: calendar default/working-days, job default/settle, job billing/other\n"),
        "{said}"
    );
}

#[test]
fn what_is_exported_applies_back_unchanged() {
    let world = world();
    let done = world.cli.run_with_input(&["apply", "-f", "-"], JOBS);
    assert_eq!(done.code, 0, "{done:?}");
    let odd = [
        "yes",
        "012",
        "1e3",
        "~",
        "null",
        "- a",
        "#x",
        "a: b",
        "two\nlines\n",
        "\t",
        "",
        "it's",
        "\"q\"",
        "...",
        "---",
        "*a",
        " b ",
        "é\u{1}",
    ];
    world.create(
        &[
            &[
                "odd",
                "--cron",
                "*/5 * * * *",
                "--description",
                "one\n\n  two",
                "--params",
                "{\"a\": [1, null, \"1\", 0.5]}",
                "--",
            ][..],
            &odd,
        ]
        .concat(),
    );
    let all = world.cli.ok(&["export"]);
    let diff = world.cli.run_with_input(&["diff", "-f", "-"], &all);
    assert_eq!(diff.code, 0, "{diff:?}\n{all}");
    let dir = world.site.path().join("out");
    let dir = dir.to_str().expect("a path in text");
    assert_eq!(
        world.cli.ok(&["export", "--dir", dir]),
        format!("4 manifests in {dir}\n")
    );
    assert_eq!(world.cli.run(&["diff", "-f", dir]).code, 0);
    assert!(
        Path::new(dir)
            .join("default/calendars/working-days.yaml")
            .exists()
    );
    // Another server becomes the same.
    let other = self::world();
    let done = other.cli.run_with_input(&["apply", "-f", "-"], &all);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(other.cli.ok(&["export"]), all);
    let labelled = world
        .cli
        .ok(&["export", "--label", "from=git", "-n", "default"]);
    assert!(
        labelled.starts_with("kind: Calendar\nname: working-days\n"),
        "the calendar that it uses: {labelled}"
    );
    assert!(
        !labelled.contains("odd") && !labelled.contains("other"),
        "{labelled}"
    );
}
