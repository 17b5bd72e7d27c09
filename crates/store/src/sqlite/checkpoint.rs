//! Moving the write-ahead log into the main file, beside the commits.
//!
//! With many jobs each fire dirties a page of its own, so a checkpoint writes thousands of scattered pages and waits until
//! the disk has them. A thread with a connection of its own does that while commits go on. SQLite begins the log anew only
//! when all of it has been moved, which never happens while commits go on; so the thread comes close, and the writer moves
//! the little that is left between two commits.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rusqlite::{Connection, OpenFlags};

use super::Sync;
use crate::Error;
#[cfg(feature = "failpoints")]
use crate::failpoint;

/// As much as the writer may move between two commits.
const LITTLE_PAGES: i64 = 256;
/// How often the thread goes after the commits that were made meanwhile.
const ROUNDS: usize = 4;

/// Pages in the log, and how many of them the main file has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    logged: i64,
    moved: i64,
}

impl Moved {
    /// Whether a log that has this many pages by now holds little that is left to move.
    pub fn is_close(self, logged: u32) -> bool {
        i64::from(logged) - self.moved <= LITTLE_PAGES
    }

    /// Whether no reader kept it from moving all that was in the log by then.
    pub fn is_whole(self) -> bool {
        self.logged >= 0 && self.logged == self.moved
    }
}

/// Moves as much as readers allow, without waiting for anyone.
pub fn run(conn: &Connection, path: &Path) -> Result<Moved, Error> {
    #[cfg(feature = "failpoints")]
    die_within(path);
    #[cfg(not(feature = "failpoints"))]
    let _ = path;
    let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok(Moved {
            logged: row.get(1)?,
            moved: row.get(2)?,
        })
    })?;
    Ok(moved)
}

/// A checkpoint under way in a thread of its own. One that fails loses nothing: the log stays, and grows until one succeeds.
#[derive(Default)]
pub struct Background {
    thread: Option<JoinHandle<Result<Moved, Error>>>,
}

pub enum Ended {
    NotStarted,
    Moved(Moved),
    Failed,
}

impl Background {
    /// False when no thread can be had.
    pub fn start(&mut self, path: &Path, sync: Sync) -> bool {
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || come_close(path, sync));
        self.thread = thread.ok();
        self.thread.is_some()
    }

    pub fn is_running(&self) -> bool {
        self.thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for the end of the one that was started, if any, and says how far it came.
    pub fn end(&mut self) -> Ended {
        match self.thread.take().map(JoinHandle::join) {
            None => Ended::NotStarted,
            Some(Ok(Ok(moved))) => Ended::Moved(moved),
            Some(_) => Ended::Failed,
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

fn come_close(path: PathBuf, sync: Sync) -> Result<Moved, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&path, flags)?;
    conn.pragma_update(None, "synchronous", sync.pragma())?;
    let mut moved = run(&conn, &path)?;
    for _ in 1..ROUNDS {
        let before = moved;
        if moved.logged - moved.moved > LITTLE_PAGES {
            moved = run(&conn, &path)?;
        }
        if moved == before {
            break;
        }
    }
    Ok(moved)
}

/// Dies as soon as the checkpoint has begun to write the main file.
#[cfg(feature = "failpoints")]
fn die_within(path: &Path) {
    if !failpoint::due("in_checkpoint") {
        return;
    }
    let path = path.to_owned();
    let written = move || {
        std::fs::metadata(&path)
            .and_then(|file| file.modified())
            .ok()
    };
    let before = written();
    std::thread::spawn(move || {
        while written() == before {
            std::hint::spin_loop();
        }
        failpoint::kill();
    });
}
