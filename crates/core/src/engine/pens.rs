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
//! Pens of a line form a tree: what must pass `[key, job, queue]` is a kind of what must pass `[job, queue]`, and that of what
//! must pass `[queue]`. A pen's parent has its gates without the most particular one.
//!
//! Memory holds a small window of each pen, and one of all together. Beyond the first, runs are parked in the store under the
//! pen's key; beyond the second, under that of its widest ancestor. So the lot of a pen holds its own runs and those of its
//! descendants. A pen with a lot takes its turn by age as any other does, and then the lot is read (`read_lots.rs`): runs go
//! into memory, or into a lot further down, and never up. While anything is parked in a lot, those of its pen and of its
//! descendants that come later are parked there too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::model::RunId;

use super::gates::GateId;
use super::lines::{LineIx, Waiting};
use super::lot::Lot;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    /// It has the same gates but the first.
    pub(super) parent: Option<PenId>,
    pub(super) queue: VecDeque<Waiting>,
    /// Resident runs that belong to it, waiting or leased, and pens whose parent it is.
    pub(super) users: usize,
    lot: Lot,
    /// The scan of its lot.
    pub(super) scan: Scan,
    pub(super) place: Place,
}

/// What a scan of a lot may bring into memory, and has brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// As many as may be taken once memory is full.
    pub(super) most: usize,
    pub(super) taken: usize,
    /// It was enough: this one and what comes after it are left.
    pub(super) left: Option<RunId>,
}

impl Pen {
    /// The run that it stands under: its oldest, or a bound for what its lot holds.
    pub(super) fn head(&self) -> Option<RunId> {
        let unread = self.lot.can_be_read().then(|| self.lot.oldest());
        let first = self.queue.front().map(|waiting| waiting.run);
        first.into_iter().chain(unread).min()
    }

    pub(super) fn lot(&self) -> &Lot {
        &self.lot
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
    /// Pens that the store may hold runs of.
    with_lot: BTreeSet<PenId>,
    /// Whose lot is looked at next.
    turn: PenId,
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

    /// How many pens the store holds runs of.
    pub(super) fn lots(&self) -> usize {
        self.with_lot.len()
    }

    /// A run is parked in the lot of a pen by batch `seq`.
    pub(super) fn park(&mut self, id: PenId, seq: u64, run: RunId) {
        self.expect_mut(id).lot.park(seq, run);
        self.with_lot.insert(id);
    }

    /// The store holds runs in the lot of a pen, nobody knows which.
    pub(super) fn lot_found(&mut self, id: PenId) {
        self.expect_mut(id).lot.found();
        self.with_lot.insert(id);
    }

    /// Returns after which run the scan reads.
    pub(super) fn begin_scan(&mut self, id: PenId, seq: u64, most: usize) -> Option<RunId> {
        let pen = self.expect_mut(id);
        pen.scan = Scan {
            most,
            ..Scan::default()
        };
        pen.lot.begin_scan(seq)
    }

    pub(super) fn end_scan(&mut self, id: PenId, next: Option<RunId>, repeats: bool) {
        let pen = self.expect_mut(id);
        pen.lot.end_scan(next, repeats);
        if !pen.lot.has_parked() {
            self.with_lot.remove(&id);
        }
    }

    /// Some of the pens that the store may hold runs of, others with each call.
    pub(super) fn some_with_lot(&mut self, most: usize) -> Vec<PenId> {
        let after = self.with_lot.range(self.turn..);
        let before = self.with_lot.range(..self.turn);
        let some: Vec<PenId> = after.chain(before).take(most).copied().collect();
        self.turn = some.last().map_or(self.turn, |last| PenId(last.0 + 1));
        some
    }

    pub(super) fn add(
        &mut self,
        key: Arc<str>,
        line: LineIx,
        gates: Arc<[GateId]>,
        parent: Option<PenId>,
    ) -> PenId {
        self.made += 1;
        let id = PenId(self.made);
        self.by_key.insert(Arc::clone(&key), id);
        self.pens.insert(
            id,
            Pen {
                key,
                line,
                gates,
                parent,
                queue: VecDeque::new(),
                users: 0,
                lot: Lot::default(),
                scan: Scan::default(),
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
