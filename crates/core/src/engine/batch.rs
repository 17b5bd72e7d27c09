//! The batch being built: which rows are dirty, which effects wait for their commit.
//!
//! Rows are noted by key while they change and copied once, in their last form, when the batch is taken. A run that ended
//! is moved in whole. The next batch is built on top of this one while it is in flight.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::change::{
    BackfillChange, ChangeSet, JobChange, LetterChange, Prune, RunChange, ScheduleChange,
};
use crate::fault::{Fault, armed};
use crate::model::{
    AuditEntry, BackfillId, CalendarVersion, Checkpoint, Ending, GateKey, IdempotencyEntry, JobId,
    JobVersion, JsonText, Limits, LockRef, NamespaceName, Now, QueueRef, QueueRow, Run, RunId,
    SegmentId, SegmentSet, SettingKey, SettingRow, SweepCause, TokenId, Unfired, WallMs, WorkerRef,
};

use super::{Effect, Engine};

/// Rows to commit under `changes.seq`, and what to do once that is durable.
#[derive(Debug)]
pub struct Batch {
    /// `None` when nothing needs to become durable; the effects may be performed at once.
    pub changes: Option<ChangeSet>,
    pub effects: Vec<Effect>,
    /// About how many bytes of definitions, settings and audit entries are in the changes.
    pub document_bytes: usize,
}

/// What happened to a run since the last batch was taken.
#[derive(Debug)]
pub(super) enum RunNote {
    /// Resident and new.
    Inserted,
    /// Resident and known to the store.
    Updated,
    /// Not resident: made and parked.
    Parked(Box<Run>),
    /// Not resident any more: known to the store, and parked.
    PutBack(Box<Run>),
    Finished(Box<Run>),
    InsertedFinished(Box<Run>),
}

#[derive(Debug, Default)]
pub(super) struct Building {
    pub(super) effects: Vec<Effect>,
    jobs: BTreeMap<JobId, bool>,
    versions: Vec<JobVersion>,
    schedules: BTreeSet<JobId>,
    runs: BTreeMap<RunId, RunNote>,
    checkpoints: BTreeMap<RunId, Option<Checkpoint>>,
    unfired: BTreeMap<(JobId, WallMs), Unfired>,
    breakers: BTreeSet<JobId>,
    waits: BTreeSet<JobId>,
    endings: BTreeMap<RunId, Option<Ending>>,
    /// Jobs that definitions of the batch name as those before them: a row each.
    followed: usize,
    counters: BTreeSet<(SegmentId, NamespaceName)>,
    keys: Vec<IdempotencyEntry>,
    tokens: BTreeSet<TokenId>,
    settings: BTreeSet<SettingKey>,
    queues: BTreeMap<QueueRef, QueueRow>,
    rates: BTreeSet<GateKey>,
    locks: BTreeSet<LockRef>,
    drains: BTreeSet<WorkerRef>,
    ties: SegmentSet,
    audit: Vec<AuditEntry>,
    letters: BTreeMap<RunId, LetterChange>,
    backfills: BTreeSet<BackfillId>,
    calendars: Vec<CalendarVersion>,
    sweeps: BTreeSet<SweepCause>,
    tz_version: Option<String>,
    /// The first time by which a run that is parked here must start.
    parked_start: Option<WallMs>,
    /// A commit is wanted for its own sake: to renew leases.
    renewal: bool,
    finished: usize,
    /// What runs carry: parameters, results, errors, checkpoints.
    run_bytes: usize,
    /// What users wrote: definitions of jobs and calendars, settings, and what the audit log keeps of them.
    document_bytes: usize,
}

fn payload_bytes(run: &Run) -> usize {
    let json = |text: &Option<JsonText>| text.as_ref().map_or(0, |text| text.as_str().len());
    json(&run.params) + json(&run.result) + run.error.as_ref().map_or(0, String::len)
}

/// How long a definition is when it is written down.
fn document_bytes(document: &impl Serialize) -> usize {
    let mut count = Count(0);
    // Nothing that was accepted fails to be written; if it did, what was counted so far stands.
    let _ = serde_json::to_writer(&mut count, document);
    count.0
}

struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The longest that what is kept of one job that has ended is.
const ARRIVAL_BYTES: usize = 160;

/// Finished runs pruned by every commit, whatever it finishes itself.
const PRUNE_FLOOR: usize = 64;

impl Building {
    /// These segments belong together from this commit on.
    pub(super) fn tie(&mut self, segments: &SegmentSet) {
        self.ties = self.ties.union(segments);
    }

    pub(super) fn needs_commit(&self) -> bool {
        self.renewal || self.rows() > 0
    }

    /// Half of what a commit may hold, because one more command may bring the other half.
    pub(super) fn is_full(&self) -> bool {
        self.rows() >= Limits::COMMIT_CHANGES / 2
            || self.run_bytes + self.document_bytes >= Limits::COMMIT_BYTES / 2
    }

    /// Whether jobs that are due should wait for the next batch, so that there is room to assign what they made.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.rows() >= Limits::COMMIT_CHANGES * 3 / 8 || self.is_full()
    }

    fn rows(&self) -> usize {
        self.jobs.len()
            + self.versions.len()
            + self.counters.len()
            + self.schedules.len()
            + self.runs.len()
            + self.checkpoints.len()
            + self.unfired.len()
            + self.breakers.len()
            + self.waits.len()
            + self.endings.len()
            + self.followed
            + self.keys.len()
            + self.tokens.len()
            + self.settings.len()
            + self.queues.len()
            + self.rates.len()
            + self.locks.len()
            + self.drains.len()
            + self.ties.len()
            + self.audit.len()
            + self.letters.len()
            + self.backfills.len()
            + self.calendars.len()
            + self.sweeps.len()
            + usize::from(self.tz_version.is_some())
    }

    pub(super) fn want_renewal(&mut self) {
        self.renewal = true;
    }

    pub(super) fn job_inserted(&mut self, job: JobId) {
        self.jobs.insert(job, true);
    }

    pub(super) fn job_updated(&mut self, job: JobId) {
        self.jobs.entry(job).or_insert(false);
    }

    pub(super) fn version(&mut self, version: JobVersion) {
        self.document_bytes += document_bytes(&version.spec);
        self.followed += version.spec.after.as_ref().map_or(0, |it| it.jobs.len());
        self.versions.push(version);
    }

    pub(super) fn schedule(&mut self, job: JobId) {
        self.schedules.insert(job);
    }

    pub(super) fn unfired(&mut self, range: Unfired) {
        self.unfired.insert((range.job, range.first), range);
    }

    pub(super) fn breaker(&mut self, job: JobId) {
        self.breakers.insert(job);
    }

    /// What is kept of `arrived` jobs changed.
    pub(super) fn waits(&mut self, job: JobId, arrived: usize) {
        if self.waits.insert(job) {
            self.run_bytes += ARRIVAL_BYTES * arrived;
        }
    }

    /// `None` when every follower has been told.
    pub(super) fn ending(&mut self, run: RunId, ending: Option<Ending>) {
        self.endings.insert(run, ending);
    }

    pub(super) fn counters(&mut self, segment: SegmentId, namespace: &NamespaceName) {
        self.counters.insert((segment, namespace.clone()));
    }

    pub(super) fn key(&mut self, entry: IdempotencyEntry) {
        self.keys.push(entry);
    }

    pub(super) fn token(&mut self, token: TokenId) {
        self.tokens.insert(token);
    }

    pub(super) fn setting(&mut self, row: &SettingRow) {
        let value = row.value.as_ref();
        self.document_bytes += value.map_or(0, |text| text.as_str().len());
        self.settings.insert(row.key.clone());
    }

    pub(super) fn queue(&mut self, row: QueueRow) {
        self.document_bytes += document_bytes(&row.spec);
        self.queues.insert(row.queue(), row);
    }

    pub(super) fn rate(&mut self, gate: GateKey) {
        if !armed(Fault::RateNotWritten) {
            self.rates.insert(gate);
        }
    }

    pub(super) fn lock(&mut self, lock: &LockRef) {
        self.locks.insert(lock.clone());
    }

    pub(super) fn drain(&mut self, workers: &WorkerRef) {
        self.drains.insert(workers.clone());
    }

    pub(super) fn audit(&mut self, entry: AuditEntry) {
        self.document_bytes += entry.bytes();
        self.audit.push(entry);
    }

    pub(super) fn letter_kept(&mut self, run: Run) {
        self.run_bytes += payload_bytes(&run);
        self.letters
            .insert(run.id, LetterChange::Insert(Box::new(run)));
    }

    pub(super) fn letter_removed(&mut self, run: RunId) {
        self.letters.insert(run, LetterChange::Remove);
    }

    /// True when it is the first change of the batch.
    pub(super) fn backfill(&mut self, backfill: BackfillId) -> bool {
        self.backfills.insert(backfill)
    }

    pub(super) fn calendar(&mut self, version: CalendarVersion) {
        self.document_bytes += document_bytes(&version.spec);
        self.calendars.push(version);
    }

    pub(super) fn sweep(&mut self, cause: SweepCause) {
        self.sweeps.insert(cause);
    }

    pub(super) fn tz_version(&mut self, version: String) {
        self.tz_version = Some(version);
    }

    pub(super) fn run_inserted(&mut self, run: &Run) {
        self.run_bytes += payload_bytes(run);
        self.runs.insert(run.id, RunNote::Inserted);
    }

    pub(super) fn run_parked(&mut self, run: Run) {
        self.note_parked(&run);
        self.run_bytes += payload_bytes(&run);
        self.runs.insert(run.id, RunNote::Parked(Box::new(run)));
    }

    pub(super) fn run_updated(&mut self, run: RunId) {
        match self.runs.get_mut(&run) {
            // Read back in the batch that parked it.
            Some(note @ RunNote::PutBack(_)) => *note = RunNote::Updated,
            Some(_) => {}
            None => {
                self.runs.insert(run, RunNote::Updated);
            }
        }
    }

    fn note_parked(&mut self, run: &Run) {
        if let Some(by) = run.must_start_by() {
            self.parked_start = Some(self.parked_start.map_or(by, |first| first.min(by)));
        }
    }

    pub(super) fn run_put_back(&mut self, run: Box<Run>) {
        self.note_parked(&run);
        let id = run.id;
        let note = match self.runs.get(&id) {
            Some(RunNote::Inserted | RunNote::Parked(_)) => RunNote::Parked(run),
            _ => RunNote::PutBack(run),
        };
        self.runs.insert(id, note);
    }

    /// Replaces an earlier one of the same run.
    pub(super) fn checkpoint(&mut self, run: RunId, checkpoint: Checkpoint) {
        self.run_bytes += checkpoint.body.len();
        if let Some(Some(before)) = self.checkpoints.insert(run, Some(checkpoint)) {
            self.run_bytes -= before.body.len();
        }
    }

    pub(super) fn no_checkpoint(&mut self, run: RunId) {
        self.checkpoints.insert(run, None);
    }

    pub(super) fn run_finished(&mut self, run: Box<Run>) {
        self.finished += 1;
        self.run_bytes += payload_bytes(&run);
        let id = run.id;
        let note = match self.runs.get(&id) {
            Some(RunNote::Inserted | RunNote::Parked(_)) => RunNote::InsertedFinished(run),
            None | Some(RunNote::Updated | RunNote::PutBack(_)) => RunNote::Finished(run),
            Some(RunNote::Finished(_) | RunNote::InsertedFinished(_)) => panic!("{id} ended twice"),
        };
        self.runs.insert(id, note);
    }
}

impl Engine {
    pub(super) fn close_batch(&mut self, now: Now, commit: bool) -> Batch {
        let built = std::mem::take(&mut self.building);
        if !commit {
            return Batch {
                changes: None,
                effects: built.effects,
                document_bytes: 0,
            };
        }
        self.taken += 1;
        let mut changes = ChangeSet {
            session: self.session,
            seq: self.taken,
            extend_ms: self.options.session_ms,
            // What is old goes from one place, whoever made it.
            prune: self
                .segments
                .owned()
                .contains(SegmentId::HOME)
                .then(|| Prune {
                    now: self.age_clock(now),
                    limit: PRUNE_FLOOR + 2 * built.finished,
                }),
            ties: built.ties,
            ..ChangeSet::default()
        };
        changes.segments = self.segments.take_raised();
        for (id, new) in built.jobs {
            let row = self.jobs.expect(id).row.clone();
            changes.jobs.insert(
                id,
                if new {
                    JobChange::Insert(row)
                } else {
                    JobChange::Update(row)
                },
            );
        }
        for id in built.schedules {
            let job = self.jobs.expect_mut(id);
            let mut row = job.schedule.clone();
            if armed(Fault::CursorNotWritten) {
                row.fired_through = job.stored_cursor.unwrap_or(row.fired_through);
            }
            let expected = job.stored_cursor.replace(row.fired_through);
            let change = ScheduleChange { expected, row };
            changes.schedules.insert(id, change);
        }
        changes.versions = built
            .versions
            .into_iter()
            .map(|version| ((version.job, version.version), version))
            .collect();
        for (id, note) in built.runs {
            let change = match note {
                RunNote::Inserted => RunChange::Insert(self.runs.expect(id).run.clone()),
                RunNote::Updated => RunChange::Update(self.runs.expect(id).run.clone()),
                RunNote::Parked(run) => RunChange::Insert(run),
                RunNote::PutBack(run) => RunChange::Update(run),
                RunNote::Finished(run) => RunChange::Finish(run),
                RunNote::InsertedFinished(run) => RunChange::InsertFinished(run),
            };
            changes.runs.insert(id, change);
        }
        changes.checkpoints = built.checkpoints;
        changes.unfired = built.unfired;
        changes.breakers = built
            .breakers
            .into_iter()
            .map(|id| (id, self.jobs.expect(id).breaker.clone()))
            .collect();
        changes.waits = built
            .waits
            .into_iter()
            .map(|id| (id, self.jobs.expect(id).waits.clone()))
            .collect();
        changes.endings = built.endings;
        for key in built.counters {
            changes.counters.insert(
                key.clone(),
                self.counters.get(&key).copied().unwrap_or_default(),
            );
        }
        changes.keys = built
            .keys
            .into_iter()
            .map(|entry| (entry.hash, entry))
            .collect();
        changes.tokens = built
            .tokens
            .into_iter()
            .filter_map(|id| Some((id, self.tokens.get(&id)?.clone())))
            .collect();
        changes.settings = built
            .settings
            .into_iter()
            .filter_map(|key| Some((key.clone(), self.settings.get(&key)?.clone())))
            .collect();
        changes.queues = built.queues;
        changes.rates = built
            .rates
            .into_iter()
            .map(|gate| {
                let row = self.rate_row(&gate);
                (gate, row)
            })
            .collect();
        changes.locks = built
            .locks
            .into_iter()
            .map(|lock| {
                let row = self.locks.row(&lock).cloned();
                (lock, row)
            })
            .collect();
        changes.drains = built
            .drains
            .into_iter()
            .map(|workers| {
                let row = self.drains.row(&workers).cloned();
                (workers, row)
            })
            .collect();
        if let Some(by) = built.parked_start {
            self.start_parked(by, changes.seq);
        }
        changes.audit = built
            .audit
            .into_iter()
            .map(|entry| (entry.id, entry))
            .collect();
        changes.calendars = built
            .calendars
            .into_iter()
            .map(|version| ((version.calendar(), version.version), version))
            .collect();
        changes.sweeps = built
            .sweeps
            .into_iter()
            .filter_map(|cause| Some((cause.clone(), self.sweeps.row(&cause)?.clone())))
            .collect();
        changes.letters = built.letters;
        for id in built.backfills {
            let (expected, row) = self.backfills.written(id);
            changes
                .backfills
                .insert(id, BackfillChange { expected, row });
        }
        changes.tz_version = built.tz_version;
        self.committed_at(now);
        Batch {
            changes: Some(changes),
            effects: built.effects,
            document_bytes: built.document_bytes,
        }
    }

    /// The number that the batch being built will have.
    pub(super) fn building_seq(&self) -> u64 {
        self.taken + 1
    }
}
