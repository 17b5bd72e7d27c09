//! `drumtower watch` on a real server: what it prints, and that it comes back.

use drumtower_e2e::{Cli, Process, Server, Site, Worker, WorkerOptions, eventually, once, shell};
use serde_json::{Value, json};

/// The events that a watcher has printed.
fn events(watcher: &Process) -> Vec<Value> {
    let log = watcher.log();
    let whole = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}

fn saw(watcher: &Process, run: &str, state: &str) -> Option<()> {
    let is = |event: &&Value| event["data"]["id"] == run && event["data"]["state"] == state;
    events(watcher).iter().find(is).map(|_| ())
}

#[test]
fn a_watcher_prints_what_happens_and_comes_back_after_a_restart() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let worker = Worker::start_with(&site, &server, "agent", WorkerOptions::default());
    let data = server.data().to_str().expect("text").to_owned();
    let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", data);
    let api = server.api();
    api.put_job(&once(shell("seen", "exit 3")));
    api.put_job(&shell("unseen", "true"));
    let watch = |arguments: &[&str], name: &str| {
        Process::spawn(cli.command(arguments), &site.path().join(name))
    };
    let watcher = watch(&["watch", "--job", "seen", "-o", "json"], "watch.json");
    let lines = watch(&["watch", "--state", "failed"], "watch.txt");
    eventually("the watcher listens", || {
        events(&watcher)
            .iter()
            .any(|event| event["event"] == "ready")
            .then_some(())
    });
    // A person's lines begin without a greeting: they are waited for by their effect.
    let run = eventually("a failed run is told in words", || {
        let run = api.trigger("seen", &json!({}));
        eventually("the run is seen to fail", || saw(&watcher, &run, "FAILED"));
        lines
            .log()
            .contains("\tFAILED\tdefault/seen\t")
            .then_some(run)
    });
    assert!(lines.log().contains("exit 3"), "{}", lines.log());
    assert!(!run.is_empty());
    api.trigger("unseen", &json!({}));

    server.stop();
    server.restart();
    let api = server.api();
    eventually("the watcher knows that the server was away", || {
        let away =
            |event: &Value| event["event"] == "resync" && event["data"]["reason"] == "restarted";
        events(&watcher).iter().any(away).then_some(())
    });
    let run = api.trigger("seen", &json!({}));
    eventually("it goes on", || saw(&watcher, &run, "FAILED"));
    assert!(!watcher.log().contains("unseen"), "{}", watcher.log());
    drop(worker);
}

#[test]
fn a_watcher_that_is_refused_says_why() {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.path())
        .env("DRUMTOWER_URL", server.url())
        .env("DRUMTOWER_TOKEN", "drt_wrong");
    let done = cli.run(&["watch"]);
    assert_eq!(done.code, 4, "{}", done.stderr);
    assert!(done.stderr.contains("token"), "{}", done.stderr);
}
