//! `drumtower worker`: who is connected, how they are, and who is in service.

mod drain;
mod reset;
mod resume;
mod show;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Cell, Column, Output, bytes, duration, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    List(List),
    Show(show::Show),
    Drain(drain::Drain),
    Resume(resume::Resume),
    Reset(reset::Reset),
}

/// List workers with their state and load
///
/// CLOCK is the worker's clock minus the server's, marked with `!` beyond a second. WHY is
/// what the state rests on: see `drumtower worker drain` and `drumtower worker reset`.
///
///     drumtower worker list
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAME",
        cell: |worker| Cell::text(worker, "name"),
    },
    Column {
        head: "STATE",
        cell: |worker| Cell::state(worker, "state"),
    },
    Column {
        head: "HOST",
        cell: |worker| Cell::text(worker, "host"),
    },
    Column {
        head: "OFFERS",
        cell: |worker| Cell::Text(offers(worker)),
    },
    Column {
        head: "RUNNING",
        cell: |worker| Cell::text(worker, "attempts"),
    },
    Column {
        head: "CAPACITY",
        cell: |worker| Cell::text(worker, "capacity"),
    },
    Column {
        head: "CPU",
        cell: |worker| {
            Cell::Text(format!(
                "{:.1}%",
                number(worker, "/load/cpu_permille") as f64 / 10.0
            ))
        },
    },
    Column {
        head: "MEMORY",
        cell: |worker| Cell::Text(bytes(number(worker, "/load/memory_used_bytes"))),
    },
    Column {
        head: "CLOCK",
        cell: |worker| Cell::Text(clock(worker)),
    },
    Column {
        head: "HEARD",
        cell: |worker| Cell::time(worker, "last_heartbeat"),
    },
    Column {
        head: "WHY",
        cell: |worker| Cell::text(worker, "why"),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Show(show) => show.run(),
        Command::Drain(drain) => drain.run(),
        Command::Resume(resume) => resume.run(),
        Command::Reset(reset) => reset.run(),
        Command::List(list) => {
            let client = Client::new(&list.connect)?;
            let workers = client.items(Call::get("/api/v1/workers"))?;
            list.output.list(
                workers,
                COLUMNS,
                "no workers; start one with `drumtower work`",
            )
        }
    }
}

/// From here on a clock is marked: times that it tells are not those of the server.
const SKEW_MARKED_MS: u64 = 1000;

/// How far the worker's clock is ahead of the server's, marked when that is much.
fn clock(worker: &Value) -> String {
    let skew = worker.get("skew_ms").and_then(Value::as_i64).unwrap_or(0);
    let sign = if skew < 0 { "-" } else { "+" };
    let mark = if skew.unsigned_abs() > SKEW_MARKED_MS {
        " !"
    } else {
        ""
    };
    format!("{sign}{}{mark}", duration(skew.unsigned_abs()))
}

fn number(worker: &Value, pointer: &str) -> u64 {
    worker.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

/// What a worker can run.
fn offers(worker: &Value) -> String {
    let flag = |key: &str| text(worker, key) == "true";
    let handlers = worker
        .get("handlers")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let mut offers: Vec<String> = ["exec", "http"]
        .into_iter()
        .filter(|key| flag(key))
        .map(str::to_owned)
        .collect();
    if handlers > 0 || offers.is_empty() {
        offers.push(format!("{handlers} handlers"));
    }
    offers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_clock_that_is_off_is_marked() {
        let clock = |skew: i64| clock(&json!({"skew_ms": skew}));
        assert_eq!(clock(0), "+0ms");
        assert_eq!(clock(-999), "-999ms");
        assert_eq!(clock(1500), "+1.5s !");
        assert_eq!(clock(-3_600_000), "-1h00m !");
    }
}
