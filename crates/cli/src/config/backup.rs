//! `[backup]`: where a server's backups lie, when they are made and how many are kept.

use clap::Args;
use drumtower_server::backup::Timetable;
use drumtower_server::serve::Options;

use super::{Given, Key, Kind, Settings, Value};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new("backup.directory", "DRUMTOWER_BACKUP_DIRECTORY", Kind::Path)
        .unset("backups in the data directory"),
    Key::new(
        "backup.every",
        "DRUMTOWER_BACKUP_EVERY",
        Kind::Text(timetable),
    )
    .unset("never"),
    Key::new(
        "backup.keep",
        "DRUMTOWER_BACKUP_KEEP",
        Kind::Count {
            least: 1,
            most: 1_000,
        },
    )
    .default("7"),
    Key::new("backup.logs", "DRUMTOWER_BACKUP_LOGS", Kind::Switch).default("false"),
    Key::new(
        "backup.before_upgrade",
        "DRUMTOWER_BACKUP_BEFORE_UPGRADE",
        Kind::Switch,
    )
    .flag("--no-upgrade-backup")
    .default("true"),
];

fn timetable(text: &str) -> std::result::Result<(), String> {
    text.parse::<Timetable>().map(|_| ())
}

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Flags {
    /// Bring an older store up to date without a backup of it first
    #[arg(long)]
    no_upgrade_backup: bool,
}

impl Flags {
    pub fn given(&self, given: Given) -> Given {
        let refused = self.no_upgrade_backup.then_some(Value::Switch(false));
        given.set("backup.before_upgrade", refused)
    }
}

/// Puts what the section says into the options of a server.
pub fn apply(settings: &Settings, options: &mut Options) -> Result<()> {
    let directory = settings.path("backup.directory").map(std::path::absolute);
    options.backup.directory = directory
        .transpose()
        .map_err(|error| Failure::usage(format!("backup.directory: {error}")))?;
    let every = settings.text("backup.every").map(|text| text.parse());
    options.backup.every = every
        .transpose()
        .map_err(|why| Failure::usage(format!("backup.every: {why}")))?;
    if let Some(keep) = settings.count("backup.keep") {
        options.backup.keep = usize::try_from(keep).unwrap_or(usize::MAX);
    }
    options.backup.logs = settings.switch("backup.logs");
    options.store.backup_before_upgrade = settings.switch("backup.before_upgrade");
    Ok(())
}
