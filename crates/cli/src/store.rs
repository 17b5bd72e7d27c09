//! `drumtower store`: the database that servers share.

use clap::{Args, Subcommand};
use drumtower_store::Address;

use crate::failure::{Failure, Result};
use crate::output::line;

#[derive(Debug, Subcommand)]
pub enum Command {
    Migrate(Migrate),
}

/// Make or update the tables of a shared store
///
/// A server does this by itself when it starts, if its role may make tables. Where it may not,
/// run this as a role that may, before the first start and before each upgrade; --grant lets
/// the role of the servers work on the tables.
///
///     drumtower store migrate --store postgres://admin@db/drumtower --grant drumtower
///
/// A password is better given with DRUMTOWER_STORE than on a command line, which others can see.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Migrate {
    /// The database: postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(
        long,
        env = "DRUMTOWER_STORE",
        hide_env_values = true,
        value_name = "STORE"
    )]
    store: String,
    /// The role that servers connect as
    #[arg(long, value_name = "ROLE")]
    grant: Option<String>,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Migrate(migrate) => migrate.run(),
    }
}

impl Migrate {
    fn run(self) -> Result<()> {
        let address: Address = self
            .store
            .parse()
            .map_err(|why| Failure::usage(format!("--store: {why}")))?;
        line(&migrate(&address, self.grant.as_deref())?)
    }
}

#[cfg(feature = "postgres")]
fn migrate(address: &Address, grant: Option<&str>) -> Result<String> {
    use drumtower_store::postgres::{self, Migrated};
    let Address::Postgres(target) = address else {
        return Err(embedded());
    };
    let Migrated { from, to } = postgres::migrate(target, grant)?;
    let mut words = match from {
        0 => format!("{target}: made with schema version {to}"),
        from if from == to => format!("{target}: schema version {to}, nothing to do"),
        from => format!("{target}: from schema version {from} to {to}"),
    };
    if let Some(role) = grant {
        words.push_str(&format!("; `{role}` may work on it"));
    }
    Ok(words)
}

#[cfg(not(feature = "postgres"))]
fn migrate(_: &Address, _: Option<&str>) -> Result<String> {
    Err(embedded())
}

fn embedded() -> Failure {
    Failure::usage("an embedded store is brought up to date by its server when it starts")
}
