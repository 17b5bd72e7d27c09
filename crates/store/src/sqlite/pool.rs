//! Read-only connections, lent for one snapshot at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use crate::Error;

/// Idle connections that are kept; more are opened when more reads go on at once.
const IDLE: usize = 8;

#[derive(Clone)]
pub struct Pool {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Arc::default(),
        }
    }

    /// Calls `read` with a connection on which a snapshot is open, after `pin` has been called with it as its first look.
    ///
    /// A connection that met an error is not used again.
    pub fn snapshot<P, T>(
        &self,
        pin: impl FnOnce(&Connection) -> Result<P, Error>,
        read: impl FnOnce(&Connection, P) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let conn = self.take()?;
        conn.prepare_cached("BEGIN")?.execute([])?;
        let pinned = pin(&conn)?;
        let answer = read(&conn, pinned)?;
        conn.prepare_cached("COMMIT")?.execute([])?;
        self.give_back(conn);
        Ok(answer)
    }

    fn take(&self) -> Result<Connection, Error> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        idle.map_or_else(|| self.connect(), Ok)
    }

    fn give_back(&self, conn: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(conn);
        }
    }

    fn connect(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.set_prepared_statement_cache_capacity(64);
        conn.busy_timeout(std::time::Duration::from_secs(1))?;
        conn.pragma_update(None, "query_only", true)?;
        conn.pragma_update(None, "cache_size", -8_192)?;
        Ok(conn)
    }
}
