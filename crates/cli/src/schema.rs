//! `drumtower schema`: what manifests and requests may say, for editors, programs and people.

use clap::Subcommand;
use drumtower_core::model::{CalendarSpec, JobSpec, QueueSpec};

use crate::failure::Result;
use crate::output::line;
use crate::state_machine;

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
    /// Print the JSON schema of a queue manifest
    ///
    ///     drumtower schema queue > queue.schema.json
    #[command(verbatim_doc_comment)]
    Queue,
    /// Print the description of the HTTP API, in OpenAPI 3.1
    ///
    /// The server serves the same at /api/openapi.json.
    ///
    ///     drumtower schema openapi > openapi.json
    #[command(verbatim_doc_comment)]
    Openapi,
    /// Print the states of a run and every step between them, in Markdown
    ///
    ///     drumtower schema states > state-machine.md
    #[command(verbatim_doc_comment)]
    States,
}

pub fn run(command: &Command) -> Result<()> {
    let schema = match command {
        Command::Job => schemars::schema_for!(JobSpec),
        Command::Calendar => schemars::schema_for!(CalendarSpec),
        Command::Queue => schemars::schema_for!(QueueSpec),
        Command::States => return line(state_machine::page().trim_end()),
        Command::Openapi => return line(drumtower_server::api::openapi::text().trim_end()),
    };
    line(&format!("{:#}", schema.to_value()))
}
