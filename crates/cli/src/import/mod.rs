//! `drumtower import`: jobs made of what other schedulers have.
//!
//! One file or directory a source. Each gives manifests and says, place by place, what has no counterpart here or means
//! something else: nothing is dropped in silence. Applying goes the way of `drumtower apply`.

mod crontab;
mod jobs;
mod k8s;
mod name;
mod times;
mod zone;

use clap::{Args, Subcommand};
use drumtower_core::model::NamespaceName;
use serde_json::Value;

use crate::apply;
use crate::client::Client;
use crate::connect::Connect;
use crate::export;
use crate::failure::{Failure, Result};
use crate::manifest::Document;
use crate::namespace;
use crate::output::{Format, Output, View, hint, say, tame};

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
    /// The namespace of the jobs; else the one that the source names, else DRUMTOWER_NAMESPACE
    #[arg(short, long)]
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
    /// Where a job goes whose source names this namespace or none. The variable does not move what has its place.
    fn namespace_of(&self, named: Option<&str>) -> Result<String> {
        if let Some(namespace) = &self.namespace {
            return Ok(namespace.to_string());
        }
        if let Some(named) = named {
            return Ok(named.to_owned());
        }
        let usual = namespace::by_variable()?;
        Ok(usual.map_or_else(|| "default".to_owned(), |usual| usual.to_string()))
    }

    /// Prints or applies what was made, and says what was not.
    fn finish(&self, imported: Imported) -> Result<()> {
        let Imported {
            source,
            documents,
            notes,
            faults,
        } = imported;
        let told: Vec<String> = faults.iter().map(|fault| fault.at(&source)).collect();
        let failure = Failure::usage(told.join("\nerror: "));
        if documents.is_empty() && !faults.is_empty() {
            return Err(failure);
        }
        tell(&source, documents.len(), &notes);
        let made = self.make(documents);
        if faults.is_empty() {
            return made;
        }
        let failure = failure.also("  these were left out; the rest was taken");
        match made {
            Ok(()) => Err(failure),
            // Both are to be known; what the server said counts.
            Err(refused) => {
                hint(&failure.to_string());
                Err(refused)
            }
        }
    }

    fn make(&self, documents: Vec<Document>) -> Result<()> {
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
            say("nothing was made yet: the same command with --apply makes these jobs");
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
        0 => say(&format!(
            "{jobs} from {source}; everything was carried over"
        )),
        _ => say(&format!("{jobs} from {source}; look at these:")),
    }
    for note in notes {
        say(&format!("  {}", tame(&note.at(source))));
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
