//! Read-only connections, lent for one snapshot at a time, a bounded number at once: more readers than that would only
//! take turns on the processor, each with a page cache of its own.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::Error;

/// Idle connections that are kept.
const IDLE: usize = 8;
/// Connections at once; whoever comes later waits.
const LENT: usize = 32;
/// The page cache of one connection. Pages go in order of their keys, so a larger one makes none of them faster (measured
/// on a million jobs), and all of them together must leave the server's memory to others.
const CACHE_KIB: i64 = 2_048;

#[derive(Clone)]
pub struct Pool {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    lent: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the places, given back when dropped; the connection only if it is well.
struct Place<'a> {
    shared: &'a Shared,
    well: Option<Connection>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.lent -= 1;
        if state.idle.len() < IDLE {
            state.idle.extend(self.well.take());
        }
        drop(state);
        self.shared.returned.notify_one();
    }
}

impl Pool {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            shared: Arc::default(),
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
        let (mut place, idle) = self.take();
        let conn = idle.map_or_else(|| self.connect(), Ok)?;
        conn.prepare_cached("BEGIN")?.execute([])?;
        let pinned = pin(&conn)?;
        let answer = read(&conn, pinned)?;
        conn.prepare_cached("COMMIT")?.execute([])?;
        place.well = Some(conn);
        Ok(answer)
    }

    fn take(&self) -> (Place<'_>, Option<Connection>) {
        let waiting = |state: &mut State| state.lent >= LENT;
        let state = self.shared.returned.wait_while(self.shared.lock(), waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.lent += 1;
        let idle = state.idle.pop();
        let place = Place {
            shared: &self.shared,
            well: None,
        };
        (place, idle)
    }

    fn connect(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.set_prepared_statement_cache_capacity(64);
        conn.busy_timeout(std::time::Duration::from_secs(1))?;
        // As for the writer: a LIMIT of another size must not have the statement parsed anew.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.pragma_update(None, "query_only", true)?;
        conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
        Ok(conn)
    }
}
