//! What the store knows that was not heard: while the server was down, or because too much happened at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::model::{JobId, Run, RunState, SegmentSet, WallMs};
use drumtower_store::{Error, Read, RunFilter};

use super::watch::WAITING;
use crate::driver::tap::JobKey;

/// Jobs that are looked into one by one, and runs of each.
const JOBS: usize = 10_000;
const RUNS: usize = 1000;
const PAGE: usize = 200;
const MINUTE_MS: i64 = 60_000;

/// A run with its job's name.
pub type Found = (Run, Arc<JobKey>);

/// Runs that failed since `from`, and those that completed since then of jobs that were failing, in the order of their
/// ends. The roll-ups say which jobs to look into, so that what is read grows with what failed and not with what ran.
pub fn ended_since(
    store: &dyn Read,
    from: WallMs,
    failing: &BTreeMap<JobId, WallMs>,
) -> Result<Vec<Found>, Error> {
    let mut jobs: BTreeMap<JobId, (u64, u64)> = BTreeMap::new();
    let minute = from.0.div_euclid(MINUTE_MS);
    for rollup in store.rollups(None, minute, i64::MAX)? {
        let counts = jobs.entry(rollup.job).or_default();
        counts.0 += rollup.failed;
        counts.1 += rollup.completed;
    }
    jobs.retain(|job, (failed, _)| *failed > 0 || failing.contains_key(job));
    if jobs.len() > JOBS {
        let beyond = jobs.len() - JOBS;
        tracing::warn!(
            jobs = beyond,
            "too many jobs failed at once: nobody is told of these"
        );
    }
    let mut found = Vec::new();
    for (job, (failed, completed)) in jobs.into_iter().take(JOBS) {
        let mut states = vec![RunState::Failed];
        if completed > 0 {
            states.push(RunState::Completed);
        }
        let Some(key) = key_of(store, job)? else {
            continue;
        };
        let runs = runs_since(store, job, states, from, failed + completed)?;
        found.extend(runs.into_iter().map(|run| (run, Arc::clone(&key))));
    }
    found.sort_by_key(|(run, _)| (run.finished(), run.id));
    Ok(found)
}

/// The job's runs in these states that ended since `from`; there are at most `count`.
fn runs_since(
    store: &dyn Read,
    job: JobId,
    states: Vec<RunState>,
    from: WallMs,
    count: u64,
) -> Result<Vec<Run>, Error> {
    let filter = RunFilter {
        job: Some(job),
        states,
        ..RunFilter::default()
    };
    let (mut found, mut looked, mut before) = (Vec::new(), 0, None);
    loop {
        let page = store.runs(&filter, before, PAGE)?;
        looked += page.runs.len().max(1);
        let since = |run: &Run| run.finished().is_some_and(|at| at >= from);
        found.extend(page.runs.into_iter().filter(since));
        before = page.next;
        if before.is_none() || looked >= RUNS || found.len() as u64 >= count {
            return Ok(found);
        }
    }
}

/// Runs that have not started, up to a bound.
pub fn waiting(store: &dyn Read) -> Result<Vec<Found>, Error> {
    let mut names = BTreeMap::new();
    let mut found = Vec::new();
    let mut take = |runs: Vec<Run>, found: &mut Vec<Found>| -> Result<(), Error> {
        for run in runs {
            if run.attempts.iter().any(|attempt| attempt.started.is_some()) {
                continue;
            }
            let key = match names.get(&run.job) {
                Some(key) => Some(Arc::clone(key)),
                None => key_of(store, run.job)?,
            };
            if let Some(key) = key {
                names.insert(run.job, Arc::clone(&key));
                found.push((run, key));
            }
        }
        Ok(())
    };
    let mut after = None;
    loop {
        let runs = store.active_runs(&SegmentSet::ALL, after, PAGE)?;
        let Some(last) = runs.last() else { break };
        after = Some(last.id);
        take(runs, &mut found)?;
        if found.len() > WAITING {
            return Ok(found);
        }
    }
    for parked in store.parked_keys(&SegmentSet::ALL)? {
        let mut after = None;
        loop {
            let runs = store.parked_runs(&SegmentSet::ALL, &parked.key, after, PAGE)?;
            let Some(last) = runs.last() else { break };
            after = Some(last.id);
            take(runs, &mut found)?;
            if found.len() > WAITING {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

fn key_of(store: &dyn Read, job: JobId) -> Result<Option<Arc<JobKey>>, Error> {
    let key = |record: drumtower_core::model::JobRecord| {
        Arc::new(JobKey {
            id: record.row.id,
            namespace: record.row.namespace,
            name: record.row.name,
        })
    };
    Ok(store.job(job)?.map(key))
}
