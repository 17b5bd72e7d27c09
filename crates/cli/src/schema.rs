//! `drumtower schema`: what manifests may say, for editors and for people.

use clap::Subcommand;
use drumtower_core::model::JobSpec;

use crate::failure::Result;
use crate::output::line;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the JSON schema of a job manifest
    ///
    ///     drumtower schema job > job.schema.json
    #[command(verbatim_doc_comment)]
    Job,
}

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Job => {
            let schema = schemars::schema_for!(JobSpec);
            line(&format!("{:#}", schema.to_value()))
        }
    }
}
