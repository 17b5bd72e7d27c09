//! Every job's schedule over every stretch of its life.

use std::collections::BTreeSet;

use drumtower_core::model::{JobId, JobRecord, JobVersion, Unfired, WallMs};
use drumtower_store::{JobFilter, Read};

use super::PAGE;
use super::occurrences::{Fates, Time};
use super::options::Options;
use super::report::{Class, Report};
use super::scan::Occurrence;
use crate::Error;
use crate::expand::Plan;

struct Context<'a> {
    store: &'a dyn Read,
    options: &'a Options,
    now: WallMs,
}

pub(super) fn check(
    store: &dyn Read,
    occurrences: &mut [Occurrence],
    now: WallMs,
    options: &Options,
    report: &mut Report,
) -> Result<(), Error> {
    occurrences.sort_unstable();
    report.counts.fired_times = occurrences.len() as u64;
    let context = Context {
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
            context.job(record, of_job(occurrences, record.row.id), report)?;
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
            Some(record) => context.job(&record, chunk, report)?,
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

impl Context<'_> {
    fn job(
        &self,
        record: &JobRecord,
        fired: &[Occurrence],
        report: &mut Report,
    ) -> Result<(), Error> {
        report.counts.jobs += 1;
        let versions = self.versions(record)?;
        let floor = self.floor(&versions);
        let horizon = self
            .now
            .plus(-self.options.grace_ms)
            .max(record.schedule.fired_through);
        let newest = fired
            .last()
            .map_or(horizon, |occurrence| occurrence.nominal.max(horizon));
        let unfired = self.unfired(record.row.id, floor)?;
        let newest = unfired
            .last()
            .map_or(newest, |range| range.last.max(newest));
        let mut times = Vec::new();
        for (index, version) in versions.iter().enumerate() {
            let until = versions
                .get(index + 1)
                .map_or(WallMs(i64::MAX), |next| next.created);
            let plan = Plan::new(version)?;
            let span = (version.created.max(floor), until.min(newest));
            times.extend(plan.times(span.0, span.1).into_iter().map(|at| Time {
                at,
                required: at > version.created
                    && at < until
                    && at <= horizon
                    && active(record, at, self.options),
            }));
        }
        Fates {
            job: record.row.id,
            floor,
            times,
            fired,
            unfired: &unfired,
        }
        .check(report);
        Ok(())
    }

    fn versions(&self, record: &JobRecord) -> Result<Vec<JobVersion>, Error> {
        let mut versions = Vec::new();
        for number in 1..record.row.version {
            versions.extend(self.store.job_version(record.row.id, number)?);
        }
        versions.push(record.version.clone());
        Ok(versions)
    }

    /// Before this, retention may have taken what there was.
    fn floor(&self, versions: &[JobVersion]) -> WallMs {
        let kept = versions
            .iter()
            .filter_map(|version| version.spec.retention.age_ms())
            .min();
        kept.map_or(WallMs(i64::MIN), |age| {
            self.now.plus(self.options.grace_ms - age)
        })
    }

    /// All ranges of a job, oldest first.
    fn unfired(&self, job: JobId, floor: WallMs) -> Result<Vec<Unfired>, Error> {
        let mut ranges: Vec<Unfired> = Vec::new();
        let mut from = floor;
        loop {
            let page = self.store.unfired(job, from, WallMs(i64::MAX), PAGE)?;
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
}

/// Whether the job was certainly in force at `at`. A pause that is over has left its range; one that is not, and a
/// deletion, leave open what became of times that nobody waits for.
fn active(record: &JobRecord, at: WallMs, options: &Options) -> bool {
    let not_paused = record.row.paused.as_ref().is_none_or(|pause| at < pause.at);
    let not_deleted = !record.row.deleted || at < record.row.updated.plus(-options.grace_ms);
    not_paused && not_deleted
}
