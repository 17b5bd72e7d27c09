//! Files and directories that only their owner can read, synced before anything relies on them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Error;

/// Told how many bytes were read since the last time; a break ends the work.
pub(super) type Told<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// Written back to the disk at this many bytes, so that what waits to be written stays small: on most file systems a
/// commit of the store waits for it.
pub(super) const SYNC_EVERY: u64 = 8 << 20;

const CHUNK: usize = 1 << 20;

/// Makes a directory that must not be there yet.
pub(super) fn new_directory(path: &Path) -> Result<(), Error> {
    builder()
        .create(path)
        .map_err(|error| Error::file(path, error))?;
    inherit_owner(path);
    Ok(())
}

/// Makes a directory and those above it, as far as they are missing.
pub(super) fn directory(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        directory(parent)?;
    }
    match new_directory(path) {
        Err(Error::File { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// What root makes in the directory of a server's user must be that user's, or the server could not go on with it.
#[cfg(unix)]
pub(super) fn inherit_owner(path: &Path) {
    use std::os::unix::fs::{MetadataExt, lchown};
    let above = path.parent().and_then(|parent| fs::metadata(parent).ok());
    let own = fs::symlink_metadata(path).ok();
    if let (Some(above), Some(own)) = (above, own)
        && above.uid() != own.uid()
    {
        // Whoever is not root may not, and need not. What a link points at is not ours to give away.
        let _ = lchown(path, Some(above.uid()), Some(above.gid()));
    }
}

#[cfg(not(unix))]
pub(super) fn inherit_owner(_: &Path) {}

fn builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

pub(super) fn new_file(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(path);
    inherit_owner(path);
    made.map_err(|error| Error::file(path, error))
}

pub(super) fn sync_file(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::file(path, error))
}

pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    sync_file(path)
}

/// Length and SHA-256, in hexadecimal.
pub(super) fn hash(path: &Path, told: Told<'_>) -> Result<(u64, String), Error> {
    let mut file = File::open(path).map_err(|error| Error::file(path, error))?;
    let (mut hasher, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
    loop {
        let read = file
            .read(&mut chunk)
            .map_err(|error| Error::file(path, error))?;
        if read == 0 {
            return Ok((bytes, hexadecimal(&hasher.finalize())));
        }
        hasher.update(&chunk[..read]);
        bytes += read as u64;
        if told(read as u64).is_break() {
            return Err(Error::Stopped);
        }
    }
}

/// Copies at most `length` bytes into a new file, synced, and says how many there were and their SHA-256.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    length: u64,
    told: Told<'_>,
) -> Result<(u64, String), Error> {
    let source = File::open(from).map_err(|error| Error::file(from, error))?;
    let mut source = source.take(length);
    let mut target = new_file(to)?;
    let wrong = |error| Error::file(to, error);
    let (mut hasher, mut bytes, mut unsynced) = (Sha256::new(), 0, 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = source
            .read(&mut chunk)
            .map_err(|error| Error::file(from, error))?;
        if read == 0 {
            break;
        }
        target.write_all(&chunk[..read]).map_err(wrong)?;
        hasher.update(&chunk[..read]);
        bytes += read as u64;
        unsynced += read as u64;
        if unsynced >= SYNC_EVERY {
            target.sync_data().map_err(wrong)?;
            unsynced = 0;
        }
        if told(read as u64).is_break() {
            return Err(Error::Stopped);
        }
    }
    target.sync_all().map_err(wrong)?;
    Ok((bytes, hexadecimal(&hasher.finalize())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A directory that goes, with all it holds, unless it was kept. One that was there before only loses what it holds.
pub(super) struct Unfinished<'a> {
    path: &'a Path,
    before: bool,
    kept: bool,
}

impl<'a> Unfinished<'a> {
    pub fn make(path: &'a Path) -> Result<Self, Error> {
        new_directory(path)?;
        Ok(Self {
            path,
            before: false,
            kept: false,
        })
    }

    /// The directory that is there, emptied.
    pub fn take_over(path: &'a Path) -> Result<Self, Error> {
        empty(path).map_err(|error| Error::file(path, error))?;
        Ok(Self {
            path,
            before: true,
            kept: false,
        })
    }

    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let _ = match (self.kept, self.before) {
            (true, _) => Ok(()),
            (false, true) => empty(self.path),
            (false, false) => fs::remove_dir_all(self.path),
        };
    }
}

fn empty(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Renames within one file system, durably.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| Error::file(to, error))?;
    match to.parent() {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}
