//! `drumtower backup`: copies of a store, made, listed and checked.
//!
//! On the machine of the server the store is read directly, whether a server runs or not. With `--url` the server is
//! asked to make one in its own directory of backups.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use drumtower_server::backup::shown;
use drumtower_store::sqlite::backup::{self, Found, Reason, Request, Stage};
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::config;
use crate::connect::{Connect, require_data_dir};
use crate::failure::{Failure, Result};
use crate::output::{Cell, Column, Output, Progress, View, bytes, exact, pairs, text};

/// Back up a store, in use or not
///
/// Makes a directory of its own in DIR, checks what it holds and prints its path. The server,
/// if one runs, goes on meanwhile. Without DIR it lies in `backups` in the data directory:
/// copy it to another disk. With --url the server makes it where it is configured to.
///
///     drumtower backup
///     drumtower backup /mnt/backups --data /var/lib/drumtower --with-logs
///     drumtower backup list
///     drumtower backup verify /mnt/backups/drumtower-20261116T040000Z
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct Backup {
    #[command(subcommand)]
    command: Option<Command>,
    /// The directory to make it in; `backups` in the data directory unless given
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Copy the output of runs too
    #[arg(long)]
    with_logs: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Verify(Verify),
}

/// List backups, newest first
///
///     drumtower backup list
///     drumtower backup list /mnt/backups
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
struct List {
    /// The directory they lie in; `backups` in the data directory unless given
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

/// Read a backup whole and check it
///
/// Compares every file with the hash in its manifest, and the database with itself: pages,
/// indexes, and the counters of each namespace against its runs.
///
///     drumtower backup verify /mnt/backups/drumtower-20261116T040000Z
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
struct Verify {
    /// The directory that is the backup
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    #[command(flatten)]
    output: Output,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "NAME",
        cell: |backup| Cell::text(backup, "name"),
    },
    Column {
        head: "CREATED",
        cell: |backup| Cell::time(backup, "created"),
    },
    Column {
        head: "REASON",
        cell: |backup| Cell::text(backup, "reason"),
    },
    Column {
        head: "SIZE",
        cell: |backup| Cell::Text(bytes(backup["bytes"].as_u64().unwrap_or(0))),
    },
    Column {
        head: "JOBS",
        cell: |backup| Cell::text(backup, "counts.jobs"),
    },
    Column {
        head: "SCHEMA",
        cell: |backup| Cell::text(backup, "schema_version"),
    },
    Column {
        head: "PATH",
        cell: |backup| Cell::text(backup, "path"),
    },
];

impl Backup {
    pub fn run(self) -> Result<()> {
        match self.command {
            Some(Command::List(list)) => list.run(),
            Some(Command::Verify(verify)) => verify.run(),
            None => self.make(),
        }
    }

    fn make(self) -> Result<()> {
        let made = match asks_server(&self.connect, self.directory.as_deref()) {
            true => {
                let call = Call::post("/api/v1/backups").json(json!({"logs": self.with_logs}));
                Client::new(&self.connect)?.value(call)?
            }
            false => shown(&self.make_here()?),
        };
        self.output
            .one(&made, |_| format!("{}\n", text(&made, "path")))
    }

    fn make_here(&self) -> Result<Found> {
        let data = require_data_dir(self.connect.data.as_deref())?;
        let data = std::path::absolute(&data).map_err(|error| Failure::file(&data, &error))?;
        let database = config::server::database_of(&data)?;
        if !database.is_embedded() {
            return Err(backup::Error::Elsewhere(database.to_string()).into());
        }
        let directory = match &self.directory {
            Some(given) => {
                std::path::absolute(given).map_err(|error| Failure::file(given, &error))?
            }
            None => data.join(backup::DIRECTORY),
        };
        let request = Request {
            data,
            directory,
            reason: Reason::Asked,
            logs: self.with_logs,
        };
        let bar = Progress::new("copying", 0);
        Ok(backup::make(&request, &mut |progress| {
            show(&bar, progress);
            ControlFlow::Continue(())
        })?)
    }
}

/// Tells how far a backup or a restore is.
pub fn show(bar: &Progress, progress: backup::Progress) {
    let what = match progress.stage {
        Stage::Copying => "copying",
        Stage::Logs => "output of runs",
        Stage::Checking => "checking",
    };
    bar.stage(what, progress.done, progress.total);
}

/// A directory, here, or that of a server elsewhere: whoever names a place on this machine means this machine.
fn asks_server(connect: &Connect, directory: Option<&Path>) -> bool {
    connect.url.is_some() && connect.data.is_none() && directory.is_none()
}

impl List {
    fn run(self) -> Result<()> {
        let items: Vec<Value> = if asks_server(&self.connect, self.directory.as_deref()) {
            let answer = Client::new(&self.connect)?.value(Call::get("/api/v1/backups"))?;
            answer["items"].as_array().cloned().unwrap_or_default()
        } else {
            let directory = match self.directory {
                Some(directory) => directory,
                None => require_data_dir(self.connect.data.as_deref())?.join(backup::DIRECTORY),
            };
            backup::list(&directory)?.iter().rev().map(shown).collect()
        };
        self.output.list(
            items,
            COLUMNS,
            "there are no backups: make one with `drumtower backup`",
        )
    }
}

impl Verify {
    fn run(self) -> Result<()> {
        let bar = Progress::new("checking", 0);
        let manifest = backup::verify(&self.backup, &mut |progress| show(&bar, progress))?;
        drop(bar);
        let path = std::path::absolute(&self.backup);
        let path = path.map_err(|error| Failure::file(&self.backup, &error))?;
        let name = path.file_name().unwrap_or_default();
        let value = shown(&Found {
            name: name.to_string_lossy().into_owned(),
            path: path.clone(),
            manifest,
        });
        self.output.one(&value, |view| words(&value, view))
    }
}

/// What a backup holds, for people.
pub fn words(backup: &Value, _: View) -> String {
    let count = |field| text(backup, field);
    pairs(&[
        ("backup", text(backup, "path")),
        ("created", exact(&text(backup, "created"))),
        ("size", bytes(backup["bytes"].as_u64().unwrap_or(0))),
        (
            "holds",
            format!(
                "{} jobs, {} live and {} finished runs, {} tokens{}",
                count("counts.jobs"),
                count("counts.live_runs"),
                count("counts.finished_runs"),
                count("counts.tokens"),
                if backup["logs"] == true {
                    ", output of runs"
                } else {
                    ""
                }
            ),
        ),
        ("schema version", count("schema_version")),
        ("verdict", "sound".to_owned()),
    ])
}
