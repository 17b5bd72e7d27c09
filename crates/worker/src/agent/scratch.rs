//! Where commands get their working directories.
//!
//! Below one root, which workers of the same user may share, each process has a directory of its own, and beside it a lock
//! that it holds as long as it lives:
//!
//! ```text
//! ROOT/4711-0.lock     locked by process 4711
//! ROOT/4711-0/         its attempts: run_0000000000009-1/ …
//! ```
//!
//! A directory whose lock is free is of a process that was killed; the next one that starts removes it. The lock is made
//! before the directory and removed after it.
//!
//! The root may be in a directory that everybody can write to, so it is used only if it is ours and nobody else can write there.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::supervisor::remove_scratch;
use crate::supervisor::sys::effective_user;

/// Nobody else may list what commands leave there, but a command may run as another user, who has to get through.
const PASSABLE: u32 = 0o711;
/// Names that are tried, should those before be taken.
const NAMES: u32 = 10_000;
const LOCK: &str = "lock";

/// The directory of this process, removed with it.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: PathBuf,
    lock: PathBuf,
    /// Locked while it is open.
    _held: File,
}

/// The root unless another is given: each user has one.
pub(super) fn standard_root() -> PathBuf {
    std::env::temp_dir().join(format!("drumtower-scratch-{}", effective_user()))
}

impl Scratch {
    /// Makes sure that directories can be made there. The error is for people.
    pub(super) fn prepare(root: &Path) -> Result<Self, String> {
        // A slash at the end would follow a link.
        let root: PathBuf = root.components().collect();
        let made = DirBuilder::new()
            .recursive(true)
            .mode(PASSABLE)
            .create(&root);
        // What is there and is no directory is told by the check.
        if let Err(error) = made
            && fs::symlink_metadata(&root).is_err()
        {
            return Err(format!("it cannot be made: {error}"));
        }
        check(&root)?;
        let usable = || {
            let root = root.canonicalize()?;
            let leftovers = leftovers(&root)?;
            let own = Self::make(&root)?;
            let probe = own.directory.join("probe");
            fs::create_dir(&probe)?;
            fs::remove_dir(&probe)?;
            Ok((own, leftovers))
        };
        let (own, leftovers) = usable()
            .map_err(|error: io::Error| format!("no directory can be made in it: {error}"))?;
        // There may be much to remove, and nobody waits for it.
        std::thread::spawn(move || leftovers.into_iter().for_each(Leftover::remove));
        Ok(own)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn make(root: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for number in 0..NAMES {
            let directory = root.join(format!("{process}-{number}"));
            let lock = directory.with_extension(LOCK);
            let held = match File::create_new(&lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                held => held?,
            };
            // Another process that starts may hold it for left behind, until it is locked.
            if let Err(TryLockError::WouldBlock) = held.try_lock() {
                continue;
            }
            if held.metadata()?.nlink() == 0 {
                continue;
            }
            let own = Self {
                directory,
                lock,
                _held: held,
            };
            fs::create_dir(&own.directory)?;
            fs::set_permissions(&own.directory, Permissions::from_mode(PASSABLE))?;
            return Ok(own);
        }
        Err(io::Error::other("there are too many locks: remove them"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // With something in it, it is for the next process, which finds it by its lock.
        if fs::remove_dir(&self.directory).is_ok() || !self.directory.exists() {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Whether the root is safe to use.
fn check(root: &Path) -> Result<(), String> {
    let about = fs::symlink_metadata(root).map_err(|error| error.to_string())?;
    if about.is_symlink() {
        return Err("it is a link: name the directory itself".to_owned());
    }
    if !about.is_dir() {
        return Err("it is not a directory".to_owned());
    }
    let own = effective_user();
    if about.uid() != own {
        return Err(format!(
            "it belongs to user {}, and the worker runs as user {own}",
            about.uid()
        ));
    }
    if about.mode() & 0o022 != 0 {
        return Err(format!(
            "others can write to it (mode {:o}): `chmod go-w` it",
            about.mode() & 0o7777
        ));
    }
    Ok(())
}

/// What a process left that was killed. Locked, so that it is removed once.
struct Leftover {
    directory: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Leftover {
    fn remove(self) {
        // What cannot be removed now is tried again by the next process.
        if remove_scratch(&self.directory).is_none() {
            let _ = fs::remove_file(&self.lock);
        }
    }
}

fn leftovers(root: &Path) -> io::Result<Vec<Leftover>> {
    let locks = fs::read_dir(root)?.flatten().map(|entry| entry.path());
    let locks = locks.filter(|path| path.extension().is_some_and(|end| end == LOCK));
    let free = |lock: PathBuf| {
        let held = File::open(&lock).ok()?;
        held.try_lock().ok()?;
        Some(Leftover {
            directory: lock.with_extension(""),
            lock,
            _held: held,
        })
    };
    Ok(locks.filter_map(free).collect())
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
