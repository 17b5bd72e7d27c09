//! One snapshot of a database, page by page, while others write to it.
//!
//! The reader's transaction is open from the first page to the last, so every step sees the same snapshot and nothing is
//! ever begun again, however fast commits come. They go on into the write-ahead log, which can only be emptied when the
//! copy has ended. What was written is synced every few megabytes: a file system that orders its journal makes the sync
//! of a commit wait for whatever else is dirty. The figures are in docs/adr/0007-backup-and-restore.md.

use std::fs::File;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::{Error, Progress, Stage, Watch, files};

/// Pages between two looks at the clock and at what is unsynced.
const PAGES_A_STEP: i32 = 256;

/// Copies the database at `source` into the new file `target`.
pub(super) fn snapshot(source: &Path, target: &Path, watch: Watch<'_>) -> Result<(), Error> {
    drop(files::new_file(target)?);
    let from = reading(source)?;
    let mut to = writing(target)?;
    from.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")
        .map_err(crate::Error::from)?;
    let page_bytes: u32 = from
        .pragma_query_value(None, "page_size", |row| row.get(0))
        .map_err(crate::Error::from)?;
    let file = File::open(target).map_err(|error| Error::file(target, error))?;
    let copied = step_by_step(&from, &mut to, &file, u64::from(page_bytes), watch);
    copied.map_err(|error| error.of(target))?;
    from.execute_batch("COMMIT").map_err(crate::Error::from)?;
    to.close()
        .map_err(|(_, error)| Error::writing(target, error))?;
    file.sync_all().map_err(|error| Error::file(target, error))
}

/// Which side an error came from is known only to the caller.
enum Trouble {
    Sqlite(rusqlite::Error),
    Sync(std::io::Error),
    Stopped,
}

impl Trouble {
    fn of(self, target: &Path) -> Error {
        match self {
            Self::Sqlite(error) => Error::writing(target, error),
            Self::Sync(error) => Error::file(target, error),
            Self::Stopped => Error::Stopped,
        }
    }
}

fn step_by_step(
    from: &Connection,
    to: &mut Connection,
    file: &File,
    page_bytes: u64,
    watch: Watch<'_>,
) -> Result<(), Trouble> {
    let backup = Backup::new(from, to).map_err(Trouble::Sqlite)?;
    let mut unsynced = 0;
    loop {
        let step = backup.step(PAGES_A_STEP).map_err(Trouble::Sqlite)?;
        let seen = backup.progress();
        let pages = |count: i32| u64::try_from(count).unwrap_or(0) * page_bytes;
        let told = watch(Progress {
            stage: Stage::Copying,
            done: pages(seen.pagecount - seen.remaining),
            total: pages(seen.pagecount),
        });
        if told.is_break() {
            return Err(Trouble::Stopped);
        }
        if step == StepResult::Done {
            return Ok(());
        }
        unsynced += PAGES_A_STEP as u64 * page_bytes;
        if unsynced >= files::SYNC_EVERY {
            file.sync_data().map_err(Trouble::Sync)?;
            unsynced = 0;
        }
    }
}

fn reading(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(std::time::Duration::from_secs(5))?;
        conn.pragma_update(None, "query_only", true)?;
        Ok(conn)
    };
    open().map_err(|error| crate::Error::from(error).into())
}

/// The target is nobody's yet: it needs no journal, and is synced by whoever made it.
fn writing(path: &Path) -> Result<Connection, Error> {
    let open = || -> rusqlite::Result<Connection> {
        let conn = Connection::open(path)?;
        conn.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
        conn.pragma_update(None, "synchronous", "OFF")?;
        Ok(conn)
    };
    open().map_err(|error| Error::writing(path, error))
}
