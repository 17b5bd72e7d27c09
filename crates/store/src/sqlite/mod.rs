//! The embedded store: one SQLite file, one writer, readers beside it.
//!
//! One connection writes, under a lock on the data directory; a small pool of read-only connections reads snapshots. A
//! commit is durable when it returns: WAL with `synchronous=FULL` syncs the log before COMMIT answers.
//!
//! Finished runs are keyed by a number that grows with each finish, so they are always appended, however late a run ends
//! (docs/adr/0002-history-layout.md). The ways to them, by id and by job, are built in memory for the newest bucket and
//! written as sorted blobs, a few in each commit, when a bucket is full. Roll-ups are gathered likewise. Both are
//! rebuilt from the rows when the store is opened: the rows are the truth, the rest is derived.

mod apply;
mod backfill_rows;
pub mod backup;
mod breaker_rows;
mod buckets;
mod calendar_rows;
mod check;
mod checkpoint_rows;
mod chunk;
mod delete;
mod derived;
mod drain_rows;
mod failure;
mod filter;
mod follower_rows;
mod history;
mod job_records;
mod job_rows;
mod keys;
mod letter_rows;
mod list_runs;
mod lock;
mod lock_rows;
mod merge;
mod migrate;
mod pool;
mod prune;
mod queue_rows;
mod reader;
mod record_rows;
mod rollups;
mod run_rows;
mod schema;
mod standing_rows;
mod within;
mod writer;

use std::path::Path;
use std::sync::{Arc, RwLock};

use crate::{Error, failpoint};

pub use check::check;
pub use delete::{delete, idle};
pub use reader::Reader;
pub use writer::Writer;

/// The name of the database within the data directory.
pub const FILE: &str = "drumtower.db";

/// How a commit reaches the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Synced before it is acknowledged.
    #[default]
    Full,
    /// Synced with the next checkpoint: the loss of power loses acknowledged commits. Only tests ask for it, to show that
    /// they can tell the difference.
    Normal,
}

/// Choices that hold while the store is open, except where a field says otherwise.
#[derive(Clone, Debug)]
pub struct Options {
    pub sync: Sync,
    /// How many finished runs share one bucket of by-id and by-job blobs. Fixed when the store is made.
    pub bucket_rows: u64,
    /// How many finished runs are gathered at most before their roll-ups begin to be written.
    pub rollup_rows: u64,
    /// How many blobs of each kind, and how many roll-ups, a commit writes at least while some wait.
    pub blobs_a_commit: usize,
    /// How large the write-ahead log may grow before a commit is followed by a checkpoint.
    pub checkpoint_pages: u32,
    /// The time-zone data that schedules are computed with. Written when the store is made.
    pub tz_version: String,
    /// Whether a store of an older schema is backed up before it is brought up to date.
    pub backup_before_upgrade: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: Sync::Full,
            bucket_rows: 262_144,
            rollup_rows: 131_072,
            blobs_a_commit: 64,
            checkpoint_pages: 4_000,
            tz_version: crate::tz_version().to_owned(),
            backup_before_upgrade: true,
        }
    }
}

/// Opens the store in `directory`, making the directory and the store if they are not there.
pub fn open(directory: &Path, options: Options) -> Result<(Writer, Reader), Error> {
    std::fs::create_dir_all(directory).map_err(|error| failure::at_path(directory, &error))?;
    let lock = lock::DirectoryLock::take(directory)?;
    failpoint::hit("at_start");
    backup::refuse_unfinished(directory)?;
    let path = directory.join(FILE);
    let mut conn = writer::connect(&path, &options)?;
    if options.backup_before_upgrade {
        migrate::back_up(&conn, directory)?;
    }
    migrate::run(&mut conn, &path, &options)?;
    sync_directory(directory)?;
    let derived = Arc::new(RwLock::new(derived::Derived::load(&conn, &options)?));
    failpoint::hit("at_start");
    let reader = Reader::new(pool::Pool::new(path.clone()), Arc::clone(&derived));
    let writer = Writer::new(conn, path, options, lock, derived)?;
    Ok((writer, reader))
}

/// A new file is lost with the power unless its directory was synced.
fn sync_directory(directory: &Path) -> Result<(), Error> {
    let sync = std::fs::File::open(directory).and_then(|file| file.sync_all());
    sync.map_err(|error| failure::at_path(directory, &error))
}
