//! `drumtower job`: definitions, and triggering them.

mod act;
mod after;
mod create;
mod create_flags;
mod edit;
mod explain;
mod next;
mod reset_breaker;
mod trigger;
mod versions;

pub use create_flags::pairs;

use clap::{Args, Subcommand};
use drumtower_core::model::{JobSpec, NamespaceName};
use serde_json::Value;

use act::{Act, Deed};

use crate::apply::{Apply, Telling};
use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    Create(Box<create::Create>),
    Edit(edit::Edit),
    Apply(Apply),
    List(List),
    Show(Show),
    Next(next::Next),
    Explain(explain::Explain),
    Versions(versions::Versions),
    Diff(versions::Diff),
    Restore(versions::Restore),
    /// Keep jobs from firing by themselves
    ///
    /// Runs that are under way go on, and a paused job can still be triggered. The times that
    /// pass meanwhile make no runs.
    ///
    ///     drumtower job pause hello
    ///     drumtower job pause --label team=payments -n billing
    #[command(verbatim_doc_comment)]
    Pause(Act),
    /// Let paused jobs fire again
    ///
    ///     drumtower job resume hello
    ///     drumtower job resume --label team=payments -n billing
    #[command(verbatim_doc_comment)]
    Resume(Act),
    Trigger(trigger::Trigger),
    ResetBreaker(reset_breaker::ResetBreaker),
    /// Delete jobs
    ///
    /// Runs that are under way go on, and finished ones are kept as long as the job said. By
    /// label it asks first; in a pipe it needs --yes.
    ///
    ///     drumtower job delete hello
    ///     drumtower job delete --label team=payments -n billing --dry-run
    #[command(verbatim_doc_comment)]
    Delete(Act),
}

/// List jobs
///
/// Without -n the jobs of every namespace that the token may see.
///
///     drumtower job list
///     drumtower job list -n billing --label team=payments --paused
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only jobs of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Only jobs with this label; may be repeated, all must match
    #[arg(short, long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Only jobs whose names begin with this
    #[arg(long)]
    prefix: Option<String>,
    /// Only jobs with this text in their namespace/name or in a label
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only jobs that are paused
    #[arg(long, conflicts_with = "active")]
    paused: bool,
    /// Only jobs that are not paused
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show one job: its definition, its state and when it fires next
///
///     drumtower job show hello
///     drumtower job show hello -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The job's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Clone, Debug)]
pub struct Namespace {
    /// The namespace of the job
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    pub namespace: NamespaceName,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAMESPACE",
        cell: |job| Cell::text(job, "namespace"),
    },
    Column {
        head: "NAME",
        cell: |job| Cell::text(job, "name"),
    },
    Column {
        head: "STATE",
        cell: |job| Cell::State(state(job).to_owned()),
    },
    Column {
        head: "SCHEDULE",
        cell: |job| Cell::Text(schedule(job)),
    },
    Column {
        head: "NEXT",
        cell: |job| Cell::time(job, "next_due"),
    },
    Column {
        head: "PRIORITY",
        cell: |job| Cell::Text(priority(job)),
    },
    Column {
        head: "FIRES",
        cell: |job| Cell::text(job, "fires"),
    },
    Column {
        head: "VERSION",
        cell: |job| Cell::text(job, "version"),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Create(create) => create.run(),
        Command::Edit(edit) => edit.run(),
        Command::Apply(apply) => apply.run(Telling::Lines),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Next(next) => next.run(),
        Command::Explain(explain) => explain.run(),
        Command::Versions(versions) => versions.run(),
        Command::Diff(diff) => diff.run(),
        Command::Restore(restore) => restore.run(),
        Command::Trigger(trigger) => trigger.run(),
        Command::ResetBreaker(reset) => reset.run(),
        Command::Pause(act) => act.run(Deed::Pause),
        Command::Resume(act) => act.run(Deed::Resume),
        Command::Delete(act) => act.run(Deed::Delete),
    }
}

/// The address of a job.
pub fn path(namespace: &NamespaceName, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/jobs/{}", segment(name))
}

fn state(job: &Value) -> &'static str {
    let breaker = job.pointer("/breaker/state").and_then(Value::as_str);
    if job.get("paused").is_some_and(|paused| !paused.is_null()) {
        "paused"
    } else {
        match breaker {
            Some("open") => "broken",
            Some("half_open") => "probing",
            _ => "active",
        }
    }
}

/// The schedule in one line, as it is written.
fn schedule(job: &Value) -> String {
    let entries = job.pointer("/spec/schedule").and_then(Value::as_array);
    let lines = entries.into_iter().flatten().map(|entry| {
        let line = match entry.get("cron").and_then(Value::as_str) {
            Some(cron) => cron.to_owned(),
            None => ["every", "at", "after_end"]
                .into_iter()
                .filter(|key| entry.get(key).is_some())
                .map(|key| format!("{} {}", key.replace('_', " "), text(entry, key)))
                .collect(),
        };
        [line, text(entry, "timezone")]
            .join(" ")
            .trim_end()
            .to_owned()
    });
    let after = job.pointer("/spec/after/jobs").and_then(Value::as_array);
    let names = after.into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<&str> = names.collect();
    let after = (!names.is_empty()).then(|| format!("after {}", names.join(", ")));
    let lines: Vec<String> = lines.chain(after).collect();
    if lines.is_empty() {
        "by trigger".to_owned()
    } else {
        lines.join(", ")
    }
}

/// The manifest leaves out what is as usual.
fn priority(job: &Value) -> String {
    let given = job.pointer("/spec/priority").and_then(Value::as_u64);
    given
        .unwrap_or(JobSpec::DEFAULT_PRIORITY.into())
        .to_string()
}

/// What a key of the manifest says, as `key value` after each other; empty when it is not given.
fn settings(job: &Value, key: &str) -> String {
    let said = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().unwrap_or_default());
            items.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    match job.pointer(&format!("/spec/{key}")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(keys)) => {
            let keys = keys.iter();
            let pairs =
                keys.map(|(key, value)| format!("{} {}", key.replace('_', " "), said(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        Some(value) => said(value),
    }
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let paused = self
            .paused
            .then_some("true")
            .or(self.active.then_some("false"));
        let page = || {
            let call = Call::get("/api/v1/jobs")
                .maybe("namespace", self.namespace.as_ref())
                .maybe("paused", paused)
                .maybe("prefix", self.prefix.as_ref())
                .maybe("search", self.search.as_ref());
            self.labels
                .iter()
                .fold(call, |call, label| call.query("label", label))
        };
        self.output.list(
            client.list(page, None)?,
            COLUMNS,
            "no jobs; make one with `drumtower job create hello --every 10s -- echo hello`",
        )
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let job = client.value(Call::get(path(&self.namespace.namespace, &self.name)))?;
        self.output.one(&job, |view| describe(&job, view))
    }
}

/// A job in words.
fn describe(job: &Value, view: View) -> String {
    let time = |field: &str| Cell::time(job, field).words(view);
    let mut lines = vec![
        (
            "name",
            format!("{}/{}", text(job, "namespace"), text(job, "name")),
        ),
        ("id", text(job, "id")),
        ("state", state(job).to_owned()),
        ("schedule", schedule(job)),
        ("in words", text(job, "words")),
        ("next", time("next_due")),
        ("fires", text(job, "fires")),
        ("priority", priority(job)),
        (
            "version",
            format!(
                "{} (revision {})",
                text(job, "version"),
                text(job, "revision")
            ),
        ),
        (
            "updated",
            format!("{} by {}", time("updated"), text(job, "actor")),
        ),
    ];
    if state(job) == "paused" {
        lines.push((
            "paused",
            format!("{} by {}", time("paused.at"), text(job, "paused.actor")),
        ));
    }
    if job["queued"].as_u64().is_some_and(|queued| queued > 0) {
        lines.push(("queued", text(job, "queued")));
    }
    lines.extend(breaker(job, view).map(|words| ("breaker", words)));
    lines.extend(after::told(job, view));
    if job
        .get("last_unfired")
        .is_some_and(|range| !range.is_null())
    {
        let (first, last) = (time("last_unfired.first"), time("last_unfired.last"));
        let (count, reason) = (
            text(job, "last_unfired.count"),
            text(job, "last_unfired.reason"),
        );
        lines.push((
            "last unfired",
            format!("{count} times, {first} to {last}: {reason}"),
        ));
    }
    let told = [
        ("calendar", settings(job, "calendar")),
        ("jitter", settings(job, "jitter")),
        ("bounds", settings(job, "bounds")),
        ("misfire", settings(job, "misfire")),
        ("on resume", settings(job, "on_resume")),
        ("overlap", settings(job, "overlap")),
        ("queue", settings(job, "queue")),
        ("limits", settings(job, "limits")),
        ("weight", settings(job, "weight")),
        ("placement", settings(job, "placement")),
        ("timeout", settings(job, "timeout")),
        ("progress timeout", settings(job, "progress_timeout")),
        ("retention", settings(job, "retention")),
        ("description", text(job, "spec.description")),
        ("labels", text(job, "spec.labels")),
    ];
    lines.extend(told.into_iter().filter(|(_, words)| !words.is_empty()));
    lines.push(("task", text(job, "spec.task")));
    output::pairs(&lines)
}

/// How the breaker of a job stands; nothing when it has none.
fn breaker(job: &Value, view: View) -> Option<String> {
    let time = |field: &str| Cell::time(job, field).words(view);
    let failures = text(job, "breaker.failures");
    Some(match job["breaker"]["state"].as_str()? {
        "closed" if failures == "0" => "closed".to_owned(),
        "closed" => format!("closed, {failures} failed in a row"),
        "open" => format!(
            "open since {} after {failures} failures in a row: nothing runs before {}; `drumtower job reset-breaker` closes it",
            time("breaker.opened"),
            time("breaker.until")
        ),
        _ => match text(job, "breaker.probe") {
            run if run.is_empty() => "half open: the next run is let through".to_owned(),
            run => format!("half open: {run} shows whether all is well again"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schedules_read_in_one_line() {
        let job = json!({"spec": {"schedule": [
            {"cron": "0 2 * * *", "timezone": "Europe/Berlin"}, {"every": "5s"}, {"at": "2026-01-01T00:00:00Z"}
        ]}});
        assert_eq!(
            schedule(&job),
            "0 2 * * * Europe/Berlin, every 5s, at 2026-01-01T00:00:00Z"
        );
        let job = json!({"spec": {"schedule": [{"after_end": "5m"}]}});
        assert_eq!(schedule(&job), "after end 5m");
        assert_eq!(schedule(&json!({"spec": {}})), "by trigger");
        let job = json!({"spec": {"schedule": [{"every": "5s"}], "after": {"jobs": ["a", "b"]}}});
        assert_eq!(schedule(&job), "every 5s, after a, b");
    }

    #[test]
    fn what_a_manifest_sets_reads_in_one_line() {
        let job = json!({"spec": {
            "calendar": {"minus": ["holidays", "audits"], "roll": "next"},
            "bounds": {"max_fires": 7},
            "jitter": "30s",
        }});
        assert_eq!(
            settings(&job, "calendar"),
            "minus holidays audits, roll next"
        );
        assert_eq!(settings(&job, "bounds"), "max fires 7");
        assert_eq!(settings(&job, "jitter"), "30s");
        assert_eq!(settings(&job, "misfire"), "");
        assert_eq!(priority(&job), "5");
    }

    #[test]
    fn a_paused_job_says_so() {
        assert_eq!(state(&json!({"paused": null})), "active");
        assert_eq!(state(&json!({"paused": {"at": "x"}})), "paused");
        assert_eq!(state(&json!({"breaker": {"state": "open"}})), "broken");
        assert_eq!(
            state(&json!({"breaker": {"state": "half_open"}})),
            "probing"
        );
    }
}
