//! A tiny store of maps, as strict about what it expects as a real one.

use std::collections::BTreeMap;

use crate::change::{ChangeSet, JobChange, LetterChange, RunChange};
use crate::model::*;

use super::super::*;

#[derive(Default)]
pub(super) struct Tables {
    pub(super) jobs: BTreeMap<JobId, JobRow>,
    pub(super) versions: BTreeMap<(JobId, u32), JobVersion>,
    pub(super) schedules: BTreeMap<JobId, ScheduleRow>,
    pub(super) active: BTreeMap<RunId, Run>,
    pub(super) history: BTreeMap<RunId, Run>,
    pub(super) checkpoints: BTreeMap<RunId, Checkpoint>,
    pub(super) unfired: BTreeMap<(JobId, WallMs), Unfired>,
    pub(super) keys: BTreeMap<IdempotencyHash, IdempotencyEntry>,
    pub(super) counters: BTreeMap<(SegmentId, NamespaceName), Counters>,
    pub(super) segments: BTreeMap<SegmentId, SegmentRow>,
    pub(super) calendars: BTreeMap<(CalendarRef, u32), CalendarVersion>,
    pub(super) sweeps: BTreeMap<SweepCause, SweepRow>,
    pub(super) settings: BTreeMap<SettingKey, SettingRow>,
    pub(super) queues: BTreeMap<QueueRef, QueueRow>,
    pub(super) rates: BTreeMap<GateKey, RateRow>,
    pub(super) locks: BTreeMap<LockRef, LockRow>,
    pub(super) drains: BTreeMap<WorkerRef, DrainRow>,
    pub(super) ties: SegmentSet,
    pub(super) audit: BTreeMap<AuditId, AuditEntry>,
    pub(super) letters: BTreeMap<RunId, Run>,
    pub(super) breakers: BTreeMap<JobId, BreakerRow>,
    pub(super) backfills: BTreeMap<BackfillId, BackfillRow>,
    pub(super) waits: BTreeMap<JobId, AfterRow>,
    pub(super) endings: BTreeMap<RunId, Ending>,
}

impl Tables {
    pub(super) fn apply(&mut self, changes: ChangeSet) {
        for (id, change) in changes.jobs {
            let row = match change {
                JobChange::Insert(row) => {
                    assert!(!self.jobs.contains_key(&id));
                    row
                }
                JobChange::Update(row) => row,
            };
            self.jobs.insert(id, row);
        }
        self.versions.extend(changes.versions);
        for (id, change) in changes.schedules {
            assert_eq!(
                self.schedules.get(&id).map(|row| row.fired_through),
                change.expected,
                "the cursor was compared"
            );
            self.schedules.insert(id, change.row);
        }
        for (id, change) in changes.runs {
            let known = self.active.remove(&id).is_some();
            assert!(
                !self.history.contains_key(&id),
                "{id} changed after it ended"
            );
            match change {
                RunChange::Insert(run) => {
                    assert!(!known);
                    self.active.insert(id, *run);
                }
                RunChange::Update(run) => {
                    assert!(known, "{id} is not active");
                    self.active.insert(id, *run);
                }
                RunChange::Finish(run) => {
                    assert!(known, "{id} is not active");
                    self.history.insert(id, *run);
                }
                RunChange::InsertFinished(run) => {
                    assert!(!known);
                    self.history.insert(id, *run);
                }
            }
        }
        for (id, checkpoint) in changes.checkpoints {
            let before = self.checkpoints.remove(&id);
            if let Some(checkpoint) = checkpoint {
                assert!(
                    before.is_none_or(|before| before.number < checkpoint.number),
                    "a checkpoint of {id} goes back"
                );
                self.checkpoints.insert(id, checkpoint);
            }
        }
        self.unfired.extend(changes.unfired);
        for (hash, entry) in changes.keys {
            assert!(
                self.keys.insert(hash, entry).is_none(),
                "a key was used twice"
            );
        }
        self.counters.extend(changes.counters);
        self.segments.extend(changes.segments);
        for (key, version) in changes.calendars {
            let before = self.calendars.insert(key, version);
            assert!(
                before.is_none(),
                "a version of a calendar was written twice"
            );
        }
        self.sweeps.extend(changes.sweeps);
        self.settings.extend(changes.settings);
        self.queues.extend(changes.queues);
        for (gate, row) in changes.rates {
            match row {
                Some(row) => self.rates.insert(gate, row),
                None => self.rates.remove(&gate),
            };
        }
        for (lock, row) in changes.locks {
            match row {
                Some(row) => self.locks.insert(lock, row),
                None => self.locks.remove(&lock),
            };
        }
        self.ties = self.ties.union(&changes.ties);
        for (workers, row) in changes.drains {
            match row {
                Some(row) => self.drains.insert(workers, row),
                None => self.drains.remove(&workers),
            };
        }
        for (job, row) in changes.breakers {
            match row {
                Some(row) => self.breakers.insert(job, row),
                None => self.breakers.remove(&job),
            };
        }
        for (job, row) in changes.waits {
            match row {
                Some(row) => self.waits.insert(job, row),
                None => self.waits.remove(&job),
            };
        }
        for (run, ending) in changes.endings {
            match ending {
                Some(ending) => self.endings.insert(run, ending),
                None => self.endings.remove(&run),
            };
        }
        for (id, change) in changes.letters {
            let there = match change {
                LetterChange::Insert(run) => self.letters.insert(id, *run).is_none(),
                LetterChange::Remove => self.letters.remove(&id).is_some(),
            };
            assert!(there, "the dead letter {id} is not where it should be");
        }
        for (id, entry) in changes.audit {
            assert!(self.audit.insert(id, entry).is_none(), "{id} twice");
        }
        for (id, change) in changes.backfills {
            let before = self.backfills.insert(id, change.row);
            let step = before.map(|row| row.step);
            assert_eq!(step, change.expected, "the step of {id} was compared");
        }
        self.check_backfills();
    }

    pub(super) fn record(&self, id: JobId) -> Option<JobRecord> {
        let row = self.jobs.get(&id)?.clone();
        let version = self.versions.get(&(id, row.version))?.clone();
        let live = |run: &&Run| run.job == id && run.origin == Origin::Schedule;
        let mut tallies = Tallies::default();
        for run in self.active.values().filter(|run| run.job == id) {
            tallies.add(&run.standing, 1);
        }
        Some(JobRecord {
            version,
            schedule: self.schedules.get(&id)?.clone(),
            live_scheduled: self.active.values().filter(live).count() as u32,
            tallies,
            breaker: self.breakers.get(&id).cloned(),
            waits: self.waits.get(&id).cloned(),
            followed: !self.follow(&row.namespace, &row.name).is_empty(),
            last_unfired: self
                .unfired
                .range((id, WallMs(i64::MIN))..=(id, WallMs(i64::MAX)))
                .next_back()
                .map(|(_, r)| r.clone()),
            row,
        })
    }

    /// Jobs that run after another.
    fn follow(&self, namespace: &NamespaceName, name: &JobName) -> Vec<JobId> {
        let follows = |row: &&JobRow| {
            let after = self.versions[&(row.id, row.version)].spec.after.as_ref();
            let named = after.is_some_and(|after| after.jobs.contains(name));
            !row.deleted && row.namespace == *namespace && named
        };
        let rows = self.jobs.values().filter(follows);
        rows.map(|row| row.id).collect()
    }

    /// Parked runs that must start by a time, in its order.
    pub(super) fn parked_starts(&self) -> Vec<(WallMs, RunId)> {
        let parked = self.active.values().filter(|run| run.parked.is_some());
        let mut starts: Vec<_> = parked
            .filter_map(|run| Some((run.must_start_by()?, run.id)))
            .collect();
        starts.sort_unstable();
        starts
    }

    /// Jobs that use a calendar, or all of them.
    fn users(&self, calendar: Option<&CalendarRef>) -> Vec<JobRecord> {
        let uses = |record: &JobRecord| {
            calendar.is_none_or(|calendar| {
                let used = record.version.spec.calendar.clone().unwrap_or_default();
                record.row.namespace == calendar.namespace
                    && (used.only.contains(&calendar.name) || used.minus.contains(&calendar.name))
            })
        };
        let live = self.jobs.values().filter(|row| !row.deleted);
        live.filter_map(|row| self.record(row.id))
            .filter(uses)
            .collect()
    }

    /// The versions that runs are pinned to and that are not current.
    pub(super) fn pinned(&self, runs: &[Run]) -> Vec<JobVersion> {
        self.old_versions(runs.iter().map(|run| (run.job, run.job_version)))
    }

    pub(super) fn old_versions(
        &self,
        pinned: impl Iterator<Item = (JobId, u32)>,
    ) -> Vec<JobVersion> {
        let old = |(job, version): &(JobId, u32)| self.jobs[job].version != *version;
        let mut keys: Vec<_> = pinned.filter(old).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.iter().map(|key| self.versions[key].clone()).collect()
    }

    fn parked(&self, key: &str, after: Option<RunId>, most: usize) -> Vec<Run> {
        let parked = |run: &&Run| run.parked.as_deref() == Some(key) && Some(run.id) > after;
        let runs = self.active.values().filter(parked);
        runs.take(most).cloned().collect()
    }

    fn with_definitions(&self, runs: &[Run], rows: &mut Vec<LoadedRow>) {
        let mut jobs: Vec<JobId> = runs.iter().map(|run| run.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let jobs = jobs.into_iter().filter_map(|id| self.record(id));
        rows.extend(jobs.map(LoadedRow::Job));
        rows.extend(self.pinned(runs).into_iter().map(LoadedRow::Version));
    }

    pub(super) fn load(&self, request: LoadRequest) -> Loaded {
        let mut rows = Vec::new();
        for key in request.keys {
            match key {
                LoadKey::JobNamed(name) => {
                    let mut rows_of_name = self
                        .jobs
                        .values()
                        .filter(|row| row.namespace == name.namespace && row.name == name.name);
                    let id = rows_of_name.find(|row| !row.deleted).map(|row| row.id);
                    if id.is_none() && !self.follow(&name.namespace, &name.name).is_empty() {
                        rows.push(LoadedRow::Awaited(name.clone()));
                    }
                    rows.push(LoadedRow::JobNamed(name, id.and_then(|id| self.record(id))));
                }
                LoadKey::Run(id) => {
                    if let Some(run) = self.active.get(&id) {
                        rows.extend(self.record(run.job).map(LoadedRow::Job));
                        let pinned = self.pinned(std::slice::from_ref(run));
                        rows.extend(pinned.into_iter().map(LoadedRow::Version));
                    }
                    rows.push(LoadedRow::Run(
                        id,
                        self.active
                            .get(&id)
                            .or_else(|| self.history.get(&id))
                            .cloned(),
                    ));
                }
                LoadKey::Idempotency(hash) => {
                    let young = |entry: &&IdempotencyEntry| {
                        request.now.since(entry.created) < IdempotencyEntry::KEPT_MS
                    };
                    let entry = self.keys.get(&hash).filter(young).cloned();
                    rows.push(LoadedRow::Idempotency(hash, entry))
                }
                LoadKey::Letter(run) => {
                    rows.push(LoadedRow::Letter(run, self.letters.contains_key(&run)));
                }
                LoadKey::Backfill(id) => {
                    rows.push(LoadedRow::Backfill(id, self.backfills.get(&id).cloned()));
                }
                LoadKey::Times(wanted) => {
                    let page = self.times(&wanted);
                    rows.push(LoadedRow::Times(wanted, page));
                }
                LoadKey::Due { before, after } => {
                    let mut due: Vec<_> = self
                        .schedules
                        .values()
                        .filter_map(|row| Some((row.next_due?, row.job)))
                        .collect();
                    due.sort_unstable();
                    let due = due.into_iter().filter(|place| {
                        place.0 < before && after.is_none_or(|after| *place > after)
                    });
                    let jobs = due
                        .take(LOAD_ROWS)
                        .filter_map(|(_, id)| self.record(id))
                        .collect();
                    rows.push(LoadedRow::Due { before, jobs });
                }
                LoadKey::Swept { cause, after } => {
                    let jobs = self.users(match &cause {
                        SweepCause::Calendar(calendar) => Some(calendar),
                        SweepCause::TimeZones => None,
                    });
                    let jobs = jobs
                        .into_iter()
                        .filter(|record| Some(record.row.id) > after);
                    let jobs = jobs.take(LOAD_ROWS).collect();
                    rows.push(LoadedRow::Swept { cause, jobs });
                }
                LoadKey::CalendarUsers(calendar) => {
                    let users = self.users(Some(&calendar));
                    rows.push(LoadedRow::CalendarUsers(calendar, users));
                }
                LoadKey::Followers { ending, job, after } => {
                    let jobs = self.follow(&job.namespace, &job.name).into_iter();
                    let jobs = jobs.filter(|id| Some(*id) > after).take(FOLLOWER_ROWS);
                    let jobs = jobs.filter_map(|id| self.record(id)).collect();
                    rows.push(LoadedRow::Followers { ending, jobs });
                }
                LoadKey::Endings => {
                    let endings = self.endings.values().take(ENDING_ROWS);
                    rows.push(LoadedRow::Endings(endings.cloned().collect()));
                }
                LoadKey::Overdue { by, after } => {
                    let mut places = self.parked_starts();
                    places.retain(|place| after.is_none_or(|after| *place > after));
                    let come = places.iter().take_while(|place| place.0 <= by).count();
                    let next = places.get(come.min(LOAD_ROWS)).map(|(by, _)| *by);
                    places.truncate(come.min(LOAD_ROWS));
                    let runs: Vec<Run> = places
                        .into_iter()
                        .map(|(_, id)| self.active[&id].clone())
                        .collect();
                    let jobs = runs.iter().filter_map(|run| self.record(run.job));
                    rows.extend(jobs.map(LoadedRow::Job));
                    rows.extend(self.pinned(&runs).into_iter().map(LoadedRow::Version));
                    rows.push(LoadedRow::Overdue { runs, next });
                }
                LoadKey::Queued { key, rows: most } => {
                    let runs = self.parked(&key, None, most);
                    self.with_definitions(&runs, &mut rows);
                    rows.push(LoadedRow::Queued { key, runs });
                }
                LoadKey::Live { job, key } => {
                    let live = |run: &&Run| {
                        let standing = &run.standing;
                        run.job == job && standing.counts && !standing.queued && standing.key == key
                    };
                    let runs: Vec<Run> = self.active.values().filter(live).cloned().collect();
                    self.with_definitions(&runs, &mut rows);
                    rows.push(LoadedRow::Live { job, key, runs });
                }
                LoadKey::Parked {
                    key,
                    after,
                    rows: most,
                } => {
                    let runs = self.parked(&key, after, most);
                    self.with_definitions(&runs, &mut rows);
                    let all = runs.len() < most;
                    rows.push(LoadedRow::Parked { key, runs, all });
                }
                LoadKey::Sorted { key, after } => {
                    let runs = self.parked(&key, after, LOAD_ROWS);
                    self.with_definitions(&runs, &mut rows);
                    rows.push(LoadedRow::Sorted { key, runs });
                }
            }
        }
        Loaded {
            id: request.id,
            rows,
        }
    }
}
