//! Putting a backup in the place of a data directory, whole or not at all.
//!
//! Everything is made ready in `DIR/.restoring`, checked and synced; the moves that remain are written down there; then
//! they are made ([`moves`]). All of it is within one file system, also where the directory is a mount. While
//! `.restoring` is there no server starts, so one that dies half-way is repeated, never taken for a fresh start. Until the
//! moves are written down nothing else in the directory has changed; afterwards a repetition only makes them.
//!
//! A restored store is older than what workers and callers have seen. Its sessions are revoked, and its id marks, epochs
//! and session numbers are raised above anything that can have been handed out since
//! (docs/adr/0007-backup-and-restore.md).

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use drumtower_core::model::{SegmentId, WallMs, id_floor};
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, params};

use super::super::{FILE, lock, schema};
use super::make::LOGS;
use super::manifest::{self, Manifest};
use super::moves::{self, Moves};
use super::{DIRECTORY, Error, Progress, Stage, files, inspect};
use crate::failpoint;

const STAGE: &str = ".restoring";

/// How far the clocks of the machine that was lost and of this one may differ, and how far ahead of its clock a server
/// may have drawn ids.
const AHEAD_MS: i64 = 60_000;
/// More sessions and take-overs than can have been between a backup and its restore.
const LIVES: i64 = 1_000_000;

/// What belongs to people and stays where it is.
const KEPT: [&str; 6] = [
    "lock",
    "drumtower.toml",
    DIRECTORY,
    "tls",
    "webhook.key",
    "lost+found",
];
/// What is ours.
const OURS: [&str; 2] = [STAGE, moves::DONE];

#[derive(Debug)]
pub struct Restored {
    pub manifest: Manifest,
    /// Where what was in the directory has been moved.
    pub replaced: Option<PathBuf>,
}

/// Refuses a directory in which a restore has begun and not ended.
pub(in super::super) fn refuse_unfinished(directory: &Path) -> Result<(), crate::Error> {
    let stage = directory.join(STAGE);
    if !stage.exists() {
        return Ok(());
    }
    let directory = directory.display();
    Err(crate::Error::Io(match moves::are_under_way(&stage) {
        true => format!("a restore into {directory} was interrupted: run it again"),
        false => format!(
            "a restore into {directory} was interrupted before it changed anything: run it again, or remove {} to go on \
             with what is there",
            stage.display()
        ),
    }))
}

/// Restores `backup` into the data directory `data`. With `replace`, the store that is there is moved aside.
///
/// One that was interrupted is finished first; where it had come as far as its moves, without the backup.
pub fn restore(
    backup: &Path,
    data: &Path,
    replace: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Restored, Error> {
    let stage = data.join(STAGE);
    if !stage.exists() {
        // Nothing is made for a backup that is of no use.
        acceptable(backup)?;
    }
    files::directory(data)?;
    let _lock = lock(data, replace)?;
    if let Some(moves) = Moves::read(&stage)? {
        let replaced = moves.finish(data, &stage)?;
        if moves.is_from(backup) {
            let manifest = moves.manifest;
            return Ok(Restored { manifest, replaced });
        }
    }
    let manifest = acceptable(backup)?;
    check_place(data, replace)?;
    // A mark of an earlier one stays whatever happens to this one: only a restore that ends takes it away.
    let unfinished = match stage.exists() {
        true => files::Unfinished::take_over(&stage)?,
        false => files::Unfinished::make(&stage)?,
    };
    copy_verified(backup, &stage, &manifest, progress)?;
    raise(&stage.join(FILE), data).map_err(|error| Error::writing(data, error))?;
    files::sync_file(&stage.join(FILE))?;
    files::sync_directory(&stage)?;
    failpoint::hit("in_restore");
    // Only now: to look at the old store may have made files beside it.
    let moves = Moves::new(backup, manifest, data, occupants(data)?);
    moves.write(&stage)?;
    unfinished.keep();
    failpoint::hit("in_restore");
    let replaced = moves.finish(data, &stage)?;
    let manifest = moves.manifest;
    Ok(Restored { manifest, replaced })
}

fn acceptable(backup: &Path) -> Result<Manifest, Error> {
    let manifest = manifest::read(backup)?;
    if manifest.schema_version > schema::KNOWN {
        return Err(Error::Newer {
            backup: backup.to_owned(),
            found: manifest.schema_version,
            known: schema::KNOWN,
        });
    }
    Ok(manifest)
}

/// Keeps servers out. A directory that is refused gets no file of ours.
fn lock(data: &Path, replace: bool) -> Result<lock::DirectoryLock, Error> {
    let path = data.join("lock");
    let made_here = !path.exists();
    if made_here {
        check_place(data, replace)?;
    }
    let lock = lock::DirectoryLock::take(data)?;
    if made_here {
        files::inherit_owner(&path);
    }
    Ok(lock)
}

/// Whether what lies in the directory may be moved aside: only a store, and only when asked to.
fn check_place(data: &Path, replace: bool) -> Result<(), Error> {
    if data.join(STAGE).exists() || occupants(data)?.is_empty() {
        return Ok(());
    }
    match (data.join(FILE).is_file(), replace) {
        (true, true) => Ok(()),
        (true, false) => Err(Error::Occupied(data.to_owned())),
        (false, _) => Err(Error::Foreign(data.to_owned())),
    }
}

/// What lies in the data directory and would be in the way.
fn occupants(data: &Path) -> Result<Vec<String>, Error> {
    let wrong = |error| Error::file(data, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(data).map_err(wrong)? {
        let name = entry.map_err(wrong)?.file_name();
        let name = name.to_string_lossy().into_owned();
        let stays = KEPT.iter().chain(&OURS).any(|kept| *kept == name);
        if !stays && !name.starts_with(moves::ASIDE) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

fn copy_verified(
    backup: &Path,
    stage: &Path,
    manifest: &Manifest,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let total = manifest.bytes();
    let mut done = 0;
    files::new_directory(&stage.join(LOGS))?;
    for entry in &manifest.files {
        let mut copied = |bytes| {
            done += bytes;
            progress(Progress {
                stage: Stage::Copying,
                done,
                total,
            });
            ControlFlow::Continue(())
        };
        let to = stage.join(&entry.path);
        let whole = files::copy(&backup.join(&entry.path), &to, u64::MAX, &mut copied)?;
        if whole != (entry.bytes, entry.sha256.clone()) {
            return Err(Error::Damaged {
                backup: backup.to_owned(),
                why: format!("{} is not as it was written", entry.path),
            });
        }
    }
    // Rows point at places in numbered files; a file that is not here must not come to mean another one.
    let next = stage
        .join(LOGS)
        .join(format!("{:08}.log", manifest.newest_log.saturating_add(1)));
    files::new_file(&next)?
        .sync_all()
        .map_err(|error| Error::file(&next, error))?;
    files::sync_directory(&stage.join(LOGS))?;
    progress(Progress {
        stage: Stage::Checking,
        done: 0,
        total: 1,
    });
    let contents = inspect::database(&stage.join(FILE), &mut || ControlFlow::Continue(()))
        .map_err(|error| error.in_backup(backup))?;
    manifest.agrees_with(backup, &contents)
}

/// Makes sure that nothing that was handed out since the backup is handed out again.
fn raise(database: &Path, data: &Path) -> Result<(), crate::Error> {
    let conn = Connection::open(database)?;
    let now = WallMs(Timestamp::now().as_millisecond());
    conn.execute_batch("BEGIN IMMEDIATE")?;
    conn.execute("UPDATE session SET revoked = 1", [])?;
    conn.execute(
        "UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'session'",
        [LIVES],
    )?;
    for number in 0..SegmentId::COUNT {
        let floor = id_floor(now.plus(AHEAD_MS), SegmentId(number));
        conn.execute(
            "UPDATE segment SET epoch = epoch + ?2, id_mark = max(id_mark, ?3) WHERE id = ?1",
            params![number, LIVES, floor.cast_signed()],
        )?;
    }
    for (id, epoch, mark) in marks_of(&data.join(FILE)).unwrap_or_default() {
        conn.execute(
            "UPDATE segment SET epoch = max(epoch, ?2 + 1), id_mark = max(id_mark, ?3) WHERE id = ?1",
            params![id, epoch, mark],
        )?;
    }
    conn.execute_batch("COMMIT")?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    conn.close().map_err(|(_, error)| error.into())
}

/// The marks of the store that is replaced, as far as it can still be read: its clock may have been ahead of ours.
fn marks_of(database: &Path) -> Option<Vec<(i64, i64, i64)>> {
    if !database.is_file() {
        return None;
    }
    let conn = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let mut select = conn
        .prepare("SELECT id, epoch, id_mark FROM segment")
        .ok()?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.ok()?.collect::<Result<_, _>>().ok()
}
