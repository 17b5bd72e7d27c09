//! Configuration: what `dev`, `serve` and `work` go by, and where each value came from.
//!
//! A flag wins over its `DRUMTOWER_…` variable, that over `drumtower.toml`, and that over what holds by itself. The file
//! is the one given with `--config` or `DRUMTOWER_CONFIG`, else `drumtower.toml` in the data directory, else the one in
//! `/etc/drumtower`; never one that happens to lie in the working directory. A key that is not known and a value that
//! cannot be used are refused, all at once, with file, line and column.
//!
//! One file for each section: its keys as a table, and the values as a struct. [`SECTIONS`] lists the tables; the file,
//! the variables, `config check` and the tests of the reference page know the keys from there.

pub mod backup;
pub mod command;
mod file;
mod key;
pub mod log;
pub mod logs;
pub mod notify;
pub mod outbound;
pub mod server;
mod settings;
pub mod tls;
pub mod worker;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::connect::own_dir;
use crate::failure::{Failure, Result};

pub use key::{Key, Kind, Value, any};
pub use settings::{Given, Settings};

/// Every section, in the order in which they are shown.
const SECTIONS: &[&[Key]] = &[
    server::KEYS,
    tls::KEYS,
    log::KEYS,
    logs::KEYS,
    backup::KEYS,
    worker::KEYS,
    outbound::KEYS,
    notify::KEYS,
    notify::SMTP_KEYS,
];

fn keys() -> impl Iterator<Item = &'static Key> {
    SECTIONS.iter().flat_map(|section| section.iter())
}

#[derive(Args, Clone, Debug, Default)]
pub struct Source {
    /// The configuration file; drumtower.toml in the data directory or /etc/drumtower unless given
    #[arg(long, env = "DRUMTOWER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl Source {
    /// Puts flags, variables, file and defaults together.
    pub fn settle(&self, given: Given) -> Result<Settings> {
        settle(self.config.as_deref(), given)
    }
}

fn settle(named: Option<&Path>, given: Given) -> Result<Settings> {
    let mut settings = Settings::of(given, |name| std::env::var(name).ok())?;
    let here = own_dir(settings.path("data"));
    let path = named
        .map(Path::to_owned)
        .or_else(|| file::find(here.as_deref()));
    let Some(path) = path else {
        return Ok(settings);
    };
    let path = std::path::absolute(&path).map_err(|error| Failure::file(&path, &error))?;
    settings.add_file(path.clone(), load(&path)?);
    Ok(settings)
}

fn load(path: &Path) -> Result<file::Said> {
    file::load(path).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::usage(faults.join("\nerror: "))
            .remedy("docs/reference/configuration.md says what the file may hold")
    })
}

/// The data directory that the configuration names, for commands that take no other setting from it. A file that this user
/// may not read is for others.
pub fn data() -> Result<Option<PathBuf>> {
    let named = std::env::var_os("DRUMTOWER_CONFIG").filter(|name| !name.is_empty());
    let path = match named {
        Some(named) => PathBuf::from(named),
        None => match file::find(own_dir(None).as_deref()) {
            Some(path) if std::fs::File::open(&path).is_ok() => path,
            _ => return Ok(None),
        },
    };
    let path = std::path::absolute(&path).map_err(|error| Failure::file(&path, &error))?;
    match load(&path)?.remove("data") {
        Some((Value::Path(data), _)) => Ok(Some(data)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
