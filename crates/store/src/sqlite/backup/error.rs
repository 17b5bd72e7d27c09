//! What can go wrong with a backup, as people must tell it apart.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no room. Nothing was left behind.
    #[error("no room in {}: {why}; free some space or choose another directory, nothing was left there", .path.display())]
    Full { path: PathBuf, why: String },
    /// Another one is being made in the same directory.
    #[error("a backup is already being made in {}: wait for it to end", .0.display())]
    Busy(PathBuf),
    /// Whoever watched it asked for its end. Nothing was left behind.
    #[error("the backup was given up, and nothing was left")]
    Stopped,
    /// The state is not in a data directory.
    #[error(
        "the state is in {0}, which has its own ways to be backed up: pg_dump, or a base backup with archived logs (docs/operating/postgresql.md)"
    )]
    Elsewhere(String),
    #[error("{} holds no store: name the data directory of a server with --data", .0.display())]
    NoStore(PathBuf),
    #[error("{} is not a backup: {why}", .path.display())]
    NotABackup { path: PathBuf, why: String },
    /// It was a backup, and its content is not what it was.
    #[error("the backup {} is damaged: {why}", .backup.display())]
    Damaged { backup: PathBuf, why: String },
    /// The store itself does not hold together; a copy of it would not either.
    #[error("the store is damaged and was not backed up: {0}")]
    Unsound(String),
    #[error(
        "the backup {} has schema version {found}, this program knows {known}: restore it with a newer drumtower",
        .backup.display()
    )]
    Newer {
        backup: PathBuf,
        found: u32,
        known: u32,
    },
    #[error(
        "{} is not empty: restore into another directory, or give --replace to move what is there aside", .0.display()
    )]
    Occupied(PathBuf),
    /// What is there is no data directory, so nothing of it is touched.
    #[error(
        "{} is not empty and holds no drumtower.db: restore into another directory, or empty this one yourself", .0.display()
    )]
    Foreign(PathBuf),
    #[error(transparent)]
    Store(#[from] crate::Error),
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
}

impl Error {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                path: path.to_owned(),
                why: error.to_string(),
            },
            _ => Self::File {
                path: path.to_owned(),
                error,
            },
        }
    }

    /// An error of SQLite while it wrote below `path`.
    pub(super) fn writing(path: &Path, error: impl Into<crate::Error>) -> Self {
        match error.into() {
            crate::Error::Full(why) => Self::Full {
                path: path.to_owned(),
                why,
            },
            other => Self::Store(other),
        }
    }

    /// What was found in a file that belongs to a backup.
    pub(super) fn in_backup(self, backup: &Path) -> Self {
        match self {
            Self::Unsound(why) | Self::Store(crate::Error::Corrupt(why)) => Self::Damaged {
                backup: backup.to_owned(),
                why,
            },
            other => other,
        }
    }
}
