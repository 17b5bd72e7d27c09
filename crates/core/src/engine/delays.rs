//! Runs that wait for their time.
//!
//! A run whose time is near waits in memory with a timer. One whose time is far is parked in the store under the minute
//! it is due in; that minute is read back as a whole when it comes into the window. Runs of a minute that has been read
//! are never parked, so a minute is read once, or again when something was parked in it above what the read could see.

use std::collections::BTreeMap;

use crate::model::{Limits, Now, Run, RunId, RunState, WallMs};
use crate::wheel;

use super::lines::Waiting;
use super::time::Timer;
use super::{Engine, LoadKey};

const MINUTE_MS: i64 = 60_000;
/// How soon minutes that had to wait for room in memory are tried again.
const AGAIN_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Delays {
    /// Minutes that the store holds runs of.
    minutes: BTreeMap<i64, Minute>,
    /// Minutes up to this one have been read.
    read: i64,
    waiting: BTreeMap<RunId, wheel::Key>,
}

#[derive(Debug, Default)]
struct Minute {
    /// The last batch that parked a run in it.
    last_parked: u64,
    /// A read is under way; every batch up to this one was visible when it began.
    scan: Option<u64>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            minutes: BTreeMap::new(),
            read: i64::MIN,
            waiting: BTreeMap::new(),
        }
    }
}

fn minute_of(at: WallMs) -> i64 {
    at.0.div_euclid(MINUTE_MS)
}

fn key_of(minute: i64) -> String {
    format!("due/{minute}")
}

/// The minute that a key stands for; `None` when runs are parked under it for another reason. A namespace's name comes
/// first in those, and what follows it is no number.
pub(super) fn minute_of_key(key: &str) -> Option<i64> {
    key.strip_prefix("due/")?.parse().ok()
}

impl Engine {
    /// Takes a run that is not due yet; its job is resident.
    pub(super) fn delay_run(
        &mut self,
        mut run: Run,
        compiled: &std::sync::Arc<super::jobs::Compiled>,
    ) {
        let minute = minute_of(run.due);
        if minute > self.delays.read {
            let seq = self.building_seq();
            let entry = self.delays.minutes.entry(minute).or_default();
            entry.last_parked = seq;
            run.parked = Some(key_of(minute));
            self.building.run_parked(run);
        } else {
            self.building.run_inserted(&run);
            let (id, due) = (run.id, run.due);
            self.hold_run(run, std::sync::Arc::clone(compiled));
            self.arm_run(id, due);
        }
    }

    /// Sets the timer of a resident run that is not due yet.
    pub(super) fn arm_run(&mut self, id: RunId, due: WallMs) {
        let at = self.now.mono_at(due);
        let timer = self.wheel.insert(at.0, Timer::RunDue(id));
        if let Some(before) = self.delays.waiting.insert(id, timer) {
            self.wheel.cancel(before);
        }
    }

    /// The run may be due: it goes in line, or waits again when the wall clock went back.
    pub(super) fn run_due(&mut self, now: Now, id: RunId) {
        self.delays.waiting.remove(&id);
        let Some(resident) = self.runs.get(id) else {
            return;
        };
        let (run, compiled) = (&resident.run, std::sync::Arc::clone(&resident.compiled));
        if run.state != RunState::Pending {
            return;
        }
        let (due, waiting) = (run.due, Waiting::of(run));
        if due > now.wall {
            self.arm_run(id, due);
        } else {
            let line = self.line_of(&compiled);
            self.lines.push(line, waiting);
        }
    }

    /// A run that ended does not wait any more.
    pub(super) fn forget_delay(&mut self, id: RunId) {
        if let Some(timer) = self.delays.waiting.remove(&id) {
            self.wheel.cancel(timer);
        }
    }

    /// Places all timers anew after the wall clock went forward.
    pub(super) fn arm_delayed(&mut self) {
        for id in self.delays.waiting.keys().copied().collect::<Vec<_>>() {
            let due = self.runs.expect(id).run.due;
            self.arm_run(id, due);
        }
    }

    /// The store holds runs of this minute, known by its key alone.
    pub(super) fn minute_parked(&mut self, minute: i64) {
        self.delays.minutes.entry(minute).or_default();
    }

    /// Reads the minutes that have come into the window.
    pub(super) fn read_minutes(&mut self, now: Now) {
        if self.lines.length() + self.delays.waiting.len() > Limits::READY_TOTAL {
            let at = now.mono.plus(AGAIN_MS);
            self.wheel.insert(at.0, Timer::Minutes);
            return;
        }
        let through = minute_of(now.wall.plus(self.options.window_ms));
        self.delays.read = self.delays.read.max(through);
        let mut wanted = Vec::new();
        for (minute, entry) in self.delays.minutes.range_mut(..=self.delays.read) {
            if entry.scan.is_none() {
                entry.scan = Some(self.acknowledged);
                wanted.push(key_of(*minute));
            }
        }
        for key in wanted {
            self.want(LoadKey::Parked { key, after: None });
        }
    }

    /// A read of a minute brought rows up to `last`; `all` says there are no more.
    pub(super) fn minute_scanned(&mut self, minute: i64, last: Option<RunId>, all: bool) {
        let Some(entry) = self.delays.minutes.get_mut(&minute) else {
            return;
        };
        let (key, again) = (key_of(minute), entry.scan.unwrap_or(0) < entry.last_parked);
        if !all {
            self.want(LoadKey::Parked { key, after: last });
        } else if again {
            entry.scan = Some(self.acknowledged);
            self.want(LoadKey::Parked { key, after: None });
        } else {
            self.delays.minutes.remove(&minute);
        }
    }
}
