//! `drumtower job versions`, `diff` and `restore`: what a job was, and making it that again.

use clap::Args;
use drumtower_core::model::Change;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Namespace, path, schedule};
use crate::apply::change_lines;
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::manifest::Kind;
use crate::output::{Cell, Column, Output, text};

/// Show the versions of a job, the newest first
///
///     drumtower job versions report
///     drumtower job versions report -o yaml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Versions {
    /// The job's name
    name: String,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show what changed between two versions of a job
///
/// Without --to up to the current version; without --from since the one before that.
///
///     drumtower job diff report
///     drumtower job diff report --from 3 --to 5
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Diff {
    /// The job's name
    name: String,
    /// The older version
    #[arg(long, value_name = "VERSION")]
    from: Option<u32>,
    /// The newer version
    #[arg(long, value_name = "VERSION")]
    to: Option<u32>,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Make a job again what it was in an earlier version
///
/// Makes a new version with the old content; nothing is lost. Refused when someone else changes
/// the job at the same time.
///
///     drumtower job restore report --version 3
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Restore {
    /// The job's name
    name: String,
    /// The version to go back to
    #[arg(long = "version", value_name = "VERSION")]
    number: u32,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "VERSION",
        cell: |version| Cell::text(version, "version"),
    },
    Column {
        head: "MADE",
        cell: |version| Cell::time(version, "created"),
    },
    Column {
        head: "BY",
        cell: |version| Cell::text(version, "actor"),
    },
    Column {
        head: "CURRENT",
        cell: |version| match version["current"] == true {
            true => Cell::Text("current".to_owned()),
            false => Cell::Text(String::new()),
        },
    },
    Column {
        head: "SCHEDULE",
        cell: |version| Cell::Text(schedule(version)),
    },
];

impl Versions {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = format!("{}/versions", path(&self.namespace.namespace, &self.name));
        let versions = client.list(|| Call::get(&path), None)?;
        self.output.list(versions, COLUMNS, "no versions")
    }
}

impl Diff {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = path(&self.namespace.namespace, &self.name);
        let to = match self.to {
            Some(to) => to,
            None => version(&client.value(Call::get(&path))?),
        };
        let from = self.from.unwrap_or(to.saturating_sub(1).max(1));
        let call = Call::get(format!("{path}/diff"))
            .query("from", from)
            .query("to", to);
        let answer = client.value(call)?;
        self.output.one(&answer, |_| {
            let changes = Vec::<Change>::deserialize(&answer["changes"]).unwrap_or_default();
            match changes.is_empty() {
                true => format!("versions {from} and {to} are the same\n"),
                false => change_lines(&changes),
            }
        })
    }
}

impl Restore {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let (namespace, name) = (&self.namespace.namespace, &self.name);
        let path = path(namespace, name);
        let before = client.value(Call::get(&path))?;
        let call = Call::post(format!("{path}/restore"))
            .json(json!({"version": self.number}))
            .header("if-match", Kind::Job.etag(&before));
        let job = client.value(call)?;
        self.output.one(&job, |_| {
            let number = self.number;
            match version(&job) == version(&before) {
                true => {
                    format!("job {namespace}/{name} unchanged: it is what version {number} was\n")
                }
                false => format!(
                    "job {namespace}/{name} is what version {number} was, now as version {}\n",
                    text(&job, "version")
                ),
            }
        })
    }
}

fn version(job: &Value) -> u32 {
    job["version"]
        .as_u64()
        .and_then(|version| u32::try_from(version).ok())
        .unwrap_or(1)
}
