//! `drumtower job explain`: what became of each due time.

use clap::Args;
use serde_json::Value;

use super::{Namespace, path};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::moment::Moment;
use crate::output::{self, Cell, Column, Format, Output, View, text};

/// Say what became of each due time of a job
///
/// A run with its state and how late it began; a range of times that made none, with the
/// reason; times that a calendar, a clock change or the schedule's bounds took away; those
/// that are planned. Without --from and --to the last 24 hours.
///
///     drumtower job explain report
///     drumtower job explain report --from -7d --to +1d
///     drumtower job explain report --from 2026-03-28T00:00:00Z --to 2026-03-30T00:00:00Z
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Explain {
    /// The job's name
    name: String,
    /// The first instant: RFC 3339, `now`, or a duration such as `-2h` or `+1d` from now
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// The end, written likewise; itself not included
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    to: Option<Moment>,
    /// How many rows at most
    #[arg(long, default_value_t = 1000, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    namespace: Namespace,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "TIME",
        cell: |row| Cell::Text(output::exact(&text(row, "first"))),
    },
    Column {
        head: "UNTIL",
        cell: |row| match row["first"] == row["last"] {
            true => Cell::Text(String::new()),
            false => Cell::Text(output::exact(&text(row, "last"))),
        },
    },
    Column {
        head: "TIMES",
        cell: |row| Cell::text(row, "count"),
    },
    Column {
        head: "FATE",
        cell: |row| match row["state"].is_null() {
            true => Cell::state(row, "fate"),
            false => Cell::state(row, "state"),
        },
    },
    Column {
        head: "RUN",
        cell: |row| Cell::text(row, "run"),
    },
    Column {
        head: "WHY",
        cell: |row| Cell::text(row, "text"),
    },
];

impl Explain {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let path = format!("{}/explain", path(&self.namespace.namespace, &self.name));
        // Both are fixed before the first page, so that all pages speak of one interval.
        let (from, to) = (self.from.map(Moment::instant), self.to.map(Moment::instant));
        let limit = self.limit as usize;
        let mut answer = Value::Null;
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let (from, to) = match &answer {
                Value::Null => (from.map(|at| at.to_string()), to.map(|at| at.to_string())),
                before => (Some(text(before, "from")), Some(text(before, "to"))),
            };
            let call = Call::get(&path)
                .maybe("from", from)
                .maybe("to", to)
                .query("limit", (limit - rows.len()).min(1000))
                .maybe("cursor", cursor.take());
            answer = client.value(call)?;
            if let Some(Value::Array(page)) = answer.get_mut("rows").map(Value::take) {
                rows.extend(page);
            }
            cursor = answer["next"].as_str().map(str::to_owned);
            if cursor.is_none() || rows.len() >= limit {
                break;
            }
        }
        self.print(&client, answer, rows)
    }

    /// Why there is nothing to tell: the job may be younger than what was asked about.
    fn nothing(&self, client: &Client, answer: &Value) -> Result<String> {
        let job = client.value(Call::get(path(&self.namespace.namespace, &self.name)))?;
        let instant = |value: &Value, key: &str| text(value, key).parse::<jiff::Timestamp>().ok();
        let made = instant(&job, "created").filter(|made| {
            let end = instant(answer, "to");
            end.is_some_and(|end| end <= *made)
        });
        Ok(match made {
            Some(made) => format!("the job was made at {made}: it has no times before"),
            None => "no time of the schedule lies there".to_owned(),
        })
    }

    fn print(&self, client: &Client, mut answer: Value, rows: Vec<Value>) -> Result<()> {
        if self.output.output != Format::Table {
            answer["rows"] = Value::Array(rows);
            return self.output.one(&answer, |_| String::new());
        }
        let waiting = text(&answer, "waiting");
        if !waiting.is_empty() {
            crate::output::say(&format!("warning: {waiting}"));
        }
        let last = rows.last().map(|row| text(row, "last"));
        let nothing = match rows.is_empty() && View::of_stdout().terminal {
            true => self.nothing(client, &answer)?,
            false => String::new(),
        };
        self.output.list(rows, COLUMNS, &nothing)?;
        if let (false, Some(last), true) =
            (answer["next"].is_null(), last, View::of_stdout().terminal)
        {
            output::line(&format!(
                "there is more: --from {last} goes on, --limit shows more at once"
            ))?;
        }
        Ok(())
    }
}
