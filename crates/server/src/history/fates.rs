//! Reads what is recorded of the times that a backfill goes through; what it means is said by `core::backfill`.
//!
//! A page of times costs one pass over the runs that the job made since the first of them: whoever repeated or backfilled a
//! time may have done so at any moment after it.

use std::collections::BTreeMap;

use drumtower_core::backfill::{Newest, PAGE_TIMES, Page, Records, TimeFate, Times, times};
use drumtower_core::engine::TimesWanted;
use drumtower_core::explain::run_ids_from;
use drumtower_core::model::{
    BackfillOrder, BackfillPlan, BackfillWhich, JobRecord, JobVersion, Limits, Unfired, WallMs,
};
use drumtower_core::schedule::Schedule;
use drumtower_store::{Error, Read, RunFilter};

use super::{Known, kept_since, versions};

const RUNS_A_READ: usize = 1000;
const RANGES_A_READ: usize = 1000;
/// Ids go on growing while a clock that was set back catches up: a run may have been made later than its id says.
const SLACK_MS: i64 = 26 * 3_600_000;
/// Times of each fate that a preview names.
pub const NAMED: usize = 10;

/// The schedule of a version, with the calendars that were in force at each time.
pub fn schedule_of(store: &dyn Read, version: &JobVersion) -> Result<Option<Schedule>, Error> {
    let spec = &version.spec;
    let calendars = Known::read(store, &spec.namespace, spec.calendar.iter())?;
    // One that cannot be read any more has no times.
    Ok(spec.compiled_schedule(&calendars).ok().flatten())
}

/// The next page of a backfill; nothing more when its schedule cannot be read any more.
pub fn page(store: &dyn Read, wanted: &TimesWanted, now: WallMs) -> Result<Page, Error> {
    let Some(version) = store.job_version(wanted.job, wanted.version)? else {
        return Ok(Page::default());
    };
    let Some(schedule) = schedule_of(store, &version)? else {
        return Ok(Page::default());
    };
    let interval = (wanted.from, wanted.to);
    let times = times(&schedule, interval, wanted.order, wanted.after, PAGE_TIMES);
    let record = store.job(wanted.job)?;
    match record.filter(|_| wanted.which != BackfillWhich::All) {
        Some(record) => {
            let recorded = Recorded::read(store, record, &times, now)?;
            let records = recorded.records();
            Ok(Page::of(wanted.which, &times, |at| records.fate(at)))
        }
        None => Ok(Page::of(wanted.which, &times, |_| TimeFate::Missing)),
    }
}

/// What is recorded of some times.
struct Recorded {
    record: JobRecord,
    runs: Newest,
    unfired: Vec<Unfired>,
    kept_since: WallMs,
}

impl Recorded {
    fn read(
        store: &dyn Read,
        record: JobRecord,
        times: &Times,
        now: WallMs,
    ) -> Result<Self, Error> {
        let (first, last) = times.bounds().unwrap_or((now, now));
        let versions = versions(store, &record, first)?;
        Ok(Self {
            runs: runs(store, &record, first, last)?,
            unfired: unfired(store, &record, first, last)?,
            kept_since: kept_since(&versions, now),
            record,
        })
    }

    fn records(&self) -> Records<'_> {
        Records {
            record: &self.record,
            runs: &self.runs,
            unfired: &self.unfired,
            kept_since: self.kept_since,
        }
    }
}

/// The newest run of each time in `[first, last]`, whoever made it.
fn runs(
    store: &dyn Read,
    record: &JobRecord,
    first: WallMs,
    last: WallMs,
) -> Result<Newest, Error> {
    let filter = RunFilter {
        job: Some(record.row.id),
        since: Some(run_ids_from(first.plus(-SLACK_MS))),
        ..RunFilter::default()
    };
    let (mut newest, mut before) = (Newest::default(), None);
    loop {
        let page = store.runs(&filter, before, RUNS_A_READ)?;
        for run in &page.runs {
            if let Some(at) = run.nominal.filter(|at| (first..=last).contains(at)) {
                newest.add(at, run.id, run.state);
            }
        }
        before = page.next;
        if before.is_none() {
            return Ok(newest);
        }
    }
}

/// The ranges of unfired times that touch `[first, last]`, oldest first.
fn unfired(
    store: &dyn Read,
    record: &JobRecord,
    first: WallMs,
    last: WallMs,
) -> Result<Vec<Unfired>, Error> {
    let mut ranges: Vec<Unfired> = Vec::new();
    loop {
        let from = ranges.last().map_or(first, |range| range.last.plus(1));
        if from > last {
            return Ok(ranges);
        }
        let page = store.unfired(record.row.id, from, last, RANGES_A_READ)?;
        let whole = page.len() < RANGES_A_READ;
        ranges.extend(page);
        if whole {
            return Ok(ranges);
        }
    }
}

/// What a backfill would do.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// How many times the schedule has in the interval.
    pub times: u64,
    /// How many of them would make runs.
    pub runs: u64,
    pub fates: BTreeMap<TimeFate, Foreseen>,
}

/// The times of one fate: how many, and the first of them.
#[derive(Clone, Debug, Default)]
pub struct Foreseen {
    pub count: u64,
    pub first: Vec<WallMs>,
}

/// Goes through all times of the interval, of which there are no more than a backfill may have.
pub fn preview(
    store: &dyn Read,
    record: &JobRecord,
    plan: &BackfillPlan,
    now: WallMs,
) -> Result<Preview, Error> {
    let mut preview = Preview::default();
    let Some(schedule) = schedule_of(store, &record.version)? else {
        return Ok(preview);
    };
    let interval = (plan.from, plan.to);
    let most = usize::try_from(Limits::BACKFILL_TIMES).unwrap_or(usize::MAX);
    let times = times(&schedule, interval, BackfillOrder::OldestFirst, None, most);
    let recorded = Recorded::read(store, record.clone(), &times, now)?;
    let records = recorded.records();
    for at in &times.times {
        let fate = records.fate(*at);
        preview.times += 1;
        preview.runs += u64::from(plan.which.takes(fate));
        let foreseen = preview.fates.entry(fate).or_default();
        foreseen.count += 1;
        if foreseen.first.len() < NAMED {
            foreseen.first.push(*at);
        }
    }
    Ok(preview)
}
