//! `drumtower worker show`: one worker, what it offers and what it does.

use clap::Args;
use serde_json::Value;

use super::{clock, number};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, bytes, text};

/// Show one worker: what it offers, how limits are enforced, its load and what it runs
///
/// `limits` says how commands are held to the limits of their job: by control groups of the
/// kernel, or by resource limits and measuring where those cannot be used, and why.
///
///     drumtower worker show build-1
///     drumtower worker show build-1 -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The worker's name, as `drumtower worker list` shows it
    worker: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const RUNNING: &[Column] = &[
    Column {
        head: "RUN",
        cell: |run| Cell::text(run, "run"),
    },
    Column {
        head: "JOB",
        cell: |run| Cell::Text(format!("{}/{}", text(run, "namespace"), text(run, "job"))),
    },
    Column {
        head: "STATE",
        cell: |run| Cell::state(run, "state"),
    },
    Column {
        head: "CREATED",
        cell: |run| Cell::time(run, "created"),
    },
];

impl Show {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let worker = client.value(Call::get(format!("/api/v1/workers/{}", self.worker)))?;
        self.output.one(&worker, |view| describe(&worker, view))
    }
}

/// A worker in words.
fn describe(worker: &Value, view: View) -> String {
    let load = |key: &str| number(worker, &format!("/load/{key}"));
    let of = |used: &str, total: &str| format!("{} of {}", bytes(load(used)), bytes(load(total)));
    let mut lines = vec![
        ("worker", text(worker, "name")),
        ("state", text(worker, "state")),
        ("why", text(worker, "why")),
        ("host", text(worker, "host")),
        ("version", text(worker, "version")),
    ];
    lines.retain(|(_, words)| !words.is_empty());
    lines.extend(service(worker));
    let namespace = text(worker, "namespace");
    if !namespace.is_empty() {
        lines.push(("namespace", namespace));
    }
    for (name, list) in [
        ("labels", labels(worker)),
        ("executors", listed(worker, "executors")),
        ("handlers", listed(worker, "handlers")),
    ] {
        if !list.is_empty() {
            lines.push((name, list));
        }
    }
    if let Some(limits) = worker.get("limits").filter(|limits| !limits.is_null()) {
        let by = match text(limits, "by").as_str() {
            "cgroup2" => "control groups (version 2)".to_owned(),
            "rlimits" => "resource limits and measuring".to_owned(),
            other => other.to_owned(),
        };
        lines.push(("limits", format!("{by}: {}", text(limits, "why"))));
    }
    lines.push((
        "capacity",
        format!(
            "{}, {} free, {} in use",
            text(worker, "capacity"),
            text(worker, "credit"),
            load("running_weight")
        ),
    ));
    lines.push(("cpu", format!("{:.1}%", load("cpu_permille") as f64 / 10.0)));
    lines.push(("memory", of("memory_used_bytes", "memory_total_bytes")));
    lines.push(("disk", of("disk_used_bytes", "disk_total_bytes")));
    let network = |key: &str| format!("{}/s", bytes(load(key)));
    lines.push((
        "network",
        format!(
            "{} received, {} sent",
            network("network_received_bytes_per_s"),
            network("network_sent_bytes_per_s")
        ),
    ));
    lines.push(("clock", clock(worker)));
    lines.push(("connected", text(worker, "connected")));
    lines.push(("heard", text(worker, "last_heartbeat")));
    let others = number(worker, "/others");
    if others > 0 {
        lines.push(("others", format!("{others} more of this name")));
    }
    lines.push(("running", text(worker, "attempts")));
    let mut words = output::pairs(&lines);
    let rows = worker.get("running").and_then(Value::as_array);
    if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
        words.push('\n');
        words.push_str(&output::render(rows, RUNNING, view));
    }
    words
}

/// Whether it is in service, and what is held against it.
fn service(worker: &Value) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(drain) = worker.get("maintenance").filter(|it| !it.is_null()) {
        let told = |head: &str, field: &str| match text(drain, field).as_str() {
            "" => String::new(),
            at => format!(", {head} {at}"),
        };
        let words = format!(
            "drained by {} since {}{}{}",
            text(drain, "actor"),
            text(drain, "since"),
            told("deadline", "deadline"),
            told("stopped what ran at", "forced")
        );
        lines.push(("maintenance", words));
    }
    let losses = number(worker, "/losses");
    if losses > 0 {
        lines.push(("losses", format!("{losses} in the last 10 minutes")));
    }
    let until = text(worker, "faulty_until");
    if !until.is_empty() {
        lines.push(("isolated", format!("until {until}")));
    }
    lines
}

fn labels(worker: &Value) -> String {
    let labels = worker.get("labels").and_then(Value::as_object);
    let pair =
        |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    let pairs: Vec<String> = labels.into_iter().flatten().map(pair).collect();
    pairs.join(", ")
}

fn listed(worker: &Value, key: &str) -> String {
    let items = worker.get(key).and_then(Value::as_array);
    let names: Vec<&str> = items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worker_reads_from_top_to_bottom() {
        let worker = json!({
            "name": "build-1", "state": "ONLINE", "host": "h", "version": "0.1.0", "labels": {"zone": "a"},
            "namespace": null, "exec": true, "http": true, "handlers": [], "capacity": 8, "credit": 7, "attempts": 1,
            "load": {"cpu_permille": 125, "memory_used_bytes": 1_048_576, "memory_total_bytes": 2_097_152,
                     "disk_used_bytes": 0, "disk_total_bytes": 0, "network_received_bytes_per_s": 2048,
                     "network_sent_bytes_per_s": 0, "running_weight": 1},
            "why": "drained by ann: one run has to end", "losses": 2, "faulty_until": null,
            "maintenance": {"since": "T0", "actor": "ann", "deadline": "T9", "forced": null},
            "skew_ms": 3, "connected": "T0", "last_heartbeat": "T1", "executors": ["exec", "script", "http"],
            "limits": {"by": "rlimits", "why": "no groups here"}, "others": 1,
            "running": [{"run": "run_1", "namespace": "default", "job": "hello", "state": "RUNNING",
                         "created": "T0"}],
        });
        let view = View {
            terminal: true,
            color: false,
            now_ms: 0,
        };
        let words = describe(&worker, view);
        for part in [
            "worker:      build-1",
            "why:         drained by ann: one run has to end",
            "maintenance: drained by ann since T0, deadline T9\n",
            "losses:      2 in the last 10 minutes",
            "labels:      zone=a",
            "executors:   exec, script, http",
            "limits:      resource limits and measuring: no groups here",
            "capacity:    8, 7 free, 1 in use",
            "cpu:         12.5%",
            "memory:      1.0 MiB of 2.0 MiB",
            "network:     2.0 KiB/s received, 0 B/s sent",
            "clock:       +3ms",
            "others:      1 more of this name",
            "run_1",
            "default/hello",
        ] {
            assert!(words.contains(part), "{part} in\n{words}");
        }
        assert!(!words.contains("handlers"), "{words}");
    }
}
