//! The gates that runs must pass before a worker gets them, with how full they are.
//!
//! A gate exists while a pen names it, which has a resident run or runs parked in the store, or while its rate has been used.
//! How many attempts hold a place is counted from the runs in memory, where every leased one is, and never stored: after a
//! restart it is counted anew, so no place is ever lost.
//!
//! Of the pens of a line that share a gate at most one stands in line, the one with the oldest run that nothing blocks; the
//! others wait at the gate that would block them first.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{GateKey, MonoMs, RunId};
use crate::wheel;

use super::lines::LineIx;
use super::pens::PenId;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GateId(u64);

#[derive(Debug)]
pub(super) struct Gate {
    pub(super) key: GateKey,
    /// Attempts that hold a place.
    pub(super) held: u32,
    /// Runs in memory that wait in its pens.
    pub(super) waiting: usize,
    /// Pens that name it.
    pub(super) pens: usize,
    /// The pen of each line that stands in line.
    pub(super) ready: BTreeMap<LineIx, PenId>,
    /// The pens of each line that wait here, by the run at their head.
    pub(super) blocked: BTreeMap<LineIx, BTreeSet<(RunId, PenId)>>,
    /// How far its rate has been used, on the monotonic clock; `None` when it never was.
    pub(super) reached_ns: Option<i64>,
    /// The furthest ahead that it can lie.
    pub(super) span_ns: i64,
    /// The store has a row of that.
    pub(super) stored: bool,
    /// Rings when the rate admits the next, or is of no use any more.
    pub(super) timer: Option<(MonoMs, wheel::Key)>,
}

impl Gate {
    /// Whether a pen of the line waits here, or stands in line to pass.
    pub(super) fn is_wanted_by(&self, line: LineIx) -> bool {
        self.ready.contains_key(&line) || self.blocked.contains_key(&line)
    }
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    gates: BTreeMap<GateId, Gate>,
    by_key: BTreeMap<GateKey, GateId>,
    /// Gates whose rate has been used.
    rated: BTreeSet<GateId>,
    made: u64,
}

impl Gates {
    pub(super) fn get(&self, id: GateId) -> Option<&Gate> {
        self.gates.get(&id)
    }

    pub(super) fn expect(&self, id: GateId) -> &Gate {
        match self.gates.get(&id) {
            Some(gate) => gate,
            None => panic!("a gate is gone that is in use"),
        }
    }

    pub(super) fn expect_mut(&mut self, id: GateId) -> &mut Gate {
        match self.gates.get_mut(&id) {
            Some(gate) => gate,
            None => panic!("a gate is gone that is in use"),
        }
    }

    pub(super) fn find(&self, key: &GateKey) -> Option<GateId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn ids(&self) -> Vec<GateId> {
        self.gates.keys().copied().collect()
    }

    /// The gate of a key, made if there is none.
    pub(super) fn of(&mut self, key: &GateKey) -> GateId {
        if let Some(id) = self.find(key) {
            return id;
        }
        self.made += 1;
        let id = GateId(self.made);
        self.by_key.insert(key.clone(), id);
        self.gates.insert(
            id,
            Gate {
                key: key.clone(),
                held: 0,
                waiting: 0,
                pens: 0,
                ready: BTreeMap::new(),
                blocked: BTreeMap::new(),
                reached_ns: None,
                span_ns: 0,
                stored: false,
                timer: None,
            },
        );
        id
    }

    pub(super) fn remove(&mut self, id: GateId) -> Option<Gate> {
        let gate = self.gates.remove(&id)?;
        self.by_key.remove(&gate.key);
        self.rated.remove(&id);
        Some(gate)
    }

    /// How far the rate has been used.
    pub(super) fn rate_used(&mut self, id: GateId, reached_ns: i64, span_ns: i64) {
        let gate = self.expect_mut(id);
        (gate.reached_ns, gate.span_ns, gate.stored) = (Some(reached_ns), span_ns, true);
        self.rated.insert(id);
    }

    pub(super) fn rated(&self) -> impl Iterator<Item = GateId> {
        self.rated.iter().copied()
    }

    /// A pen waits here, or no more.
    pub(super) fn set_blocked(
        &mut self,
        id: GateId,
        line: LineIx,
        place: (RunId, PenId),
        blocked: bool,
    ) {
        let lines = &mut self.expect_mut(id).blocked;
        let pens = lines.entry(line).or_default();
        match blocked {
            true => pens.insert(place),
            false => pens.remove(&place),
        };
        if pens.is_empty() {
            lines.remove(&line);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.gates.len()
    }
}
