//! `drumtower import`: jobs made of what other schedulers have.
//!
//! One file or directory a source. Each gives manifests and says, place by place, what has no counterpart here or means
//! something else: nothing is dropped in silence. Applying goes the way of `drumtower apply`.

mod crontab;
mod jobs;
mod k8s;
mod name;
mod zone;

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::Value;

use crate::apply;
use crate::client::Client;
use crate::connect::Connect;
use crate::export;
use crate::failure::{Failure, Result};
use crate::output::{Format, Output, View, tame};

use jobs::{Imported, Note};

#[derive(Debug, Subcommand)]
pub enum Command {
    Crontab(crontab::Crontab),
    #[command(name = "k8s-cronjob")]
    K8sCronjob(k8s::CronJob),
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Crontab(crontab) => crontab.run(),
        Command::K8sCronjob(cron_job) => cron_job.run(),
    }
}

/// What every import takes.
#[derive(Args, Debug)]
pub struct Options {
    /// The namespace of the jobs
    #[arg(short, long, env = "DRUMTOWER_NAMESPACE")]
    namespace: Option<NamespaceName>,
    /// Put before every name, such as `web1-`
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// A label for every job; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// The time zone of lines that name none, an IANA name such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// How long an attempt may run where the source sets no limit
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    timeout: String,
    /// Apply the jobs instead of printing their manifests
    #[arg(long)]
    apply: bool,
    /// With --apply: change jobs that exist under these names
    #[arg(long, requires = "apply")]
    replace: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Options {
    /// Prints or applies what was made, and says what was not.
    fn finish(&self, imported: Imported) -> Result<()> {
        let Imported {
            source,
            documents,
            notes,
            faults,
        } = imported;
        if !faults.is_empty() {
            let faults: Vec<String> = faults.iter().map(|fault| fault.at(&source)).collect();
            return Err(Failure::usage(faults.join("\nerror: ")));
        }
        tell(&source, documents.len(), &notes);
        if self.apply {
            let client = Client::new(&self.connect)?;
            return apply::apply_documents(&client, documents, self.replace, self.output);
        }
        match self.output.output {
            Format::Json => {
                let bodies = documents.iter().map(|document| document.body());
                let bodies: Vec<Value> = bodies.collect::<Result<_>>()?;
                self.output.list(bodies, &[], "")?;
            }
            _ => export::print(&documents)?,
        }
        // Below what may have filled the screen; in a pipe the manifests are on their way somewhere.
        if View::of_stdout().terminal {
            eprintln!("nothing was made yet: the same command with --apply makes these jobs");
        }
        Ok(())
    }
}

/// The summary goes to standard error: standard output holds the manifests.
fn tell(source: &str, jobs: usize, notes: &[Note]) {
    let jobs = match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    };
    match notes.len() {
        0 => eprintln!("{jobs} from {source}; everything was carried over"),
        _ => eprintln!("{jobs} from {source}; look at these:"),
    }
    for note in notes {
        eprintln!("  {}", tame(&note.at(source)));
    }
}

/// A file to import, read whole.
fn read(file: &std::path::Path) -> Result<crate::manifest::Source> {
    let mut sources = crate::manifest::collect(&[file.to_owned()])?;
    match (sources.pop(), sources.is_empty()) {
        (Some(source), true) => Ok(source),
        _ => Err(Failure::usage(format!(
            "{} is a directory: name one file",
            file.display()
        ))),
    }
}
