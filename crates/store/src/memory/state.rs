//! The rows, as plain ordered maps.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{
    AfterRow, AuditEntry, AuditId, BackfillId, BackfillRow, BreakerRow, CalendarRef,
    CalendarVersion, Checkpoint, Counters, DrainRow, Ending, GateKey, IdempotencyEntry,
    IdempotencyHash, JobId, JobName, JobRow, JobVersion, LockRef, LockRow, Meta, NamespaceName,
    Origin, QueueRef, QueueRow, RateRow, Retention, Run, RunId, ScheduleRow, SegmentId, SegmentRow,
    SegmentSet, SessionId, SessionRow, SettingKey, SettingRow, SweepCause, SweepRow, Tallies,
    TokenId, TokenRow, Unfired, WallMs, WorkerRef,
};

use crate::PrunedRow;
use crate::tally::{Key, Tally};

#[derive(Clone)]
pub(super) struct State {
    pub meta: Meta,
    pub last_session: u64,
    pub sessions: BTreeMap<SessionId, SessionRow>,
    pub segments: BTreeMap<SegmentId, SegmentRow>,
    pub jobs: BTreeMap<JobId, JobRow>,
    /// Jobs that are not deleted.
    pub names: BTreeMap<(NamespaceName, JobName), JobId>,
    pub versions: BTreeMap<(JobId, u32), JobVersion>,
    pub schedules: BTreeMap<JobId, ScheduleRow>,
    pub active: BTreeMap<RunId, Run>,
    pub finished: BTreeMap<RunId, Run>,
    pub checkpoints: BTreeMap<RunId, Checkpoint>,
    /// Finished runs of each class in the order in which they finished.
    pub finish_order: BTreeMap<(Retention, u64), RunId>,
    pub finishes: u64,
    pub unfired: BTreeMap<(JobId, WallMs), Unfired>,
    pub calendars: BTreeMap<(CalendarRef, u32), CalendarVersion>,
    pub sweeps: BTreeMap<SweepCause, SweepRow>,
    pub counters: BTreeMap<(SegmentId, NamespaceName), Counters>,
    /// In the order they came.
    pub keys: BTreeMap<u64, IdempotencyEntry>,
    pub key_order: BTreeSet<(IdempotencyHash, u64)>,
    pub keys_made: u64,
    /// How many commits changed tokens or settings.
    pub definitions: u64,
    pub tokens: BTreeMap<TokenId, TokenRow>,
    pub settings: BTreeMap<SettingKey, SettingRow>,
    pub queues: BTreeMap<QueueRef, QueueRow>,
    pub rates: BTreeMap<GateKey, RateRow>,
    pub locks: BTreeMap<LockRef, LockRow>,
    pub drains: BTreeMap<WorkerRef, DrainRow>,
    pub ties: SegmentSet,
    pub breakers: BTreeMap<JobId, BreakerRow>,
    pub waits: BTreeMap<JobId, AfterRow>,
    pub endings: BTreeMap<RunId, Ending>,
    /// Which jobs that are not deleted run after which, by their current definitions.
    pub followers: BTreeSet<(NamespaceName, JobName, JobId)>,
    pub audit: BTreeMap<AuditId, AuditEntry>,
    pub letters: BTreeMap<RunId, Run>,
    pub backfills: BTreeMap<BackfillId, BackfillRow>,
    pub rollups: BTreeMap<Key, Tally>,
    pub pruned: BTreeMap<NamespaceName, PrunedRow>,
}

impl State {
    pub fn new(created: WallMs) -> Self {
        let segment = |number| SegmentRow {
            id: SegmentId(number),
            owner: SessionId(0),
            epoch: Default::default(),
            id_mark: 0,
        };
        Self {
            meta: Meta {
                cluster: "memory".to_owned(),
                schema_version: 1,
                oldest_server: 1,
                segment_count: SegmentId::COUNT,
                tz_version: crate::tz_version().to_owned(),
                created,
            },
            last_session: 0,
            sessions: BTreeMap::new(),
            segments: (0..SegmentId::COUNT)
                .map(|number| (SegmentId(number), segment(number)))
                .collect(),
            jobs: BTreeMap::new(),
            names: BTreeMap::new(),
            versions: BTreeMap::new(),
            schedules: BTreeMap::new(),
            active: BTreeMap::new(),
            finished: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            finish_order: BTreeMap::new(),
            finishes: 0,
            unfired: BTreeMap::new(),
            calendars: BTreeMap::new(),
            sweeps: BTreeMap::new(),
            counters: BTreeMap::new(),
            keys: BTreeMap::new(),
            key_order: BTreeSet::new(),
            keys_made: 0,
            definitions: 0,
            tokens: BTreeMap::new(),
            settings: BTreeMap::new(),
            queues: BTreeMap::new(),
            rates: BTreeMap::new(),
            locks: BTreeMap::new(),
            drains: BTreeMap::new(),
            ties: SegmentSet::NONE,
            breakers: BTreeMap::new(),
            waits: BTreeMap::new(),
            endings: BTreeMap::new(),
            followers: BTreeSet::new(),
            audit: BTreeMap::new(),
            letters: BTreeMap::new(),
            backfills: BTreeMap::new(),
            rollups: BTreeMap::new(),
            pruned: BTreeMap::new(),
        }
    }

    /// The number of the newest version; 0 when there never was one.
    pub fn newest_calendar(&self, calendar: &CalendarRef) -> u32 {
        let kept = self
            .calendars
            .range((calendar.clone(), 0)..=(calendar.clone(), u32::MAX));
        kept.last().map_or(0, |((_, version), _)| *version)
    }

    /// The jobs that run after the one of that name, above `after`.
    pub fn followers_of(
        &self,
        namespace: &NamespaceName,
        name: &JobName,
        after: Option<JobId>,
    ) -> impl Iterator<Item = JobId> {
        let first = JobId(after.map_or(0, |after| after.0.saturating_add(1)));
        let key = |job| (namespace.clone(), name.clone(), job);
        let found = self.followers.range(key(first)..=key(JobId(u64::MAX)));
        found.map(|(_, _, job)| *job)
    }

    pub fn live_scheduled(&self, job: JobId) -> u32 {
        let live = self
            .active
            .values()
            .filter(|run| run.job == job && run.origin == Origin::Schedule)
            .count();
        u32::try_from(live).unwrap_or(u32::MAX)
    }

    pub fn tallies(&self, job: JobId) -> Tallies {
        let mut tallies = Tallies::default();
        for run in self.active.values().filter(|run| run.job == job) {
            tallies.add(&run.standing, 1);
        }
        tallies
    }

    /// Entries of a hash, the newest first.
    pub fn entries(&self, hash: &IdempotencyHash) -> impl Iterator<Item = &IdempotencyEntry> {
        let order = self.key_order.range((*hash, 0)..=(*hash, u64::MAX)).rev();
        order.filter_map(|(_, n)| self.keys.get(n))
    }
}
