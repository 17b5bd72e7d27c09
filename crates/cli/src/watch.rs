//! `drumtower watch`: what changes, one line each.
//!
//! The stream is followed over breaks: the last id is sent again, and the server tells what happened meanwhile, or that it
//! no longer knows.

use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::{Exit, Result};
use crate::output::{Format, Output, View, duration, line, tame, text};

/// Watch what changes: runs, jobs, workers, calendars, queues, backfills, circuit breakers
///
/// One line a change, until Ctrl-C. Where more happens than can be read there are counts a job
/// instead of single runs. A server that restarts is waited for.
///
///     drumtower watch
///     drumtower watch --job hello --state failed
///     drumtower watch --kind worker -o json
///     drumtower watch --kind breaker --kind backfill
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Watch {
    /// Only changes in this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Only this job and its runs; may be repeated
    #[arg(short, long = "job", value_name = "NAME")]
    jobs: Vec<String>,
    /// Only runs that get into this state; may be repeated
    #[arg(short, long = "state", value_enum, ignore_case = true)]
    states: Vec<State>,
    /// Only changes of this kind; may be repeated
    #[arg(short, long = "kind", value_enum)]
    kinds: Vec<Kind>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    Pending,
    Scheduled,
    Running,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Run,
    Job,
    Worker,
    Calendar,
    Queue,
    Backfill,
    Breaker,
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The event that is being read.
#[derive(Default)]
struct Event {
    name: String,
    data: String,
}

impl Watch {
    pub fn run(self) -> Result<()> {
        let mut last = None;
        let mut pause = SHORTEST_PAUSE;
        let mut connected = false;
        loop {
            let before = last.clone();
            // Asked anew each time: a server that restarts may have another address and token.
            let followed = Client::new(&self.connect)
                .and_then(|client| self.follow(&client, &mut last, &mut connected));
            if let Err(failure) = followed
                && (!connected || failure.exit != Exit::Unavailable)
            {
                return Err(failure);
            }
            pause = match before == last {
                true => (pause * 2).min(LONGEST_PAUSE),
                false => SHORTEST_PAUSE,
            };
            thread::sleep(pause);
        }
    }

    fn call(&self, last: Option<&str>) -> Call {
        let mut call = Call::get("/api/v1/changes").maybe("namespace", self.namespace.as_ref());
        for job in &self.jobs {
            call = call.query("job", job);
        }
        for state in &self.states {
            call = call.query("state", format!("{state:?}").to_uppercase());
        }
        for kind in &self.kinds {
            call = call.query("kind", format!("{kind:?}").to_lowercase());
        }
        match last {
            Some(id) => call.header("last-event-id", id),
            None => call,
        }
    }

    /// Prints what comes until the stream ends.
    fn follow(
        &self,
        client: &Client,
        last: &mut Option<String>,
        connected: &mut bool,
    ) -> Result<()> {
        let lines = client.text_lines(self.call(last.as_deref()))?;
        *connected = true;
        let mut event = Event::default();
        for text in lines {
            let text = text?;
            match text.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event.name),
                Some(("id", id)) => *last = Some(id.to_owned()),
                Some(("data", data)) => data.clone_into(&mut event.data),
                _ if text.is_empty() => self.print(&std::mem::take(&mut event))?,
                _ => {}
            }
        }
        Ok(())
    }

    fn print(&self, event: &Event) -> Result<()> {
        let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
            return Ok(());
        };
        if self.output.output != Format::Table {
            return line(&json!({"event": event.name, "data": data}).to_string());
        }
        match words(&event.name, &data) {
            Some(cells) => line(&joined(&cells, View::of_stdout().terminal)),
            None => Ok(()),
        }
    }
}

/// Columns below each other on a terminal, tabs in a pipe.
fn joined(cells: &[String; 4], terminal: bool) -> String {
    let [time, what, whom, more] = cells.each_ref().map(|cell| tame(cell));
    let text = if terminal {
        let time = time.get(11..19).unwrap_or(&time);
        format!("{time:8}  {what:<10} {whom:<32} {more}")
    } else {
        format!("{time}\t{what}\t{whom}\t{more}")
    };
    text.trim_end().to_owned()
}

/// How far a backfill is, and whether it waits for its job.
fn backfilled(data: &Value) -> String {
    let (done, of) = crate::backfill::progress(data);
    match data["held"].as_str() {
        Some(held) => format!("{done} of {of} times, waits for the {held} of its job"),
        None => format!("{done} of {of} times"),
    }
}

/// Time, what happened, to whom, and what more there is to say; `None` for what is not worth a line.
fn words(event: &str, data: &Value) -> Option<[String; 4]> {
    let field = |name: &str| text(data, name);
    let job = || format!("{}/{}", field("namespace"), field("job"));
    let named = || match field("namespace") {
        namespace if namespace.is_empty() => field("name"),
        namespace => format!("{namespace}/{}", field("name")),
    };
    Some(match event {
        "run" => [field("at"), field("state"), job(), run_words(data)],
        "runs" => {
            let counts = [
                "made",
                "started",
                "completed",
                "failed",
                "cancelled",
                "unfired",
            ];
            let told = counts.iter().filter(|count| field(count) != "0");
            let told: Vec<String> = told
                .map(|count| format!("{count} {}", field(count)))
                .collect();
            let whom = if data["job"].is_null() {
                format!("{} more jobs", field("jobs"))
            } else {
                job()
            };
            [String::new(), "runs".to_owned(), whom, told.join(", ")]
        }
        "unfired" => [
            field("last"),
            "unfired".to_owned(),
            job(),
            format!("{} times: {}", field("count"), field("reason")),
        ],
        "job" => [
            field("at"),
            field("change"),
            named(),
            format!("job, version {}", field("version")),
        ],
        "calendar" => [
            field("at"),
            field("change"),
            named(),
            format!("calendar, version {}", field("version")),
        ],
        "queue" => [
            field("at"),
            field("change"),
            named(),
            format!("queue, revision {}", field("revision")),
        ],
        "backfill" => [
            field("ended"),
            field("state"),
            job(),
            format!("{}, {}", field("id"), backfilled(data)),
        ],
        "breaker" => [
            String::new(),
            field("change"),
            job(),
            match data["until"].is_null() {
                true => "circuit breaker".to_owned(),
                false => format!("circuit breaker, until {}", field("until")),
            },
        ],
        "worker" => [
            String::new(),
            field("change"),
            named(),
            format!("worker, {}", field("state")),
        ],
        "resync" => [
            String::new(),
            "resync".to_owned(),
            "some changes were not seen".to_owned(),
            field("reason"),
        ],
        _ => return None,
    })
}

fn run_words(run: &Value) -> String {
    let mut words = vec![text(run, "id")];
    if let Some(percent) = run.pointer("/progress/percent").and_then(Value::as_u64) {
        words.push(format!("{percent} %"));
        words.push(text(run, "progress.message"));
        words.retain(|word| !word.is_empty());
    }
    if let Some(ms) = run["duration_ms"].as_u64() {
        words.push(duration(ms));
    }
    if run["exit_code"].as_i64().is_some_and(|code| code != 0) {
        words.push(format!("exit {}", run["exit_code"]));
    }
    if let Some(error) = run["error"].as_str() {
        words.push(error.to_owned());
    }
    words.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happened_to_whom() {
        let run = json!({"id": "run_1", "namespace": "a", "job": "b", "state": "FAILED", "at": "2026-11-16T04:05:06.007Z",
            "duration_ms": 1500, "exit_code": 3, "error": "no\tway\nout"});
        let cells = words("run", &run).expect("a line");
        assert_eq!(
            joined(&cells, true),
            format!(
                "04:05:06  FAILED     {:<32} run_1  1.5s  exit 3  no way out",
                "a/b"
            )
        );
        let under_way = json!({"id": "run_1", "progress": {"percent": 42, "message": "copying"}});
        assert_eq!(run_words(&under_way), "run_1  42 %  copying");
        let runs = json!({"job": null, "jobs": 7, "made": 3, "started": 0, "completed": 2, "failed": 0, "cancelled": 0, "unfired": 0});
        let cells = words("runs", &runs).expect("a line");
        assert_eq!(
            joined(&cells, false),
            "\truns\t7 more jobs\tmade 3, completed 2"
        );
        assert!(words("ready", &json!({})).is_none());
    }
}
