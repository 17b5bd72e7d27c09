//! A stop in good order says what it waits for and can be hurried; logs are for people and for programs.

use std::process::Command;

use drumtower_e2e::process::none_alive;
use drumtower_e2e::{Cli, Process, Server, ServerOptions, Site, drumtower, eventually, free_port};
use serde_json::Value;

#[test]
fn a_server_says_what_it_waits_for_and_ends_well() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let status = server.stop();
    let log = server.process().log();
    assert_eq!(status.code(), Some(0), "{log}");
    for words in [
        "started",
        "stopping: waiting for the last commit",
        "stopped",
    ] {
        assert!(log.contains(words), "{words} is missing in\n{log}");
    }
    assert!(!site.data().join("server.url").exists());
}

#[test]
fn what_runs_is_waited_for_until_a_second_signal() {
    let site = Site::new();
    let mut command = Command::new(drumtower());
    command
        .args(["dev", "--listen", &format!("127.0.0.1:{}", free_port())])
        .env("DRUMTOWER_DATA", site.data())
        .env("NO_COLOR", "1");
    let mut dev = Process::spawn(command, &site.path().join("dev.log"));
    let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", site.data().display().to_string());
    let marker = site.marker();
    let job =
        format!("kind: Job\nname: long\ntask:\n  exec:\n    argv: [\"sleep\", \"{marker}\"]\n");
    site.file("job.yaml", &job);
    eventually("the job is there", || {
        (cli.run(&["job", "apply", "-f", "job.yaml"]).code == 0).then_some(())
    });
    let run = cli.ok(&["job", "trigger", "long"]);
    eventually("it runs", || {
        let shown = cli.json(&["run", "show", run.trim()]);
        (shown["state"] == "RUNNING").then_some(())
    });
    dev.signal(libc::SIGTERM);
    eventually("it says what it waits for", || {
        let waits = "draining: waiting for what runs to end running=1 within_s=30";
        dev.log().contains(waits).then_some(())
    });
    assert!(dev.ended().is_none(), "{}", dev.log());
    dev.signal(libc::SIGTERM);
    assert!(dev.wait().code().is_some(), "{}", dev.log());
    assert!(dev.log().contains("stopping at once"), "{}", dev.log());
    none_alive(&marker);
}

#[test]
fn logs_are_json_when_asked_for_and_hold_no_token() {
    let site = Site::new();
    let arguments = ["--log-format", "json", "--log-level", "trace"];
    let options = ServerOptions {
        arguments: arguments.map(str::to_owned).to_vec(),
        ..ServerOptions::default()
    };
    let mut server = Server::launch(&site.data(), &site.path().join("server.log"), &options);
    server.await_ready();
    let local = std::fs::read_to_string(site.data().join("local.token")).expect("a token");
    let made = server.token("agents", "worker");
    let cli = Cli::new(site.path());
    let wrong = "drt_wrongwrongwrongwrong";
    cli.fails(
        4,
        &["job", "list", "--url", &server.url(), "--token", wrong],
    );
    cli.fails(4, &["work", "--url", &server.url(), "--token", wrong]);
    let mut command = cli.command(&["work", "--url", &server.url(), "--log-level", "trace"]);
    command.env("DRUMTOWER_TOKEN", &made);
    let mut worker = Process::spawn(command, &site.path().join("worker.log"));
    eventually("the worker has joined", || {
        server
            .process()
            .log()
            .contains("a worker joined")
            .then_some(())
    });
    worker.stop();
    server.stop();
    let log = server.process().log();
    for token in [local.trim(), &made, wrong] {
        assert!(!log.contains(token), "a token stands in the server's log");
        assert!(
            !worker.log().contains(token),
            "a token stands in the worker's log"
        );
    }
    let events: Vec<Value> = log
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let find = |words: &str| {
        let found = events.iter().find(|event| event["message"] == words);
        found.unwrap_or_else(|| panic!("no event `{words}`"))
    };
    assert_eq!(find("started")["tls"], false);
    assert_eq!(find("a worker joined")["actor"], "agents");
    assert_eq!(find("request")["level"], "DEBUG");
    assert_eq!(find("wrong tokens were shown")["level"], "WARN");
    // All that is not an event is what the start prints for people.
    let spoken = log.lines().filter(|line| !line.starts_with('{')).count();
    assert!(spoken <= 3, "{log}");
}
