//! `drumtower diff`: what applying files would change.

use std::path::PathBuf;

use clap::Args;

use crate::apply::{self, Action};
use crate::client::Client;
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::output::Output;

/// Show what applying files would change
///
/// The exit code is 0 when nothing would, 1 when something would, so that a script can tell
/// whether the server still is what the files say.
///
///     drumtower diff -f jobs/
///     drumtower diff -f jobs/ -o json
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Diff {
    /// A file, a directory, or `-` for standard input; may be repeated
    #[arg(short = 'f', long = "file", required = true, value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    connect: Connect,
}

impl Diff {
    pub fn run(self) -> Result<()> {
        let client = Client::new(&self.connect)?;
        let steps = apply::plan_files(&client, &self.files)?;
        apply::print(&steps, self.output)?;
        match steps.iter().all(|step| step.action == Action::Unchanged) {
            true => Ok(()),
            false => Err(Failure::wordless(Exit::Failed)),
        }
    }
}
