//! `drumtower cluster`: the servers that share a database, and who owns what.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{Cell, Column, Output, View, duration, render, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    Status(Status),
}

/// Show the servers, what each owns and how the database answers
///
/// A server is `active` when it owns segments of the job space, `standby` when it has not taken
/// its share yet, `gone` when its session has ended. The one that answered is marked
/// `*` under HERE; its clock is told against the database's. With an embedded store there is one server.
///
///     drumtower cluster status
///     drumtower cluster status -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAME",
        cell: |server| Cell::text(server, "name"),
    },
    Column {
        head: "HERE",
        cell: |server| Cell::Text(mark(server).to_owned()),
    },
    Column {
        head: "STATE",
        cell: |server| Cell::state(server, "state"),
    },
    Column {
        head: "SEGMENTS",
        cell: |server| Cell::text(server, "segments"),
    },
    Column {
        head: "ADDRESS",
        cell: |server| Cell::text(server, "address"),
    },
    Column {
        head: "VERSION",
        cell: |server| Cell::text(server, "version"),
    },
    Column {
        head: "CLOCK",
        cell: |server| Cell::Text(clock(server)),
    },
    Column {
        head: "SEEN",
        cell: |server| Cell::time(server, "last_seen"),
    },
    Column {
        head: "STARTED",
        cell: |server| Cell::time(server, "started"),
    },
];

pub fn run(command: Command) -> Result<()> {
    let Command::Status(status) = command;
    let client = Client::new(&status.connect)?;
    let cluster = client.value(Call::get("/api/v1/cluster"))?;
    status.output.one(&cluster, |view| shown(&cluster, view))
}

fn shown(cluster: &Value, view: View) -> String {
    let servers = cluster["servers"].as_array();
    let mut words = render(servers.map_or(&[], Vec::as_slice), COLUMNS, view);
    if view.terminal {
        words.push_str(&summary(cluster));
    }
    words
}

fn mark(server: &Value) -> &'static str {
    match server["here"] == true {
        true => "*",
        false => "",
    }
}

fn clock(server: &Value) -> String {
    let Some(skew) = server["skew_ms"].as_i64() else {
        return String::new();
    };
    let sign = if skew < 0 { "-" } else { "+" };
    format!("{sign}{}", duration(skew.unsigned_abs()))
}

/// What holds for all of them, below the table.
fn summary(cluster: &Value) -> String {
    let database = &cluster["database"];
    let ms = |field: &str| match database[field].as_f64() {
        Some(ms) => format!("{ms:.1} ms"),
        None => "-".to_owned(),
    };
    let unowned = match cluster["segments"]["unowned"].as_u64() {
        None | Some(0) => String::new(),
        Some(unowned) => format!("; {unowned} segments have no owner now"),
    };
    format!(
        "\n{}: read in {}, commits p50 {} p99 {}, {} sent again{unowned}\n",
        text(cluster, "store"),
        ms("read_ms"),
        ms("commit_p50_ms"),
        ms("commit_p99_ms"),
        text(database, "commit_failures"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_one_that_answered_is_marked_and_what_is_not_owned_is_told() {
        let cluster = json!({
            "store": "postgresql",
            "database": {"read_ms": 1.25, "commit_p50_ms": 2.5, "commit_p99_ms": null, "commit_failures": 3},
            "servers": [
                {"name": "a", "state": "active", "here": true, "skew_ms": -12, "segments": 1000},
                {"name": "b", "state": "gone", "here": false, "skew_ms": null, "segments": 24},
            ],
            "segments": {"unowned": 24},
        });
        let view = View {
            terminal: true,
            color: false,
            now_ms: 0,
        };
        let words = shown(&cluster, view);
        let lines: Vec<&str> = words.lines().collect();
        assert!(lines[1].starts_with("a     *"), "{words}");
        assert!(
            lines[1].contains("-12 ms") || lines[1].contains("-12ms"),
            "{words}"
        );
        assert!(lines[2].starts_with("b "), "{words}");
        let foot = "postgresql: read in 1.2 ms, commits p50 2.5 ms p99 -, 3 sent again; 24 segments have no owner now";
        assert_eq!(lines.last(), Some(&foot));
    }
}
