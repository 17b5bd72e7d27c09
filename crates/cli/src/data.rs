//! `drumtower data`: where everything is kept, and how to begin anew.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use drumtower_store::sqlite;

use crate::connect::require_data_dir;
use crate::failure::{Exit, Failure, Result};
use crate::output::{hint, line};

#[derive(Debug, Subcommand)]
pub enum Command {
    Path(Place),
    Reset(Reset),
}

/// Print the data directory that server and commands use on this machine
///
///     drumtower data path
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Place {
    /// The data directory; ~/.local/share/drumtower unless given
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Delete jobs, runs, tokens and output, and begin anew
///
/// Asks first, and refuses while a server runs there. Backups and a drumtower.toml in the
/// directory stay.
///
///     drumtower data reset
///     drumtower data reset --data /tmp/try --yes
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reset {
    #[command(flatten)]
    place: Place,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Path(place) => line(&place.directory()?.display().to_string()),
        Command::Reset(reset) => reset.run(),
    }
}

impl Place {
    fn directory(&self) -> Result<PathBuf> {
        let data = require_data_dir(self.data.as_deref())?;
        std::path::absolute(&data).map_err(|error| Failure::file(&data, &error))
    }
}

impl Reset {
    fn run(self) -> Result<()> {
        let data = self.place.directory()?;
        if !data.join(sqlite::FILE).is_file() {
            return Err(Failure::usage(format!("{} holds no store", data.display()))
                .remedy("name another directory with --data"));
        }
        // Before the question: nobody should answer it in vain.
        sqlite::idle(&data)?;
        if !self.yes && !agreed(&data)? {
            return Err(Failure::new(Exit::Refused, "nothing was deleted"));
        }
        let left = sqlite::delete(&data)?;
        line(&format!("{} is empty", data.display()))?;
        if !left.is_empty() {
            line(&format!("left there: {}", left.join(", ")))?;
        }
        Ok(())
    }
}

fn agreed(data: &Path) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage("nobody can be asked whether to delete everything").remedy("give --yes"),
        );
    }
    hint(&format!(
        "Delete jobs, runs, tokens and output in {}? Type yes: ",
        data.display()
    ));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
