//! The store on a PostgreSQL server, which several Drumtower servers share.
//!
//! A commit is one transaction. It begins with the session's fence and has one statement for each kind of row, whatever the
//! number of rows: they go as arrays. All are sent before the first is answered; when every count is as expected, COMMIT
//! follows. A connection that breaks before COMMIT was sent has changed nothing; one that breaks after it leaves the outcome
//! unknown, and the caller sends the same set again. Connections are made anew by themselves.
//!
//! The traits are synchronous; what waits for the network runs on a small runtime that the store owns. Readers have
//! connections of their own, and every read is one statement, so it sees one snapshot.

mod apply;
mod batch;
mod connect;
mod failure;
mod follower_rows;
mod history;
mod job_rows;
mod list_runs;
mod listings;
mod members;
mod migrate;
mod partitions;
mod pool;
mod prune;
mod reader;
mod rollup_rows;
mod rollups;
mod row;
mod schema;
mod small_rows;
mod target;
mod tls;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use crate::Error;

pub use migrate::{Migrated, migrate};
pub use reader::Reader;
pub use schema::KNOWN;
pub use target::Target;
pub use writer::Writer;

/// Choices that hold while the store is open.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many finished runs are gathered at most before their roll-ups begin to be written.
    pub rollup_rows: u64,
    /// How many roll-ups a commit writes at least while some wait.
    pub rollups_a_commit: usize,
    /// How long small steps of retention are put off, to be done in one.
    pub prune_every: Duration,
    /// How long a connection may take to be made, and a read to be answered.
    pub patience: Duration,
    /// Connections that read at once, beside those of the server's loop.
    pub readers: usize,
    /// The time-zone data that schedules are computed with. Written when the store is made.
    pub tz_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rollup_rows: 131_072,
            rollups_a_commit: 64,
            prune_every: Duration::from_secs(1),
            patience: Duration::from_secs(5),
            readers: 8,
            tz_version: crate::tz_version().to_owned(),
        }
    }
}

/// Opens the store, making its tables if they are not there and the role may make them.
pub fn open(target: &Target, options: Options) -> Result<(Writer, Reader), Error> {
    let runtime = Arc::new(connect::Runtime::start()?);
    migrate::up_to_date(&runtime, target, &options)?;
    let reader = Reader::new(Arc::clone(&runtime), target.clone(), &options);
    let writer = Writer::new(runtime, target.clone(), options);
    Ok((writer, reader))
}

/// What each table takes, the largest first.
pub fn tables(target: &Target) -> Result<Vec<crate::TableSize>, Error> {
    let runtime = connect::Runtime::start()?;
    runtime.block_on(migrate::tables(target, &Options::default()))
}

/// What a look at the server tells, for whoever diagnoses.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// As the server names itself.
    pub version: String,
    /// The schema's version; nothing when there are no tables.
    pub schema_version: Option<u32>,
    /// The fastest of a few round trips.
    pub round_trip: Duration,
    /// The database's clock minus this machine's.
    pub ahead_ms: i64,
    pub encrypted: bool,
}

/// Connects, asks a few questions and changes nothing.
pub fn look(target: &Target) -> Result<Look, Error> {
    let runtime = connect::Runtime::start()?;
    runtime.block_on(migrate::look(target, &Options::default()))
}
