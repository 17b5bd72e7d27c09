//! Takes segments, then reads them: how each life of the loop begins.
//!
//! On a store that several servers have open each of them takes its share, as far as nobody has it; what others have they
//! give up by themselves, and it is taken while the loop works (`life/moving.rs`).

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{self, Boot, Transfer};
use drumtower_core::model::{JobId, Limits, Member, Now, Run, SegmentSet, SessionId, WallMs};
use drumtower_store::{BackfillFilter, Commit, Error, Read, Store};

use super::{Options, shares};

/// How often it is tried to be the first who takes.
const TRIES: usize = 20;
/// Others are done with what they take by then.
const BEFORE_NEXT_TRY: Duration = Duration::from_millis(50);

/// A take-over that is known to be durable.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub session: SessionId,
    /// The number of its commit.
    pub seq: u64,
    /// What it took.
    pub segments: SegmentSet,
}

pub(super) fn take_and_read(
    options: &Options,
    store: &mut dyn Store,
    reader: &dyn Read,
) -> Result<Boot, Error> {
    let (member, extend_ms) = (options.member(), options.engine.session_ms);
    if store.is_shared() {
        let pause = || thread::sleep(BEFORE_NEXT_TRY);
        let taken = join(&member, extend_ms, store, reader, pause)?;
        return read_and_renew(extend_ms, store, reader, taken);
    }
    let taken = take(&member, extend_ms, store, reader)?;
    drumtower_store::failpoint::hit("at_start");
    read(reader, taken)
}

/// Reads however long it takes, without losing the session meanwhile.
pub(super) fn read_and_renew(
    extend_ms: i64,
    store: &mut dyn Store,
    reader: &dyn Read,
    mut taken: Taken,
) -> Result<Boot, Error> {
    let pause = Duration::from_millis(extend_ms.unsigned_abs() / 3);
    let (done, answer) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = done.send(read(reader, taken));
        });
        loop {
            match answer.recv_timeout(pause) {
                Ok(boot) => {
                    return boot.map(|boot| Boot {
                        seq: taken.seq,
                        ..boot
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Io("reading the store was cut short".into()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let (session, next) = (taken.session, taken.seq + 1);
                    let renewal =
                        engine::take_over(session, next, extend_ms, Vec::new(), Vec::new());
                    match store.commit(&renewal)? {
                        Commit::Done => taken.seq = next,
                        Commit::Fenced => {
                            return Err(Error::Busy("another server took the segments".into()));
                        }
                    }
                }
            }
        }
    })
}

/// Begins a session and revokes those before it.
///
/// On an embedded store the lock on the data directory proves that no other session is alive.
pub fn take(
    member: &Member,
    extend_ms: i64,
    store: &mut dyn Store,
    reader: &dyn Read,
) -> Result<Taken, Error> {
    let session = store.begin_session(member, extend_ms)?;
    let others = store
        .live_sessions()?
        .into_iter()
        .map(|row| row.id)
        .filter(|id| *id != session)
        .collect();
    let changes = engine::take_over(session, 1, extend_ms, others, reader.segments()?);
    match store.commit(&changes)? {
        Commit::Done => Ok(taken_by(&changes)),
        Commit::Fenced => Err(Error::Busy("another server took the segments first".into())),
    }
}

/// Begins a session among those of others and takes what nobody has of its share.
///
/// The database's clock says when a session has ended. Safety does not rest on it: the commit revokes that session, and
/// the store refuses the commit if somebody took the segments meanwhile. Then it is tried again after a `pause`.
pub fn join(
    member: &Member,
    extend_ms: i64,
    store: &mut dyn Store,
    reader: &dyn Read,
    pause: impl Fn(),
) -> Result<Taken, Error> {
    let session = store.begin_session(member, extend_ms)?;
    for _ in 0..TRIES {
        let Transfer { take, revoke, .. } = shares::see(reader, &Now::default)?.0.plan(session);
        let changes = engine::take_over(session, 1, extend_ms, revoke, take);
        match store.commit(&changes) {
            Ok(Commit::Done) => return Ok(taken_by(&changes)),
            Ok(Commit::Fenced) => break,
            // Somebody was faster; nothing was changed.
            Err(Error::Invariant(_) | Error::Busy(_)) => pause(),
            Err(error) => return Err(error),
        }
    }
    Err(Error::Busy("others took what was to be taken".into()))
}

fn taken_by(changes: &ChangeSet) -> Taken {
    Taken {
        session: changes.session,
        seq: changes.seq,
        segments: changes.segments.keys().copied().collect(),
    }
}

/// Reads what the sessions before left.
pub fn read(reader: &dyn Read, taken: Taken) -> Result<Boot, Error> {
    let within = &taken.segments;
    let active = active_runs(reader, within)?;
    let open = BackfillFilter {
        open: true,
        within: Some(*within),
        ..BackfillFilter::default()
    };
    let backfills = reader.backfills(&open, None, usize::MAX)?;
    let of_backfills = backfills.iter().map(|row| (row.job, row.job_version));
    let (jobs, versions) = jobs_of(reader, pinned_to(&active).chain(of_backfills))?;
    Ok(Boot {
        session: taken.session,
        seq: taken.seq,
        segments: only(reader.segments()?, |row| within.contains(row.id)),
        counters: only(reader.counters()?, |((id, _), _)| within.contains(*id)),
        tokens: reader.tokens()?,
        settings: reader.settings()?,
        queues: reader.queues()?,
        rates: reader.rates()?,
        locks: only(reader.locks(None, None, usize::MAX)?, |row| {
            within.contains(row.lock.segment())
        }),
        lease_ms: longest_lease(reader)?,
        ties: reader.ties()?,
        drains: reader.drains()?,
        first_start_by: reader
            .parked_starts(within, WallMs(i64::MIN), None, 0)?
            .next,
        backfills,
        endings: reader.endings(within, engine::ENDING_ROWS)?,
        jobs,
        versions,
        active,
        parked_keys: reader
            .parked_keys(within)?
            .into_iter()
            .map(|parked| parked.key)
            .collect(),
        calendars: reader.calendars()?,
        sweeps: reader.sweeps()?,
        new_time_zones: new_time_zones(reader)?,
        believed_offset: None,
    })
}

/// Sessions that ended before have left nothing that still runs. Much longer than any lease, as wall clocks are set.
const LEASES_OVER_MS: i64 = 3_600_000;

/// What sessions before may have granted.
fn longest_lease(reader: &dyn Read) -> Result<u64, Error> {
    let (clock, _) = reader.sessions()?;
    reader.longest_lease(clock.plus(-LEASES_OVER_MS))
}

/// The rows that `ours` says yes to.
fn only<T>(mut rows: Vec<T>, ours: impl FnMut(&T) -> bool) -> Vec<T> {
    rows.retain(ours);
    rows
}

/// The time-zone data of this program, unless the stored due times were computed with it.
fn new_time_zones(reader: &dyn Read) -> Result<Option<String>, Error> {
    let version = drumtower_store::tz_version();
    let known = reader.meta()?.tz_version == version;
    Ok((!known).then(|| version.to_owned()))
}

fn active_runs(reader: &dyn Read, within: &SegmentSet) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let after = runs.last().map(|run| run.id);
        let page = reader.active_runs(within, after, Limits::PAGE_ROWS)?;
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
