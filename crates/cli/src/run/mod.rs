//! `drumtower run`: executions of jobs.

mod escapes;
mod explain;
mod following;
mod logs;
mod rerun;
pub mod show;
pub mod wait;

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::Value;

use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::Result;
use crate::moment::Moment;
use crate::output::{Cell, Column, Output, duration, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    List(List),
    Show(show::Show),
    Explain(explain::Explain),
    Logs(logs::Logs),
    Cancel(Cancel),
    Wait(wait::Wait),
    Rerun(rerun::Rerun),
}

/// List runs, newest first
///
///     drumtower run list
///     drumtower run list --job hello --state failed
///     drumtower run list --state running --state pending --limit 500
///     drumtower run list --since -2h --origin schedule
///     drumtower run list --backfill bf_06d4ztbp00000 --state failed
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only runs of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Only runs of this job
    #[arg(short, long, value_name = "NAME")]
    job: Option<String>,
    /// Only runs in this state; may be repeated
    #[arg(short, long = "state", value_enum, ignore_case = true)]
    states: Vec<State>,
    /// Only runs made at or after this instant: RFC 3339, or a duration such as `-2h` from now
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    since: Option<Moment>,
    /// Only runs made before this instant
    #[arg(long, value_name = "INSTANT", allow_hyphen_values = true)]
    until: Option<Moment>,
    /// Only runs that came about like this
    #[arg(long, value_enum)]
    origin: Option<Origin>,
    /// Only runs that this backfill made
    #[arg(long, value_name = "BACKFILL")]
    backfill: Option<String>,
    /// How many at most
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum State {
    Pending,
    Scheduled,
    Running,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Origin {
    /// The job's own schedule
    Schedule,
    /// A call of the API, the command line or an SDK
    Api,
    /// A backfill
    Backfill,
    /// The end of a run of another job
    After,
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Api => "api",
            Self::Backfill => "backfill",
            Self::After => "after",
        }
    }
}

/// Cancel runs
///
/// The request is durable when the command returns. A run that is under way keeps its place
/// until its worker has stopped it; `drumtower run wait` waits for that.
///
///     drumtower run cancel run_06d4ztbp00000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Cancel {
    /// The ids of the runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "RUN",
        cell: |run| Cell::text(run, "id"),
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
        head: "ORIGIN",
        cell: |run| Cell::text(run, "origin"),
    },
    Column {
        head: "DUE",
        cell: |run| Cell::time(run, "due"),
    },
    Column {
        head: "TOOK",
        cell: |run| Cell::Text(took(run, "duration_ms")),
    },
    Column {
        head: "WORKER",
        cell: |run| Cell::text(run, "worker"),
    },
    Column {
        head: "ERROR",
        cell: |run| Cell::Text(first_line(&text(run, "error"))),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Explain(explain) => explain.run(),
        Command::Logs(logs) => logs.run(),
        Command::Cancel(cancel) => cancel.run(),
        Command::Wait(wait) => wait.run(),
        Command::Rerun(rerun) => rerun.run(),
    }
}

/// The address of a run.
fn path(id: &str) -> String {
    format!("/api/v1/runs/{}", segment(id))
}

fn took(run: &Value, field: &str) -> String {
    run.pointer(&format!("/{}", field.replace('.', "/")))
        .and_then(Value::as_u64)
        .map_or_else(String::new, duration)
}

/// What fits into a table.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > 80 {
        line.chars().take(79).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        // Read once: pages of one listing must ask for the same.
        let (since, until) = (
            self.since.map(Moment::instant),
            self.until.map(Moment::instant),
        );
        let page = || {
            let call = Call::get("/api/v1/runs")
                .maybe("namespace", self.namespace.as_ref())
                .maybe("job", self.job.as_ref())
                .maybe("since", since)
                .maybe("until", until)
                .maybe("origin", self.origin.map(Origin::name))
                .maybe("backfill", self.backfill.as_ref());
            self.states.iter().fold(call, |call, state| {
                call.query("state", format!("{state:?}").to_uppercase())
            })
        };
        let runs = client.list(page, Some(self.limit as usize))?;
        self.output.list(runs, COLUMNS, "no such runs")
    }
}

impl Cancel {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        for id in &self.runs {
            let run = client.value(Call::post(format!("{}/cancel", path(id))))?;
            self.output
                .one(&run, |_| match text(&run, "state").as_str() {
                    state @ ("COMPLETED" | "FAILED") => {
                        format!("{id} had already ended: {state}\n")
                    }
                    "CANCELLED" => format!("{id} is CANCELLED\n"),
                    state => format!("{id} is {state} and will be cancelled\n"),
                })?;
        }
        Ok(())
    }
}
