//! The reading side: shared, never on the hot path, always of committed data.
//!
//! Listings that a loop reads for itself are confined to the segments it owns.
//! A read that begins after a commit was acknowledged sees that commit. Listings are bounded and continue from a cursor.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::model::{
    AuditAction, AuditEntry, AuditId, AuditKind, BackfillId, BackfillRow, BackfillState,
    CalendarRef, CalendarVersion, Checkpoint, Counters, DrainRow, Ending, GateKey,
    IdempotencyEntry, IdempotencyHash, JobId, JobName, JobRecord, JobRow, JobVersion, LockRef,
    LockRow, Meta, NamespaceName, Origin, QueueRow, RateRow, Reason, Run, RunId, RunState,
    SegmentId, SegmentRow, SegmentSet, SessionId, SessionRow, SettingRow, SweepRow, TokenRow,
    Unfired, WallMs,
};

use crate::Error;

/// Which jobs to list. Deleted jobs are never listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// `None` means every namespace.
    pub namespace: Option<NamespaceName>,
    /// All of these must match.
    pub labels: Vec<(String, String)>,
    pub paused: Option<bool>,
    /// How the name begins.
    pub prefix: Option<String>,
    /// What stands somewhere in `namespace/name` or in one of the labels, `key=value`, in lower case; their case does not matter.
    pub search: Option<String>,
}

impl JobFilter {
    pub(crate) fn takes_row(&self, row: &JobRow) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == row.namespace)
            && self
                .paused
                .is_none_or(|paused| paused == row.paused.is_some())
            && self
                .prefix
                .as_ref()
                .is_none_or(|prefix| row.name.as_str().starts_with(prefix))
    }

    /// Whether the labels of a job decide about it.
    pub(crate) fn asks_labels(&self, row: &JobRow) -> bool {
        !self.labels.is_empty() || !self.finds_name(row)
    }

    pub(crate) fn takes_labels(&self, row: &JobRow, labels: &BTreeMap<String, String>) -> bool {
        self.labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && (self.finds_name(row) || self.finds_label(labels))
    }

    fn finds_name(&self, row: &JobRow) -> bool {
        let name = || format!("{}/{}", row.namespace, row.name).to_lowercase();
        self.search
            .as_ref()
            .is_none_or(|wanted| name().contains(wanted))
    }

    fn finds_label(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
        self.search
            .as_ref()
            .is_some_and(|wanted| pairs.any(|pair| pair.to_lowercase().contains(wanted)))
    }
}

/// Jobs in order of (namespace, name), and after which of them the next page begins. A page may be short, or even empty,
/// while `next` is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobPage {
    pub jobs: Vec<JobRecord>,
    pub next: Option<(NamespaceName, JobName)>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub namespace: Option<NamespaceName>,
    pub job: Option<JobId>,
    /// Empty means every state.
    pub states: Vec<RunState>,
    pub origin: Option<Origin>,
    /// Those that this backfill made.
    pub backfill: Option<BackfillId>,
    /// Runs below this id are not listed, and not looked at.
    pub since: Option<RunId>,
}

impl RunFilter {
    pub(crate) fn takes(&self, run: &Run) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == run.namespace)
            && self.job.is_none_or(|job| job == run.job)
            && self.takes_state(run.state)
            && self.origin.is_none_or(|origin| origin == run.origin)
            && self.takes_backfill(run)
            && self.takes_id(run.id)
    }

    fn takes_backfill(&self, run: &Run) -> bool {
        let made_by = run.backfill.map(|mark| mark.backfill);
        self.backfill.is_none() || self.backfill == made_by
    }

    pub(crate) fn takes_id(&self, id: RunId) -> bool {
        self.since.is_none_or(|since| id >= since)
    }

    pub(crate) fn takes_state(&self, state: RunState) -> bool {
        self.states.is_empty() || self.states.contains(&state)
    }
}

/// Runs, newest id first: exactly, however late a run ended. A page may be short, or even empty, while `next` is set: the store looked at as many rows as
/// one call may.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    pub runs: Vec<Run>,
    /// Runs below this id are on the next page.
    pub next: Option<RunId>,
}

/// Which dead letters to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFilter {
    pub namespace: Option<NamespaceName>,
    pub job: Option<JobId>,
    /// Why the run failed.
    pub reason: Option<Reason>,
    /// It failed at this instant or later.
    pub since: Option<WallMs>,
    /// It failed before this instant.
    pub until: Option<WallMs>,
}

impl LetterFilter {
    pub(crate) fn takes(&self, run: &Run) -> bool {
        let (died, reason) = death(run);
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == run.namespace)
            && self.job.is_none_or(|job| job == run.job)
            && self.reason.is_none_or(|wanted| Some(wanted) == reason)
            && self.since.is_none_or(|since| died >= since)
            && self.until.is_none_or(|until| died < until)
    }
}

/// When a run ended, and why.
pub(crate) fn death(run: &Run) -> (WallMs, Option<Reason>) {
    let last = run.transitions.last();
    last.map_or((run.created, None), |last| (last.at, Some(last.reason)))
}

/// Which backfills to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackfillFilter {
    pub namespace: Option<NamespaceName>,
    pub job: Option<JobId>,
    /// Empty means every state.
    pub states: Vec<BackfillState>,
    /// Only those that the engine has anything to do for.
    pub open: bool,
    /// `None` means every segment.
    pub within: Option<SegmentSet>,
}

impl BackfillFilter {
    pub(crate) fn takes(&self, row: &BackfillRow) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == row.namespace)
            && self.job.is_none_or(|job| job == row.job)
            && (self.states.is_empty() || self.states.contains(&row.state))
            && (!self.open || row.is_open())
            && self
                .within
                .is_none_or(|within| within.contains(row.job.segment()))
    }
}

/// How many dead letters one call may look at.
pub(crate) const LETTER_SCAN: usize = 20_000;

/// Which entries of the audit log to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// `None` means everything, also what belongs to no namespace.
    pub namespace: Option<NamespaceName>,
    pub kind: Option<AuditKind>,
    pub name: Option<String>,
    pub actor: Option<String>,
    pub action: Option<AuditAction>,
    /// From this instant on.
    pub since: Option<WallMs>,
    /// Before this instant.
    pub until: Option<WallMs>,
}

impl AuditFilter {
    pub(crate) fn takes(&self, entry: &AuditEntry) -> bool {
        let object = &entry.object;
        self.namespace
            .as_ref()
            .is_none_or(|namespace| object.namespace.as_ref() == Some(namespace))
            && self.kind.is_none_or(|kind| kind == object.kind)
            && self.name.as_ref().is_none_or(|name| *name == object.name)
            && self
                .actor
                .as_ref()
                .is_none_or(|actor| *actor == *entry.actor.0)
            && self.action.is_none_or(|action| action == entry.action)
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }
}

/// How many entries one call may look at.
pub(crate) const AUDIT_SCAN: usize = 20_000;

/// Entries, newest first. A page may be short, or even empty, while `next` is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Entries below this id are on the next page.
    pub next: Option<AuditId>,
}

/// A key that blocked runs are parked under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedKey {
    pub key: String,
    pub runs: u64,
}

/// Parked runs that must start by a time, in the order of that time and of their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartPage {
    pub runs: Vec<Run>,
    /// By when the first beyond them must start.
    pub next: Option<WallMs>,
}

/// What became of a job's runs that ended in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    pub job: JobId,
    /// Minutes since the Unix epoch, of the end of the run.
    pub minute: i64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Start minus due time, as a sketch: counts in power-of-two buckets of milliseconds.
    pub delay_ms: Vec<u64>,
    /// Duration of the last attempt, likewise.
    pub duration_ms: Vec<u64>,
}

/// Finished runs that retention has removed, by namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedRow {
    pub namespace: NamespaceName,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
}

/// A session and what it owns. Session 0 owns what nobody has taken yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub session: SessionId,
    pub segments: SegmentSet,
}

/// The counters of a segment and namespace, under their key.
pub type CounterRow = ((SegmentId, NamespaceName), Counters);

pub trait Read: Send + Sync {
    /// Another way to read the same, which does not wait for those who read by this one; `None` where nobody waits long.
    fn of_the_loop(&self) -> Option<Arc<dyn Read>> {
        None
    }

    fn meta(&self) -> Result<Meta, Error>;
    fn segments(&self) -> Result<Vec<SegmentRow>, Error>;
    /// Every session that is not revoked, and the database's clock, by which they end.
    fn sessions(&self) -> Result<(WallMs, Vec<SessionRow>), Error>;
    /// The longest lease that any session granted which had not ended at `since`, ended ones too; 0 when there was none.
    fn longest_lease(&self, since: WallMs) -> Result<u64, Error>;
    /// Who owns how much, by session: a row for each owner, however many segments there are.
    fn owners(&self) -> Result<Vec<Owner>, Error> {
        let mut owners = BTreeMap::<SessionId, SegmentSet>::new();
        for row in self.segments()? {
            owners.entry(row.owner).or_default().insert(row.id);
        }
        let owners = owners.into_iter();
        let owners = owners.map(|(session, segments)| Owner { session, segments });
        Ok(owners.collect())
    }
    /// Segments that one server must have together; all of them where only one can have the store open.
    fn ties(&self) -> Result<SegmentSet, Error> {
        Ok(SegmentSet::ALL)
    }
    /// Sessions, ended ones too, that owned segments and had not ended at `since`; none where one server is all there is.
    fn tenures(&self, since: WallMs) -> Result<Vec<SessionRow>, Error> {
        let _ = since;
        Ok(Vec::new())
    }
    /// Raised by each commit that changes tokens or settings, so that another server sees that there is something to read.
    /// Always 0 where only one can have the store open.
    fn definitions(&self) -> Result<u64, Error> {
        Ok(0)
    }
    /// Fails with [`Error::Newer`] once a newer program has made of the store what this one may not write to. Whoever has it open
    /// asks now and then where others may migrate it meanwhile.
    fn check_version(&self) -> Result<(), Error> {
        Ok(())
    }
    /// What servers that share the store prove themselves to each other with; `None` when only one can have it open.
    fn peer_key(&self) -> Result<Option<[u8; 32]>, Error> {
        Ok(None)
    }
    /// Whether the session may write no more. What was read before it was found to be live is its own.
    fn is_revoked(&self, session: SessionId) -> Result<bool, Error>;
    fn counters(&self) -> Result<Vec<CounterRow>, Error>;
    fn pruned(&self) -> Result<Vec<PrunedRow>, Error>;

    /// A job that is not deleted.
    fn job_named(
        &self,
        namespace: &NamespaceName,
        name: &JobName,
    ) -> Result<Option<JobRecord>, Error>;
    /// A job, deleted or not.
    fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error>;
    fn job_version(&self, id: JobId, version: u32) -> Result<Option<JobVersion>, Error>;
    /// The versions of a job below `before`, newest first.
    fn job_versions(
        &self,
        id: JobId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<JobVersion>, Error>;
    fn jobs(
        &self,
        filter: &JobFilter,
        after: Option<&(NamespaceName, JobName)>,
        limit: usize,
    ) -> Result<JobPage, Error>;
    /// Jobs due before `before`, in order of (next_due, id), after the given place in that order.
    fn jobs_due(
        &self,
        within: &SegmentSet,
        before: WallMs,
        after: Option<(WallMs, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error>;
    /// Ranges of unfired times of a job that touch `[from, to]`, oldest first.
    fn unfired(
        &self,
        job: JobId,
        from: WallMs,
        to: WallMs,
        limit: usize,
    ) -> Result<Vec<Unfired>, Error>;

    /// Every version of every calendar that is kept, in order of (namespace, name, version).
    fn calendars(&self) -> Result<Vec<CalendarVersion>, Error>;
    /// The versions of one calendar that are kept, oldest first; none when there never was one.
    fn calendar_versions(&self, calendar: &CalendarRef) -> Result<Vec<CalendarVersion>, Error>;
    /// Jobs that are not deleted and whose current version uses the calendar, in order of id.
    fn calendar_users(
        &self,
        within: &SegmentSet,
        calendar: &CalendarRef,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error>;
    /// Jobs that are not deleted, in order of id.
    fn jobs_by_id(
        &self,
        within: &SegmentSet,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error>;
    fn sweeps(&self) -> Result<Vec<SweepRow>, Error>;
    /// Jobs that are not deleted and whose current version runs after the job of that name, in order of id. There need be
    /// no such job.
    fn followers(
        &self,
        within: &SegmentSet,
        namespace: &NamespaceName,
        name: &JobName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error>;
    /// Ends that followers have to be told of, in order of their runs.
    fn endings(&self, within: &SegmentSet, limit: usize) -> Result<Vec<Ending>, Error>;

    /// A run, active or finished.
    fn run(&self, id: RunId) -> Result<Option<Run>, Error>;
    /// What a run can go on from.
    fn checkpoint(&self, run: RunId) -> Result<Option<Checkpoint>, Error>;
    /// Runs below the id `before`, newest first.
    fn runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error>;
    /// Runs that have not ended and are not parked, in order of id.
    fn active_runs(
        &self,
        within: &SegmentSet,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error>;
    /// Runs parked under `key`, in order of id.
    fn parked_runs(
        &self,
        within: &SegmentSet,
        key: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error>;
    /// Runs of a job that count under a key of its overlap and do not wait for their turn, in order of id.
    fn live_runs(&self, job: JobId, key: Option<&str>, limit: usize) -> Result<Vec<Run>, Error>;
    fn parked_keys(&self, within: &SegmentSet) -> Result<Vec<ParkedKey>, Error>;
    /// Parked runs that wait for their first start and must have it at `by` or earlier, after the given place in their
    /// order. Touches no other run.
    fn parked_starts(
        &self,
        within: &SegmentSet,
        by: WallMs,
        after: Option<(WallMs, RunId)>,
        limit: usize,
    ) -> Result<StartPage, Error>;

    /// The run, if it is a dead letter.
    fn letter(&self, id: RunId) -> Result<Option<Run>, Error>;
    /// Dead letters below the id `before`, newest first. A page may be short, or even empty, while `next` is set.
    fn letters(
        &self,
        filter: &LetterFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error>;

    fn backfill(&self, id: BackfillId) -> Result<Option<BackfillRow>, Error>;
    /// Backfills below the id `before`, newest first. At most as many rows as are kept are looked at.
    fn backfills(
        &self,
        filter: &BackfillFilter,
        before: Option<BackfillId>,
        limit: usize,
    ) -> Result<Vec<BackfillRow>, Error>;

    /// The answer given to a request, unless it is older than its retention at `now`.
    fn idempotency(
        &self,
        hash: &IdempotencyHash,
        now: WallMs,
    ) -> Result<Option<IdempotencyEntry>, Error>;
    fn tokens(&self) -> Result<Vec<TokenRow>, Error>;
    /// Every setting that was ever set, in order of its key.
    fn settings(&self) -> Result<Vec<SettingRow>, Error>;
    /// Every queue that was ever defined, in order of its name.
    fn queues(&self) -> Result<Vec<QueueRow>, Error>;
    /// How far rates have been used, in order of their gates.
    fn rates(&self) -> Result<Vec<(GateKey, RateRow)>, Error>;
    fn lock(&self, lock: &LockRef) -> Result<Option<LockRow>, Error>;
    /// Locks that are held, of one namespace or of all, in order of their names, after the given one.
    fn locks(
        &self,
        namespace: Option<&NamespaceName>,
        after: Option<&LockRef>,
        limit: usize,
    ) -> Result<Vec<LockRow>, Error>;
    /// Every drain that is in force, in order of its workers.
    fn drains(&self) -> Result<Vec<DrainRow>, Error>;
    /// Entries of the audit log below the id `before`, newest first.
    fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<AuditPage, Error>;
    /// Roll-ups of minutes in `[from, to)`, of one job or of all.
    fn rollups(&self, job: Option<JobId>, from: i64, to: i64) -> Result<Vec<Rollup>, Error>;
}
