//! Making a backup: copy, check, describe, name.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::manifest::{self, FileEntry, Manifest, Reason};
use super::shelf::{Found, Shelf, list};
use super::{Error, Progress, Stage, Watch, copy, files, inspect};
use crate::failpoint;

/// Where the server keeps the output of runs, within the data directory.
pub(super) const LOGS: &str = "logs";

#[derive(Clone, Debug)]
pub struct Request {
    /// The data directory of the store, in use or not.
    pub data: PathBuf,
    /// The directory of backups; made if it is not there.
    pub directory: PathBuf,
    pub reason: Reason,
    /// Whether the output of runs is copied too.
    pub logs: bool,
}

/// Makes a backup that has been checked, or leaves nothing.
pub fn make(request: &Request, watch: Watch<'_>) -> Result<Found, Error> {
    let database = request.data.join(super::super::FILE);
    if !database.is_file() {
        return Err(Error::NoStore(request.data.clone()));
    }
    let begun = Timestamp::now();
    let shelf = Shelf::take(&request.directory)?;
    let name = shelf.free(&wish(request, begun, &database)?);
    let part = shelf.part(&name);
    let unfinished = files::Unfinished::make(&part)?;
    copy::snapshot(&database, &part.join(super::super::FILE), watch)?;
    failpoint::hit("in_backup");
    let mut checking = || {
        watch(Progress {
            stage: Stage::Checking,
            done: 0,
            total: 1,
        })
    };
    let contents = inspect::database(&part.join(super::super::FILE), &mut checking)?;
    let mut manifest = Manifest::new(contents, format!("{begun:.3}"), request.reason);
    let hashed = entry(&part, super::super::FILE, &mut |_| checking())?;
    manifest.files.push(hashed);
    // After the database: whatever output its rows point at has been written by then.
    copy_logs(request, &part, &mut manifest, watch)?;
    manifest::write(&part, &manifest)?;
    files::sync_directory(&part)?;
    failpoint::hit("in_backup");
    let path = shelf.named(&name);
    files::rename(&part, &path)?;
    unfinished.keep();
    Ok(Found {
        name,
        path,
        manifest,
    })
}

fn wish(request: &Request, begun: Timestamp, database: &Path) -> Result<String, Error> {
    let at = begun.strftime("%Y%m%dT%H%M%SZ");
    Ok(match request.reason {
        Reason::Upgrade => format!("before-upgrade-v{}-{at}", version_of(database)?),
        Reason::Asked | Reason::Scheduled => format!("drumtower-{at}"),
    })
}

fn version_of(database: &Path) -> Result<u32, Error> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let read = || {
        rusqlite::Connection::open_with_flags(database, flags)?.pragma_query_value(
            None,
            "user_version",
            |row| row.get(0),
        )
    };
    Ok(read().map_err(crate::Error::from)?)
}

fn entry(backup: &Path, path: &str, told: files::Told<'_>) -> Result<FileEntry, Error> {
    let (bytes, sha256) = files::hash(&backup.join(path), told)?;
    Ok(FileEntry {
        path: path.to_owned(),
        bytes,
        sha256,
    })
}

/// Copies each file of output as long as it is at this moment. A record that is cut in two by this is cut off when the
/// files are next opened, as one that a crash has cut.
fn copy_logs(
    request: &Request,
    part: &Path,
    manifest: &mut Manifest,
    watch: Watch<'_>,
) -> Result<(), Error> {
    let directory = request.data.join(LOGS);
    let found = log_files(&directory)?;
    manifest.newest_log = found.last().map_or(0, |(number, _, _)| *number);
    manifest.logs = request.logs;
    if !request.logs || found.is_empty() {
        return Ok(());
    }
    files::new_directory(&part.join(LOGS))?;
    let total = found.iter().map(|(_, _, length)| length).sum();
    let mut done = 0;
    for (_, name, length) in found {
        let path = format!("{LOGS}/{name}");
        let mut told = |bytes| {
            done += bytes;
            watch(Progress {
                stage: Stage::Logs,
                done,
                total,
            })
        };
        if told(0).is_break() {
            return Err(Error::Stopped);
        }
        match files::copy(&directory.join(&name), &part.join(&path), length, &mut told) {
            Ok((bytes, sha256)) => manifest.files.push(FileEntry {
                path,
                bytes,
                sha256,
            }),
            // It expired meanwhile.
            Err(Error::File { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files::sync_directory(&part.join(LOGS))
}

/// Number, name and length of each file of output, in order.
fn log_files(directory: &Path) -> Result<Vec<(u32, String, u64)>, Error> {
    let wrong = |error| Error::file(directory, error);
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(wrong(error)),
    };
    for entry in entries {
        let entry = entry.map_err(wrong)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let digits = name.strip_suffix(".log").filter(|text| text.len() == 8);
        if let Some(number) = digits.and_then(|text| text.parse().ok()) {
            found.push((number, name, entry.metadata().map_err(wrong)?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// A backup of a store that is about to be brought to a newer schema, unless there is one of this very state.
pub(in super::super) fn before_upgrade(
    data: &Path,
    state: (u32, u64, u64),
) -> Result<Found, Error> {
    let directory = data.join(super::DIRECTORY);
    let same = |backup: &Found| {
        let manifest = &backup.manifest;
        manifest.reason == Reason::Upgrade
            && (manifest.schema_version, manifest.session, manifest.seq) == state
    };
    if let Some(found) = list(&directory)?.into_iter().rev().find(same)
        && super::verify(&found.path, &mut |_| {}).is_ok()
    {
        return Ok(found);
    }
    let request = Request {
        data: data.to_owned(),
        directory,
        reason: Reason::Upgrade,
        logs: false,
    };
    make(&request, &mut |_| ControlFlow::Continue(()))
}
