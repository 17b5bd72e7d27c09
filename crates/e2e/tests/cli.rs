//! Every verb of the command line against a real server, and what it says when something is wrong.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use drumtower_e2e::{Api, Cli, Process, Server, Site, Worker, eventually};
use serde_json::Value;

struct World {
    site: Site,
    _worker: Worker,
    server: Server,
    cli: Cli,
    api: Api,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let worker = Worker::start(&site, &server, "agent");
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    let api = server.api();
    World {
        site,
        _worker: worker,
        server,
        cli,
        api,
    }
}

const HELLO: &str = "
kind: Job
name: hello
labels: {team: core}
task:
  exec:
    argv: [sh, -c, 'echo hello; echo oh dear >&2']
";

impl World {
    #[track_caller]
    fn apply(&self, text: &str) -> String {
        let done = self.cli.run_with_input(&["job", "apply", "-f", "-"], text);
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    }

    #[track_caller]
    fn trigger(&self, job: &str) -> String {
        self.cli.ok(&["job", "trigger", job]).trim().to_owned()
    }
}

#[test]
fn a_job_is_applied_listed_shown_paused_resumed_and_deleted() {
    let world = world();
    let cli = &world.cli;
    let file = world.site.file("jobs.yaml", &format!("{HELLO}---\nkind: Job\nname: other\nnamespace: billing\nschedule:\n  - cron: '0 3 * * *'\ntask: {{handler: {{name: bill}}}}\n"));
    let file = file.to_str().expect("a path in text");
    assert_eq!(
        cli.ok(&["job", "apply", "-f", file]),
        "job default/hello created\njob billing/other created\n"
    );
    assert_eq!(
        cli.ok(&["job", "apply", "-f", file]),
        "job default/hello unchanged\njob billing/other unchanged\n"
    );
    assert_eq!(
        world.apply(&HELLO.replace("hello;", "hi;")),
        "job default/hello changed\n"
    );

    let listed = cli.json(&["job", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert_eq!(
        cli.json(&["job", "list", "-n", "billing"])[0]["name"],
        "other"
    );
    assert_eq!(
        cli.json(&["job", "list", "--label", "team=core"])[0]["name"],
        "hello"
    );
    let line = cli.ok(&["job", "list", "-n", "billing"]);
    assert!(
        line.starts_with("billing\tother\tactive\t0 3 * * *\t"),
        "tabs in a pipe: {line}"
    );

    let shown = cli.json(&["job", "show", "hello"]);
    assert_eq!(
        (&shown["version"], &shown["spec"]["labels"]["team"]),
        (&Value::from(2), &Value::from("core"))
    );
    let yaml = cli.ok(&["job", "show", "hello", "-o", "yaml"]);
    assert!(yaml.contains("name: hello\n"), "{yaml}");
    let words = cli.ok(&["job", "show", "other", "-n", "billing"]);
    assert!(
        words.contains("schedule:") && words.contains("0 3 * * *"),
        "{words}"
    );

    assert_eq!(
        cli.ok(&["job", "pause", "hello"]),
        "job default/hello paused\n"
    );
    assert_eq!(cli.json(&["job", "list", "--paused"])[0]["name"], "hello");
    assert_eq!(cli.json(&["job", "list", "--active"])[0]["name"], "other");
    assert_eq!(
        cli.ok(&["job", "resume", "hello"]),
        "job default/hello resumed\n"
    );
    assert_eq!(
        cli.json(&["job", "list", "--paused"]),
        Value::Array(Vec::new())
    );

    assert_eq!(
        cli.ok(&["job", "delete", "other", "-n", "billing"]),
        "job billing/other deleted\n"
    );
    let said = cli.fails(3, &["job", "show", "other", "-n", "billing"]);
    assert_eq!(
        said,
        "error: there is no job `other` in namespace `billing`\n  try: `drumtower job list` shows the jobs with their namespaces; -n names one\n"
    );
}

#[test]
fn a_run_is_triggered_waited_for_shown_read_and_cancelled() {
    let world = world();
    let cli = &world.cli;
    world.apply(HELLO);
    let run = world.trigger("hello");
    assert!(run.starts_with("run_"), "{run}");
    let done = cli.run(&["run", "wait", &run]);
    assert_eq!(done.code, 0, "{done:?}");
    let shown = cli.json(&["run", "show", &run]);
    assert_eq!(
        (&shown["state"], &shown["attempts"][0]["worker"]),
        (&Value::from("COMPLETED"), &Value::from("agent"))
    );
    let words = cli.ok(&["run", "show", &run]);
    assert!(
        words.contains(&run) && words.contains("COMPLETED"),
        "{words}"
    );
    let logs = cli.run(&["run", "logs", &run]);
    assert_eq!(
        (logs.stdout.as_str(), logs.stderr.as_str()),
        ("hello\n", "oh dear\n"),
        "each stream where it belongs"
    );
    assert_eq!(
        cli.ok(&["run", "logs", &run, "--stream", "stderr", "--attempt", "1"]),
        ""
    );
    let record: Value =
        serde_json::from_str(&cli.ok(&["run", "logs", &run, "--stream", "stdout", "-o", "json"]))
            .expect("JSON");
    assert_eq!(record["text"], "hello\n");

    let same = ["job", "trigger", "hello", "--key", "order-7"];
    assert_eq!(cli.ok(&same), cli.ok(&same), "one key, one run");
    let said = cli.fails(
        4,
        &[
            "job", "trigger", "hello", "--key", "order-7", "--params", "{}",
        ],
    );
    assert!(said.contains("order-7"), "{said}");

    world.apply("kind: Job\nname: fails\ntask: {exec: {argv: [sh, -c, exit 3]}}\n");
    let done = cli.run(&["job", "trigger", "fails", "--wait"]);
    assert_eq!(
        done.code, 1,
        "a run that failed fails the command: {done:?}"
    );
    let failed = cli.json(&["run", "list", "--job", "fails", "--state", "failed"]);
    assert_eq!(
        (failed.as_array().map(Vec::len), &failed[0]["exit_code"]),
        (Some(1), &Value::from(3))
    );
    assert_eq!(
        cli.json(&["run", "list", "--limit", "2"])
            .as_array()
            .map(Vec::len),
        Some(2)
    );

    let marker = world.site.marker();
    world.apply(&format!(
        "kind: Job\nname: long\ntask: {{exec: {{argv: [sleep, '{marker}']}}}}\n"
    ));
    let run = world.trigger("long");
    world.api.running(&run);
    let said = cli.ok(&["run", "cancel", &run]);
    assert!(said.starts_with(&run), "{said}");
    assert_eq!(
        cli.run(&["run", "wait", &run]).code,
        1,
        "it was not completed"
    );
    assert_eq!(cli.json(&["run", "show", &run])["state"], "CANCELLED");
    assert!(cli.ok(&["run", "cancel", &run]).contains("is CANCELLED"));
}

#[test]
fn logs_are_followed_while_the_run_goes_on() {
    let world = world();
    let go = world.site.path().join("go");
    let script = format!(
        "echo one; while [ ! -e {} ]; do sleep 0.02; done; echo two",
        go.display()
    );
    world.apply(&format!(
        "kind: Job\nname: talk\ntask: {{exec: {{argv: [sh, -c, '{script}']}}}}\n"
    ));
    let run = world.trigger("talk");
    let mut command = world.cli.command(&["run", "logs", "-f", &run]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "one");
    std::fs::write(&go, "").expect("a file in the site");
    assert_eq!(lines.next().expect("a line").expect("text"), "two");
    assert!(lines.next().is_none(), "it ends with the run");
    assert!(child.wait().expect("an end").success());
}

#[test]
fn workers_and_the_schema_can_be_read() {
    let world = world();
    let workers = world.cli.json(&["worker", "list"]);
    assert_eq!(
        (&workers[0]["name"], &workers[0]["exec"]),
        (&Value::from("agent"), &Value::from(true))
    );
    eventually("the load of the machine is told", || {
        world.cli.json(&["worker", "list"])[0]["load"]["memory_total_bytes"]
            .as_u64()
            .filter(|bytes| *bytes > 0)
    });
    let line = world.cli.ok(&["worker", "list"]);
    assert!(line.starts_with("agent\tONLINE\t"), "{line}");
    let printed: Value = serde_json::from_str(&world.cli.ok(&["schema", "job"])).expect("JSON");
    assert_eq!(
        printed,
        world.api.get("/api/v1/schema/job"),
        "both doors show the same"
    );
}

#[test]
fn tokens_are_made_used_and_revoked() {
    let world = world();
    let cli = &world.cli;
    let bootstrap = std::fs::read_to_string(world.server.data().join("bootstrap.token"))
        .expect("a first token");
    let user = |token: &str| {
        Cli::new(world.site.dir("elsewhere"))
            .env("DRUMTOWER_URL", world.server.url())
            .env("DRUMTOWER_TOKEN", token)
    };
    assert!(
        user(bootstrap.trim()).run(&["token", "list"]).code == 0,
        "it lets the first admin in"
    );
    let viewer = cli
        .ok(&[
            "token",
            "create",
            "ann",
            "--role",
            "viewer",
            "--namespace",
            "billing",
        ])
        .trim()
        .to_owned();
    assert!(viewer.starts_with("drt_"), "{viewer}");
    assert_eq!(
        user(&viewer).json(&["job", "list"]),
        Value::Array(Vec::new())
    );
    let said = user(&viewer).fails(4, &["job", "list", "-n", "default"]);
    assert!(said.contains("billing"), "{said}");
    user(&viewer).fails(4, &["token", "list"]);
    cli.fails(4, &["token", "create", "ann", "--role", "viewer"]);
    cli.ok(&["token", "create", "boss", "--role", "admin"]);
    user(bootstrap.trim()).fails(4, &["token", "list"]);
    assert!(
        !world.server.data().join("bootstrap.token").exists(),
        "it died with the first admin token"
    );
    let names = |tokens: &Value| -> Vec<String> {
        let tokens = tokens.as_array().expect("a list").iter();
        tokens
            .filter_map(|token| token["name"].as_str().map(str::to_owned))
            .collect()
    };
    let listed = cli.json(&["token", "list"]);
    assert!(
        ["ann", "boss"]
            .iter()
            .all(|name| names(&listed).contains(&(*name).to_owned())),
        "{listed}"
    );
    assert!(
        !listed.to_string().contains("drt_"),
        "secrets are shown once"
    );
    assert_eq!(cli.ok(&["token", "revoke", "ann"]), "token ann revoked\n");
    user(&viewer).fails(4, &["job", "list"]);
    cli.fails(3, &["token", "revoke", "ann"]);
}

#[test]
fn who_lost_the_last_admin_token_gets_back_in_with_the_data_directory() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let data = server.data().display().to_string();
    let cli = Cli::new(site.dir("home"));
    cli.ok(&[
        "token", "create", "boss", "--role", "admin", "--data", &data,
    ]);
    server.stop();
    let secret = cli
        .ok(&[
            "token", "create", "rescue", "--role", "admin", "--data", &data,
        ])
        .trim()
        .to_owned();
    assert_eq!(
        cli.ok(&["token", "revoke", "boss", "--data", &data]),
        "token boss revoked\n"
    );
    server.restart();
    let rescued = Cli::new(site.dir("elsewhere"))
        .env("DRUMTOWER_URL", server.url())
        .env("DRUMTOWER_TOKEN", secret);
    let tokens = rescued.json(&["token", "list"]);
    let names: Vec<&str> = tokens
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|token| token["name"].as_str())
        .collect();
    assert_eq!(names, ["rescue"]);
    assert_eq!(
        cli.fails(
            2,
            &[
                "token",
                "list",
                "--data",
                &site.dir("empty").display().to_string()
            ]
        )
        .lines()
        .count(),
        2
    );
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let world = world();
    let url = world.server.url();
    let stranger = Cli::new(world.site.dir("stranger"));
    let no_token = stranger.fails(4, &["job", "list", "--url", &url]);
    assert!(
        no_token.contains("\n  try: give a token with --token or DRUMTOWER_TOKEN"),
        "{no_token}"
    );
    let bad_token = stranger.fails(4, &["job", "list", "--url", &url, "--token", "drt_wrong"]);
    assert!(
        bad_token.contains("\n  try: ask an administrator"),
        "{bad_token}"
    );
    let nobody = stranger.fails(5, &["job", "list", "--url", "http://127.0.0.1:1"]);
    assert!(
        nobody.starts_with("error: no answer from http://127.0.0.1:1")
            && nobody.contains("drumtower serve"),
        "{nobody}"
    );
    let worker = stranger
        .run(&["work", "--url", &url, "--token", "drt_wrong"])
        .failed(4);
    assert!(worker.contains("token"), "{worker}");

    world.cli.fails(3, &["run", "show", "run_0000000000000"]);
    world.cli.fails(3, &["job", "trigger", "nothing"]);
    assert_eq!(world.cli.run(&["job", "explode"]).code, 2);
    world
        .cli
        .fails(2, &["job", "trigger", "hello", "--params", "{"]);
}

#[test]
fn a_wrong_manifest_is_refused_whole_with_file_line_and_key() {
    let world = world();
    let wrong = "kind: Job\nname: good\ntask: {exec: {argv: [true]}}\n---\nkind: Job\nname: typo\nscheduel: []\ntask: {exec: {argv: [x]}}\n---\nkind: Job\nname: empty\ntask:\n  exec:\n    argv: []\n";
    let file = world.site.file("wrong.yaml", wrong).display().to_string();
    let said = world.cli.fails(2, &["job", "apply", "-f", &file]);
    assert!(
        said.contains(&format!("{file}:7:")) && said.contains("did you mean `schedule`?"),
        "{said}"
    );
    assert!(
        said.contains(&format!("{file}:14:")) && said.contains("task.exec.argv"),
        "{said}"
    );
    assert_eq!(
        world.cli.json(&["job", "list"]),
        Value::Array(Vec::new()),
        "nothing of it was applied"
    );
    let cron = world.cli.run_with_input(
        &["job", "apply", "-f", "-"],
        &HELLO.replace("labels: {team: core}", "schedule: [{cron: '61 * * * *'}]"),
    );
    let said = cron.failed(2);
    assert!(said.contains("schedule") && said.contains("61"), "{said}");
    world
        .cli
        .fails(1, &["job", "apply", "-f", "/no/such/file.yaml"]);
}

#[test]
fn a_second_server_on_the_same_data_or_port_says_why_it_cannot() {
    let world = world();
    let data = world.server.data().display().to_string();
    let cli = Cli::new(world.site.dir("home"));
    let said = cli.fails(5, &["serve", "--data", &data, "--listen", "127.0.0.1:0"]);
    assert!(said.contains(&data), "{said}");
    let listen = world.server.url().trim_start_matches("http://").to_owned();
    let other = world.site.dir("other").display().to_string();
    let said = cli.fails(5, &["serve", "--data", &other, "--listen", &listen]);
    assert!(
        said.contains(&listen) && said.contains("--listen"),
        "{said}"
    );
    let said = cli.fails(2, &["serve", "--data", &other, "--listen", "0.0.0.0:0"]);
    assert!(said.contains("--insecure"), "{said}");
    assert!(world.api.is_ready(), "the first one does not mind");
}

#[test]
fn a_server_tells_where_it_is_and_leaves_no_address_behind() {
    let site = Site::new();
    let data = site.data().display().to_string();
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", &data);
    let command = cli.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut server = Process::spawn(command, &site.path().join("server.log"));
    let said = eventually("it announces itself", || {
        Some(server.log()).filter(|log| log.contains("bootstrap token"))
    });
    let url = std::fs::read_to_string(site.data().join("server.url")).expect("an address");
    assert!(said.contains(url.trim()), "{said}");
    let secret = std::fs::read_to_string(site.data().join("bootstrap.token")).expect("a token");
    assert!(!said.contains(secret.trim()), "a log is no place for it");
    assert!(said.contains("bootstrap.token"), "{said}");
    cli.ok(&["job", "list"]);
    assert!(server.stop().success());
    assert!(!site.data().join("server.url").exists() && !site.data().join("local.token").exists());
}

#[test]
fn a_task_can_journal_and_the_store_can_be_checked() {
    let mut world = world();
    let journal = world.site.dir("journal").display().to_string();
    let program = drumtower_e2e::drumtower().display().to_string();
    let script = format!(
        "{program} audit record --journal {journal} started && {program} audit record --journal {journal} ended"
    );
    world.apply(&format!(
        "kind: Job\nname: told\ntask: {{exec: {{argv: [sh, -c, '{script}']}}}}\n"
    ));
    let run = world.trigger("told");
    assert_eq!(world.cli.run(&["run", "wait", &run]).code, 0);
    world.server.stop();
    let check = [
        "audit",
        "check",
        "--journal",
        &journal,
        "--journaled",
        "all",
        "--settled",
    ];
    let report = world.cli.json(&check);
    assert_eq!(
        (
            &report["checked"],
            &report["lost"],
            &report["counts"]["started"]
        ),
        (&1.into(), &0.into(), &1.into())
    );
    let record: Value = std::fs::read_dir(&journal)
        .expect("journals")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .find(|text| text.contains("started"))
        .and_then(|text| serde_json::from_str(text.trim()).ok())
        .expect("a record of the start");
    assert!(
        record["started"]["due_ms"].is_i64(),
        "a task knows when it was due: {record}"
    );
    std::fs::remove_dir_all(&journal).expect("the journals can go");
    std::fs::create_dir(&journal).expect("a directory");
    let said = world.cli.run(&check).failed(1);
    assert!(
        said.contains("1 violations"),
        "a run that no task saw is found: {said}"
    );
}
