//! The one writer: sessions, commits, checkpoints.
//!
//! A commit that fails leaves the connection without a transaction and the derived data as it was. Only when COMMIT
//! itself failed is it unknown what the disk holds; then the derived data is built again before the next commit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Actor, Member, SessionId, SessionRow, WallMs};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::derived::Derived;
use super::lock::DirectoryLock;
use super::{Options, Sync, apply, failure, migrate, prune};
use crate::{Commit, Error, Store, check, failpoint};

pub struct Writer {
    conn: Connection,
    path: PathBuf,
    options: Options,
    derived: Arc<RwLock<Derived>>,
    /// Pages in the write-ahead log after the last commit.
    log_pages: Arc<AtomicU32>,
    /// The size of the log at which the next checkpoint is tried.
    checkpoint_at: u32,
    /// COMMIT failed without saying what it did.
    in_doubt: bool,
    _lock: DirectoryLock,
}

/// Makes the file before SQLite does, readable by its owner alone; the log and its index take after it.
fn make_private(path: &Path) -> Result<(), Error> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let made = options.open(path);
    made.map(drop)
        .map_err(|error| Error::Io(format!("cannot open {}: {error}", path.display())))
}

/// The writing connection. Foreign keys stay off: the change set's own expectations are checked instead.
pub fn connect(path: &Path, options: &Options) -> Result<Connection, Error> {
    make_private(path)?;
    let conn = Connection::open(path)?;
    migrate::refuse_foreign(&conn, path)?;
    conn.set_prepared_statement_cache_capacity(128);
    conn.busy_timeout(std::time::Duration::from_secs(1))?;
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(Error::Io(format!(
            "{} cannot use a write-ahead log (mode {mode})",
            path.display()
        )));
    }
    conn.pragma_update(
        None,
        "synchronous",
        match options.sync {
            Sync::Full => "FULL",
            Sync::Normal => "NORMAL",
        },
    )?;
    // Otherwise the planner looks at the value bound to a LIMIT and parses the statement anew for every other value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "foreign_keys", false)?;
    conn.pragma_update(None, "cache_size", -65_536)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(conn)
}

impl Writer {
    pub(super) fn new(
        conn: Connection,
        path: PathBuf,
        options: Options,
        lock: DirectoryLock,
        derived: Arc<RwLock<Derived>>,
    ) -> Result<Self, Error> {
        let mut conn = conn;
        let log_pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&log_pages);
        // The hook takes the place of SQLite's own checkpoint within COMMIT, which would hold up the acknowledgement.
        conn.wal_hook(Some(
            move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
                seen.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
                Ok(())
            },
        ))?;
        let checkpoint_at = options.checkpoint_pages;
        Ok(Self {
            conn,
            path,
            options,
            derived,
            log_pages,
            checkpoint_at,
            in_doubt: false,
            _lock: lock,
        })
    }

    /// The file that holds the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bounds the file to a number of pages, at least those it has, or frees it from the bound; says what holds. Beyond
    /// the bound a commit answers [`Error::Full`].
    pub fn limit_pages(&mut self, pages: Option<u32>) -> Result<u32, Error> {
        let pages = pages.map_or(u32::MAX - 1, |pages| pages.max(1));
        let sql = format!("PRAGMA max_page_count = {pages}");
        Ok(self.conn.query_row(&sql, [], |row| row.get(0))?)
    }

    pub(super) fn now() -> WallMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn settle_doubt(&mut self) -> Result<(), Error> {
        if self.in_doubt {
            self.roll_back();
            let derived = Derived::load(&self.conn, &self.options)?;
            *self.derived.write().unwrap_or_else(PoisonError::into_inner) = derived;
            self.in_doubt = false;
        }
        Ok(())
    }

    fn roll_back(&mut self) {
        if !self.conn.is_autocommit() {
            // What cannot be rolled back is not committed either: the next BEGIN says so.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
    }

    fn transact(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        if !apply::fence(&self.conn, changes, Self::now())? {
            self.roll_back();
            return Ok(Commit::Fenced);
        }
        let derived = self.derived.read().unwrap_or_else(PoisonError::into_inner);
        let batch = apply::everything(&self.conn, changes, &derived)?;
        let step = derived.write(&self.conn, &batch)?;
        if let Some(prune) = &changes.prune {
            prune::rollups(&self.conn, prune)?;
        }
        drop(derived);
        failpoint::hit("before_commit");
        // Only this thread changes the derived data, so it is as it was; readers wait for the outcome.
        let mut derived = self.derived.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.conn.prepare_cached("COMMIT")?.execute([]) {
            self.in_doubt = true;
            return Err(failure::at_commit(error));
        }
        derived.settle(step, batch);
        failpoint::hit("after_commit");
        Ok(Commit::Done)
    }

    /// Moves the log into the main file once it is long. A reader may keep it from getting to the end; then it is tried
    /// again when the log has grown by a quarter.
    fn checkpoint_if_due(&mut self) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages < self.checkpoint_at {
            if pages < self.options.checkpoint_pages {
                self.checkpoint_at = self.options.checkpoint_pages;
            }
            return;
        }
        #[cfg(feature = "failpoints")]
        die_within_checkpoint(&self.path);
        let checkpoint = self
            .conn
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            });
        let whole = matches!(checkpoint, Ok((logged, moved)) if logged == moved);
        // A checkpoint that fails loses nothing: the log stays, and grows until one succeeds.
        self.checkpoint_at = if whole {
            self.options.checkpoint_pages
        } else {
            pages.saturating_add(self.options.checkpoint_pages / 4)
        };
        if whole {
            self.log_pages.store(0, Ordering::Relaxed);
        }
    }
}

/// Dies as soon as the checkpoint has begun to write the main file.
#[cfg(feature = "failpoints")]
fn die_within_checkpoint(path: &Path) {
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

impl Store for Writer {
    fn clock(&mut self) -> Result<WallMs, Error> {
        Ok(Self::now())
    }

    fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
        self.settle_doubt()?;
        let mut insert = self.conn.prepare_cached(
            "INSERT INTO session(server, seq, expires, revoked, address, version, lease) VALUES(?1, 0, ?2, 0, ?3, ?4, ?5)",
        )?;
        let id = insert.insert(params![
            &*member.server.0,
            Self::now().plus(extend_ms).0,
            member.address,
            member.version,
            member.lease_ms as i64
        ])?;
        Ok(SessionId(id as u64))
    }

    fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
        check::shape(changes)?;
        self.settle_doubt()?;
        self.checkpoint_if_due();
        let outcome = self.transact(changes);
        if outcome.is_err() {
            self.roll_back();
        }
        outcome
    }

    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        let Ok(id) = i64::try_from(id.0) else {
            return Ok(None);
        };
        let sql = "SELECT id, server, seq, expires, revoked, address, version, lease FROM session WHERE id = ?1";
        Ok(self
            .conn
            .prepare_cached(sql)?
            .query_row([id], session_row)
            .optional()?)
    }

    fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
        live_sessions(&self.conn)
    }

    fn close(&mut self) -> Result<(), Error> {
        self.roll_back();
        self.conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }
}

/// Every session that is not revoked.
pub(super) fn live_sessions(conn: &Connection) -> Result<Vec<SessionRow>, Error> {
    let sql = "SELECT id, server, seq, expires, revoked, address, version, lease FROM session
               WHERE revoked = 0 ORDER BY id";
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map([], session_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        id: SessionId(row.get::<_, i64>(0)? as u64),
        member: Member {
            server: Actor::new(row.get_ref(1)?.as_str()?),
            address: row.get(5)?,
            version: row.get(6)?,
            home: None,
            lease_ms: row.get::<_, i64>(7)? as u64,
        },
        seq: row.get::<_, i64>(2)? as u64,
        expires: WallMs(row.get(3)?),
        revoked: row.get(4)?,
        took: None,
    })
}
