//! A change set: everything the engine decided since the last commit, ready to become durable in one transaction.
//!
//! Values are absolute and each row appears at most once, in its last form, so that sending the same set twice can do no
//! harm. The store applies a set whole or not at all, and only if the session row still stands at `seq - 1` and is not
//! revoked. Each variant says which row it expects to find; anything else is a broken invariant, never papered over.

use std::collections::BTreeMap;

use crate::model::{
    AfterRow, AuditEntry, AuditId, BackfillId, BackfillRow, BreakerRow, CalendarRef,
    CalendarVersion, Checkpoint, Counters, DrainRow, Ending, GateKey, IdempotencyEntry,
    IdempotencyHash, JobId, JobRow, JobVersion, LockRef, LockRow, NamespaceName, QueueRef,
    QueueRow, RateRow, Run, RunId, ScheduleRow, SegmentId, SegmentRow, SegmentSet, SessionId,
    SettingKey, SettingRow, SweepCause, SweepRow, TokenId, TokenRow, Unfired, WallMs, WorkerRef,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSet {
    pub session: SessionId,
    /// This commit's number: one more than the session row must hold.
    pub seq: u64,
    /// How far the session's end moves from the database's clock.
    pub extend_ms: i64,
    /// Sessions to revoke: the first half of a take-over. Their segments follow in `segments`.
    pub revoke: Vec<SessionId>,
    /// Segment rows in full: owner, epoch, mark. They exist from the first migration on.
    pub segments: BTreeMap<SegmentId, SegmentRow>,
    pub jobs: BTreeMap<JobId, JobChange>,
    /// Always inserts: versions are immutable.
    pub versions: BTreeMap<(JobId, u32), JobVersion>,
    pub schedules: BTreeMap<JobId, ScheduleChange>,
    pub runs: BTreeMap<RunId, RunChange>,
    /// What runs can go on from: inserted, or in place of one with a smaller number; `None` removes what there is.
    pub checkpoints: BTreeMap<RunId, Option<Checkpoint>>,
    /// Inserted or, when the key is known, replaced by a longer range.
    pub unfired: BTreeMap<(JobId, WallMs), Unfired>,
    /// Inserted, replaced, or deleted when there is none any more.
    pub breakers: BTreeMap<JobId, Option<BreakerRow>>,
    /// Inserted, replaced, or deleted when there is nothing to keep any more.
    pub waits: BTreeMap<JobId, Option<AfterRow>>,
    /// Ends of runs that followers have to be told of: inserted, replaced, or deleted when all have been.
    pub endings: BTreeMap<RunId, Option<Ending>>,
    /// Always inserts; versions of the same calendar beyond
    /// [`Limits::CALENDAR_VERSIONS`](crate::model::Limits::CALENDAR_VERSIONS) go.
    pub calendars: BTreeMap<(CalendarRef, u32), CalendarVersion>,
    /// Inserted or replaced.
    pub sweeps: BTreeMap<SweepCause, SweepRow>,
    /// The time-zone data that schedules are computed with from now on.
    pub tz_version: Option<String>,
    pub counters: BTreeMap<(SegmentId, NamespaceName), Counters>,
    /// Always inserts.
    pub keys: BTreeMap<IdempotencyHash, IdempotencyEntry>,
    /// Inserted or replaced.
    pub tokens: BTreeMap<TokenId, TokenRow>,
    /// Inserted or replaced.
    pub settings: BTreeMap<SettingKey, SettingRow>,
    /// Inserted or replaced.
    pub queues: BTreeMap<QueueRef, QueueRow>,
    /// How far rates have been used: inserted, replaced, or deleted when that is over.
    pub rates: BTreeMap<GateKey, Option<RateRow>>,
    /// Inserted, replaced, or deleted when there is none any more.
    pub locks: BTreeMap<LockRef, Option<LockRow>>,
    /// Inserted, replaced, or deleted when there is none any more.
    pub drains: BTreeMap<WorkerRef, Option<DrainRow>>,
    /// Segments that belong together from now on; a store that only one server can have open need not know.
    pub ties: SegmentSet,
    pub letters: BTreeMap<RunId, LetterChange>,
    pub backfills: BTreeMap<BackfillId, BackfillChange>,
    /// Always inserts.
    pub audit: BTreeMap<AuditId, AuditEntry>,
    pub prune: Option<Prune>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JobChange {
    Insert(JobRow),
    Update(JobRow),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleChange {
    /// The cursor that must stand in the row; `None` inserts it.
    pub expected: Option<WallMs>,
    pub row: ScheduleRow,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RunChange {
    /// A new run that has not ended.
    Insert(Box<Run>),
    /// A run that is in the active table and stays there.
    Update(Box<Run>),
    /// A run that leaves the active table for the history.
    Finish(Box<Run>),
    /// A run that was made and ended within one change set.
    InsertFinished(Box<Run>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct BackfillChange {
    /// The step that must stand in the row; `None` inserts it.
    pub expected: Option<u64>,
    pub row: BackfillRow,
}

/// A change of the dead letters.
#[derive(Clone, Debug, PartialEq)]
pub enum LetterChange {
    /// A run that failed for good; it is not among them.
    Insert(Box<Run>),
    /// One that is among them.
    Remove,
}

impl RunChange {
    pub fn run(&self) -> &Run {
        match self {
            Self::Insert(run)
            | Self::Update(run)
            | Self::Finish(run)
            | Self::InsertFinished(run) => run,
        }
    }
}

/// One small step of retention. The store takes the oldest rows of each class first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    pub now: WallMs,
    /// How many finished runs may go in this step.
    pub limit: usize,
}

impl ChangeSet {
    /// How many rows the set writes; bounded by [`Limits::COMMIT_CHANGES`](crate::model::Limits::COMMIT_CHANGES).
    pub fn len(&self) -> usize {
        self.segments.len()
            + self.jobs.len()
            + self.versions.len()
            + self.schedules.len()
            + self.runs.len()
            + self.checkpoints.len()
            + self.unfired.len()
            + self.breakers.len()
            + self.waits.len()
            + self.endings.len()
            + self.calendars.len()
            + self.sweeps.len()
            + self.counters.len()
            + self.keys.len()
            + self.tokens.len()
            + self.settings.len()
            + self.queues.len()
            + self.rates.len()
            + self.locks.len()
            + self.drains.len()
            + self.ties.len()
            + self.letters.len()
            + self.backfills.len()
            + self.audit.len()
    }

    /// Whether it does nothing but move the session on.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
            && self.revoke.is_empty()
            && self.tz_version.is_none()
            && self.prune.is_none()
    }
}
