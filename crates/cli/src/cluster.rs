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
/// `*` under HERE; `silent` there is one that told nothing of itself within two seconds, so that only
/// what the database says of it is shown. SEGMENTS are those it owns and, after the slash, how many of
/// them stay together because jobs share something. LAG is how long the oldest has waited of what is
/// due and nothing but a place on a worker is missing, CLOCK how far its clock is ahead of the
/// database's, COMMIT how long half of its commits took and all but a hundredth. With an embedded
/// store there is one server.
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
        cell: |server| Cell::Text(segments(server)),
    },
    Column {
        head: "LAG",
        cell: |server| Cell::Text(lag(server)),
    },
    Column {
        head: "CLOCK",
        cell: |server| Cell::Text(clock(server)),
    },
    Column {
        head: "COMMIT",
        cell: |server| Cell::Text(commit(server)),
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
    // Of one that is gone nobody expects an answer, and a server of before the others were asked says nothing of it.
    let is_silent = server["answered"] == false && server["state"] != "gone";
    match (server["here"] == true, is_silent) {
        (true, _) => "*",
        (false, true) => "silent",
        (false, false) => "",
    }
}

/// All of them, and those that are tied to others.
fn segments(server: &Value) -> String {
    match server["tied"].as_u64() {
        Some(tied) => format!("{}/{tied}", text(server, "segments")),
        None => text(server, "segments"),
    }
}

fn lag(server: &Value) -> String {
    server["lag_ms"].as_u64().map_or_else(String::new, duration)
}

fn commit(server: &Value) -> String {
    let ms = |key: &str| server[key].as_f64().map(|ms| format!("{ms:.1}"));
    match (ms("commit_p50_ms"), ms("commit_p99_ms")) {
        (None, None) => String::new(),
        (half, most) => format!(
            "{}/{} ms",
            half.unwrap_or_else(|| "-".to_owned()),
            most.unwrap_or_else(|| "-".to_owned())
        ),
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
                {"name": "a", "state": "active", "here": true, "answered": true, "skew_ms": -12, "lag_ms": 250, "commit_p50_ms": 2.5, "commit_p99_ms": null, "segments": 1000, "tied": 7},
                {"name": "b", "state": "gone", "here": false, "answered": false, "skew_ms": null, "lag_ms": null, "commit_p50_ms": null, "commit_p99_ms": null, "segments": 24, "tied": 0},
                {"name": "c", "state": "standby", "here": false, "answered": false, "segments": 0, "tied": 0},
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
        assert!(
            lines[1].contains("1000/7") && lines[1].contains("2.5/- ms"),
            "{words}"
        );
        assert!(!lines[2].contains("silent"), "{words}");
        assert!(lines[3].starts_with("c     silent"), "{words}");
        let foot = "postgresql: read in 1.2 ms, commits p50 2.5 ms p99 -, 3 sent again; 24 segments have no owner now";
        assert_eq!(lines.last(), Some(&foot));
    }
}
