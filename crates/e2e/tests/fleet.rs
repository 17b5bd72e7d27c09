//! Workers in and out of service: drained with a deadline, frozen beyond their lease, lost again and again.

use std::path::PathBuf;
use std::time::Duration;

use drumtower_e2e::{Api, Cli, Server, Site, Worker, eventually, shell, within};
use serde_json::{Value, json};

/// The lease of fifteen seconds with its margin, and time for a busy machine.
const LEASE_AND_MORE: Duration = Duration::from_secs(90);

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

/// A task that notes where it began, counts up in its checkpoint, and ends when it may.
struct Task {
    notes: PathBuf,
    go: PathBuf,
}

impl Task {
    fn put(world: &World, name: &str) -> Self {
        let path = |end: &str| world.site.path().join(format!("{name}.{end}"));
        let (notes, go) = (path("notes"), path("go"));
        let script = format!(
            "echo start $(cat \"$DRUMTOWER_RESUME\" 2>/dev/null) >> {notes}
             echo half > \"$DRUMTOWER_CHECKPOINT.new\"; mv \"$DRUMTOWER_CHECKPOINT.new\" \"$DRUMTOWER_CHECKPOINT\"
             while [ ! -e {go} ]; do sleep 0.05; done
             echo end >> {notes}",
            notes = notes.display(),
            go = go.display()
        );
        world.server.api().put_job(&shell(name, &script));
        Self { notes, go }
    }

    fn go(&self) {
        std::fs::write(&self.go, "").expect("a file in the site");
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(&self.notes).unwrap_or_default()
    }

    fn await_notes(&self, wanted: &str) {
        within(
            LEASE_AND_MORE,
            &format!("the task wrote {wanted:?}"),
            || (self.notes() == wanted).then_some(()),
        );
    }
}

fn told(run: &Value) -> Vec<(String, String)> {
    let attempts = run["attempts"].as_array().expect("attempts");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    attempts
        .iter()
        .map(|attempt| (text(&attempt["worker"]), text(&attempt["end"]["outcome"])))
        .collect()
}

fn pair(worker: &str, outcome: &str) -> (String, String) {
    (worker.to_owned(), outcome.to_owned())
}

fn state(api: &Api, worker: &str) -> Value {
    api.get(&format!("/api/v1/workers/{worker}"))["state"].clone()
}

fn await_checkpoint(api: &Api, run: &str) {
    eventually("its checkpoint is saved", || {
        api.run(run)["checkpoint"].is_object().then_some(())
    });
}

/// Triggers so many short runs and returns who ran them.
fn load(api: &Api, runs: usize) -> Vec<String> {
    let ids: Vec<String> = (0..runs)
        .map(|_| api.trigger("short", &json!({})))
        .collect();
    ids.iter()
        .map(|id| told(&api.ended(id))[0].0.clone())
        .collect()
}

#[test]
fn a_drain_with_a_deadline_under_load_moves_what_runs_and_a_resume_ends_it() {
    let world = world();
    let api = world.server.api();
    let mut first = Worker::start(&world.site, &world.server, "first");
    let task = Task::put(&world, "long");
    let run = api.trigger("long", &json!({}));
    task.await_notes("start\n");
    await_checkpoint(&api, &run);
    let _second = Worker::start(&world.site, &world.server, "second");
    api.put_job(&shell("short", "true"));
    assert!(load(&api, 20).contains(&"first".to_owned()));

    let words = world
        .cli
        .ok(&["worker", "drain", "first", "--deadline", "2s", "--wait"]);
    assert!(
        words.contains("first is drained: it runs nothing, stopped what ran at"),
        "{words}"
    );
    assert!(load(&api, 20).iter().all(|worker| worker == "second"));
    task.await_notes("start\nstart half\n");
    first.kill();
    first.respawn();
    eventually("it is still in maintenance", || {
        (state(&api, "first") == "MAINTENANCE").then_some(())
    });
    assert!(load(&api, 10).iter().all(|worker| worker == "second"));
    task.go();
    let ended = api.ended(&run);
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    assert_eq!(
        told(&ended),
        [pair("first", "cancelled"), pair("second", "succeeded")]
    );
    assert_eq!(
        task.notes(),
        "start\nstart half\nend\n",
        "from where it was, and once"
    );

    assert_eq!(
        world.cli.ok(&["worker", "resume", "first"]),
        "first is in service\n"
    );
    api.worker("first");
    assert!(
        load(&api, 20).contains(&"first".to_owned()),
        "it is given work again"
    );
    let log = world
        .cli
        .ok(&["audit", "log", "--kind", "worker", "-o", "json"]);
    let log: Value = serde_json::from_str(&log).expect("JSON");
    let actions: Vec<&Value> = log
        .as_array()
        .expect("entries")
        .iter()
        .map(|it| &it["action"])
        .collect();
    assert_eq!(actions, [&json!("resumed"), &json!("drained")]);
}

#[test]
fn one_frozen_beyond_its_lease_loses_its_work_and_is_taken_back() {
    let world = world();
    let api = world.server.api();
    let mut first = Worker::start(&world.site, &world.server, "first");
    let task = Task::put(&world, "long");
    let run = api.trigger("long", &json!({}));
    task.await_notes("start\n");
    await_checkpoint(&api, &run);
    let _second = Worker::start(&world.site, &world.server, "second");
    first.process().signal(libc::SIGSTOP);
    task.await_notes("start\nstart half\n");
    assert_eq!(state(&api, "first"), "OFFLINE");
    first.process().signal(libc::SIGCONT);
    api.worker("first");
    task.go();
    let ended = api.ended(&run);
    assert_eq!(
        told(&ended),
        [pair("first", "lost"), pair("second", "succeeded")]
    );
    assert_eq!(
        task.notes(),
        "start\nstart half\nend\n",
        "nothing ran twice at once"
    );
    api.put_job(&shell("short", "true"));
    assert!(
        load(&api, 20).contains(&"first".to_owned()),
        "it is given work again"
    );
}

#[test]
fn one_that_is_killed_again_and_again_is_faulty_until_it_is_reset() {
    let world = world();
    let api = world.server.api();
    let _steady = Worker::start(&world.site, &world.server, "steady");
    let mut flaky = Worker::start(&world.site, &world.server, "flaky");
    for losses in 1..=3 {
        flaky.kill();
        within(LEASE_AND_MORE, "the loss is told", || {
            let shown = api.get("/api/v1/workers/flaky");
            (shown["losses"] == losses && shown["attempts"] == 0).then_some(())
        });
        flaky.respawn();
        eventually("it has dialled in", || {
            let shown = api.get("/api/v1/workers/flaky");
            (shown["credit"].as_u64() > Some(0)).then_some(())
        });
    }
    assert_eq!(state(&api, "flaky"), "FAULTY");
    api.put_job(&shell("short", "true"));
    assert!(load(&api, 20).iter().all(|worker| worker == "steady"));
    let words = world.cli.ok(&["worker", "show", "flaky"]);
    assert!(
        words.contains("lost again and again (3 times in 10m)"),
        "{words}"
    );
    world.cli.ok(&["worker", "reset", "flaky"]);
    api.worker("flaky");
    assert!(load(&api, 20).contains(&"flaky".to_owned()));
}
