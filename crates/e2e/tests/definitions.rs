//! Definitions from the command line: made without a file, edited, applied with a plan, pruned, compared, exported.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use drumtower_e2e::{Cli, Server, Site, Worker};
use serde_json::{Value, json};

struct World {
    site: Site,
    server: Server,
    cli: Cli,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    World { site, server, cli }
}

impl World {
    /// A user whose editor is this shell script; the file is `$1`.
    fn editing(&self, script: &str) -> Cli {
        let file = self
            .site
            .file("editor.sh", &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a script");
        self.cli.clone().env("EDITOR", file.display().to_string())
    }

    #[track_caller]
    fn create(&self, arguments: &[&str]) -> String {
        self.cli.ok(&[&["job", "create"], arguments].concat())
    }

    fn spec(&self, name: &str) -> Value {
        self.cli.json(&["job", "show", name])["spec"].clone()
    }

    fn revision(&self, name: &str) -> Value {
        self.cli.json(&["job", "show", name])["revision"].clone()
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

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
        world.create(&["report", "--replace", "--", "true"]),
        "job default/report replaced\n"
    );
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

#[test]
fn an_edit_changes_the_job_and_says_what() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let user = world.editing("cp \"$1\" seen.yaml; sed -i s/1h/2h/ \"$1\"");
    assert_eq!(
        user.ok(&["job", "edit", "hello"]),
        "job default/hello changed\nschedule[0].every: \"1h\" → \"2h\"\n"
    );
    let seen = text(&world.site.path().join("home/seen.yaml"));
    assert!(
        seen.starts_with("#| job default/hello, version 1. Save to change it"),
        "{seen}"
    );
    let revision = world.revision("hello");
    let user = world.editing("echo '# a remark' >> \"$1\"");
    assert_eq!(
        user.ok(&["job", "edit", "hello"]),
        "job default/hello unchanged\n"
    );
    assert_eq!(world.revision("hello"), revision, "nothing was sent");
    let user = world.editing("exit 3");
    let said = user.fails(1, &["job", "edit", "hello"]);
    assert!(
        said.contains("exit status: 3") && said.contains("nothing was done"),
        "{said}"
    );
    assert!(!said.contains("kept in"), "nobody typed anything: {said}");
    let user = world.editing("sed -i s/2h/4h/ \"$1\"; exit 3");
    let said = user.fails(1, &["job", "edit", "hello"]);
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("every: 4h"));
    std::fs::remove_file(kept).expect("the file is the user's");
    user.fails(3, &["job", "edit", "nothing"]);
}

#[test]
fn a_line_of_a_script_that_looks_like_a_comment_is_part_of_the_job() {
    let world = world();
    let manifest = "kind: Job\nname: hello\ntask:\n  script:\n    body: |\n      #!/bin/sh\n      echo one\n\n      echo two\n";
    let file = world.site.file("hello.yaml", manifest);
    world.cli.ok(&["apply", "-f", &file.display().to_string()]);
    let user = world.editing("sed -i 's|#!/bin/sh|#!/bin/bash|' \"$1\"");
    let said = user.ok(&["job", "edit", "hello"]);
    assert!(said.starts_with("job default/hello changed\n"), "{said}");
    assert_eq!(
        world.spec("hello")["task"]["script"]["body"],
        "#!/bin/bash\necho one\n\necho two\n"
    );
}

#[test]
fn a_user_who_may_not_change_the_job_is_told_once() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let token = world.server.token("reader", "viewer");
    let user = world
        .editing("echo x >> count; sed -i s/1h/2h/ \"$1\"")
        .env("DRUMTOWER_TOKEN", token);
    let said = user.fails(4, &["job", "edit", "hello"]);
    assert_eq!(text(&world.site.path().join("home/count")), "x\n", "{said}");
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    std::fs::remove_file(kept).expect("the file is the user's");
}

#[test]
fn a_fault_opens_the_editor_again_with_the_message() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    // The first time it breaks a key, the second time a value that only the server knows to be wrong, then it is mended.
    let user = world.editing(
        "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; cp \"$1\" seen$n.yaml\n\
         case $n in 1) sed -i s/every:/evry:/ \"$1\";; 2) sed -i 's/evry:/every:/; $a calendar: {only: [none]}' \"$1\";; \
         *) sed -i 's/none/working/; s/1h/3h/; /^calendar/d' \"$1\";; esac",
    );
    let said = user.ok(&["job", "edit", "hello"]);
    assert_eq!(
        said,
        "job default/hello changed\nschedule[0].every: \"1h\" → \"3h\"\n"
    );
    let seen = |number: u32| text(&world.site.path().join(format!("home/seen{number}.yaml")));
    assert!(
        seen(2).starts_with(
            "#| error: line:7:3: schedule[0]: unknown key `evry`: did you mean `every`?\n"
        ),
        "{}",
        seen(2)
    );
    let line = seen(2).lines().nth(6).unwrap_or_default().to_owned();
    assert_eq!(
        line, "- evry: 1h",
        "the line that is named is the line that is seen"
    );
    assert!(
        seen(3).starts_with("#| error: ") && seen(3).contains("`none`"),
        "{}",
        seen(3)
    );
}

#[test]
fn an_edit_that_comes_too_late_keeps_the_text() {
    let world = world();
    world.create(&["hello", "--every", "1h", "--", "echo", "hello"]);
    let binary = drumtower_e2e::drumtower().display().to_string();
    let user = world.editing(&format!(
        "{binary} job pause hello > /dev/null; sed -i s/1h/2h/ \"$1\""
    ));
    let said = user.fails(4, &["job", "edit", "hello"]);
    assert!(
        said.starts_with("error: job default/hello was changed by someone else meanwhile"),
        "{said}"
    );
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("every: 2h"));
    std::fs::remove_file(kept).expect("the file is the user's");
    assert_eq!(world.spec("hello")["schedule"][0]["every"], "1h");
    // A text that stays wrong is kept, too, and the command ends.
    let user = world.editing("sed -i s/every:/evry:/ \"$1\"");
    let said = user.fails(2, &["job", "edit", "hello"]);
    let kept = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("your text is kept in "))
        .expect("a file is named");
    assert!(text(Path::new(kept)).contains("evry: 1h"));
    std::fs::remove_file(kept).expect("the file is the user's");
}

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
