//! The end of a store: what it and its server made in the data directory goes, and nothing else.

use std::io;
use std::path::Path;

use super::failure::at_path;
use super::lock::DirectoryLock;
use crate::Error;

/// The database goes first: what is left without it is of no use to anyone.
const FILES: [&str; 7] = [
    super::FILE,
    "drumtower.db-wal",
    "drumtower.db-shm",
    "bootstrap.token",
    "local.token",
    "server.url",
    "cursor.key",
];
const DIRECTORIES: [&str; 2] = ["logs", "scratch"];

/// Deletes the store in `directory`, unless a process works on it. Returns the names of what stays there.
pub fn delete(directory: &Path) -> Result<Vec<String>, Error> {
    // Its file stays: one that is made anew would let a second process in beside whoever holds this one.
    let _lock = DirectoryLock::take(directory)?;
    for name in FILES {
        gone(&directory.join(name), |path| std::fs::remove_file(path))?;
    }
    for name in DIRECTORIES {
        gone(&directory.join(name), |path| std::fs::remove_dir_all(path))?;
    }
    let wrong = |error| at_path(directory, &error);
    let mut left = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        left.push(name.to_string_lossy().into_owned());
    }
    left.retain(|name| name != "lock");
    left.sort();
    Ok(left)
}

/// Refuses while a process works on the store in `directory`.
pub fn idle(directory: &Path) -> Result<(), Error> {
    DirectoryLock::take(directory).map(drop)
}

fn gone(path: &Path, remove: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at_path(path, &error)),
        _ => Ok(()),
    }
}
