//! Commands that go on from where they were: after a failure, on another worker, over the death of a server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use drumtower_e2e::{Api, Server, Site, Worker, WorkerOptions, eventually, once, within};
use serde_json::{Value, json};

/// The lease of fifteen seconds with its margin, a pause before the next attempt, and time for a busy machine.
const LEASE_AND_MORE: Duration = Duration::from_secs(120);

/// Counts to ten, saves each number, and notes what it counted. It waits at `stop` while there is a file of that name.
fn counting(notes: &Path, stop: &Path) -> Value {
    let body = r#"
n=$(cat "${DRUMTOWER_RESUME:-/dev/null}")
n=${n:-0}
while [ "$n" -lt 10 ]; do
  n=$((n + 1))
  echo "$n" >> NOTES
  echo "$n" > "$DRUMTOWER_CHECKPOINT.new"
  mv "$DRUMTOWER_CHECKPOINT.new" "$DRUMTOWER_CHECKPOINT"
  echo "${n}0 counted to $n" > "$DRUMTOWER_PROGRESS"
  while [ "$n" = 5 ] && [ -e STOP ]; do sleep 0.05; done
  if [ "$n" = 5 ] && [ -z "$DRUMTOWER_RESUME" ]; then exit 1; fi
done
"#;
    let body = body
        .replace("NOTES", &notes.display().to_string())
        .replace("STOP", &stop.display().to_string());
    json!({"kind": "Job", "name": "count", "task": {"script": {"body": body, "interpreter": ["sh"]}}})
}

struct Files {
    notes: PathBuf,
    stop: PathBuf,
}

impl Files {
    fn new(site: &Site) -> Self {
        Self {
            notes: site.path().join("notes"),
            stop: site.path().join("stop"),
        }
    }

    fn hold(&self) {
        std::fs::write(&self.stop, "").expect("a file in the site");
    }

    fn release(&self) {
        std::fs::remove_file(&self.stop).expect("it was there");
    }

    fn counted(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(&self.notes).unwrap_or_default();
        let numbers = text.lines().map(|line| line.parse().expect("a number"));
        numbers.collect()
    }
}

/// Makes a run once more from where it was.
#[track_caller]
fn resumed(api: &Api, run: &str) -> Value {
    let path = format!("/api/v1/runs/{run}/rerun");
    let again = api.post(&path, &json!({"resume": true}));
    let ended = api.ended(again["id"].as_str().expect("an id"));
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    ended
}

#[track_caller]
fn saved(api: &Api, run: &str) {
    eventually("the checkpoint is saved", || {
        let shown = api.run(run);
        let progress = shown["progress"]["percent"] == 50;
        (progress && shown["checkpoint"]["bytes"] == 2).then_some(())
    });
}

#[test]
fn a_failed_command_goes_on_from_its_checkpoint_on_another_worker() {
    let site = Site::new();
    let server = Server::start(&site);
    let api = server.api();
    let mut first = Worker::start(&site, &server, "first");
    let files = Files::new(&site);
    api.put_job(&once(counting(&files.notes, &files.stop)));
    let run = api.trigger("count", &json!({}));
    let failed = api.ended(&run);
    assert_eq!(failed["state"], "FAILED", "{failed:#}");
    assert_eq!(failed["checkpoint"]["number"], 1, "{failed:#}");
    assert_eq!(failed["progress"]["message"], "counted to 5");
    first.kill();
    let _second = Worker::start(&site, &server, "second");
    resumed(&api, &run);
    assert_eq!(files.counted(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_killed_worker_costs_no_more_than_what_it_had_not_saved() {
    let site = Site::new();
    let server = Server::start(&site);
    let api = server.api();
    let mut first = Worker::start(&site, &server, "first");
    let files = Files::new(&site);
    files.hold();
    api.put_job(&counting(&files.notes, &files.stop));
    let run = api.trigger("count", &json!({}));
    saved(&api, &run);
    let _second = Worker::start(&site, &server, "second");
    first.kill();
    let ended = within(LEASE_AND_MORE, "another worker ends the run", || {
        let shown = api.run(&run);
        (!shown["finished"].is_null()).then_some(shown)
    });
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    let workers = [0, 1].map(|attempt| ended["attempts"][attempt]["worker"].clone());
    assert_eq!(workers, ["first", "second"], "{ended:#}");
    assert_eq!(files.counted(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_handler_gets_back_what_another_process_saved() {
    let site = Site::new();
    let server = Server::start(&site);
    let api = server.api();
    let worker = |name: &str| {
        let options = WorkerOptions {
            program: Some(env!("CARGO_BIN_EXE_journal-handlers").into()),
            arguments: vec![name.to_owned(), site.dir(name).display().to_string()],
            ..WorkerOptions::default()
        };
        Worker::start_with(&site, &server, name, options)
    };
    let mut first = worker("first");
    let job = json!({"kind": "Job", "name": "save", "task": {"handler": {"name": "save"}}});
    api.put_job(&once(job));
    let run = api.trigger("save", &json!({}));
    let failed = api.ended(&run);
    assert_eq!(failed["error"], "saved", "{failed:#}");
    first.kill();
    let _second = worker("second");
    let ended = resumed(&api, &run);
    assert_eq!(ended["result"], json!([1_048_576, 3 * 1_048_576]));
}

#[test]
fn checkpoints_are_saved_over_the_death_of_the_server() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    let files = Files::new(&site);
    files.hold();
    server
        .api()
        .put_job(&once(counting(&files.notes, &files.stop)));
    let run = server.api().trigger("count", &json!({}));
    eventually("it counts", || (files.counted().len() == 5).then_some(()));
    server.kill();
    server.restart();
    saved(&server.api(), &run);
    server.kill();
    server.restart();
    let shown = server.api().run(&run);
    assert_eq!(shown["checkpoint"]["bytes"], 2, "{shown:#}");
    files.release();
    let failed = server.api().ended(&run);
    assert_eq!(failed["checkpoint"]["attempt"], 1, "{failed:#}");
}
