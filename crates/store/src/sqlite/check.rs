//! Whether a store at rest holds together.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::FILE;
use super::lock::DirectoryLock;
use crate::Error;

/// Reads every page of the store in `directory` and changes nothing; refused while a process works on it.
pub fn check(directory: &Path) -> Result<(), Error> {
    let _lock = DirectoryLock::take(directory)?;
    // What lies in the log beside the file belongs to it, so it cannot be opened as if it were alone.
    let conn = Connection::open_with_flags(
        directory.join(FILE),
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.pragma_update(None, "query_only", true)?;
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Corrupt(verdict))
    }
}
