//! `drumtower audit log`: who changed what.

use clap::Args;
use clap::builder::PossibleValuesParser;
use drumtower_core::model::{AuditAction, AuditKind, NamespaceName};
use serde_json::Value;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::moment::Moment;
use crate::output::{Cell, Column, Output};

/// Show who changed what, the newest first
///
/// Every change of a job, calendar, queue, token or setting, every cancelled run, every dead letter that
/// was requeued or discarded, every lock that was taken away and every worker that was
/// drained, resumed or reset, with the fields before and
/// after. Kept 400 days. Needs a token with the role admin.
///
///     drumtower audit log
///     drumtower audit log --kind job --name nightly-report
///     drumtower audit log --actor ann --since -7d -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Log {
    /// Only what belongs to this namespace
    #[arg(short, long)]
    namespace: Option<NamespaceName>,
    /// Only this kind of thing
    #[arg(long, value_parser = PossibleValuesParser::new(AuditKind::ALL.map(AuditKind::as_str)))]
    kind: Option<String>,
    /// Only the thing of this name; of a run its id
    #[arg(long)]
    name: Option<String>,
    /// Only what this token's owner did
    #[arg(long)]
    actor: Option<String>,
    /// Only this kind of deed
    #[arg(long, value_parser = PossibleValuesParser::new(AuditAction::ALL.map(AuditAction::as_str)))]
    action: Option<String>,
    /// From this instant on: RFC 3339, or before now such as -7d
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    since: Option<Moment>,
    /// Before this instant
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    until: Option<Moment>,
    /// How many entries at most
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "WHEN",
        cell: |entry| Cell::time(entry, "at"),
    },
    Column {
        head: "WHO",
        cell: |entry| Cell::text(entry, "actor"),
    },
    Column {
        head: "DID",
        cell: |entry| Cell::text(entry, "action"),
    },
    Column {
        head: "WHAT",
        cell: |entry| Cell::Text(object(entry)),
    },
    Column {
        head: "CHANGES",
        cell: |entry| Cell::Text(changes(entry)),
    },
];

impl Log {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let instant = |moment: Option<Moment>| moment.map(Moment::instant);
        let page = || {
            Call::get("/api/v1/audit")
                .maybe("namespace", self.namespace.as_ref())
                .maybe("kind", self.kind.as_ref())
                .maybe("name", self.name.as_ref())
                .maybe("actor", self.actor.as_ref())
                .maybe("action", self.action.as_ref())
                .maybe("since", instant(self.since))
                .maybe("until", instant(self.until))
        };
        let entries = client.list(page, Some(self.limit))?;
        self.output
            .list(entries, COLUMNS, "nothing was changed that fits")
    }
}

fn object(entry: &Value) -> String {
    let text = |field: &str| entry[field].as_str().unwrap_or_default();
    match entry["namespace"].as_str() {
        Some(namespace) => format!("{} {namespace}/{}", text("kind"), text("name")),
        None => format!("{} {}", text("kind"), text("name")),
    }
}

/// A new thing is told by its existence; a change by its fields.
fn changes(entry: &Value) -> String {
    let list = entry["changes"].as_array().map_or(&[][..], Vec::as_slice);
    if entry["action"] == "created" {
        return String::new();
    }
    let shown = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        value => value.to_string().chars().take(40).collect(),
    };
    let words: Vec<String> = list
        .iter()
        .take(3)
        .map(|change| {
            let field = change["field"].as_str().unwrap_or_default();
            format!(
                "{field}: {} → {}",
                shown(&change["before"]),
                shown(&change["after"])
            )
        })
        .collect();
    let more = list.len().saturating_sub(words.len());
    match more {
        0 => words.join(", "),
        more => format!("{}, {more} more", words.join(", ")),
    }
}
