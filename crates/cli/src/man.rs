//! `drumtower man`: the help as pages for `man`, one for each command.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::failure::{Failure, Result};
use crate::output::{line, write};

/// Write the manual pages
///
/// Without a directory, prints the page of `drumtower` itself.
///
///     drumtower man | man -l -
///     drumtower man ~/.local/share/man/man1
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Pages {
    /// Where the pages of all commands go; made if it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Pages {
    pub fn run(self) -> Result<()> {
        let mut command = crate::Cli::command().disable_help_subcommand(true);
        command.build();
        let Some(directory) = self.directory else {
            return write(&page(&command, "drumtower")?);
        };
        std::fs::create_dir_all(&directory).map_err(|error| Failure::file(&directory, &error))?;
        let mut count = 0;
        write_all(&command, "drumtower", &directory, &mut count)?;
        line(&format!("{count} pages in {}", directory.display()))
    }
}

fn write_all(command: &Command, name: &str, directory: &Path, count: &mut usize) -> Result<()> {
    let path = directory.join(format!("{name}.1"));
    std::fs::write(&path, page(command, name)?).map_err(|error| Failure::file(&path, &error))?;
    *count += 1;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_all(
            verb,
            &format!("{name}-{}", verb.get_name()),
            directory,
            count,
        )?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> Result<String> {
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("drumtower ", env!("CARGO_PKG_VERSION")))
        .manual("Drumtower");
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
