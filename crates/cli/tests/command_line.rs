//! The binary by itself: exit codes, what goes to which stream, and tokens of a stopped server.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use drumtower_store::sqlite;

/// Runs the binary with nothing of this machine's settings, as a pipe would.
fn drumtower(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_drumtower"))
        .args(arguments)
        .env_clear()
        .env("HOME", data)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_kind_of_end_has_its_exit_code() {
    let home = tempfile::tempdir().expect("a directory");
    // Nobody listens on port 1.
    let nobody = ["--url", "http://127.0.0.1:1"];
    let cases: [(&[&str], i32); 13] = [
        (&["schema", "job"], 0),
        (&["schema", "calendar"], 0),
        (&["job", "next", "0 9 * * *"], 0),
        (&["job", "next", "0 25 * * *"], 2),
        (&["job", "next", "report", "--timezone", "UTC"], 2),
        (&["job", "explain", "x", "--from", "yesterday"], 2),
        (&["--version"], 0),
        (&["job", "list", "--no-such-flag"], 2),
        (&["frobnicate"], 2),
        (&["job", "list", "--url", "ftp://127.0.0.1:1"], 2),
        (&["job", "apply", "-f", "no-such-file.yaml"], 1),
        (&["audit", "check", "--data", "no-such-directory"], 2),
        (&["token", "list", "--data", "no-such-directory"], 2),
    ];
    for (arguments, expected) in cases {
        let output = drumtower(home.path(), arguments);
        assert_eq!(
            code(&output),
            expected,
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    for verb in [
        &["job", "list"][..],
        &["run", "show", "run_0000000000000"],
        &["job", "next", "report"],
        &["job", "explain", "report"],
        &["calendar", "list"],
        &["calendar", "show", "holidays"],
        &["worker", "list"],
        &["token", "list"],
    ] {
        let output = drumtower(home.path(), &[verb, &nobody].concat());
        assert_eq!(code(&output), 5, "{verb:?}");
        assert!(
            stderr(&output).starts_with("error: no answer from http://127.0.0.1:1: "),
            "{}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("\n  try: "), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_manifest_with_faults_is_not_sent_and_names_them_all() {
    let home = tempfile::tempdir().expect("a directory");
    let (one, two) = (home.path().join("one.yaml"), home.path().join("two.yml"));
    std::fs::write(
        &one,
        "kind: Job\nname: a\ntask: {exec: {argv: [a]}}\ntimeuot: 5s\n",
    )
    .expect("written");
    std::fs::write(&two, "kind: Job\nname: b\ntask: {exec: {argv: []}}\n").expect("written");
    let directory = home.path().to_str().expect("a name");
    let output = drumtower(
        home.path(),
        &[
            "job",
            "apply",
            "-f",
            directory,
            "--url",
            "http://127.0.0.1:1",
        ],
    );
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    let first = format!(
        "error: {}:4:1: unknown key `timeuot`: did you mean `timeout`?\n",
        one.display()
    );
    let second = format!("error: {}:3:", two.display());
    assert!(said.contains(&first) && said.contains(&second), "{said}");
}

#[test]
fn the_schema_is_json_and_knows_the_manifest() {
    let home = tempfile::tempdir().expect("a directory");
    let output = drumtower(home.path(), &["schema", "job"]);
    let schema: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(schema["title"], "Drumtower job manifest");
    assert!(schema["properties"]["schedule"].is_object());
}

#[test]
fn the_next_times_of_a_schedule_need_no_server() {
    let home = tempfile::tempdir().expect("a directory");
    let next = |arguments: &[&str]| {
        let output = drumtower(home.path(), &[&["job", "next"], arguments].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let berlin = next(&[
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--from",
        "2027-03-26T12:00:00Z",
        "-n",
        "2",
    ]);
    let times: Vec<&str> = berlin
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(times, ["2027-03-27T01:30:00Z", "2027-03-28T01:30:00Z"]);
    assert!(
        berlin.contains("2027-03-28T03:30:00+02:00[Europe/Berlin]"),
        "{berlin}"
    );
    let skipped = next(&[
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--dst-gap",
        "skip",
        "--from",
        "2027-03-28T00:00:00Z",
        "-n",
        "1",
    ]);
    assert!(skipped.starts_with("2027-03-29T00:30:00Z\t"), "{skipped}");
    let back = next(&[
        "every 90m",
        "--back",
        "--from",
        "1970-01-01T02:59:00Z",
        "-o",
        "json",
    ]);
    let back: serde_json::Value = serde_json::from_str(&back).expect("JSON");
    assert_eq!(back["times"][0]["nominal"], "1970-01-01T01:30:00.000Z");
    assert_eq!(back["words"], "every 1 hour 30 minutes");
    let once = next(&["at 2030-01-01T00:00:00Z", "-o", "json"]);
    let once: serde_json::Value = serde_json::from_str(&once).expect("JSON");
    assert_eq!(once["times"].as_array().map(Vec::len), Some(1));
    assert_eq!(next(&["@daily", "-n", "7"]).lines().count(), 7);
}

#[test]
fn a_file_may_hold_jobs_and_calendars() {
    let home = tempfile::tempdir().expect("a directory");
    let both = home.path().join("both.yaml");
    let text = "kind: Job\nname: a\ntask: {exec: {argv: [a]}}\n---\nkind: Calendar\nname: b\nweekly: [someday]\n---\nkind: Workflow\nname: c\n";
    std::fs::write(&both, text).expect("written");
    let file = both.to_str().expect("a name");
    for noun in ["job", "calendar"] {
        let output = drumtower(home.path(), &[noun, "apply", "-f", file]);
        assert_eq!(code(&output), 2);
        let said = stderr(&output);
        for line in [
            format!(
                "{file}:7:10: weekly[0]: unknown value `someday`: there is mon, tue, wed, thu, fri, sat, sun"
            ),
            format!("{file}:9:7: kind: unknown value `Workflow`: there is Job, Calendar"),
        ] {
            assert!(said.contains(&line), "{said}");
        }
    }
}

#[test]
fn tokens_of_a_stopped_server_are_made_listed_and_revoked() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    drop(sqlite::open(&data, sqlite::Options::default()).expect("a store"));
    let data = data.to_str().expect("a name");
    let token = |arguments: &[&str]| {
        drumtower(
            home.path(),
            &[&["token"], arguments, &["--data", data]].concat(),
        )
    };

    let made = token(&["create", "rescue", "--role", "admin"]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    assert!(
        stdout(&made).starts_with("drt_") && stdout(&made).lines().count() == 1,
        "{}",
        stdout(&made)
    );
    assert_eq!(code(&token(&["create", "rescue", "--role", "viewer"])), 4);
    assert_eq!(
        code(&token(&["create", "bootstrap", "--role", "viewer"])),
        4
    );
    assert_eq!(
        code(&token(&["create", "Not a name", "--role", "viewer"])),
        4
    );
    let second = token(&[
        "create",
        "ci",
        "--role",
        "operator",
        "--namespace",
        "billing",
        "-o",
        "json",
    ]);
    let second: serde_json::Value = serde_json::from_str(&stdout(&second)).expect("JSON");
    assert_eq!(
        (&second["role"], &second["namespace"]),
        (&"operator".into(), &"billing".into())
    );

    let names = |output: &Output| -> Vec<String> {
        stdout(output)
            .lines()
            .filter_map(|line| line.split('\t').nth(1).map(str::to_owned))
            .collect()
    };
    assert_eq!(names(&token(&["list"])), ["rescue", "ci"]);
    assert_eq!(code(&token(&["revoke", "ci"])), 0);
    assert_eq!(code(&token(&["revoke", "ci"])), 3);
    assert_eq!(names(&token(&["list"])), ["rescue"]);
}

#[test]
fn a_directory_in_use_is_left_to_the_process_that_uses_it() {
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    let held = sqlite::open(&data, sqlite::Options::default()).expect("a store");
    let data = data.to_str().expect("a name");
    for arguments in [["token", "list"], ["audit", "check"]] {
        let output = drumtower(home.path(), &[&arguments[..], &["--data", data]].concat());
        assert_eq!(code(&output), 5, "{}", stdout(&output));
        assert!(
            stderr(&output).contains("is in use by another drumtower process"),
            "{}",
            stderr(&output)
        );
    }
    drop(held);
    assert_eq!(
        code(&drumtower(home.path(), &["audit", "check", "--data", data])),
        0
    );
}

#[test]
fn a_task_writes_its_journal_from_its_environment() {
    let home = tempfile::tempdir().expect("a directory");
    let journal = home.path().join("journal");
    let record = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumtower"));
        command
            .args(["audit", "record", "--journal"])
            .arg(&journal)
            .args(arguments)
            .env_clear();
        command
            .env("DRUMTOWER_RUN", "run_06w4gjmabm000")
            .env("DRUMTOWER_ATTEMPT", "2")
            .env("DRUMTOWER_FENCE", "9");
        command
            .env("DRUMTOWER_DUE_MS", "5")
            .status()
            .expect("the binary runs")
    };
    assert!(record(&["started"]).success());
    assert!(record(&["ended", "--outcome", "failed"]).success());
    let mut lines = Vec::new();
    for file in drumtower_audit::journal::files(&journal).expect("files") {
        lines.push(std::fs::read_to_string(file).expect("read"));
    }
    lines.sort();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with(r#"{"ended":{"run":"run_06w4gjmabm000","attempt":2,"wall_ms":"#),
        "{}",
        lines[0]
    );
    assert!(
        lines[0].ends_with("\"outcome\":\"failed\"}}\n"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains(r#""attempt":2,"fence":9,"due_ms":5,"wall_ms":"#),
        "{}",
        lines[1]
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_drumtower"))
        .args(["schema", "job"])
        .env_clear()
        .env("HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[cfg(unix)]
#[test]
fn nobody_who_reads_the_errors_is_no_reason_to_panic() {
    let home = tempfile::tempdir().expect("a directory");
    for (arguments, expected) in [
        (&["job", "list", "--url", "ftp://x"][..], 2),
        (&["config", "check"], 0),
        (&["job", "list", "--no-such-flag"], 2),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_drumtower"))
            .args(arguments)
            .env_clear()
            .env("HOME", home.path())
            .env("DRUMTOWER_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(writer)
            .status()
            .expect("the binary runs");
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
}

#[test]
fn a_configuration_is_sound_only_if_a_server_and_a_worker_would_start_with_it() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("drumtower.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("written");
        drumtower(
            home.path(),
            &["config", "check", file.to_str().expect("a name")],
        )
    };
    let none = drumtower(home.path(), &["config", "check"]);
    let place = home.path().join(".local/share/drumtower/drumtower.toml");
    let place = format!("it would be {} or /etc/", place.display());
    assert!(stderr(&none).contains(&place), "{}", stderr(&none));
    let good =
        check("listen = \"0.0.0.0:7070\"\n[tls]\ndev = true\n[worker]\nurl = \"https://a:7070\"\n");
    assert_eq!(code(&good), 0, "{}", stderr(&good));
    let cases = [
        (
            "listen = \"0.0.0.0:7070\"\n",
            "0.0.0.0:7070 can be reached from other machines",
        ),
        ("[tls]\ncert = \"no.pem\"\nkey = \"no.key\"\n", "no.pem"),
        ("[tls]\ndev = true\nclient_ca = \"gone.pem\"\n", "gone.pem"),
        (
            "[worker]\nurl = \"scheduler\"\n",
            "worker.url: the server's address `scheduler` must begin with",
        ),
        ("[worker]\nca = \"none.pem\"\n", "none.pem"),
        ("[worker]\ntoken_file = \"none.token\"\n", "none.token"),
        (
            "[log]\nlevel = \"verbose\"\n",
            "`verbose` is no level: there is error, warn",
        ),
        (
            "[log]\nlevel = \"warn,drumtower_server\"\n",
            "`drumtower_server` is no level",
        ),
    ];
    for (text, said) in cases {
        let output = check(text);
        assert_eq!(code(&output), 2, "{text}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(said),
            "{text}: {}",
            stderr(&output)
        );
    }
    let output = check("[log]\nlevel = \"drumtower_server=debug,WARN\"\n");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[test]
fn commands_find_the_data_directory_that_the_configuration_names() {
    let home = tempfile::tempdir().expect("a directory");
    let elsewhere = home.path().join("elsewhere");
    let usual = home.path().join(".local/share/drumtower");
    let path = |file: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drumtower"));
        command
            .args(["data", "path"])
            .env_clear()
            .env("HOME", home.path());
        if let Some(file) = file {
            command.env("DRUMTOWER_CONFIG", file);
        }
        command.output().expect("the binary runs")
    };
    let told = |output: &Output| stdout(output).trim().to_owned();
    assert_eq!(told(&path(None)), usual.display().to_string());
    std::fs::create_dir_all(&usual).expect("a directory");
    let text = format!("data = \"{}\"\n", elsewhere.display());
    std::fs::write(usual.join("drumtower.toml"), &text).expect("written");
    assert_eq!(told(&path(None)), elsewhere.display().to_string());
    let named = home.path().join("named.toml");
    std::fs::write(&named, "data = \"beside\"\n").expect("written");
    let beside = home.path().join("beside");
    assert_eq!(told(&path(Some(&named))), beside.display().to_string());
    // A file that cannot be understood must not make another directory the one that is reset.
    std::fs::write(&named, "dta = 1\n").expect("written");
    assert_eq!(code(&path(Some(&named))), 2);
}
