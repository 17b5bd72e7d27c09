//! Where a bench keeps its data and notes while it lasts.
//!
//! Whatever it makes for itself is removed when it ends, however it ends; what the caller asked to keep, or brought, stays.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::failure::{Failure, Result};
use crate::output::say;

pub fn temporary(inside: &Path, keep: bool) -> Result<TempDir> {
    let mut dir = tempfile::Builder::new()
        .prefix("drumtower-bench-")
        .tempdir_in(inside)
        .map_err(|error| Failure::file(inside, &error))?;
    dir.disable_cleanup(keep);
    Ok(dir)
}

/// A place for notes that do not compete with the store for the disk, where there is one.
pub fn in_memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    }
}

/// The directories of a bench that prepares its data before it measures.
pub struct Room {
    pub data: PathBuf,
    notes: TempDir,
    _made: Option<TempDir>,
}

impl Room {
    /// `data` is the caller's and stays; without it a directory is made.
    pub fn new(data: Option<&Path>, keep: bool) -> Result<Self> {
        let notes = temporary(&in_memory(), keep)?;
        let (data, made) = match data {
            Some(data) => {
                std::fs::create_dir_all(data).map_err(|error| Failure::file(data, &error))?;
                // Processes that are started elsewhere must find it too.
                let data =
                    std::path::absolute(data).map_err(|error| Failure::file(data, &error))?;
                (data, None)
            }
            None => {
                let made = temporary(&std::env::temp_dir(), keep)?;
                (made.path().to_owned(), Some(made))
            }
        };
        if keep || made.is_none() {
            say(&format!("data: {}", data.display()));
        }
        if keep {
            say(&format!("notes: {}", notes.path().display()));
        }
        Ok(Self {
            data,
            notes,
            _made: made,
        })
    }

    /// A new directory for the notes of one measurement.
    pub fn notes(&self, name: &str) -> Result<PathBuf> {
        let dir = self.notes.path().join(name);
        std::fs::create_dir(&dir).map_err(|error| Failure::file(&dir, &error))?;
        Ok(dir)
    }
}
