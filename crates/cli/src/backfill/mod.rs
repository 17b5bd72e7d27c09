//! `drumtower backfill`: runs of times that have passed.

mod create;
mod wait;
mod words;

pub use words::progress;

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;

use crate::client::{Call, Client, segment};
use crate::connect::Connect;
use crate::failure::Result;
use crate::job;
use crate::output::{Cell, Column, Output, text};

#[derive(Debug, Subcommand)]
pub enum Command {
    Create(create::Create),
    List(List),
    Show(Show),
    /// Stop a backfill from making runs; those under way go on
    ///
    ///     drumtower backfill pause bf_06d4ztbp00000
    #[command(verbatim_doc_comment)]
    Pause(Tend),
    /// Let a paused backfill go on
    ///
    /// What became of the times meanwhile is read anew.
    ///
    ///     drumtower backfill resume bf_06d4ztbp00000
    #[command(verbatim_doc_comment)]
    Resume(Tend),
    Cancel(Cancel),
    Wait(wait::Wait),
}

/// List backfills, newest first
///
///     drumtower backfill list
///     drumtower backfill list --job report --state running
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Only backfills of this job, of --namespace or `default`
    #[arg(short, long, value_name = "NAME")]
    job: Option<String>,
    /// Only backfills in this state; may be repeated
    #[arg(short, long = "state", value_parser = ["running", "paused", "completed", "cancelled"], ignore_case = true)]
    states: Vec<String>,
    /// Only backfills of this namespace
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// How many at most
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Show one backfill: how far it is and what became of its runs
///
///     drumtower backfill show bf_06d4ztbp00000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The backfill's id
    backfill: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args, Debug)]
pub struct Tend {
    /// The ids of the backfills
    #[arg(required = true, value_name = "BACKFILL")]
    backfills: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// End backfills: they make no more runs, and those that wait are cancelled
///
/// Runs that a worker has go on to their end; with --runs they are asked to stop.
///
///     drumtower backfill cancel bf_06d4ztbp00000
///     drumtower backfill cancel bf_06d4ztbp00000 --runs
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Cancel {
    #[command(flatten)]
    tend: Tend,
    /// Ask the runs that a worker has to stop, too
    #[arg(long)]
    runs: bool,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "BACKFILL",
        cell: |it| Cell::text(it, "id"),
    },
    Column {
        head: "JOB",
        cell: |it| Cell::Text(format!("{}/{}", text(it, "namespace"), text(it, "job"))),
    },
    Column {
        head: "STATE",
        cell: |it| Cell::state(it, "state"),
    },
    Column {
        head: "WHICH",
        cell: |it| Cell::text(it, "which"),
    },
    Column {
        head: "FROM",
        cell: |it| Cell::Text(crate::output::exact(&text(it, "from"))),
    },
    Column {
        head: "TO",
        cell: |it| Cell::Text(crate::output::exact(&text(it, "to"))),
    },
    Column {
        head: "DONE",
        cell: |it| Cell::Text(words::done(it)),
    },
    Column {
        head: "FAILED",
        cell: |it| Cell::text(it, "failed"),
    },
    Column {
        head: "ACTIVE",
        cell: |it| Cell::text(it, "active"),
    },
    Column {
        head: "CREATED",
        cell: |it| Cell::time(it, "created"),
    },
];

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Create(create) => create.run(),
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Pause(tend) => tend.run("pause", false),
        Command::Resume(tend) => tend.run("resume", false),
        Command::Cancel(cancel) => cancel.tend.run("cancel", cancel.runs),
        Command::Wait(wait) => wait.run(),
    }
}

/// The address of a backfill.
fn path(id: &str) -> String {
    format!("/api/v1/backfills/{}", segment(id))
}

impl List {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let page = || {
            let call = match &self.job {
                Some(name) => {
                    let namespace = self.namespace.clone().unwrap_or_default();
                    Call::get(format!("{}/backfills", job::path(&namespace, name)))
                }
                None => Call::get("/api/v1/backfills").maybe("namespace", self.namespace.as_ref()),
            };
            let states = self.states.iter();
            states.fold(call, |call, state| call.query("state", state))
        };
        let backfills = client.list(page, Some(self.limit as usize))?;
        self.output.list(backfills, COLUMNS, "no backfills")
    }
}

impl Show {
    fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let backfill = client.value(Call::get(path(&self.backfill)))?;
        self.output
            .one(&backfill, |view| words::describe(&backfill, view))
    }
}

impl Tend {
    fn run(self, verb: &str, runs: bool) -> Result<()> {
        let client = Client::new(&self.connect)?;
        for id in &self.backfills {
            let call = Call::post(format!("{}/{verb}", path(id)));
            let call = call.maybe("runs", runs.then_some(true));
            let backfill = client.value(call)?;
            self.output.one(&backfill, |_| words::standing(&backfill))?;
        }
        Ok(())
    }
}
