//! Runs that wait for their time.
//!
//! A run whose time is near waits in memory with a timer, as long as there is room. Any other is parked in the store under
//! the minute it is due in. Minutes are read back one after another when they come into the window, and each again until a
//! read that saw everything parked in it has come to the end. What is due later makes room for what is due before it: after
//! the wall clock went back, or when many wait, the nearest come first, also within a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{Now, Run, RunId, RunState, WallMs};
use crate::wheel;

use super::enter_line::Enter;
use super::jobs::Compiled;
use super::time::Timer;
use super::{Engine, LOAD_ROWS, LoadKey};

const MINUTE_MS: i64 = 60_000;
/// How soon minutes that had to wait for room in memory are tried again.
const AGAIN_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Delays {
    /// Minutes that the store holds runs of.
    minutes: BTreeMap<i64, Minute>,
    /// Minutes up to this one have come into the window.
    open: i64,
    /// The minute that is being read.
    reading: Option<i64>,
    /// Reading is to go on when there may be room.
    timed: bool,
    waiting: BTreeMap<RunId, (WallMs, wheel::Key)>,
    /// The same in order of time.
    by_ready: BTreeSet<(WallMs, RunId)>,
}

#[derive(Debug)]
struct Minute {
    /// The last batch that parked a run in it.
    last_parked: u64,
    /// Every batch up to this one was visible when the read that is under way began.
    seen: u64,
    /// No run of it that is known to be left in the store is due before this.
    earliest: WallMs,
}

impl Minute {
    /// Of which nothing is known but that the store may hold some.
    const UNKNOWN: Self = Self {
        last_parked: 0,
        seen: 0,
        earliest: WallMs(i64::MIN),
    };
    const EMPTY: Self = Self {
        earliest: WallMs(i64::MAX),
        ..Self::UNKNOWN
    };
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            minutes: BTreeMap::new(),
            open: i64::MIN,
            reading: None,
            timed: false,
            waiting: BTreeMap::new(),
            by_ready: BTreeSet::new(),
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

impl Delays {
    /// A run that is due then is parked by batch `seq`.
    fn park(&mut self, ready: WallMs, seq: u64) -> String {
        let minute = minute_of(ready);
        let entry = self.minutes.entry(minute).or_insert(Minute::EMPTY);
        entry.last_parked = seq;
        entry.earliest = entry.earliest.min(ready);
        key_of(minute)
    }

    /// Whether the store holds one of the minute that may be due before one that memory holds.
    fn nearer_parked(&self, minute: i64) -> bool {
        let earliest = self.minutes.get(&minute).map(|entry| entry.earliest);
        let furthest = self.by_ready.last().map(|(ready, _)| *ready);
        earliest
            .zip(furthest)
            .is_some_and(|(earliest, furthest)| earliest < furthest)
    }

    /// Whether the run waits in memory for its time.
    pub(super) fn holds(&self, run: RunId) -> bool {
        self.waiting.contains_key(&run)
    }
}

impl Engine {
    /// Takes a run that is not due yet; its job is resident.
    pub(super) fn delay_run(&mut self, mut run: Run, compiled: &Arc<Compiled>) {
        let minute = minute_of(run.ready());
        if minute > self.last_open() || self.delays.waiting.len() >= self.options.ready_window {
            let seq = self.building_seq();
            run.parked = Some(self.delays.park(run.ready(), seq));
            self.building.run_parked(run);
            self.read_minutes_later();
        } else {
            self.building.run_inserted(&run);
            let (id, ready) = (run.id, run.ready());
            self.hold_run(run, Arc::clone(compiled));
            self.arm_run(id, ready);
        }
    }

    /// A resident run waits to be tried again.
    pub(super) fn delay_resident(&mut self, id: RunId) {
        let ready = self.runs.expect(id).run.ready();
        let minute = minute_of(ready);
        if minute > self.last_open() || self.delays.waiting.len() >= self.options.ready_window {
            let seq = self.building_seq();
            let key = self.delays.park(ready, seq);
            self.put_back(id, key);
            self.read_minutes_later();
        } else {
            self.building.run_updated(id);
            self.arm_run(id, ready);
        }
    }

    /// Sets the timer of a resident run that is not due yet.
    pub(super) fn arm_run(&mut self, id: RunId, ready: WallMs) {
        let at = self.now.mono_at(ready);
        let timer = self.wheel.insert(at.0, Timer::RunDue(id));
        if let Some((was, before)) = self.delays.waiting.insert(id, (ready, timer)) {
            self.delays.by_ready.remove(&(was, id));
            self.wheel.cancel(before);
        }
        self.delays.by_ready.insert((ready, id));
    }

    /// The run may be due: it goes in line, or waits again when the wall clock went back.
    pub(super) fn run_due(&mut self, now: Now, id: RunId) {
        if !self.stop_waiting(id) {
            return;
        }
        let Some(resident) = self.runs.get(id) else {
            return;
        };
        let run = &resident.run;
        if run.state != RunState::Pending {
            return;
        }
        let ready = run.ready();
        if ready > now.wall && !armed(Fault::TimerBelieved) {
            self.arm_run(id, ready);
            return;
        }
        self.enter_line(id, Enter::Fresh);
    }

    /// A run that ended does not wait any more.
    pub(super) fn forget_delay(&mut self, id: RunId) {
        self.stop_waiting(id);
    }

    fn stop_waiting(&mut self, id: RunId) -> bool {
        let Some((ready, timer)) = self.delays.waiting.remove(&id) else {
            return false;
        };
        self.delays.by_ready.remove(&(ready, id));
        self.wheel.cancel(timer);
        true
    }

    /// Places all timers anew after the wall clock went forward.
    pub(super) fn arm_delayed(&mut self) {
        for id in self.delays.waiting.keys().copied().collect::<Vec<_>>() {
            let ready = self.runs.expect(id).run.ready();
            self.arm_run(id, ready);
        }
    }

    /// The store holds runs of this minute, known by its key alone.
    pub(super) fn minute_parked(&mut self, minute: i64) {
        let minutes = &mut self.delays.minutes;
        minutes.entry(minute).or_insert(Minute::UNKNOWN);
    }

    /// Opens the minutes that have come into the window.
    pub(super) fn open_minutes(&mut self, now: Now) {
        let through = minute_of(now.wall.plus(self.options.window_ms));
        self.delays.open = self.delays.open.max(through);
        self.read_minutes();
    }

    /// The last open minute within the window: after the wall clock went back, others were opened too early.
    fn last_open(&self) -> i64 {
        let through = minute_of(self.now.wall.plus(self.options.window_ms));
        self.delays.open.min(through)
    }

    /// Reads the first open minute, if there is room for it.
    pub(super) fn read_minutes(&mut self) {
        if self.delays.reading.is_some() {
            return;
        }
        let first = self.delays.minutes.range(..=self.delays.open).next();
        let Some(minute) = first.map(|(minute, _)| *minute) else {
            return;
        };
        if minute > self.last_open() {
            self.read_minutes_later();
            return;
        }
        self.make_room_for(minute);
        if self.has_room_for_delayed() || self.delays.nearer_parked(minute) {
            self.delays.reading = Some(minute);
            let entry = self.delays.minutes.entry(minute);
            let entry = entry.or_insert(Minute::UNKNOWN);
            entry.seen = self.acknowledged;
            if entry.last_parked <= entry.seen {
                entry.earliest = WallMs(i64::MAX);
            }
            let key = key_of(minute);
            self.read_minute(key, None);
        } else {
            self.read_minutes_later();
        }
    }

    fn read_minute(&mut self, key: String, after: Option<RunId>) {
        let rows = LOAD_ROWS;
        self.want(LoadKey::Parked { key, after, rows });
    }

    /// Puts runs of later minutes back, the furthest first.
    fn make_room_for(&mut self, minute: i64) {
        while !self.has_room_for_delayed()
            && !self.building.is_nearly_full()
            && let Some((ready, id)) = self.delays.by_ready.last().copied()
            && minute_of(ready) > minute
        {
            self.park_delayed(id, ready);
        }
    }

    /// Puts a run that waits in memory back into the store.
    fn park_delayed(&mut self, id: RunId, ready: WallMs) {
        self.stop_waiting(id);
        let seq = self.building_seq();
        let key = self.delays.park(ready, seq);
        self.put_back(id, key);
    }

    /// Takes a run that was read with its minute, unless memory is full of those that are due before it.
    pub(super) fn take_delayed(&mut self, minute: i64, run: Run, tag: u64) {
        let ready = run.ready();
        let full = self.delays.waiting.len() >= self.options.ready_window;
        if ready > self.now.wall && full && self.runs.get(run.id).is_none() {
            let furthest = self.delays.by_ready.last().copied();
            let later = furthest.filter(|(last, _)| *last > ready);
            match later.filter(|_| !self.building.is_nearly_full()) {
                Some((last, id)) => self.park_delayed(id, last),
                None => {
                    if let Some(entry) = self.delays.minutes.get_mut(&minute) {
                        entry.earliest = entry.earliest.min(ready);
                    }
                    self.consider(run.job);
                    return;
                }
            }
        }
        self.adopt_run(run, tag);
    }

    pub(super) fn read_minutes_timed(&mut self) {
        self.delays.timed = false;
        self.read_minutes();
    }

    fn read_minutes_later(&mut self) {
        if !self.delays.timed {
            self.delays.timed = true;
            let at = self.now.mono.plus(AGAIN_MS);
            self.wheel.insert(at.0, Timer::Minutes);
        }
    }

    /// A page more than this may come.
    fn has_room_for_delayed(&self) -> bool {
        self.delays.waiting.len() <= self.options.ready_window / 2
    }

    /// A read of a minute brought rows up to `last`; `all` says there are no more.
    pub(super) fn minute_scanned(&mut self, minute: i64, last: Option<RunId>, all: bool) {
        let key = key_of(minute);
        if !all {
            self.read_minute(key, last);
            return;
        }
        self.delays.reading = None;
        let left = |entry: &Minute| entry.earliest < WallMs(i64::MAX);
        let whole = |entry: &Minute| entry.seen >= entry.last_parked && !left(entry);
        if self.delays.minutes.get(&minute).is_some_and(whole) {
            self.delays.minutes.remove(&minute);
            self.read_minutes();
        } else {
            self.read_minutes_later();
        }
    }
}
