//! The lock on the data directory: one process at a time, freed by the system when the process ends in any way.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::failure::at_path;
use crate::Error;

/// Held for as long as it lives.
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    pub fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("lock");
        let open = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path);
        let file = open.map_err(|error| at_path(&path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked(directory.display().to_string())),
            Err(TryLockError::Error(error)) => Err(at_path(&path, &error)),
        }
    }
}
