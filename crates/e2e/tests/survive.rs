//! What happens to running work when a server or a worker goes away.

use std::path::{Path, PathBuf};
use std::time::Duration;

use drumtower_e2e::process::{alive, none_alive};
use drumtower_e2e::{Api, Server, Site, Worker, eventually, once, shell, within};
use serde_json::{Value, json};

/// The lease of fifteen seconds with its margin, and time for a busy machine.
const LEASE_AND_MORE: Duration = Duration::from_secs(90);

/// A script that notes its start, waits for `go` and notes its end.
struct Waiting {
    script: String,
    go: PathBuf,
    notes: PathBuf,
    marker: String,
}

impl Waiting {
    fn new(site: &Site) -> Self {
        let marker = site.marker();
        let (go, notes) = (
            site.path().join(format!("go.{marker}")),
            site.path().join(format!("notes.{marker}")),
        );
        let script = format!(
            "echo start >> {notes}; while [ ! -e {go} ]; do sleep 0.02; done; echo end >> {notes}; : {marker}",
            notes = notes.display(),
            go = go.display()
        );
        Self {
            script,
            go,
            notes,
            marker,
        }
    }

    fn go(&self) {
        std::fs::write(&self.go, "").expect("a file in the site");
    }

    fn notes(&self) -> String {
        read(&self.notes)
    }

    fn await_start(&self) {
        eventually("the task has started", || {
            (self.notes() == "start\n").then_some(())
        });
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn start(api: &Api, name: &str, script: &str) -> String {
    api.put_job(&shell(name, script));
    api.trigger(name, &json!({}))
}

/// A run that is not tried again.
fn start_once(api: &Api, name: &str, script: &str) -> String {
    api.put_job(&once(shell(name, script)));
    api.trigger(name, &json!({}))
}

fn reasons(run: &Value) -> Vec<&str> {
    let transitions = run["transitions"].as_array().expect("transitions");
    transitions
        .iter()
        .filter_map(|step| step["reason"].as_str())
        .collect()
}

#[test]
fn a_long_run_survives_the_death_of_the_server() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    let task = Waiting::new(&site);
    let run = start(&server.api(), "long", &task.script);
    task.await_start();
    for _ in 0..2 {
        server.kill();
        // The shell and, for a moment, what it forks carry the marker.
        assert!(
            !alive(&task.marker).is_empty(),
            "the task goes on without a server"
        );
        server.restart();
    }
    server.stop();
    server.restart();
    let api = server.api();
    // A server that learns of its take-over waits out a whole lease before it gives up what no worker names. The run
    // must still be there when that is over, so wait for a heartbeat from beyond it.
    let restarted = jiff::Timestamp::now();
    within(
        LEASE_AND_MORE,
        "the worker renews its lease for longer than a lease",
        || {
            let workers = api.get("/api/v1/workers");
            let heard: jiff::Timestamp = workers["items"][0]["last_heartbeat"]
                .as_str()?
                .parse()
                .ok()?;
            (heard.as_millisecond() > restarted.as_millisecond() + 18_000).then_some(())
        },
    );
    assert_eq!(api.run(&run)["state"], "RUNNING");
    task.go();
    let ended = api.ended(&run);
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    assert_eq!(
        ended["attempts"].as_array().map(Vec::len),
        Some(1),
        "{ended:#}"
    );
    assert_eq!(task.notes(), "start\nend\n", "it ran once");
}

#[test]
fn a_run_that_ends_while_the_server_is_away_is_completed_when_it_is_back() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    let task = Waiting::new(&site);
    let run = start(&server.api(), "long", &task.script);
    task.await_start();
    server.kill();
    task.go();
    none_alive(&task.marker);
    server.restart();
    let ended = server.api().ended(&run);
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    assert_eq!(task.notes(), "start\nend\n", "it ran once");
    assert_eq!(server.api().output(&run), "", "and said nothing");
}

#[test]
fn a_worker_that_never_returns_fails_its_run_after_the_lease() {
    let site = Site::new();
    let server = Server::start(&site);
    let mut worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    let task = Waiting::new(&site);
    let run = start_once(&api, "long", &task.script);
    task.await_start();
    worker.kill();
    none_alive(&task.marker);
    let ended = api.until(&run, LEASE_AND_MORE, |run| run["state"] == "FAILED");
    assert_eq!(reasons(&ended).last(), Some(&"worker_lost"), "{ended:#}");
    assert_eq!(ended["attempts"][0]["end"]["outcome"], "lost", "{ended:#}");
    let error = ended["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("worker lost"), "{ended:#}");
    assert_eq!(task.notes(), "start\n");
}

#[test]
fn a_run_whose_worker_is_killed_is_tried_again_by_another() {
    let site = Site::new();
    let server = Server::start(&site);
    let mut first = Worker::start(&site, &server, "first");
    let api = server.api();
    let task = Waiting::new(&site);
    let run = start(&api, "long", &task.script);
    task.await_start();
    let _second = Worker::start(&site, &server, "second");
    first.kill();
    none_alive(&task.marker);
    task.go();
    let ended = api.until(&run, LEASE_AND_MORE, |run| run["state"] == "COMPLETED");
    let attempts = ended["attempts"].as_array().expect("attempts");
    let told: Vec<_> = attempts
        .iter()
        .map(|attempt| (&attempt["worker"], &attempt["end"]["outcome"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("first"), &json!("lost")),
            (&json!("second"), &json!("succeeded"))
        ],
        "{ended:#}"
    );
    assert!(reasons(&ended).contains(&"worker_lost"), "{ended:#}");
    assert_eq!(task.notes(), "start\nstart\nend\n");
}

#[test]
fn a_worker_told_to_stop_finishes_what_runs_and_takes_nothing_more() {
    let site = Site::new();
    let server = Server::start(&site);
    let mut first = Worker::start(&site, &server, "first");
    let api = server.api();
    let task = Waiting::new(&site);
    let run = start(&api, "long", &task.script);
    task.await_start();
    first.process().signal(libc::SIGTERM);
    eventually("the worker drains", || {
        let workers = api.get("/api/v1/workers");
        (workers["items"][0]["state"] == "MAINTENANCE").then_some(())
    });
    let next = start(&api, "next", "echo next");
    task.go();
    assert_eq!(api.ended(&run)["state"], "COMPLETED");
    assert!(
        first.process().wait().success(),
        "{}",
        first.process().log()
    );
    assert_eq!(
        api.run(&next)["state"],
        "PENDING",
        "nobody takes work while draining"
    );
    let _second = Worker::start(&site, &server, "second");
    let ended = api.ended(&next);
    assert_eq!(
        (&ended["state"], &ended["attempts"][0]["worker"]),
        (&json!("COMPLETED"), &json!("second"))
    );
}

#[test]
fn a_worker_frozen_beyond_its_lease_runs_nothing_and_its_late_word_counts_nothing() {
    let site = Site::new();
    let server = Server::start(&site);
    let mut worker = Worker::start(&site, &server, "agent");
    let api = server.api();
    let task = Waiting::new(&site);
    let run = start_once(&api, "long", &task.script);
    task.await_start();
    worker.process().signal(libc::SIGSTOP);
    let ended = api.until(&run, LEASE_AND_MORE, |run| run["state"] == "FAILED");
    assert!(
        alive(&task.marker).is_empty(),
        "the task was gone before the run was given up"
    );
    worker.process().signal(libc::SIGCONT);
    api.worker("agent");
    let next = start(&api, "next", "echo next");
    assert_eq!(
        api.ended(&next)["state"],
        "COMPLETED",
        "the worker is of use again"
    );
    assert_eq!(api.run(&run), ended, "what was lost stays lost");
    assert_eq!(task.notes(), "start\n");
}
