//! What is live at the end, and whether it may be.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, OnFull, Run, SegmentSet, WallMs};
use drumtower_store::Read;

use super::PAGE;
use super::automaton::ends;
use super::options::Options;
use super::report::{Class, Report};
use crate::Error;

struct Live<'a> {
    store: &'a dyn Read,
    options: &'a Options,
    now: WallMs,
    /// Timeouts by job version, as they are needed.
    timeouts: BTreeMap<(JobId, u32), i64>,
    count: u64,
}

pub(super) fn check(
    store: &dyn Read,
    listed: u64,
    now: WallMs,
    options: &Options,
    report: &mut Report,
) -> Result<(), Error> {
    let mut live = Live {
        store,
        options,
        now,
        timeouts: BTreeMap::new(),
        count: 0,
    };
    live.walk(
        |after| store.active_runs(&SegmentSet::ALL, after, PAGE),
        report,
    )?;
    for parked in store.parked_keys(&SegmentSet::ALL)? {
        let before = live.count;
        live.walk(
            |after| store.parked_runs(&SegmentSet::ALL, &parked.key, after, PAGE),
            report,
        )?;
        let found = live.count - before;
        if found != parked.runs {
            report.add(Class::Other, "V8", &parked.key, || {
                format!(
                    "{} runs are said to wait under this key, {found} do",
                    parked.runs
                )
            });
        }
    }
    if live.count != listed {
        let found = live.count;
        report.add(Class::Other, "V8", "live runs", || {
            format!("{listed} of all runs have not ended, {found} are active or parked")
        });
    }
    Ok(())
}

impl Live<'_> {
    fn walk(
        &mut self,
        page: impl Fn(Option<drumtower_core::model::RunId>) -> Result<Vec<Run>, drumtower_store::Error>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let runs = page(after)?;
            let Some(last) = runs.last() else {
                return Ok(());
            };
            after = Some(last.id);
            for run in &runs {
                self.count += 1;
                self.check(run, report)?;
            }
        }
    }

    fn check(&mut self, run: &Run, report: &mut Report) -> Result<(), Error> {
        if ends(run.state) {
            report.add(Class::Other, "V7", run.id, || {
                format!(
                    "it is {} and still among those that have not ended",
                    run.state.as_str()
                )
            });
            return Ok(());
        }
        let waited = self.now.since(run.ready());
        if self.options.settled && waited > self.options.grace_ms && !self.waits_its_turn(run)? {
            report.add(Class::Other, "V16", run.id, || {
                format!(
                    "it is {} and was due {waited} ms before the end",
                    run.state.as_str()
                )
            });
            return Ok(());
        }
        let Some(attempt) = run.current_attempt() else {
            return Ok(());
        };
        // The kill and the news of it may each take a lease.
        let bound = self.timeout(run)? + 2 * self.options.lease_ms + self.options.grace_ms;
        let held = self.now.since(attempt.assigned);
        if held > bound {
            report.add(Class::Other, "V16", run.id, || {
                format!(
                    "attempt {} has been held for {held} ms, its bound is {bound}",
                    attempt.number
                )
            });
        }
        Ok(())
    }

    /// Whether every place that it waits for in its job's queue is taken by one whose time has not come. Under `cancel_old`
    /// such a one makes room for it.
    fn waits_its_turn(&self, run: &Run) -> Result<bool, Error> {
        let job = self.store.job(run.job)?;
        let Some(job) = job.filter(|_| run.standing.queued) else {
            return Ok(false);
        };
        let overlap = job.version.spec.overlap;
        let places = overlap.limit.unwrap_or(1) as usize;
        let key = run.standing.key.as_deref();
        let before = self.store.live_runs(run.job, key, PAGE)?;
        let later = before.iter().filter(|run| run.ready() > self.now).count();
        Ok(overlap.on_full != OnFull::CancelOld && later >= places)
    }

    fn timeout(&mut self, run: &Run) -> Result<i64, Error> {
        let version = (run.job, run.job_version);
        if let Some(timeout) = self.timeouts.get(&version) {
            return Ok(*timeout);
        }
        let spec = self
            .store
            .job_version(run.job, run.job_version)?
            .map(|version| version.spec);
        let timeout = spec
            .and_then(|spec| spec.parsed_timeout().ok())
            .and_then(|ms| i64::try_from(ms).ok());
        Ok(*self
            .timeouts
            .entry(version)
            .or_insert(timeout.unwrap_or(i64::MAX / 4)))
    }
}
