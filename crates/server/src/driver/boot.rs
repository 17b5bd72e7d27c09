//! Takes segments, then reads them: how each life of the loop begins.
//!
//! On a store that several servers have open each of them takes its share, as far as nobody has it; what others have they
//! give up by themselves, and it is taken while the loop works (`life/moving.rs`).

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use drumtower_core::change::ChangeSet;
use drumtower_core::engine::{self, Boot, Transfer};
use drumtower_core::model::{
    JobId, Limits, Member, Now, Run, SegmentId, SegmentRow, SegmentSet, SessionId, WallMs,
};
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
    taken: Taken,
) -> Result<Boot, Error> {
    let pause = Duration::from_millis(extend_ms.unsigned_abs() / 3);
    let mut session = Renewed::new(extend_ms, taken);
    let (done, answer) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = done.send(read(reader, taken));
        });
        let mut boot = None;
        loop {
            // What was sent has to be known before anything else is sent under its number.
            match boot.take() {
                Some(boot) if session.is_settled() => {
                    return Result::map(boot, |boot| Boot {
                        seq: session.seq,
                        ..boot
                    });
                }
                Some(kept) => {
                    boot = Some(kept);
                    thread::sleep(BEFORE_NEXT_TRY);
                }
                None => {
                    let pause = match session.is_settled() {
                        true => pause,
                        false => BEFORE_NEXT_TRY,
                    };
                    match answer.recv_timeout(pause) {
                        Ok(read) => {
                            boot = Some(read);
                            continue;
                        }
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => {
                            return Err(Error::Io("reading the store was cut short".into()));
                        }
                    }
                }
            }
            session.renew(store)?;
        }
    })
}

/// A session that is kept alive by commits that hold nothing else.
struct Renewed {
    session: SessionId,
    extend_ms: i64,
    /// The last commit that is known to be durable.
    seq: u64,
    since: Instant,
    /// One was sent, and its outcome is not known.
    sent: bool,
}

impl Renewed {
    fn new(extend_ms: i64, taken: Taken) -> Self {
        Self {
            session: taken.session,
            extend_ms,
            seq: taken.seq,
            since: Instant::now(),
            sent: false,
        }
    }

    fn is_settled(&self) -> bool {
        !self.sent
    }

    /// Sends the next commit, or the one without a known outcome once more. Fails when the session is over, or must be by now.
    fn renew(&mut self, store: &mut dyn Store) -> Result<(), Error> {
        let next = self.seq + 1;
        let renewal = engine::take_over(self.session, next, self.extend_ms, Vec::new(), Vec::new());
        self.sent = true;
        match store.commit(&renewal) {
            Ok(Commit::Done) => self.settle(next),
            // It may be the first copy that is done.
            Ok(Commit::Fenced) => match store.session(self.session) {
                Ok(Some(row)) if row.seq == next && !row.revoked => self.settle(next),
                Ok(_) => return Err(Error::Busy("another server took the segments".into())),
                Err(error) => self.bear(error)?,
            },
            Err(error) => self.bear(error)?,
        }
        Ok(())
    }

    fn settle(&mut self, seq: u64) {
        (self.seq, self.sent, self.since) = (seq, false, Instant::now());
    }

    /// A store that is slow or away for a moment ends nothing.
    fn bear(&self, error: Error) -> Result<(), Error> {
        let passing = matches!(error, Error::Busy(_) | Error::Io(_) | Error::Unknown(_));
        let holds = self.since.elapsed() < Duration::from_millis(self.extend_ms.unsigned_abs());
        match passing && holds {
            true => Ok(()),
            false => Err(error),
        }
    }
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
    let ties = reader.ties()?;
    check_whole(reader, &taken, &ties)?;
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
        ties,
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

/// Refuses to begin with the first segment and without something tied to it that lies with a session that was revoked.
///
/// Whoever was revoked may have tied more until then than was seen, and have given out runs of it; limits would be counted
/// without them. The next beginning sees what lies there, and takes it. What another server has, or has given up, uses nothing
/// that it is tied for before it has come here.
fn check_whole(reader: &dyn Read, taken: &Taken, ties: &SegmentSet) -> Result<(), Error> {
    let missing = ties.without(&taken.segments);
    if missing.is_empty() || !taken.segments.contains(SegmentId::HOME) {
        return Ok(());
    }
    let segments = reader.segments()?;
    let (_, live) = reader.sessions()?;
    let is_left = |row: &&SegmentRow| {
        row.owner != SessionId(0) && !live.iter().any(|session| session.id == row.owner)
    };
    let mut missing = segments.iter().filter(|row| missing.contains(row.id));
    match missing.find(is_left) {
        None => Ok(()),
        Some(row) => Err(Error::Busy(format!(
            "segment {} was tied meanwhile and its owner is gone: taking it along",
            row.id.0
        ))),
    }
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use drumtower_core::model::SessionRow;
    use drumtower_store::memory::Memory;

    use super::*;

    /// What becomes of a commit that has no answer, or is not taken.
    #[derive(Clone, Copy)]
    enum Fate {
        /// It is done all the same.
        Lost,
        Busy,
    }

    struct Faulty {
        memory: Memory,
        fates: VecDeque<Fate>,
    }

    impl Store for Faulty {
        fn clock(&mut self) -> Result<WallMs, Error> {
            self.memory.clock()
        }

        fn is_shared(&self) -> bool {
            true
        }

        fn begin_session(&mut self, member: &Member, extend_ms: i64) -> Result<SessionId, Error> {
            self.memory.begin_session(member, extend_ms)
        }

        fn commit(&mut self, changes: &ChangeSet) -> Result<Commit, Error> {
            match self.fates.pop_front() {
                Some(Fate::Busy) => Err(Error::Busy("for a moment".into())),
                Some(Fate::Lost) => {
                    self.memory.commit(changes)?;
                    Err(Error::Unknown("no answer".into()))
                }
                None => self.memory.commit(changes),
            }
        }

        fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
            self.memory.session(id)
        }

        fn live_sessions(&mut self) -> Result<Vec<SessionRow>, Error> {
            self.memory.live_sessions()
        }

        fn close(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    const LONG_MS: i64 = 1_000_000;

    fn begun(fates: &[Fate]) -> (Faulty, SessionId) {
        let mut store = Faulty {
            memory: Memory::new(),
            fates: fates.iter().copied().collect(),
        };
        let session = store.begin_session(&Member::alone("one"), LONG_MS);
        (store, session.expect("it begins"))
    }

    fn taken(session: SessionId) -> Taken {
        Taken {
            session,
            seq: 0,
            segments: SegmentSet::NONE,
        }
    }

    #[test]
    fn a_session_is_kept_through_commits_that_fail_or_have_no_answer() {
        let (mut store, session) = begun(&[Fate::Busy, Fate::Lost]);
        let mut renewed = Renewed::new(LONG_MS, taken(session));
        for settled in [false, false, true, true] {
            renewed.renew(&mut store).expect("it holds");
            assert_eq!(renewed.is_settled(), settled);
        }
        let row = store.session(session).expect("it is read").expect("a row");
        assert_eq!((renewed.seq, row.seq), (2, 2));
    }

    #[test]
    fn a_session_that_must_have_ended_or_was_revoked_is_given_up() {
        let (mut store, session) = begun(&[Fate::Busy]);
        let mut renewed = Renewed::new(0, taken(session));
        assert!(renewed.renew(&mut store).is_err());
        let (mut store, session) = begun(&[]);
        let other = store.begin_session(&Member::alone("two"), LONG_MS);
        let other = other.expect("it begins");
        let revoke = engine::take_over(other, 1, LONG_MS, vec![session], Vec::new());
        assert_eq!(store.commit(&revoke).expect("it is answered"), Commit::Done);
        let mut renewed = Renewed::new(LONG_MS, taken(session));
        assert!(matches!(renewed.renew(&mut store), Err(Error::Busy(_))));
    }
}
