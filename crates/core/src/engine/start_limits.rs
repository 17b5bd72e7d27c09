//! Runs that must be given to a worker by a time, or fail.
//!
//! ```text
//! PENDING, start_by set ──given to a worker──► the limit is met, also when it is tried again later
//!    │        ▲ └─ the assignment never arrived
//!    └─start_by──► FAILED (start_timed_out), a dead letter
//! ```
//!
//! Those in memory stand in order of their time. Those parked in the store, for whatever reason, are found there by an
//! index, page by page, when the first of them can be due: all that is kept of them is a time before which none is. A run
//! parked in a batch that a read could not see lowers that time again, and the read is repeated. A job without
//! `start_timeout` costs nothing of this.
//!
//! Times are of the wall clock, like due times. No run is given to a worker after its time, whether it was found by then
//! or not (`dispatch.rs` asks).

use std::collections::BTreeSet;

use crate::fault::{Fault, armed};
use crate::model::{Now, Reason, Run, RunId, RunState, WallMs};
use crate::schedule::format_duration;
use crate::wheel;

use super::lines::Rank;
use super::time::Timer;
use super::{Engine, LOAD_ROWS, LoadKey};

/// How soon a read is repeated that could not see everything.
const AGAIN_MS: u64 = 200;

#[derive(Debug, Default)]
pub(super) struct StartLimits {
    /// Runs in memory that wait, in order of time.
    waiting: BTreeSet<(WallMs, RunId)>,
    /// No parked run that the last read could see has an earlier time.
    stored: Option<WallMs>,
    /// No run that was parked since has an earlier time.
    parked: Option<WallMs>,
    /// The last batch that parked one.
    last_parked: u64,
    reading: Option<Reading>,
    timer: Option<wheel::Key>,
}

/// A read of parked runs whose time has come.
#[derive(Debug)]
struct Reading {
    by: WallMs,
    /// The next page begins after this one, and is asked for when those of this page have ended.
    after: Option<(WallMs, RunId)>,
    asked: bool,
}

impl StartLimits {
    /// Before this time no parked run is due to fail.
    fn first_parked(&self) -> Option<WallMs> {
        [self.stored, self.parked].into_iter().flatten().min()
    }

    fn first(&self) -> Option<WallMs> {
        let resident = self.waiting.first().map(|(by, _)| *by);
        let parked = self.first_parked().filter(|_| self.reading.is_none());
        [resident, parked].into_iter().flatten().min()
    }

    fn overdue(&self, now: Now) -> Option<RunId> {
        let first = self.waiting.first().filter(|(by, _)| *by <= now.wall);
        first.map(|(_, run)| *run)
    }
}

impl Engine {
    /// What the store holds of parked runs when the engine comes to life.
    pub(super) fn revive_starts(&mut self, first: Option<WallMs>) {
        self.starts.stored = first;
        self.arm_starts();
    }

    /// A run in memory waits to be given to a worker.
    pub(super) fn watch_start(&mut self, run: RunId, by: WallMs) {
        let first = self.starts.first();
        self.starts.waiting.insert((by, run));
        if first.is_none_or(|first| by < first) {
            self.arm_starts();
        }
    }

    /// It does not wait in memory any more.
    pub(super) fn forget_start(&mut self, run: RunId, by: Option<WallMs>) {
        if let Some(by) = by {
            self.starts.waiting.remove(&(by, run));
        }
    }

    /// Batch `seq` parked a run that must start by then.
    pub(super) fn start_parked(&mut self, by: WallMs, seq: u64) {
        self.starts.last_parked = seq;
        self.starts.parked = Some(self.starts.parked.map_or(by, |parked| parked.min(by)));
        self.arm_starts();
    }

    /// Sets the timer of the first run that may fail; also when the wall clock went forward.
    pub(super) fn arm_starts(&mut self) {
        if let Some(timer) = self.starts.timer.take() {
            self.wheel.cancel(timer);
        }
        if let Some(first) = self.starts.first() {
            let at = self.now.mono_at(first);
            let soon = self.now.mono.plus(1);
            self.starts.timer = Some(self.wheel.insert(at.max(soon).0, Timer::Starts));
        }
    }

    pub(super) fn starts_due(&mut self, now: Now) {
        self.starts.timer = None;
        let come = self.starts.first_parked().is_some_and(|by| by <= now.wall);
        if come && self.starts.reading.is_none() {
            let forgotten = armed(Fault::ParkedStartsForgotten);
            // What was parked up to here is seen: the read says what comes next.
            if self.starts.last_parked <= self.acknowledged || forgotten {
                self.starts.parked = None;
            }
            self.starts.stored = None;
            if forgotten {
                return;
            }
            self.starts.reading = Some(Reading {
                by: now.wall,
                after: None,
                asked: false,
            });
            self.read_starts();
        }
        self.arm_starts();
    }

    /// Asks for the next page of a read, once there is nothing left to do about the last.
    fn read_starts(&mut self) {
        if let Some(reading) = &mut self.starts.reading
            && !reading.asked
        {
            reading.asked = true;
            let (by, after) = (reading.by, reading.after);
            self.want(LoadKey::Overdue { by, after });
        }
    }

    /// A page of a read came: these runs are parked, and their time has come; `next` is that of the first beyond them.
    pub(super) fn take_overdue(
        &mut self,
        now: Now,
        tag: u64,
        runs: Vec<Run>,
        next: Option<WallMs>,
    ) {
        let last = runs.last().and_then(|run| Some((run.start_by?, run.id)));
        let all = runs.len() < LOAD_ROWS;
        for mut run in runs {
            // It stays, however long its line is.
            run.parked = None;
            self.adopt_run(run, tag);
        }
        match &mut self.starts.reading {
            Some(reading) if !all => {
                reading.after = last.or(reading.after);
                reading.asked = false;
            }
            _ => {
                self.starts.reading = None;
                self.starts.stored = next;
                self.again_if_unseen(now);
            }
        }
        self.fail_overdue(now);
    }

    /// What was parked in a batch that the read could not see is looked for a little later.
    fn again_if_unseen(&mut self, now: Now) {
        let unseen = self.starts.parked.is_some_and(|by| by <= now.wall);
        if !unseen {
            self.arm_starts();
            return;
        }
        if let Some(timer) = self.starts.timer.take() {
            self.wheel.cancel(timer);
        }
        let at = now.mono.plus(AGAIN_MS);
        self.starts.timer = Some(self.wheel.insert(at.0, Timer::Starts));
    }

    /// Whether runs wait for room in a batch to fail.
    pub(super) fn has_overdue(&self, now: Now) -> bool {
        self.starts.overdue(now).is_some()
    }

    /// Ends the runs whose time has come, as many as a batch has room for.
    pub(super) fn fail_overdue(&mut self, now: Now) {
        while !self.is_full()
            && let Some(run) = self.starts.overdue(now)
        {
            self.fail_start(now, run);
        }
        if self.starts.overdue(now).is_none() {
            self.read_starts();
        }
    }

    /// A run that waits in memory was not given to a worker in time.
    pub(super) fn fail_start(&mut self, now: Now, id: RunId) {
        let resident = self.runs.expect(id);
        let (rank, compiled) = (
            Rank::of(&resident.run),
            std::sync::Arc::clone(&resident.compiled),
        );
        let queued = resident.run.standing.queued;
        let hindrance = self.hindrance(&resident.run);
        let hindrance = hindrance.or_else(|| self.hindrance_of_job(resident.run.job));
        let line = self.line_of(&compiled, rank);
        let why = match hindrance {
            _ if queued => "runs of its job that were before it had not ended".to_owned(),
            Some(hindrance) => hindrance.text(now.wall),
            None if self.workers_with_room(self.lines.line(line)) == 0 => {
                "no worker that can run it was connected and had room".to_owned()
            }
            None => "others were before it".to_owned(),
        };
        let limit = compiled
            .start_timeout_ms
            .map_or_else(String::new, format_duration);
        let error =
            format!("it was not given to a worker within its start_timeout of {limit}: {why}");
        let reason = Reason::StartTimedOut;
        self.end_waiting(now, id, RunState::Failed, reason, Some(error));
    }
}
