//! Rows on their way in.
//!
//! A load reads committed data, and what it brings may be older than what the engine has decided since. So each carries
//! the last batch that was acknowledged when it was asked for; a row is taken only if it is not resident and was not
//! changed after that. Marks of what was changed live until their batch is durable and every earlier load has returned.

use std::collections::BTreeMap;

use crate::fault::{Fault, armed};
use crate::model::{IdempotencyEntry, Now, Run, RunId, RunState, SegmentSet, SessionId, WallMs};

use super::delays::minute_of_key;
use super::enter_line::Enter;
use super::turns::TurnRef;
use super::{Engine, Input, LoadKey, LoadRequest, Loaded, LoadedRow, Step};

#[derive(Debug, Default)]
pub(super) struct Loads {
    next_id: u64,
    /// Loads under way, with their tags.
    outstanding: BTreeMap<u64, u64>,
    wanted: Vec<LoadRequest>,
}

impl Loads {
    fn request(
        &mut self,
        session: SessionId,
        within: SegmentSet,
        tag: u64,
        keys: Vec<LoadKey>,
        now: WallMs,
    ) -> LoadRequest {
        self.next_id += 1;
        // Times may take long to be read and bring no row: no mark has to wait for them.
        let rows = keys.iter().any(|key| !matches!(key, LoadKey::Times(_)));
        let waited_for = if rows { tag } else { u64::MAX };
        self.outstanding.insert(self.next_id, waited_for);
        LoadRequest {
            id: self.next_id,
            tag,
            session,
            within,
            keys,
            now,
        }
    }

    pub(super) fn take_wanted(&mut self) -> Vec<LoadRequest> {
        std::mem::take(&mut self.wanted)
    }

    /// Batches up to this one are durable and visible to every load under way.
    fn safe(&self, acknowledged: u64) -> u64 {
        self.outstanding
            .values()
            .copied()
            .min()
            .unwrap_or(acknowledged)
            .min(acknowledged)
    }
}

impl Engine {
    pub(super) fn need(&mut self, keys: Vec<LoadKey>, input: Input) -> Step {
        let now = self.age_clock(self.now);
        let request = self.loads.request(
            self.session,
            self.segments.owned(),
            self.acknowledged,
            keys,
            now,
        );
        Step::Need {
            request,
            input: Box::new(input),
        }
    }

    pub(super) fn want(&mut self, key: LoadKey) {
        let now = self.age_clock(self.now);
        let request = self.loads.request(
            self.session,
            self.segments.owned(),
            self.acknowledged,
            vec![key],
            now,
        );
        self.loads.wanted.push(request);
    }

    pub(super) fn loaded(&mut self, now: Now, loaded: Loaded) {
        let tag = self
            .loads
            .outstanding
            .remove(&loaded.id)
            .unwrap_or_else(|| panic!("load {} came twice", loaded.id));
        for row in loaded.rows {
            self.take_row(now, tag, row);
        }
        self.jobs.forget_versions();
        self.forget_marks();
    }

    fn take_row(&mut self, now: Now, tag: u64, row: LoadedRow) {
        match row {
            LoadedRow::JobNamed(_, Some(record)) => {
                let id = record.row.id;
                self.adopt_job(record);
                self.keep_job(id);
            }
            LoadedRow::Job(record) => self.adopt_job(record),
            LoadedRow::JobNamed(name, None) => {
                if self.jobs.named(&name).is_none() {
                    self.jobs.note_free(name);
                }
            }
            LoadedRow::Version(version) => self.adopt_version(version),
            LoadedRow::Run(id, run) => self.take_run(id, tag, run),
            LoadedRow::Idempotency(hash, entry) => {
                let seq = self.building_seq();
                let young = |entry: &IdempotencyEntry| now.wall.since(entry.created) < 10_000;
                let entry = entry.filter(|it| !armed(Fault::KeyForgottenEarly) || young(it));
                self.keys.loaded(hash, entry, seq);
            }
            LoadedRow::Letter(run, there) => {
                let seq = self.building_seq();
                self.letters.loaded(run, there, seq);
            }
            LoadedRow::Backfill(id, row) => {
                let seq = self.building_seq();
                self.backfills.loaded(id, row, seq);
            }
            LoadedRow::Times(wanted, page) => self.take_times(now, &wanted, page),
            LoadedRow::Due { before, jobs } => self.take_due(now, before, jobs),
            LoadedRow::Swept { cause, jobs } => self.take_swept(now, &cause, jobs),
            LoadedRow::CalendarUsers(calendar, jobs) => {
                self.users_asked.insert(calendar, jobs);
            }
            LoadedRow::Followers { ending, jobs } => self.take_followers(now, tag, ending, jobs),
            LoadedRow::Endings(endings) => self.take_endings(tag, endings),
            LoadedRow::Awaited(name) => {
                if self.jobs.named(&name).is_none() {
                    self.jobs.note_awaited(name, tag);
                }
            }
            LoadedRow::Parked { key, runs, all } => self.take_parked(tag, &key, runs, all),
            LoadedRow::Sorted { key, runs } => self.take_sorted(tag, &key, runs),
            LoadedRow::Overdue { runs, next } => self.take_overdue(now, tag, runs, next),
            LoadedRow::Queued { key, runs } => self.take_queued(now, tag, &key, runs),
            LoadedRow::Live { job, key, runs } => {
                self.take_live(now, tag, TurnRef { job, key }, runs);
            }
        }
    }

    /// A run asked for by id: held for the command that asked, which steps next. An answer from before the run left
    /// memory is dropped, and the command asks again.
    fn take_run(&mut self, id: RunId, tag: u64, run: Option<Run>) {
        if self.left_since(id, tag) || self.runs.get(id).is_some() {
            return;
        }
        match run {
            Some(mut run) if !run.state.is_terminal() => {
                // It stays, however long its line is.
                run.parked = None;
                self.adopt_run(run, tag);
            }
            finished_or_missing => {
                self.looked_up.insert(id, finished_or_missing);
            }
        }
    }

    pub(super) fn left_since(&self, id: RunId, tag: u64) -> bool {
        let left = self.runs.left.get(&id);
        left.is_some_and(|(seq, ())| seq > tag) && !armed(Fault::OldRowTaken)
    }

    /// Makes a waiting run resident, in line, unless it is resident or has left memory since the load began. One that is
    /// leased is resident already, or the row is from before its end.
    pub(super) fn adopt_run(&mut self, run: Run, tag: u64) {
        let waits = run.state == RunState::Pending && run.current_attempt().is_none();
        if !waits || self.left_since(run.id, tag) || self.runs.get(run.id).is_some() {
            return;
        }
        let compiled = self.pinned(run.job, run.job_version);
        if run.standing.queued {
            self.hold_run(run, compiled);
            return;
        }
        let (id, ready, parked) = (run.id, run.ready(), run.parked.clone());
        self.hold_run(run, compiled);
        if ready > self.now.wall {
            self.arm_run(id, ready);
        } else {
            let how = parked.as_deref().map_or(Enter::Kept, Enter::ReadFrom);
            self.enter_line(id, how);
        }
    }

    fn take_parked(&mut self, tag: u64, key: &str, runs: Vec<Run>, all: bool) {
        let last = runs.last().map(|run| run.id);
        if let Some(minute) = minute_of_key(key) {
            for run in runs {
                self.take_delayed(minute, run, tag);
            }
            self.minute_scanned(minute, last, all);
            return;
        }
        if key.starts_with('@') {
            for run in runs {
                self.take_of_lot(key, run, tag);
            }
            self.lot_scanned(key, last, all);
            return;
        }
        for run in runs {
            self.adopt_run(run, tag);
        }
        if let Some(next) = self.lines.scanned(key, last, all) {
            self.want(next);
        }
    }

    /// What was changed in batches up to this one is durable and visible to every load under way.
    pub(super) fn safe_seq(&self) -> u64 {
        self.loads.safe(self.acknowledged)
    }

    pub(super) fn forget_marks(&mut self) {
        let safe = self.safe_seq();
        self.keys.forget(safe);
        self.letters.forget(safe);
        self.backfills.forget(safe);
        self.runs.left.forget(safe);
        self.endings.forget(safe);
        self.jobs.forget_tombstones(safe);
    }
}
