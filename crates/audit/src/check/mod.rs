//! The checker: journals against store against schedules.
//!
//! | promise | compared |
//! |---|---|
//! | V1 no lost trigger | each time of the schedules with the runs and the ranges of unfired times |
//! | V2 no double trigger | occurrences and keys of the runs with each other and with the answers callers got |
//! | V3, V4 never early, in time | the tasks' own start times with the due times, those with the nominal times and the jitter |
//! | V5, V6, V13 attempts | starts and ends of the tasks with the attempts of the row |
//! | V7, V18 states | the transitions of each run with a table of its own |
//! | V8 conservation | counter rows with counted rows |
//! | V10 bounded catch-up | the runs that one decision made, and their age, with `misfire`, `on_resume` and `max_fires` |
//! | V2, V8, V11 backfills | the runs of a backfill with each other and with its row |
//! | V11 overlap | runs of `after_end` jobs with each other |
//! | V12 tries | the attempts of the row, and the time between them, with `retry` |
//! | V9 durable | answers callers got with the runs that are there |
//! | V16 settled | runs that are live at the end with how long they may be |
//!
//! The store must be at rest. Its runs are read once, page by page, in whatever order; memory holds numbers only: for
//! each run 8 bytes, 32 and 24 for a journaled start and end, 16 for an answer, 16 for a key, 56 for an occurrence, 48 for a
//! time of a backfill. So a test of fifteen million triggered and journaled runs needs about 1.5 GB, and up to twice that
//! while the arrays grow.

mod after_end;
mod answers;
mod automaton;
mod backfills;
mod catch_up;
mod evidence;
mod jobs;
mod life;
mod live;
mod occurrences;
mod options;
mod report;
mod run;
mod scan;
mod tallies;
mod tries;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use drumtower_store::Read;

use crate::{Error, Record};
use evidence::Evidence;

pub use options::{Journaled, Options};
pub use report::{Counts, Report, Violation};

/// Rows asked of the store at a time.
const PAGE: usize = 10_000;

/// Looks for everything that the journals, the store and the schedules disagree on.
pub fn check(journals: &[PathBuf], store: &dyn Read, options: &Options) -> Result<Report, Error> {
    let mut report = Report::default();
    let evidence = evidence::load(journals, options.clock_bound_ms, &mut report)?;
    judge(evidence, store, options, report)
}

/// The same for journals that were kept in memory, one a process.
pub fn check_records(
    journals: &[Vec<Record>],
    store: &dyn Read,
    options: &Options,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let evidence = evidence::take(journals, options.clock_bound_ms, &mut report)?;
    judge(evidence, store, options, report)
}

fn judge(
    evidence: Evidence,
    store: &dyn Read,
    options: &Options,
    mut report: Report,
) -> Result<Report, Error> {
    let mut scan = scan::scan(store, &evidence, options, &mut report)?;
    let now = options
        .now
        .or(evidence.latest.max(scan.latest))
        .unwrap_or_default();
    let pruned = tallies::check(store, &scan.tallies, &mut report)?;
    answers::check(&evidence, &mut scan, now, pruned, &mut report);
    live::check(store, scan.live(), now, options, &mut report)?;
    jobs::check(store, &mut scan.occurrences, now, options, &mut report)?;
    backfills::check(store, &mut scan.backfilled, pruned, options, &mut report)?;
    Ok(report)
}
