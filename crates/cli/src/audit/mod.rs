//! `drumtower audit`: journals of what happened, and the check of what should have.

mod check;
mod record;

use clap::Subcommand;

use crate::failure::Result;

#[derive(Debug, Subcommand)]
pub enum Command {
    Record(record::Record),
    Check(check::Check),
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Record(record) => record.run(),
        Command::Check(check) => check.run(),
    }
}
