//! Commands that go on from where they were: after a failure, on another worker, over the death of a server.

use std::path::{Path, PathBuf};

use drumtower_e2e::{Api, Server, Site, Worker, eventually, once};
use serde_json::{Value, json};

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
    let task = json!({"script": {"body": body, "interpreter": ["sh"]}});
    once(json!({"kind": "Job", "name": "count", "task": task}))
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
    api.put_job(&counting(&files.notes, &files.stop));
    let run = api.trigger("count", &json!({}));
    let failed = api.ended(&run);
    assert_eq!(failed["state"], "FAILED", "{failed:#}");
    assert_eq!(failed["checkpoint"]["number"], 1, "{failed:#}");
    assert_eq!(failed["progress"]["message"], "counted to 5");
    first.kill();
    let _second = Worker::start(&site, &server, "second");
    let path = format!("/api/v1/runs/{run}/rerun");
    let again = api.post(&path, &json!({"resume": true}));
    let ended = api.ended(again["id"].as_str().expect("an id"));
    assert_eq!(ended["state"], "COMPLETED", "{ended:#}");
    assert_eq!(files.counted(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn checkpoints_are_saved_over_the_death_of_the_server() {
    let site = Site::new();
    let mut server = Server::start(&site);
    let _worker = Worker::start(&site, &server, "agent");
    let files = Files::new(&site);
    files.hold();
    server.api().put_job(&counting(&files.notes, &files.stop));
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
