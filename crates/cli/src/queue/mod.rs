//! `drumtower queue`: limits that jobs share, how full they are, and who waits.

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::apply::{Apply, Telling};
use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Define or change queues, calendars and jobs from YAML files
    ///
    /// As `drumtower job apply`: files may hold all kinds. Limits hold at once for what does not
    /// run yet; what runs goes on. A queue that is paused stays so.
    ///
    ///     drumtower queue apply -f - <<'EOF'
    ///     kind: Queue
    ///     name: mail
    ///     concurrency: 4
    ///     rate: 100/1m
    ///     EOF
    ///
    /// `drumtower schema queue` prints everything that a manifest may say.
    #[command(verbatim_doc_comment)]
    Apply(Apply),
    List(List),
    Show(Show),
    /// Let queues give nothing out; what runs goes on
    ///
    /// Applying a manifest does not undo it.
    ///
    ///     drumtower queue pause mail
    #[command(verbatim_doc_comment)]
    Pause(Act),
    /// Let paused queues give out again
    ///
    ///     drumtower queue resume mail
    #[command(verbatim_doc_comment)]
    Resume(Act),
    /// Delete queues; jobs that name them go on without their limits
    ///
    ///     drumtower queue delete mail
    #[command(verbatim_doc_comment)]
    Delete(Act),
}

/// List queues with how full they are
///
/// Without -n the queues of every namespace that the token may see. A queue that jobs name and
/// nobody has defined limits nothing and is not listed.
///
///     drumtower queue list
///     drumtower queue list -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only queues of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show one queue: its limits, who holds its places, what waits and for what
///
///     drumtower queue show mail
///     drumtower queue show mail -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The queue's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
pub struct Act {
    /// The names of the queues
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Clone, Debug)]
pub struct Namespace {
    /// The namespace of the queue
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE", default_value = "default")]
    namespace: NamespaceName,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAMESPACE",
        cell: |queue| Cell::text(queue, "namespace"),
    },
    Column {
        head: "NAME",
        cell: |queue| Cell::text(queue, "name"),
    },
    Column {
        head: "RUNNING",
        cell: |queue| Cell::Text(running(queue)),
    },
    Column {
        head: "WAITING",
        cell: |queue| Cell::text(queue, "depth"),
    },
    Column {
        head: "OLDEST",
        cell: |queue| Cell::time(queue, "oldest"),
    },
    Column {
        head: "LIMITS",
        cell: |queue| Cell::Text(limits(queue)),
    },
    Column {
        head: "STATE",
        cell: |queue| Cell::Text(state(queue).to_owned()),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Apply(apply) => apply.run(Telling::Lines),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Pause(act) => act.post("pause", "paused"),
        Command::Resume(act) => act.post("resume", "resumed"),
        Command::Delete(act) => act.delete(),
    }
}

fn path(namespace: &NamespaceName, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/queues/{}", segment(name))
}

fn state(queue: &Value) -> &'static str {
    match queue["paused"].is_null() {
        true => "open",
        false => "paused",
    }
}

/// How many run, of how many that may.
fn running(queue: &Value) -> String {
    match &queue["spec"]["concurrency"] {
        Value::Null => text(queue, "running"),
        most => format!("{} of {most}", text(queue, "running")),
    }
}

/// The limits in one line, such as `4 at once, 1 for each /customer, 100/1m`.
fn limits(queue: &Value) -> String {
    let spec = &queue["spec"];
    let mut words = Vec::new();
    if !spec["concurrency"].is_null() {
        words.push(format!("{} at once", spec["concurrency"]));
    }
    if !spec["per_key"].is_null() {
        let (most, key) = (&spec["per_key"], text(spec, "key"));
        words.push(format!("{most} for each {key}"));
    }
    if !spec["rate"].is_null() {
        let burst = match &spec["burst"] {
            Value::Null => String::new(),
            burst => format!(" in bursts of {burst}"),
        };
        words.push(format!("{}{burst}", text(spec, "rate")));
    }
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let page = || Call::get("/api/v1/queues").maybe("namespace", self.namespace.as_ref());
        self.output.list(
            client.list(page, None)?,
            COLUMNS,
            "no queues; define one with `drumtower queue apply -f FILE`",
        )
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let queue = client.value(Call::get(path(&self.namespace.namespace, &self.name)))?;
        self.output.one(&queue, |view| describe(&queue, view))
    }
}

impl Act {
    fn post(self, verb: &str, done: &str) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let namespace = &self.namespace.namespace;
        for name in &self.names {
            let call = Call::post(format!("{}/{verb}", path(namespace, name)));
            let queue = client.value(call)?;
            self.output
                .one(&queue, |_| format!("queue {namespace}/{name} {done}\n"))?;
        }
        Ok(())
    }

    fn delete(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let namespace = &self.namespace.namespace;
        for name in &self.names {
            client.send(Call::new(Method::DELETE, path(namespace, name)))?;
            let deleted = json!({"namespace": namespace, "name": name, "deleted": true});
            self.output
                .one(&deleted, |_| format!("queue {namespace}/{name} deleted\n"))?;
        }
        Ok(())
    }
}

/// A queue in words.
fn describe(queue: &Value, view: View) -> String {
    let time = |field: &str| Cell::time(queue, field).words(view);
    let mut lines = vec![
        (
            "name",
            format!("{}/{}", text(queue, "namespace"), text(queue, "name")),
        ),
        ("revision", text(queue, "revision")),
        (
            "changed",
            format!("{} by {}", time("updated"), text(queue, "actor")),
        ),
    ];
    if state(queue) == "paused" {
        lines.push((
            "paused",
            format!("{} by {}", time("paused.at"), text(queue, "paused.actor")),
        ));
    }
    let description = text(queue, "spec.description");
    if !description.is_empty() {
        lines.push(("description", description));
    }
    lines.push(("limits", limits(queue)));
    lines.push(("running", running(queue)));
    let parked = match queue["parked"].as_u64() {
        None | Some(0) => String::new(),
        Some(parked) => format!(", {parked} of them in the store only"),
    };
    let held = match queue["held"].as_u64() {
        None | Some(0) => String::new(),
        Some(held) => format!(", {held} held back by limits"),
    };
    lines.push(("waiting", format!("{}{parked}{held}", text(queue, "depth"))));
    if !queue["oldest"].is_null() {
        lines.push(("oldest", time("oldest")));
    }
    if !queue["rate_until"].is_null() {
        lines.push(("rate", format!("admits the next {}", time("rate_until"))));
    }
    let keys = queue["full_keys"].as_array().into_iter().flatten();
    for key in keys {
        let (value, running) = (text(key, "value"), text(key, "running"));
        let told = format!("{value}: {running} run, {} wait", text(key, "waiting"));
        lines.push(("full key", told));
    }
    let holders = queue["holders"].as_array().into_iter().flatten();
    let holders: Vec<&str> = holders.filter_map(Value::as_str).collect();
    if !holders.is_empty() {
        lines.push(("held by", holders.join(", ")));
    }
    output::pairs(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_in_one_line() {
        let line = |spec: Value| limits(&json!({"spec": spec}));
        assert_eq!(line(json!({})), "none");
        assert_eq!(
            line(json!({"concurrency": 4, "key": "/c", "per_key": 1, "rate": "9/1m", "burst": 3})),
            "4 at once, 1 for each /c, 9/1m in bursts of 3"
        );
    }
}
