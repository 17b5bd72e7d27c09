//! `drumtower schema`: what manifests may say, for editors and for people.

use clap::Subcommand;
use drumtower_core::model::{CalendarSpec, JobSpec};

use crate::failure::Result;
use crate::output::line;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the JSON schema of a job manifest
    ///
    ///     drumtower schema job > job.schema.json
    #[command(verbatim_doc_comment)]
    Job,
    /// Print the JSON schema of a calendar manifest
    ///
    ///     drumtower schema calendar > calendar.schema.json
    #[command(verbatim_doc_comment)]
    Calendar,
}

pub fn run(command: &Command) -> Result<()> {
    let schema = match command {
        Command::Job => schemars::schema_for!(JobSpec),
        Command::Calendar => schemars::schema_for!(CalendarSpec),
    };
    line(&format!("{:#}", schema.to_value()))
}
