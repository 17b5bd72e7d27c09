//! `drumtower run show`: one run with its path and its attempts.

use clap::Args;
use serde_json::Value;

use super::{path, took};
use crate::client::{Call, Client};
use crate::connect::Connect;
use crate::failure::Result;
use crate::output::{self, Cell, Column, Output, View, bytes, text};

/// Show one run: its state, its transitions and its attempts
///
///     drumtower run show run_06d4ztbp00000
///     drumtower run show run_06d4ztbp00000 -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The run's id
    run: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const TRANSITIONS: &[Column] = &[
    Column {
        head: "STATE",
        cell: |step| Cell::state(step, "to"),
    },
    Column {
        head: "AT",
        cell: |step| Cell::Text(text(step, "at")),
    },
    Column {
        head: "REASON",
        cell: |step| Cell::text(step, "reason"),
    },
    Column {
        head: "ATTEMPT",
        cell: |step| Cell::Text(concerned(step)),
    },
];

const ATTEMPTS: &[Column] = &[
    Column {
        head: "ATTEMPT",
        cell: |attempt| Cell::text(attempt, "number"),
    },
    Column {
        head: "WORKER",
        cell: |attempt| Cell::text(attempt, "worker"),
    },
    Column {
        head: "OUTCOME",
        cell: |attempt| Cell::text(attempt, "end.outcome"),
    },
    Column {
        head: "STARTED",
        cell: |attempt| Cell::text(attempt, "started"),
    },
    Column {
        head: "TOOK",
        cell: |attempt| Cell::Text(took(attempt, "end.duration_ms")),
    },
    Column {
        head: "EXIT",
        cell: |attempt| Cell::Text(exit(attempt)),
    },
    Column {
        head: "CPU",
        cell: |attempt| Cell::Text(took(attempt, "end.cpu_ms")),
    },
    Column {
        head: "MEMORY",
        cell: |attempt| Cell::Text(memory(attempt)),
    },
];

impl Show {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let run = client.value(Call::get(path(&self.run)))?;
        self.output.one(&run, |view| describe(&run, view))
    }
}

/// The attempt that a step concerns.
fn concerned(step: &Value) -> String {
    match text(step, "attempt") {
        none if none == "0" => "-".to_owned(),
        number => number,
    }
}

fn exit(attempt: &Value) -> String {
    match text(attempt, "end.signal") {
        signal if signal.is_empty() => text(attempt, "end.exit_code"),
        signal => format!("signal {signal}"),
    }
}

fn memory(attempt: &Value) -> String {
    let peak = attempt
        .pointer("/end/peak_memory_bytes")
        .and_then(Value::as_u64)
        .filter(|peak| *peak > 0);
    peak.map_or_else(String::new, bytes)
}

/// `42 %, copying files, at 2026-11-16T08:00:00Z`
fn words_of_progress(run: &Value) -> Option<String> {
    let progress = run.get("progress").filter(|it| it.is_object())?;
    let percent = format!("{} %", text(progress, "percent"));
    let words = [percent, text(progress, "message"), text(progress, "at")];
    let words = words.into_iter().filter(|words| !words.is_empty());
    Some(words.collect::<Vec<_>>().join(", "))
}

/// `number 7, 1.5 KiB, by attempt 2, 12s ago`
fn words_of_checkpoint(run: &Value, view: View) -> Option<String> {
    let mark = run.get("checkpoint").filter(|it| it.is_object())?;
    let size = mark.get("bytes").and_then(Value::as_u64).map(bytes)?;
    let by = match text(mark, "attempt") {
        none if none == "0" => "by the run before".to_owned(),
        number => format!("by attempt {number}"),
    };
    let at = Cell::time(mark, "at").words(view);
    Some(format!(
        "number {}, {size}, {by}, {at}",
        text(mark, "number")
    ))
}

/// A run in words.
pub fn describe(run: &Value, view: View) -> String {
    let mut lines = vec![
        ("run", text(run, "id")),
        (
            "job",
            format!(
                "{}/{} version {}",
                text(run, "namespace"),
                text(run, "job"),
                text(run, "job_version")
            ),
        ),
        ("state", text(run, "state")),
        (
            "origin",
            format!("{} by {}", text(run, "origin"), text(run, "actor")),
        ),
        ("due", text(run, "due")),
    ];
    let repeated = Some(text(run, "rerun_of")).filter(|run| !run.is_empty());
    lines.extend(repeated.map(|run| ("repeats", run)));
    let parent = Some(text(run, "parent_run")).filter(|run| !run.is_empty());
    lines.extend(parent.map(|run| ("after", run)));
    lines.extend(words_of_progress(run).map(|words| ("progress", words)));
    lines.extend(words_of_checkpoint(run, view).map(|words| ("checkpoint", words)));
    let optional = [
        "nominal",
        "backfill",
        "finished",
        "waiting",
        "idempotency_key",
        "params",
        "result",
        "error",
    ]
    .map(|field| (field, text(run, field)));
    lines.extend(optional.into_iter().filter(|(_, words)| !words.is_empty()));
    if run.get("cancel").is_some_and(|cancel| !cancel.is_null()) {
        lines.push((
            "cancel",
            format!(
                "asked for at {} by {}",
                text(run, "cancel.at"),
                text(run, "cancel.actor")
            ),
        ));
    }
    let mut words = output::pairs(&lines);
    for (field, columns) in [("transitions", TRANSITIONS), ("attempts", ATTEMPTS)] {
        let rows = run
            .get(field)
            .and_then(Value::as_array)
            .filter(|rows| !rows.is_empty());
        if let Some(rows) = rows {
            words.push('\n');
            words.push_str(&output::render(rows, columns, view));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_reads_from_top_to_bottom() {
        let run = json!({
            "id": "run_1", "namespace": "default", "job": "hello", "job_version": 2, "state": "FAILED", "origin": "api",
            "actor": "ann", "due": "T0", "nominal": null, "finished": "T3", "params": {"a": 1}, "result": null,
            "error": "exit code 3", "idempotency_key": null, "cancel": null,
            "transitions": [{"to": "PENDING", "at": "T0", "reason": "created", "attempt": 0},
                            {"to": "FAILED", "at": "T3", "reason": "task_failed", "attempt": 10}],
            "attempts": [{"number": 10, "worker": "w", "started": "T1", "end": {
                "outcome": "failed", "duration_ms": 1234, "exit_code": 3, "signal": null, "cpu_ms": 5,
                "peak_memory_bytes": 2_097_152}}],
        });
        let view = View {
            terminal: true,
            color: false,
            now_ms: 1_767_225_690_000,
        };
        let mut under_way = run.clone();
        under_way["progress"] = json!({"percent": 42, "message": "copying", "at": "T2"});
        under_way["checkpoint"] =
            json!({"number": 7, "attempt": 2, "bytes": 1536, "at": "2026-01-01T00:00:00.000Z"});
        let told = describe(&under_way, view);
        assert!(told.contains("\nprogress:   42 %, copying, T2\n"), "{told}");
        let saved = "\ncheckpoint: number 7, 1.5 KiB, by attempt 2, 1m30s ago\n";
        assert!(told.contains(saved), "{told}");
        let expected = "\
run:      run_1
job:      default/hello version 2
state:    FAILED
origin:   api by ann
due:      T0
finished: T3
params:   {\"a\":1}
error:    exit code 3

STATE    AT  REASON       ATTEMPT
PENDING  T0  created      -
FAILED   T3  task_failed  10

ATTEMPT  WORKER  OUTCOME  STARTED  TOOK  EXIT  CPU  MEMORY
10       w       failed   T1       1.2s  3     5ms  2.0 MiB
";
        assert_eq!(
            describe(
                &run,
                View {
                    terminal: true,
                    color: false,
                    now_ms: 0
                }
            ),
            expected
        );
    }
}
