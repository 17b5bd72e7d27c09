//! A commit on the model: every expectation is checked first, then everything is applied.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, JobChange, LetterChange, RunChange};
use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::{
    CalendarRef, IdempotencyEntry, JobId, JobRow, Limits, Run, SessionRow, WallMs,
};

use super::state::State;
use crate::tally::Sample;
use crate::{Commit, Error, check};

fn refuse<T>(what: String) -> Result<T, Error> {
    Err(Error::Invariant(what))
}

impl State {
    pub fn commit(&mut self, changes: &ChangeSet, clock: WallMs) -> Result<Commit, Error> {
        let fits = |row: &drumtower_core::model::SessionRow| {
            !row.revoked && row.seq.checked_add(1) == Some(changes.seq)
        };
        let fenced = !self.sessions.get(&changes.session).is_some_and(fits);
        if fenced && !armed(Fault::SessionNotFenced) {
            return Ok(Commit::Fenced);
        }
        self.expect_system(changes)?;
        self.expect_jobs(changes)?;
        self.expect_calendars(changes)?;
        self.expect_runs(changes)?;
        self.expect_checkpoints(changes)?;
        self.expect_backfills(changes)?;
        self.apply(changes, clock);
        Ok(Commit::Done)
    }

    fn expect_system(&self, changes: &ChangeSet) -> Result<(), Error> {
        if let Some(missing) = changes
            .revoke
            .iter()
            .find(|id| !self.sessions.contains_key(id))
        {
            return refuse(format!("session {} does not exist", missing.0));
        }
        for (id, row) in &changes.segments {
            let me = changes.session;
            let fits = self.segments.get(id).is_some_and(|old| {
                let owner = self.sessions.get(&old.owner);
                let revoked = |it: &SessionRow| it.revoked || changes.revoke.contains(&it.id);
                let owned = owner.is_some_and(|it| it.id != me && !revoked(it));
                check::segment(old, row, me, owned)
            });
            if !fits {
                return refuse(format!(
                    "segment {}: another has it, or its epoch or mark is not as expected",
                    id.0
                ));
            }
        }
        for entry in changes.keys.values() {
            if self
                .entries(&entry.hash)
                .any(|old| entry.created.since(old.created) < IdempotencyEntry::KEPT_MS)
            {
                return refuse(format!("the idempotency key of {} is taken", entry.run));
            }
        }
        if let Some(taken) = changes.audit.keys().find(|id| self.audit.contains_key(id)) {
            return refuse(format!("{taken} is in the audit log"));
        }
        Ok(())
    }

    fn expect_jobs(&self, changes: &ChangeSet) -> Result<(), Error> {
        for (id, change) in &changes.jobs {
            let exists = self.jobs.contains_key(id);
            if exists != matches!(change, JobChange::Update(_)) {
                return refuse(format!(
                    "{id} {}",
                    if exists { "exists" } else { "does not exist" }
                ));
            }
        }
        let mut taken = BTreeSet::new();
        for row in changes.jobs.values().map(row_of).filter(|row| !row.deleted) {
            let name = (row.namespace.clone(), row.name.clone());
            // Whoever is in the set may give its name up in it.
            let holder = self.names.get(&name);
            let held = holder.is_some_and(|id| !changes.jobs.contains_key(id));
            if held || !taken.insert(name) {
                return refuse(format!(
                    "{}: the name {}/{} is taken",
                    row.id, row.namespace, row.name
                ));
            }
        }
        if let Some((job, version)) = changes
            .versions
            .keys()
            .find(|key| self.versions.contains_key(key))
        {
            return refuse(format!("{job} has a version {version}"));
        }
        for (job, change) in &changes.schedules {
            if self.schedules.get(job).map(|row| row.fired_through) != change.expected {
                return refuse(format!(
                    "the schedule of {job} does not stand where it should"
                ));
            }
        }
        Ok(())
    }

    fn expect_calendars(&self, changes: &ChangeSet) -> Result<(), Error> {
        let mut newest = BTreeMap::new();
        for (calendar, version) in changes.calendars.keys() {
            let before = newest
                .entry(calendar)
                .or_insert_with(|| self.newest_calendar(calendar));
            if before.checked_add(1) != Some(*version) {
                return refuse(format!(
                    "version {version} of the calendar {}/{} does not follow version {before}",
                    calendar.namespace, calendar.name
                ));
            }
            *before = *version;
        }
        Ok(())
    }

    fn expect_runs(&self, changes: &ChangeSet) -> Result<(), Error> {
        for (id, change) in &changes.runs {
            let (active, finished) = (self.active.contains_key(id), self.finished.contains_key(id));
            let expected = match change {
                RunChange::Insert(_) | RunChange::InsertFinished(_) => !active && !finished,
                RunChange::Update(_) | RunChange::Finish(_) => active && !finished,
            };
            if !expected {
                return refuse(format!("{id} is not where the change expects it"));
            }
        }
        for (id, change) in &changes.letters {
            let there = self.letters.contains_key(id);
            if there != matches!(change, LetterChange::Remove) {
                return refuse(format!(
                    "the dead letter {id} is not where the change expects it"
                ));
            }
        }
        Ok(())
    }

    fn expect_checkpoints(&self, changes: &ChangeSet) -> Result<(), Error> {
        for (run, checkpoint) in &changes.checkpoints {
            if let (Some(old), Some(new)) = (self.checkpoints.get(run), checkpoint)
                && new.number <= old.number
            {
                return refuse(format!("the checkpoint of {run} would go back"));
            }
        }
        Ok(())
    }

    fn expect_backfills(&self, changes: &ChangeSet) -> Result<(), Error> {
        for (id, change) in &changes.backfills {
            if self.backfills.get(id).map(|row| row.step) != change.expected {
                return refuse(format!("{id} does not stand where it should"));
            }
        }
        Ok(())
    }

    /// Brings the followers up to the definitions that the set brings.
    fn apply_followers(&mut self, changes: &ChangeSet) {
        let touched: BTreeSet<JobId> = changes.jobs.keys().copied().collect();
        self.followers.retain(|(_, _, job)| !touched.contains(job));
        for job in touched {
            let Some(row) = self.jobs.get(&job).filter(|row| !row.deleted) else {
                continue;
            };
            let version = self.versions.get(&(job, row.version));
            let after = version.and_then(|version| version.spec.after.as_ref());
            for name in after.into_iter().flat_map(|after| &after.jobs) {
                let follower = (row.namespace.clone(), name.clone(), job);
                self.followers.insert(follower);
            }
        }
    }

    fn apply(&mut self, changes: &ChangeSet, clock: WallMs) {
        if let Some(session) = self.sessions.get_mut(&changes.session) {
            session.seq = changes.seq;
            session.expires = clock.plus(changes.extend_ms);
            if !changes.segments.is_empty() {
                session.took.get_or_insert(clock);
            }
        }
        for id in &changes.revoke {
            self.sessions
                .entry(*id)
                .and_modify(|row| row.revoked = true);
        }
        self.segments.extend(changes.segments.clone());
        for row in changes.jobs.values().map(row_of) {
            if let Some(old) = self.jobs.insert(row.id, row.clone())
                && self.names.get(&(old.namespace.clone(), old.name.clone())) == Some(&row.id)
            {
                self.names.remove(&(old.namespace, old.name));
            }
        }
        for row in changes.jobs.values().map(row_of).filter(|row| !row.deleted) {
            self.names
                .insert((row.namespace.clone(), row.name.clone()), row.id);
        }
        self.versions.extend(changes.versions.clone());
        self.schedules.extend(
            changes
                .schedules
                .iter()
                .map(|(job, change)| (*job, change.row.clone())),
        );
        for change in changes.runs.values() {
            self.apply_run(change);
        }
        for (run, checkpoint) in &changes.checkpoints {
            match checkpoint {
                Some(checkpoint) => drop(self.checkpoints.insert(*run, checkpoint.clone())),
                None => drop(self.checkpoints.remove(run)),
            }
        }
        self.unfired.extend(changes.unfired.clone());
        self.apply_calendars(changes);
        self.sweeps.extend(changes.sweeps.clone());
        if let Some(version) = &changes.tz_version {
            self.meta.tz_version.clone_from(version);
        }
        self.counters.extend(changes.counters.clone());
        for entry in changes.keys.values() {
            self.keys_made += 1;
            self.key_order.insert((entry.hash, self.keys_made));
            self.keys.insert(self.keys_made, entry.clone());
        }
        self.definitions += u64::from(check::defines(changes));
        self.tokens.extend(changes.tokens.clone());
        self.settings.extend(changes.settings.clone());
        self.ties = self.ties.union(&changes.ties);
        self.queues.extend(changes.queues.clone());
        for (gate, row) in &changes.rates {
            match row {
                Some(row) => self.rates.insert(gate.clone(), *row),
                None => self.rates.remove(gate),
            };
        }
        for (lock, row) in &changes.locks {
            match row {
                Some(row) => self.locks.insert(lock.clone(), row.clone()),
                None => self.locks.remove(lock),
            };
        }
        for (workers, row) in &changes.drains {
            match row {
                Some(row) => self.drains.insert(workers.clone(), row.clone()),
                None => self.drains.remove(workers),
            };
        }
        self.apply_followers(changes);
        for (job, row) in &changes.waits {
            match row {
                Some(row) => self.waits.insert(*job, row.clone()),
                None => self.waits.remove(job),
            };
        }
        for (run, ending) in &changes.endings {
            match ending {
                Some(ending) => self.endings.insert(*run, ending.clone()),
                None => self.endings.remove(run),
            };
        }
        for (job, row) in &changes.breakers {
            match row {
                Some(row) => self.breakers.insert(*job, row.clone()),
                None => self.breakers.remove(job),
            };
        }
        self.audit.extend(changes.audit.clone());
        for (id, change) in &changes.letters {
            match change {
                LetterChange::Insert(run) => self.letters.insert(*id, run.as_ref().clone()),
                LetterChange::Remove => self.letters.remove(id),
            };
        }
        for (id, change) in &changes.backfills {
            self.backfills.insert(*id, change.row.clone());
        }
        if let Some(prune) = &changes.prune {
            self.prune(prune, changes.seq);
        }
    }

    fn apply_calendars(&mut self, changes: &ChangeSet) {
        self.calendars.extend(changes.calendars.clone());
        for (calendar, _) in changes.calendars.keys() {
            let newest = self.newest_calendar(calendar) as usize;
            let gone = |(other, version): &(CalendarRef, u32)| {
                other == calendar && *version as usize + Limits::CALENDAR_VERSIONS <= newest
            };
            self.calendars.retain(|key, _| !gone(key));
        }
    }

    fn apply_run(&mut self, change: &RunChange) {
        match change {
            RunChange::Insert(run) | RunChange::Update(run) => {
                self.active.insert(run.id, Run::clone(run));
            }
            RunChange::Finish(run) => {
                self.active.remove(&run.id);
                self.finish(run);
            }
            RunChange::InsertFinished(run) => self.finish(run),
        }
    }

    fn finish(&mut self, run: &Run) {
        let sample = Sample::of(run);
        self.rollups.entry(sample.key).or_default().add(&sample);
        self.finishes += 1;
        self.finish_order
            .insert((run.retention, self.finishes), run.id);
        self.finished.insert(run.id, run.clone());
    }
}

fn row_of(change: &JobChange) -> &JobRow {
    match change {
        JobChange::Insert(row) | JobChange::Update(row) => row,
    }
}
