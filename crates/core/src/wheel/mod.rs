//! A hierarchical timing wheel with ticks of one millisecond.
//!
//! Owns pending timers and nothing else: time is an integer that the caller passes in, so the
//! wheel serves a monotonic clock, a simulated one, or none at all.
//!
//! A deadline is read as digits in base 64. Level `n` of the wheel holds the timers whose highest
//! digit that differs from the current time is digit `n`; the slot is the value of that digit
//! ([`place`] does the arithmetic). Timers that agree with the current time in fewer digits than
//! the wheel has levels wait in `overflow`, one list for each full turn of the wheel.
//!
//! Invariants, between any two calls:
//! - a timer sits exactly where [`Place::of`] puts it, so its place need not be stored;
//! - on each level every occupied slot lies after the current time's digit: nothing wraps around,
//!   and the lowest set bit of the lowest occupied level is the next thing to happen;
//! - timers of equal deadline share one list, in insertion order, and cascades keep that order.
//!
//! A timer cascades at most once per level, and empty time is skipped through the bitfields, so
//! sleeping for days costs no more than sleeping for a millisecond.

mod place;
mod slab;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use place::{LEVELS, Place, SLOTS};
pub use slab::Key;
use slab::{List, Slab};

/// Pending timers of type `T`, ordered by deadline in milliseconds.
#[derive(Debug)]
pub struct Wheel<T> {
    now: u64,
    slab: Slab<T>,
    occupied: [u64; LEVELS],
    slots: Box<[[List; SLOTS]; LEVELS]>,
    /// Timers that were already due when they were inserted, in insertion order.
    due: List,
    /// A lower bound of the deadlines in `due`; meaningless while `due` is empty.
    due_from: u64,
    /// Timers of later turns, by turn number.
    overflow: BTreeMap<u64, List>,
}

impl<T> Wheel<T> {
    /// An empty wheel whose current time is `now`.
    pub fn new(now: u64) -> Self {
        Self {
            now,
            slab: Slab::new(),
            occupied: [0; LEVELS],
            slots: Box::new([[List::EMPTY; SLOTS]; LEVELS]),
            due: List::EMPTY,
            due_from: u64::MAX,
            overflow: BTreeMap::new(),
        }
    }

    /// The latest time seen by [`advance`](Self::advance).
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The number of pending timers.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.slab.len() == 0
    }

    /// Adds a timer. One whose deadline has passed is handed out by the next `advance`.
    pub fn insert(&mut self, at: u64, value: T) -> Key {
        let key = self.slab.allocate(at, value);
        self.link(key.index(), at);
        key
    }

    /// Removes a timer; `None` when it has fired or has been cancelled already.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let at = self.slab.deadline(key)?;
        self.unlink(key.index(), at);
        self.slab.release(key.index()).map(|(_, value)| value)
    }

    /// When `advance` is next worth calling: never later than the earliest deadline, and equal to
    /// it when that deadline is within the current 64 ms. An earlier answer only cascades timers.
    pub fn next_at(&self) -> Option<u64> {
        if !self.due.is_empty() {
            return Some(self.due_from);
        }
        self.next_place().map(|place| place.start(self.now))
    }

    /// Moves the time to `now` and appends every timer due by then to `out` as (deadline, value),
    /// by deadline, equal deadlines in insertion order. A `now` in the past counts as the current
    /// time.
    pub fn advance(&mut self, now: u64, out: &mut Vec<(u64, T)>) {
        let now = now.max(self.now);
        self.drain_due(out);
        while let Some(place) = self.next_place() {
            let start = place.start(self.now);
            if start > now {
                break;
            }
            self.now = start;
            let list = self.take(place);
            if place.is_exact() {
                self.fire(list, out);
            } else {
                self.cascade(list);
            }
        }
        self.now = now;
    }

    fn drain_due(&mut self, out: &mut Vec<(u64, T)>) {
        let first = out.len();
        let list = std::mem::replace(&mut self.due, List::EMPTY);
        self.due_from = u64::MAX;
        self.fire(list, out);
        out[first..].sort_by_key(|(at, _)| *at);
    }

    fn fire(&mut self, mut list: List, out: &mut Vec<(u64, T)>) {
        while let Some(index) = self.slab.pop_front(&mut list) {
            out.extend(self.slab.release(index));
        }
    }

    /// Spreads a list over the levels below, as seen from the time at which its slot begins.
    fn cascade(&mut self, mut list: List) {
        while let Some(index) = self.slab.pop_front(&mut list) {
            let at = self.slab.deadline_at(index);
            self.push(Place::ahead(self.now, at), index);
        }
    }

    fn link(&mut self, index: u32, at: u64) {
        let place = Place::of(self.now, at);
        if place == Place::Due {
            self.due_from = self.due_from.min(at);
        }
        self.push(place, index);
    }

    fn push(&mut self, place: Place, index: u32) {
        let list = match place {
            Place::Due => &mut self.due,
            Place::Slot { level, slot } => {
                self.occupied[level] |= 1 << slot;
                &mut self.slots[level][slot]
            }
            Place::Turn(turn) => self.overflow.entry(turn).or_insert(List::EMPTY),
        };
        self.slab.push_back(list, index);
    }

    fn unlink(&mut self, index: u32, at: u64) {
        match Place::of(self.now, at) {
            Place::Due => {
                self.slab.unlink(&mut self.due, index);
                if self.due.is_empty() {
                    self.due_from = u64::MAX;
                }
            }
            Place::Slot { level, slot } => {
                let list = &mut self.slots[level][slot];
                self.slab.unlink(list, index);
                if list.is_empty() {
                    self.occupied[level] &= !(1 << slot);
                }
            }
            Place::Turn(turn) => {
                if let Some(list) = self.overflow.get_mut(&turn) {
                    self.slab.unlink(list, index);
                    if list.is_empty() {
                        self.overflow.remove(&turn);
                    }
                }
            }
        }
    }

    /// Empties a place and returns what was in it.
    fn take(&mut self, place: Place) -> List {
        match place {
            Place::Due => std::mem::replace(&mut self.due, List::EMPTY),
            Place::Slot { level, slot } => {
                self.occupied[level] &= !(1 << slot);
                std::mem::replace(&mut self.slots[level][slot], List::EMPTY)
            }
            Place::Turn(turn) => self.overflow.remove(&turn).unwrap_or(List::EMPTY),
        }
    }

    /// The occupied place that begins next, leaving `due` aside.
    fn next_place(&self) -> Option<Place> {
        let level = self.occupied.iter().position(|bits| *bits != 0);
        match level {
            Some(level) => Some(Place::Slot {
                level,
                slot: self.occupied[level].trailing_zeros() as usize,
            }),
            None => self
                .overflow
                .first_key_value()
                .map(|(turn, _)| Place::Turn(*turn)),
        }
    }
}
