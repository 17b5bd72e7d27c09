//! Backups of a store that may be in use, and the way back from one.
//!
//! A backup is a directory: `drumtower.db`, on request the output of runs in `logs/`, and `manifest.json`, which says what
//! it is and carries the hash of every file. It is made under a name that begins with a dot, checked, synced, and only
//! then renamed: whatever carries a backup's name is whole. One is made at a time in a directory of backups ([`shelf`]).
//!
//! The copy ([`copy`]) is one snapshot of a reader: the writer never waits for it. The check ([`inspect`]) reads the copy,
//! not the store. What a restored store must not repeat is in [`restore`] and docs/adr/0007-backup-and-restore.md.
//!
//! Nothing here opens the live database file except through SQLite: closing any other handle to it would take away the
//! locks that this process holds on it.

mod copy;
mod error;
mod files;
mod inspect;
mod make;
mod manifest;
mod moves;
mod restore;
mod shelf;

pub use error::Error;
pub use inspect::Contents;
pub use make::{Request, make};
pub use manifest::{Counts, FileEntry, Manifest, Reason};
pub use restore::{Restored, restore};
pub use shelf::{Found, keep, list};

pub(super) use make::before_upgrade;
pub(super) use restore::refuse_unfinished;

use std::ops::ControlFlow;
use std::path::Path;

/// The name of the file that describes a backup.
pub const MANIFEST: &str = "manifest.json";

/// Where backups lie within the data directory unless told otherwise.
pub const DIRECTORY: &str = "backups";

/// How far a piece of work has come. `total` may grow while `done` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    pub done: u64,
    pub total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Bytes of the database.
    Copying,
    /// Bytes of the output of runs.
    Logs,
    /// Files whose content is read back and checked.
    Checking,
}

/// Told how far the making of a backup has come; a break ends it with nothing left.
pub type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Reads a backup whole and holds it against its manifest.
pub fn verify(backup: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Manifest, Error> {
    let manifest = manifest::read(backup)?;
    for (number, entry) in (1..).zip(&manifest.files) {
        let hashed = files::hash(
            &backup.join(&entry.path),
            &mut |_| ControlFlow::Continue(()),
        )?;
        if hashed != (entry.bytes, entry.sha256.clone()) {
            return Err(Error::Damaged {
                backup: backup.to_owned(),
                why: format!("{} is not as it was written", entry.path),
            });
        }
        progress(Progress {
            stage: Stage::Checking,
            done: number,
            total: manifest.files.len() as u64 + 1,
        });
    }
    let contents = inspect::database(&backup.join(super::FILE), &mut || ControlFlow::Continue(()))
        .map_err(|error| error.in_backup(backup))?;
    manifest.agrees_with(backup, &contents)?;
    Ok(manifest)
}
