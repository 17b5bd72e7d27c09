//! `drumtower notify`: who is told of failures, what was sent, and whether it would arrive.

mod rules;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use drumtower_core::model::{JobName, NamespaceName};
use drumtower_server::notify::key;
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::config;
use crate::connect::{Connect, require_data_dir};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Cell, Column, Output, View, line, render, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    Show(rules::Show),
    Set(rules::Set),
    Unset(rules::Unset),
    Test(Test),
    Log(Log),
    Key(Key),
}

/// Send a test message through the server
///
/// With --job it goes to every target of the rules in force for the job, its own or those of
/// its namespace. It is sent at once, past grouping and bounds. Exit code 1 if it did not
/// arrive somewhere.
///
///     drumtower notify test --job nightly-report
///     drumtower notify test --webhook https://hooks.example.com/drumtower
///     drumtower notify test --email ops@example.com
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Test {
    #[command(flatten)]
    to: To,
    /// The namespace of the job, or whose message it is
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct To {
    /// Everyone who is told of this job
    #[arg(long, value_name = "NAME")]
    job: Option<JobName>,
    /// This address
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// This address
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,
}

/// List what was sent to whom, the newest first
///
/// Messages under way, and the last 200 that ended: delivered, failed (refused for good, or
/// tried for a day) or dropped (too many at once).
///
///     drumtower notify log
///     drumtower notify log --state failed -n billing
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Log {
    /// Only messages of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Only messages in this state
    #[arg(long, value_parser = ["pending", "delivered", "failed", "dropped"])]
    state: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Print the key that signs webhooks
///
/// Give it to those who receive webhooks, so that they can tell them from forged ones. It is
/// read from the file, so this works on the machine of the server, as the user it runs as.
///
///     drumtower notify key
///     drumtower notify key --data /var/lib/drumtower
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Key {
    /// The data directory of the server
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    source: config::Source,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Show(show) => show.run(),
        Command::Set(set) => set.run(),
        Command::Unset(unset) => unset.run(),
        Command::Test(test) => test.run(),
        Command::Log(log) => log.run(),
        Command::Key(key) => key.run(),
    }
}

const TESTED: &[Column] = &[
    Column {
        head: "CHANNEL",
        cell: |it| Cell::text(it, "channel"),
    },
    Column {
        head: "TARGET",
        cell: |it| Cell::text(it, "target"),
    },
    Column {
        head: "RESULT",
        cell: |it| Cell::Text(result(it)),
    },
];

fn result(item: &Value) -> String {
    match item["error"].as_str() {
        None => "delivered".to_owned(),
        Some(error) => error.to_owned(),
    }
}

impl Test {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let mut body = json!({});
        if let Some(namespace) = &self.namespace {
            body["namespace"] = json!(namespace);
        }
        if let Some(job) = &self.to.job {
            body["job"] = json!(job);
        }
        for (key, value) in [("webhook", &self.to.webhook), ("email", &self.to.email)] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        let items = client.items(Call::post("/api/v1/notifications:test").json(body))?;
        if items.is_empty() {
            let message = "nobody is told of this job: neither it nor its namespace has rules";
            let remedy = "give the job the key `notify`, or `drumtower notify set -f FILE`";
            return Err(Failure::failed(message).remedy(remedy));
        }
        let failed = items.iter().filter(|it| it["delivered"] != true).count();
        let answer = json!(items);
        self.output
            .one(&answer, |view: View| render(&items, TESTED, view))?;
        match failed {
            0 => Ok(()),
            failed => Err(Failure::new(
                Exit::Failed,
                format!("{failed} of {} test messages did not arrive", items.len()),
            )),
        }
    }
}

const COLUMNS: &[Column] = &[
    Column {
        head: "CREATED",
        cell: |it| Cell::time(it, "created"),
    },
    Column {
        head: "STATE",
        cell: |it| Cell::text(it, "state"),
    },
    Column {
        head: "TRIES",
        cell: |it| Cell::Text(it["attempts"].to_string()),
    },
    Column {
        head: "TARGET",
        cell: |it| Cell::text(it, "target"),
    },
    Column {
        head: "MESSAGE",
        cell: |it| Cell::text(it, "summary"),
    },
    Column {
        head: "ERROR",
        cell: |it| Cell::text(it, "error"),
    },
];

impl Log {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let call = Call::get("/api/v1/notifications")
            .maybe("namespace", self.namespace.as_ref())
            .maybe("state", self.state.as_ref())
            .query("limit", self.limit);
        let items = client.items(call)?;
        self.output
            .list(items, COLUMNS, "nothing was sent that fits")
    }
}

impl Key {
    fn run(self) -> Result<()> {
        let given = config::Given::default().path("data", self.data.as_ref());
        let settings = self.source.settle(given)?;
        let path = match settings.path("notify.key_file") {
            Some(path) => path.to_owned(),
            None => require_data_dir(settings.path("data"))?.join(key::FILE),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => line(text.trim()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = format!("{} is not there", path.display());
                let remedy =
                    "a server draws the key when it first starts; give its directory with --data";
                Err(Failure::new(Exit::NotFound, message).remedy(remedy))
            }
            Err(error) => Err(Failure::file(&path, &error)),
        }
    }
}

fn setting_path(namespace: &NamespaceName) -> String {
    let namespace = crate::client::segment(namespace.as_str());
    format!("/api/v1/namespaces/{namespace}/settings/notify")
}

fn rule_words(rule: &Value) -> String {
    let list = |key: &str| {
        let items = rule[key].as_array().into_iter().flatten();
        let items: Vec<&str> = items.filter_map(Value::as_str).collect();
        items.join(", ")
    };
    let mut to = vec![text(rule, "webhook"), list("email")];
    to.retain(|it| !it.is_empty());
    let mut words = format!("on {}: {}", list("on"), to.join(", "));
    for (key, says) in [("late_after", "late after"), ("group_for", "grouped for")] {
        if let Some(value) = rule[key].as_str() {
            words.push_str(&format!("; {says} {value}"));
        }
    }
    words
}
