//! Every job's schedule over every stretch of its life.

use std::collections::BTreeSet;

use drumtower_core::model::{JobId, JobRecord, Unfired, WallMs};
use drumtower_store::{JobFilter, Read};

use super::PAGE;
use super::after_end::Chain;
use super::catch_up::Decisions;
use super::life::Source;
use super::occurrences::Fates;
use super::options::Options;
use super::report::{Class, Report};
use super::scan::Occurrence;
use crate::Error;

pub(super) fn check(
    store: &dyn Read,
    occurrences: &mut [Occurrence],
    now: WallMs,
    options: &Options,
    report: &mut Report,
) -> Result<(), Error> {
    occurrences.sort_unstable();
    report.counts.fired_times = occurrences.len() as u64;
    let source = Source {
        store,
        options,
        now,
    };
    let mut seen = BTreeSet::new();
    let mut after = None;
    loop {
        let page = store.jobs(&JobFilter::default(), after.as_ref(), PAGE)?;
        for record in &page.jobs {
            seen.insert(record.row.id);
            job(&source, record, of_job(occurrences, record.row.id), report)?;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    // Deleted jobs are not listed; their runs remember them.
    for chunk in occurrences.chunk_by(|a, b| a.job == b.job) {
        let id = chunk[0].job;
        if seen.contains(&id) {
            continue;
        }
        match store.job(id)? {
            Some(record) => job(&source, &record, chunk, report)?,
            None => report.add(Class::Other, "V1", id, || {
                format!("{} belongs to a job that is not there", chunk[0].run)
            }),
        }
    }
    Ok(())
}

fn of_job(occurrences: &[Occurrence], job: JobId) -> &[Occurrence] {
    let first = occurrences.partition_point(|occurrence| occurrence.job < job);
    let count = occurrences[first..].partition_point(|occurrence| occurrence.job == job);
    &occurrences[first..first + count]
}

fn job(
    source: &Source<'_>,
    record: &JobRecord,
    fired: &[Occurrence],
    report: &mut Report,
) -> Result<(), Error> {
    report.counts.jobs += 1;
    let life = source.life(record, fired)?;
    let unfired = unfired(source.store, record.row.id, life.floor)?;
    let options = source.options;
    Fates {
        job: record.row.id,
        life: &life,
        fired,
        unfired: &unfired,
        options,
    }
    .check(report);
    Decisions {
        record,
        life: &life,
        fired,
        options,
    }
    .check(report);
    Chain {
        record,
        life: &life,
        fired,
        unfired: &unfired,
        now: source.now,
        options,
    }
    .check(report);
    Ok(())
}

/// All ranges of a job, oldest first.
fn unfired(store: &dyn Read, job: JobId, floor: WallMs) -> Result<Vec<Unfired>, Error> {
    let mut ranges: Vec<Unfired> = Vec::new();
    let mut from = floor;
    loop {
        let page = store.unfired(job, from, WallMs(i64::MAX), PAGE)?;
        let full = page.len() == PAGE;
        let known = ranges.last().map(|range| range.first);
        let before = ranges.len();
        ranges.extend(page.into_iter().filter(|range| Some(range.first) > known));
        match ranges.last() {
            Some(last) if full && ranges.len() > before => from = last.first.plus(1),
            _ => return Ok(ranges),
        }
    }
}
