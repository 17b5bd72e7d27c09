//! `drumtower audit`: who changed what; journals of what happened, and the check of what should have.

mod check;
mod log;
mod record;

use clap::Subcommand;

use crate::failure::Result;

#[derive(Debug, Subcommand)]
pub enum Command {
    Log(log::Log),
    Record(record::Record),
    Check(check::Check),
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Log(log) => log.run(),
        Command::Record(record) => record.run(),
        Command::Check(check) => check.run(),
    }
}
