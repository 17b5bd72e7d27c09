//! Planning many jobs anew, page by page, after a calendar or the time-zone data changed.
//!
//! No decision depends on how far a sweep is: a job compiles its schedule again before it decides. The sweep only makes
//! the stored due times right, so that a job that is not in memory is read in time. Its row is committed with the jobs of
//! each page, so an interrupted sweep goes on where it was.

use std::collections::BTreeMap;

use crate::model::{CalendarRef, JobRecord, Now, SegmentId, SweepCause, SweepRow, WallMs};

use super::time::Timer;
use super::{Engine, LOAD_ROWS, LoadKey};

/// Pages follow each other at this distance, which bounds how many jobs they bring into memory at once.
const PAGE_EVERY_MS: u64 = 100;
/// Servers that share a store are upgraded within a day of each other.
const UPGRADE_MS: i64 = 86_400_000;

#[derive(Debug, Default)]
pub(super) struct Sweeps {
    rows: BTreeMap<SweepCause, SweepRow>,
    /// The one whose page is being read or waited for.
    running: Option<SweepCause>,
    /// It began anew while a page of it was being read.
    begun_anew: bool,
}

impl Sweeps {
    pub(super) fn load(&mut self, rows: Vec<SweepRow>) {
        let rows = rows.into_iter().map(|row| (row.cause.clone(), row));
        self.rows.extend(rows);
    }

    /// On a shared store a sweep goes through the jobs of one server, and its row is of the owner of the first segment. What
    /// has not ended begins anew here. So does the sweep for time zones for as long as servers with the data of before may
    /// hand over what nobody has swept.
    pub(super) fn begin_anew(&mut self, now: WallMs) {
        for row in self.rows.values_mut() {
            let is_upgrade = row.cause == SweepCause::TimeZones;
            if row.finished.is_none() || (is_upgrade && now.since(row.started) < UPGRADE_MS) {
                (row.after, row.finished) = (None, None);
            }
        }
    }

    pub(super) fn row(&self, cause: &SweepCause) -> Option<&SweepRow> {
        self.rows.get(cause)
    }
}

impl Engine {
    /// Begins a sweep; one of the same cause that has not ended begins anew.
    pub(super) fn begin_sweep(&mut self, now: Now, cause: SweepCause, version: String) {
        let row = SweepRow {
            cause: cause.clone(),
            version,
            after: None,
            looked: 0,
            changed: 0,
            started: now.wall,
            finished: None,
        };
        self.sweeps.begun_anew |= self.sweeps.running.as_ref() == Some(&cause);
        self.sweeps.rows.insert(cause.clone(), row);
        self.note_sweep(cause);
        self.next_page(now);
    }

    /// Asks for the next page of a sweep that has not ended, unless one is under way.
    pub(super) fn next_page(&mut self, now: Now) {
        let unfinished = |row: &&SweepRow| row.finished.is_none();
        if self.sweeps.running.is_none()
            && let Some(row) = self.sweeps.rows.values().find(unfinished)
        {
            self.sweeps.running = Some(row.cause.clone());
            let at = now.mono.plus(PAGE_EVERY_MS);
            self.wheel.insert(at.0, Timer::Sweep);
        }
    }

    pub(super) fn read_page(&mut self) {
        let Some(cause) = self.sweeps.running.clone() else {
            return;
        };
        self.sweeps.begun_anew = false;
        let after = self.sweeps.row(&cause).and_then(|row| row.after);
        self.want(LoadKey::Swept { cause, after });
    }

    pub(super) fn take_swept(&mut self, now: Now, cause: &SweepCause, jobs: Vec<JobRecord>) {
        let all = jobs.len() < LOAD_ROWS;
        let (looked, last) = (jobs.len() as u64, jobs.last().map(|record| record.row.id));
        let mut changed = 0;
        for record in jobs {
            let id = record.row.id;
            self.adopt_job(record);
            changed += u64::from(self.replan_job(id));
        }
        self.sweeps.running = None;
        if !std::mem::take(&mut self.sweeps.begun_anew)
            && let Some(row) = self.sweeps.rows.get_mut(cause)
        {
            row.looked += looked;
            row.changed += changed;
            row.after = last.or(row.after);
            row.finished = all.then_some(now.wall);
            self.note_sweep(cause.clone());
        }
        self.next_page(now);
    }

    /// How far a sweep is, is one server's to write; each of them goes through its own jobs.
    fn note_sweep(&mut self, cause: SweepCause) {
        if self.owns(SegmentId::HOME) {
            self.building.sweep(cause);
        }
    }

    pub(super) fn sweep_calendar(&mut self, now: Now, calendar: CalendarRef, version: u32) {
        self.begin_sweep(now, SweepCause::Calendar(calendar), version.to_string());
    }
}
