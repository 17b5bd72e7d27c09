//! Pens: where runs wait that limits may hold back.
//!
//! Runs of one line that must pass the same gates wait in one pen, the oldest first. For limits they are all alike, so a
//! pen is blocked or not as a whole, and one with a long backlog takes no more of anyone's time than one with a single run.
//!
//! ```text
//! away ──has runs──► at a gate ◄──another's turn, or no room──┐
//!   ▲                    └──its turn, and room at every gate──► in line ──► a run is given out
//!   └──────────────────────── empty ──────────────────────────────┘
//! ```
//!
//! Memory holds a small window of each pen, and one of all together. Beyond the first, runs are parked in the store under the
//! pen's key; beyond the second, under that of its last gate, and go to their pens when they are read back. While anything
//! is parked under either, those that come later are parked too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::RunId;

use super::gates::GateId;
use super::lines::{LineIx, Waiting};
use super::lot::Lot;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PenId(u64);

/// Where a pen stands, under which of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Away,
    InLine(RunId),
    AtGate(GateId, RunId),
}

#[derive(Debug)]
pub(super) struct Pen {
    /// What its runs are parked under.
    pub(super) key: Arc<str>,
    pub(super) line: LineIx,
    /// The more particular first; the last is the widest.
    pub(super) gates: Arc<[GateId]>,
    pub(super) queue: VecDeque<Waiting>,
    /// Resident runs that belong to it, waiting or leased.
    pub(super) users: usize,
    pub(super) lot: Lot,
    pub(super) place: Place,
}

impl Pen {
    /// The run that it stands under: what the store holds of it is older than all.
    pub(super) fn head(&self) -> Option<RunId> {
        let unread = self.lot.can_be_read().then_some(RunId(0));
        self.queue.front().map(|waiting| waiting.run).or(unread)
    }

    pub(super) fn root(&self) -> GateId {
        match self.gates.last() {
            Some(gate) => *gate,
            None => panic!("a pen has a gate"),
        }
    }

    fn is_idle(&self) -> bool {
        self.users == 0 && self.queue.is_empty() && self.lot.is_idle() && self.place == Place::Away
    }
}

#[derive(Debug, Default)]
pub(super) struct Pens {
    pens: BTreeMap<PenId, Pen>,
    by_key: BTreeMap<Arc<str>, PenId>,
    made: u64,
    /// How much of memory's share all pens take together.
    length: usize,
}

impl Pens {
    pub(super) fn expect(&self, id: PenId) -> &Pen {
        match self.pens.get(&id) {
            Some(pen) => pen,
            None => panic!("a pen is gone that is in use"),
        }
    }

    pub(super) fn expect_mut(&mut self, id: PenId) -> &mut Pen {
        match self.pens.get_mut(&id) {
            Some(pen) => pen,
            None => panic!("a pen is gone that is in use"),
        }
    }

    pub(super) fn contains(&self, id: PenId) -> bool {
        self.pens.contains_key(&id)
    }

    pub(super) fn find(&self, key: &str) -> Option<PenId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Pen> {
        self.pens.values()
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn add(&mut self, key: Arc<str>, line: LineIx, gates: Arc<[GateId]>) -> PenId {
        self.made += 1;
        let id = PenId(self.made);
        self.by_key.insert(Arc::clone(&key), id);
        self.pens.insert(
            id,
            Pen {
                key,
                line,
                gates,
                queue: VecDeque::new(),
                users: 0,
                lot: Lot::default(),
                place: Place::Away,
            },
        );
        id
    }

    pub(super) fn push(&mut self, id: PenId, waiting: Waiting, front: bool) {
        self.length += waiting.places;
        let queue = &mut self.expect_mut(id).queue;
        match front {
            true => queue.push_front(waiting),
            false => queue.push_back(waiting),
        }
    }

    pub(super) fn pop(&mut self, id: PenId) -> Option<RunId> {
        let waiting = self.expect_mut(id).queue.pop_front()?;
        self.length -= waiting.places;
        Some(waiting.run)
    }

    /// Takes a run out, wherever it stands. False when it is not there.
    pub(super) fn take(&mut self, id: PenId, run: RunId) -> bool {
        let queue = &mut self.expect_mut(id).queue;
        let place = queue.iter().position(|waiting| waiting.run == run);
        match place.and_then(|place| queue.remove(place)) {
            Some(waiting) => {
                self.length -= waiting.places;
                true
            }
            None => false,
        }
    }

    /// Lets a pen go that nobody uses, and returns it.
    pub(super) fn remove_idle(&mut self, id: PenId) -> Option<Pen> {
        if !self.pens.get(&id)?.is_idle() {
            return None;
        }
        let pen = self.pens.remove(&id)?;
        self.by_key.remove(&pen.key);
        Some(pen)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pens.len()
    }
}
