//! `drumtower work`: a worker alone.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use drumtower_core::model::WorkerName;
use drumtower_worker::agent::{self, Error, Options, leave_on_signals};

use crate::connect::Connect;
use crate::duration;
use crate::failure::{Exit, Failure, Result};
use crate::serve::runtime;

/// Run a worker
///
/// It dials the server, so it needs no open port, and runs `exec` tasks on this machine, as
/// the user it runs as. When the server restarts it comes back by itself. Ctrl-C or SIGTERM
/// takes no more work and lets what runs end; a second one does not wait.
///
///     drumtower work
///     drumtower work --url http://127.0.0.1:7070 --token drt_... --name build-1 --capacity 16
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Work {
    /// How the worker is called in listings; the name of the machine unless given
    #[arg(long, env = "DRUMTOWER_WORKER_NAME")]
    name: Option<WorkerName>,
    /// How much weight it runs at once; eight for each core unless given
    #[arg(long, env = "DRUMTOWER_WORKER_CAPACITY", value_name = "WEIGHT")]
    capacity: Option<u32>,
    /// A label, shown in listings; may be repeated
    #[arg(long = "label", value_parser = label, value_name = "KEY=VALUE")]
    labels: Vec<(String, String)>,
    /// Where commands get their working directories
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// How long runs may take to end by themselves once the worker is told to stop
    #[arg(long, value_parser = duration::parse, default_value = "30s", value_name = "DURATION")]
    drain: Duration,
    #[command(flatten)]
    connect: Connect,
}

fn label(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Work {
    pub fn run(self) -> Result<()> {
        let target = self.connect.target()?;
        let standard = Options::default();
        let options = Options {
            servers: vec![target.url],
            token: target.token,
            name: self.name.map(|name| name.to_string()),
            capacity: self.capacity.unwrap_or(standard.capacity),
            labels: self.labels.into_iter().collect(),
            scratch_root: self.scratch.unwrap_or(standard.scratch_root),
            drain_timeout: self.drain,
            ..standard
        };
        runtime()?.block_on(async {
            let leave = leave_on_signals().map_err(no_signals)?;
            agent::run(options, leave).await.map_err(failure)
        })
    }
}

pub fn no_signals(error: std::io::Error) -> Failure {
    Failure::failed(format!("signals cannot be received: {error}"))
}

/// Why a worker gives up.
pub fn failure(error: Error) -> Failure {
    let exit = match &error {
        Error::NoServer => Exit::Usage,
        Error::Scratch { .. } => Exit::Failed,
        Error::Worker(_) => Exit::Refused,
    };
    Failure::new(exit, error.to_string())
}
