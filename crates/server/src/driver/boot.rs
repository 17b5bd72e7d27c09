//! Takes the segments, then reads them: how each life of the loop begins.

use std::collections::BTreeSet;

use drumtower_core::engine::{self, Boot};
use drumtower_core::model::{JobId, Limits, Run, SessionId, WallMs};
use drumtower_store::{BackfillFilter, Commit, Error, Read, Store};

use super::Options;

/// A take-over that is known to be durable.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub session: SessionId,
    /// The number of its commit.
    pub seq: u64,
}

pub(super) fn take_and_read(
    options: &Options,
    store: &mut dyn Store,
    reader: &dyn Read,
) -> Result<Boot, Error> {
    let taken = take(&options.engine, store, reader)?;
    drumtower_store::failpoint::hit("at_start");
    read(reader, taken)
}

/// Begins a session and revokes those before it.
///
/// On an embedded store the lock on the data directory proves that no other session is alive.
pub fn take(
    options: &engine::Options,
    store: &mut dyn Store,
    reader: &dyn Read,
) -> Result<Taken, Error> {
    let extend_ms = options.session_ms;
    let session = store.begin_session(&options.server, extend_ms)?;
    let others = store
        .live_sessions()?
        .into_iter()
        .map(|row| row.id)
        .filter(|id| *id != session)
        .collect();
    let changes = engine::take_over(session, extend_ms, others, reader.segments()?);
    let seq = changes.seq;
    match store.commit(&changes)? {
        Commit::Done => Ok(Taken { session, seq }),
        Commit::Fenced => Err(Error::Busy("another server took the segments first".into())),
    }
}

/// Reads what the sessions before left.
pub fn read(reader: &dyn Read, taken: Taken) -> Result<Boot, Error> {
    let active = active_runs(reader)?;
    let open = BackfillFilter {
        open: true,
        ..BackfillFilter::default()
    };
    let backfills = reader.backfills(&open, None, usize::MAX)?;
    let of_backfills = backfills.iter().map(|row| (row.job, row.job_version));
    let (jobs, versions) = jobs_of(reader, pinned_to(&active).chain(of_backfills))?;
    Ok(Boot {
        session: taken.session,
        seq: taken.seq,
        segments: reader.segments()?,
        counters: reader.counters()?,
        tokens: reader.tokens()?,
        settings: reader.settings()?,
        queues: reader.queues()?,
        rates: reader.rates()?,
        locks: reader.locks(None, None, usize::MAX)?,
        drains: reader.drains()?,
        first_start_by: reader.parked_starts(WallMs(i64::MIN), None, 0)?.next,
        backfills,
        jobs,
        versions,
        active,
        parked_keys: reader
            .parked_keys()?
            .into_iter()
            .map(|parked| parked.key)
            .collect(),
        calendars: reader.calendars()?,
        sweeps: reader.sweeps()?,
        new_time_zones: new_time_zones(reader)?,
        believed_offset: None,
    })
}

/// The time-zone data of this program, unless the stored due times were computed with it.
fn new_time_zones(reader: &dyn Read) -> Result<Option<String>, Error> {
    let version = drumtower_store::tz_version();
    let known = reader.meta()?.tz_version == version;
    Ok((!known).then(|| version.to_owned()))
}

fn active_runs(reader: &dyn Read) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let page = reader.active_runs(runs.last().map(|run| run.id), Limits::PAGE_ROWS)?;
        let last = page.len() < Limits::PAGE_ROWS;
        runs.extend(page);
        if last {
            return Ok(runs);
        }
    }
}

type Definitions = (
    Vec<drumtower_core::model::JobRecord>,
    Vec<drumtower_core::model::JobVersion>,
);

/// The versions that runs are pinned to.
pub(super) fn pinned_to(runs: &[Run]) -> impl Iterator<Item = (JobId, u32)> {
    runs.iter().map(|run| (run.job, run.job_version))
}

/// The jobs that something is pinned to, and the versions where those are not current.
pub(super) fn jobs_of(
    reader: &dyn Read,
    pinned: impl Iterator<Item = (JobId, u32)>,
) -> Result<Definitions, Error> {
    let pinned: BTreeSet<(JobId, u32)> = pinned.collect();
    let ids: BTreeSet<JobId> = pinned.iter().map(|(job, _)| *job).collect();
    let mut jobs = Vec::with_capacity(ids.len());
    for id in ids {
        let missing = || Error::Corrupt(format!("{id} is in use but has no row"));
        jobs.push(reader.job(id)?.ok_or_else(missing)?);
    }
    let current: BTreeSet<(JobId, u32)> = jobs
        .iter()
        .map(|job| (job.row.id, job.row.version))
        .collect();
    let mut versions = Vec::new();
    for (id, version) in pinned.difference(&current) {
        let missing = || {
            Error::Corrupt(format!(
                "version {version} of {id} is in use but has no row"
            ))
        };
        versions.push(reader.job_version(*id, *version)?.ok_or_else(missing)?);
    }
    Ok((jobs, versions))
}
