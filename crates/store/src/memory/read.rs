//! Reads of the model.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use drumtower_core::model::{
    AuditId, BackfillId, BackfillRow, CalendarRef, CalendarVersion, Checkpoint, DrainRow, Ending,
    GateKey, IdempotencyEntry, IdempotencyHash, JobId, JobName, JobRecord, JobRow, JobVersion,
    LockRef, LockRow, Meta, NamespaceName, QueueRow, RateRow, Run, RunId, SegmentRow, SegmentSet,
    SessionId, SessionRow, SettingRow, SweepRow, TokenRow, Unfired, WallMs,
};

use super::state::State;
use super::{Reader, lock};
use crate::{
    AuditFilter, AuditPage, BackfillFilter, CounterRow, Error, JobFilter, JobPage, LetterFilter,
    ParkedKey, PrunedRow, Read, Rollup, RunFilter, RunPage, StartPage,
};

impl State {
    /// Jobs that are not deleted, in order of id.
    fn above(&self, within: &SegmentSet, after: Option<JobId>) -> impl Iterator<Item = &JobRow> {
        let from = after.map_or(Unbounded, Excluded);
        let rows = self.jobs.range((from, Unbounded)).map(|(_, row)| row);
        rows.filter(|row| !row.deleted && within.contains(row.segment))
    }

    fn record(&self, row: &JobRow) -> Result<JobRecord, Error> {
        let missing = |what: &str| Error::Invariant(format!("{} has no {what} row", row.id));
        let version = self
            .versions
            .get(&(row.id, row.version))
            .ok_or_else(|| missing("version"))?;
        let schedule = self
            .schedules
            .get(&row.id)
            .ok_or_else(|| missing("schedule"))?;
        let ranges = self
            .unfired
            .range((row.id, WallMs(i64::MIN))..=(row.id, WallMs(i64::MAX)));
        Ok(JobRecord {
            row: row.clone(),
            version: version.clone(),
            schedule: schedule.clone(),
            live_scheduled: self.live_scheduled(row.id),
            tallies: self.tallies(row.id),
            breaker: self.breakers.get(&row.id).cloned(),
            waits: self.waits.get(&row.id).cloned(),
            followed: self
                .followers_of(&row.namespace, &row.name, None)
                .next()
                .is_some(),
            last_unfired: ranges.last().map(|(_, range)| range.clone()),
        })
    }
}

fn uses(version: &JobVersion, calendar: &CalendarRef) -> bool {
    let uses = version.spec.calendar.as_ref();
    version.spec.namespace == calendar.namespace
        && uses.is_some_and(|uses| {
            uses.only.contains(&calendar.name) || uses.minus.contains(&calendar.name)
        })
}

impl Read for Reader {
    fn meta(&self) -> Result<Meta, Error> {
        Ok(lock(&self.state).meta.clone())
    }

    fn sessions(&self) -> Result<(WallMs, Vec<SessionRow>), Error> {
        let state = lock(&self.state);
        let live = state.sessions.values().filter(|row| !row.revoked);
        Ok(((self.clock)(), live.cloned().collect()))
    }

    fn longest_lease(&self, since: WallMs) -> Result<u64, Error> {
        let state = lock(&self.state);
        let recent = state.sessions.values().filter(|row| row.expires >= since);
        Ok(recent.map(|row| row.member.lease_ms).max().unwrap_or(0))
    }

    fn ties(&self) -> Result<SegmentSet, Error> {
        match self.shared {
            true => Ok(lock(&self.state).ties),
            false => Ok(SegmentSet::ALL),
        }
    }

    fn tenures(&self, since: WallMs) -> Result<Vec<SessionRow>, Error> {
        let state = lock(&self.state);
        let owned = state.sessions.values();
        let owned = owned.filter(|row| row.took.is_some() && row.expires >= since);
        Ok(owned.filter(|_| self.shared).cloned().collect())
    }

    fn definitions(&self) -> Result<u64, Error> {
        let count = lock(&self.state).definitions;
        Ok(if self.shared { count } else { 0 })
    }

    /// It lives in one process, so it is no secret.
    fn peer_key(&self) -> Result<Option<[u8; 32]>, Error> {
        Ok(self.shared.then_some([7; 32]))
    }

    fn segments(&self) -> Result<Vec<SegmentRow>, Error> {
        Ok(lock(&self.state).segments.values().cloned().collect())
    }

    fn is_revoked(&self, session: SessionId) -> Result<bool, Error> {
        let state = lock(&self.state);
        Ok(state.sessions.get(&session).is_none_or(|row| row.revoked))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, Error> {
        Ok(lock(&self.state)
            .counters
            .iter()
            .map(|(key, row)| (key.clone(), *row))
            .collect())
    }

    fn pruned(&self) -> Result<Vec<PrunedRow>, Error> {
        Ok(lock(&self.state).pruned.values().cloned().collect())
    }

    fn job_named(
        &self,
        namespace: &NamespaceName,
        name: &JobName,
    ) -> Result<Option<JobRecord>, Error> {
        let state = lock(&self.state);
        let id = state.names.get(&(namespace.clone(), name.clone()));
        id.and_then(|id| state.jobs.get(id))
            .map(|row| state.record(row))
            .transpose()
    }

    fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error> {
        let state = lock(&self.state);
        state.jobs.get(&id).map(|row| state.record(row)).transpose()
    }

    fn job_version(&self, id: JobId, version: u32) -> Result<Option<JobVersion>, Error> {
        Ok(lock(&self.state).versions.get(&(id, version)).cloned())
    }

    fn job_versions(
        &self,
        id: JobId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<JobVersion>, Error> {
        let state = lock(&self.state);
        let below = before.map_or(Included((id, u32::MAX)), |before| Excluded((id, before)));
        let rows = state.versions.range((Included((id, 0)), below)).rev();
        Ok(rows
            .take(limit)
            .map(|(_, version)| version.clone())
            .collect())
    }

    fn jobs(
        &self,
        filter: &JobFilter,
        after: Option<&(NamespaceName, JobName)>,
        limit: usize,
    ) -> Result<JobPage, Error> {
        let state = lock(&self.state);
        let mut page = JobPage::default();
        let from = after.map_or(Unbounded, |key| Excluded(key.clone()));
        for (key, id) in state.names.range((from, Unbounded)) {
            let Some(row) = state.jobs.get(id).filter(|row| filter.takes_row(row)) else {
                continue;
            };
            let record = state.record(row)?;
            if !filter.takes_labels(row, &record.version.spec.labels) {
                continue;
            }
            page.jobs.push(record);
            if page.jobs.len() >= limit {
                page.next = Some(key.clone());
                break;
            }
        }
        Ok(page)
    }

    fn jobs_due(
        &self,
        within: &SegmentSet,
        before: WallMs,
        after: Option<(WallMs, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let state = lock(&self.state);
        let due = state
            .schedules
            .values()
            .filter(|row| within.contains(row.job.segment()))
            .filter_map(|row| Some(((row.next_due?, row.job), row.job)));
        let due: BTreeMap<(WallMs, JobId), JobId> = due.collect();
        let from = after.map_or(Unbounded, Excluded);
        let rows = due
            .range((from, Unbounded))
            .take_while(|(key, _)| key.0 < before)
            .take(limit);
        rows.filter_map(|(_, job)| state.jobs.get(job))
            .map(|row| state.record(row))
            .collect()
    }

    fn unfired(
        &self,
        job: JobId,
        from: WallMs,
        to: WallMs,
        limit: usize,
    ) -> Result<Vec<Unfired>, Error> {
        let state = lock(&self.state);
        let ranges = state
            .unfired
            .range((job, WallMs(i64::MIN))..=(job, to))
            .map(|(_, range)| range);
        Ok(ranges
            .filter(|range| range.last >= from)
            .take(limit)
            .cloned()
            .collect())
    }

    fn calendars(&self) -> Result<Vec<CalendarVersion>, Error> {
        Ok(lock(&self.state).calendars.values().cloned().collect())
    }

    fn calendar_versions(&self, calendar: &CalendarRef) -> Result<Vec<CalendarVersion>, Error> {
        let state = lock(&self.state);
        let kept = state
            .calendars
            .range((calendar.clone(), 0)..=(calendar.clone(), u32::MAX));
        Ok(kept.map(|(_, version)| version.clone()).collect())
    }

    fn calendar_users(
        &self,
        within: &SegmentSet,
        calendar: &CalendarRef,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let state = lock(&self.state);
        let uses = |row: &&JobRow| {
            let version = state.versions.get(&(row.id, row.version));
            version.is_some_and(|version| uses(version, calendar))
        };
        let rows = state.above(within, after).filter(uses).take(limit);
        rows.map(|row| state.record(row)).collect()
    }

    fn jobs_by_id(
        &self,
        within: &SegmentSet,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let state = lock(&self.state);
        let rows = state.above(within, after).take(limit);
        rows.map(|row| state.record(row)).collect()
    }

    fn followers(
        &self,
        within: &SegmentSet,
        namespace: &NamespaceName,
        name: &JobName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let state = lock(&self.state);
        let jobs = state
            .followers_of(namespace, name, after)
            .filter(|job| within.contains(job.segment()));
        let rows = jobs.filter_map(|job| state.jobs.get(&job)).take(limit);
        rows.map(|row| state.record(row)).collect()
    }

    fn endings(&self, within: &SegmentSet, limit: usize) -> Result<Vec<Ending>, Error> {
        let state = lock(&self.state);
        let endings = state.endings.values();
        let ours = endings.filter(|ending| within.contains(ending.run.segment()));
        Ok(ours.take(limit).cloned().collect())
    }

    fn sweeps(&self) -> Result<Vec<SweepRow>, Error> {
        Ok(lock(&self.state).sweeps.values().cloned().collect())
    }

    fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        let state = lock(&self.state);
        Ok(state
            .active
            .get(&id)
            .or_else(|| state.finished.get(&id))
            .cloned())
    }

    fn checkpoint(&self, run: RunId) -> Result<Option<Checkpoint>, Error> {
        Ok(lock(&self.state).checkpoints.get(&run).cloned())
    }

    fn runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        let state = lock(&self.state);
        let mut all: Vec<&Run> = state
            .active
            .values()
            .chain(state.finished.values())
            .collect();
        all.retain(|run| before.is_none_or(|before| run.id < before) && filter.takes(run));
        all.sort_unstable_by_key(|run| std::cmp::Reverse(run.id));
        let runs: Vec<Run> = all.iter().take(limit).copied().cloned().collect();
        let next = if all.len() > runs.len() {
            runs.last().map(|run| run.id)
        } else {
            None
        };
        Ok(RunPage { runs, next })
    }

    fn active_runs(
        &self,
        within: &SegmentSet,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let state = lock(&self.state);
        let rows = state
            .active
            .range((after.map_or(Unbounded, Excluded), Unbounded))
            .map(|(_, run)| run);
        Ok(rows
            .filter(|run| run.parked.is_none() && within.contains(run.id.segment()))
            .take(limit)
            .cloned()
            .collect())
    }

    fn parked_runs(
        &self,
        within: &SegmentSet,
        key: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let state = lock(&self.state);
        let rows = state
            .active
            .range((after.map_or(Unbounded, Excluded), Unbounded))
            .map(|(_, run)| run);
        Ok(rows
            .filter(|run| run.parked.as_deref() == Some(key))
            .filter(|run| within.contains(run.id.segment()))
            .take(limit)
            .cloned()
            .collect())
    }

    fn parked_starts(
        &self,
        within: &SegmentSet,
        by: WallMs,
        after: Option<(WallMs, RunId)>,
        limit: usize,
    ) -> Result<StartPage, Error> {
        let state = lock(&self.state);
        let parked = state.active.values().filter(|run| run.parked.is_some());
        let mut places: Vec<(WallMs, RunId)> = parked
            .filter(|run| within.contains(run.id.segment()))
            .filter_map(|run| Some((run.must_start_by()?, run.id)))
            .filter(|place| after.is_none_or(|after| *place > after))
            .collect();
        places.sort_unstable();
        let come = places.iter().take_while(|place| place.0 <= by).count();
        let page = come.min(limit);
        let runs = places[..page].iter();
        Ok(StartPage {
            runs: runs
                .filter_map(|(_, id)| state.active.get(id).cloned())
                .collect(),
            next: places.get(page).map(|(by, _)| *by),
        })
    }

    fn live_runs(&self, job: JobId, key: Option<&str>, limit: usize) -> Result<Vec<Run>, Error> {
        let state = lock(&self.state);
        let live = |run: &&Run| {
            let standing = &run.standing;
            run.job == job && standing.counts && !standing.queued && standing.key.as_deref() == key
        };
        let runs = state.active.values().filter(live);
        Ok(runs.take(limit).cloned().collect())
    }

    fn parked_keys(&self, within: &SegmentSet) -> Result<Vec<ParkedKey>, Error> {
        let state = lock(&self.state);
        let mut counts = BTreeMap::<&str, u64>::new();
        for key in state
            .active
            .values()
            .filter(|run| within.contains(run.id.segment()))
            .filter_map(|run| run.parked.as_deref())
        {
            *counts.entry(key).or_default() += 1;
        }
        Ok(counts
            .into_iter()
            .map(|(key, runs)| ParkedKey {
                key: key.to_owned(),
                runs,
            })
            .collect())
    }

    fn letter(&self, id: RunId) -> Result<Option<Run>, Error> {
        Ok(lock(&self.state).letters.get(&id).cloned())
    }

    fn letters(
        &self,
        filter: &LetterFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        let state = lock(&self.state);
        let below = before.map_or(Unbounded, Excluded);
        let rows = state.letters.range((Unbounded, below)).rev();
        let mut page = RunPage::default();
        for (_, run) in rows.filter(|(_, run)| filter.takes(run)) {
            if page.runs.len() >= limit {
                page.next = page.runs.last().map(|run| run.id);
                break;
            }
            page.runs.push(run.clone());
        }
        Ok(page)
    }

    fn idempotency(
        &self,
        hash: &IdempotencyHash,
        now: WallMs,
    ) -> Result<Option<IdempotencyEntry>, Error> {
        let state = lock(&self.state);
        let mut entries = state.entries(hash);
        let fresh = entries.find(|entry| now.since(entry.created) < IdempotencyEntry::KEPT_MS);
        Ok(fresh.cloned())
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        Ok(lock(&self.state).tokens.values().cloned().collect())
    }

    fn backfill(&self, id: BackfillId) -> Result<Option<BackfillRow>, Error> {
        Ok(lock(&self.state).backfills.get(&id).cloned())
    }

    fn backfills(
        &self,
        filter: &BackfillFilter,
        before: Option<BackfillId>,
        limit: usize,
    ) -> Result<Vec<BackfillRow>, Error> {
        let state = lock(&self.state);
        let below = before.map_or(Unbounded, Excluded);
        let rows = state.backfills.range((Unbounded, below)).rev();
        let wanted = rows.map(|(_, row)| row).filter(|row| filter.takes(row));
        Ok(wanted.take(limit).cloned().collect())
    }

    fn lock(&self, lock: &LockRef) -> Result<Option<LockRow>, Error> {
        Ok(self::lock(&self.state).locks.get(lock).cloned())
    }

    fn locks(
        &self,
        namespace: Option<&NamespaceName>,
        after: Option<&LockRef>,
        limit: usize,
    ) -> Result<Vec<LockRow>, Error> {
        let state = lock(&self.state);
        let rows = state.locks.values();
        let wanted = rows
            .filter(|row| namespace.is_none_or(|namespace| *namespace == row.lock.namespace))
            .filter(|row| after.is_none_or(|after| row.lock > *after));
        Ok(wanted.take(limit).cloned().collect())
    }

    fn queues(&self) -> Result<Vec<QueueRow>, Error> {
        Ok(lock(&self.state).queues.values().cloned().collect())
    }

    fn rates(&self) -> Result<Vec<(GateKey, RateRow)>, Error> {
        let state = lock(&self.state);
        let rows = state.rates.iter();
        Ok(rows.map(|(gate, row)| (gate.clone(), *row)).collect())
    }

    fn drains(&self) -> Result<Vec<DrainRow>, Error> {
        Ok(lock(&self.state).drains.values().cloned().collect())
    }

    fn settings(&self) -> Result<Vec<SettingRow>, Error> {
        Ok(lock(&self.state).settings.values().cloned().collect())
    }

    fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        let state = lock(&self.state);
        let rows = state.audit.range(..before.unwrap_or(AuditId(u64::MAX)));
        let mut page = AuditPage::default();
        for (_, entry) in rows.rev().filter(|(_, entry)| filter.takes(entry)) {
            if page.entries.len() >= limit {
                page.next = page.entries.last().map(|last| last.id);
                break;
            }
            page.entries.push(entry.clone());
        }
        Ok(page)
    }

    fn rollups(&self, job: Option<JobId>, from: i64, to: i64) -> Result<Vec<Rollup>, Error> {
        let state = lock(&self.state);
        if from >= to {
            return Ok(Vec::new());
        }
        let rows = state.rollups.range((from, JobId(0))..(to, JobId(0)));
        let rows = rows.filter(|(key, _)| job.is_none_or(|job| key.1 == job));
        Ok(rows
            .map(|(key, tally)| tally.clone().into_rollup(*key))
            .collect())
    }
}
