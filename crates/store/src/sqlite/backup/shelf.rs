//! A directory of backups: one is made at a time, half ones never carry a name, old ones go.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::manifest::{self, Manifest, Reason};
use super::{Error, files};

/// What begins with this is being made or removed.
pub(super) const PART: &str = ".part-";

/// Held while a backup is made in a directory, by any process.
pub(super) struct Shelf {
    directory: PathBuf,
    _lock: File,
}

impl Shelf {
    /// Makes the directory if need be and clears away what a process that died has left.
    pub fn take(directory: &Path) -> Result<Self, Error> {
        files::directory(directory)?;
        let path = directory.join(".lock");
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options
            .open(&path)
            .map_err(|error| Error::file(&path, error))?;
        files::inherit_owner(&path);
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy(directory.to_owned())),
            Err(TryLockError::Error(error)) => return Err(Error::file(&path, error)),
        }
        let shelf = Self {
            directory: directory.to_owned(),
            _lock: lock,
        };
        shelf.clear()?;
        Ok(shelf)
    }

    fn clear(&self) -> Result<(), Error> {
        for (name, path) in entries(&self.directory)? {
            if name.starts_with(PART) {
                fs::remove_dir_all(&path).map_err(|error| Error::file(&path, error))?;
            }
        }
        Ok(())
    }

    /// Where a backup of this name is made until it is whole.
    pub fn part(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{PART}{name}"))
    }

    /// A name that is free: the one wished for, or that with a number.
    pub fn free(&self, wish: &str) -> String {
        let numbered = (2..).map(|number| format!("{wish}-{number}"));
        std::iter::once(wish.to_owned())
            .chain(numbered)
            .find(|name| !self.directory.join(name).exists())
            .unwrap_or_default()
    }

    pub fn named(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

fn entries(directory: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let wrong = |error| Error::file(directory, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if entry.file_type().map_err(wrong)?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

/// A backup in a directory of them. Its manifest was read, its files were not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub path: PathBuf,
    pub manifest: Manifest,
}

impl Found {
    /// When it was begun.
    pub fn created(&self) -> Option<Timestamp> {
        self.manifest.created.parse().ok()
    }

    /// Whether it was begun at `now` or before.
    pub fn is_by(&self, now: Timestamp) -> bool {
        self.created().is_some_and(|created| created <= now)
    }
}

/// The backups in a directory, oldest first. Anything else in it is left out; a directory that is not there holds none.
pub fn list(directory: &Path) -> Result<Vec<Found>, Error> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut found: Vec<Found> = entries(directory)?
        .into_iter()
        .filter(|(name, _)| !name.starts_with('.'))
        .filter_map(|(name, path)| {
            let manifest = manifest::read(&path).ok()?;
            Some(Found {
                name,
                path,
                manifest,
            })
        })
        .collect();
    found.sort_by(|a, b| (&a.manifest.created, &a.name).cmp(&(&b.manifest.created, &b.name)));
    Ok(found)
}

/// Removes scheduled backups of one cluster until `count` of them are left, the newest. At least one always is. One from
/// the future was made before the clock was set back, so before any other.
///
/// To be called after one was made: a failure to make them removes nothing.
pub fn keep(directory: &Path, cluster: &str, count: usize) -> Result<Vec<String>, Error> {
    let shelf = Shelf::take(directory)?;
    let mut scheduled = list(directory)?;
    scheduled.retain(|backup| {
        backup.manifest.reason == Reason::Scheduled && backup.manifest.cluster == cluster
    });
    let now = Timestamp::now();
    scheduled.sort_by_key(|backup| backup.is_by(now));
    let surplus = scheduled.len().saturating_sub(count.max(1));
    let mut gone = Vec::new();
    for backup in scheduled.into_iter().take(surplus) {
        // Under its name it is whole to the end.
        let part = shelf.part(&backup.name);
        files::rename(&backup.path, &part)?;
        fs::remove_dir_all(&part).map_err(|error| Error::file(&part, error))?;
        gone.push(backup.name);
    }
    Ok(gone)
}
