//! Runs get in line: at once, or by way of a pen when limits may hold them back.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::fault::{Fault, armed};
use crate::model::{GateKey, Run, RunId, parked_at, pen_key};

use super::gates::GateId;
use super::jobs::Compiled;
use super::limits::Obstacle;
use super::lines::{LineIx, Rank, Waiting};
use super::pens::{PenId, Place};
use super::{Engine, LoadKey};

/// How a run comes to its line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Enter<'a> {
    /// It is parked when memory has no room.
    Fresh,
    /// It was read from the store, where it lay under this key: it does not go back there.
    ReadFrom(&'a str),
    /// It has waited before, and stands first.
    Front,
    /// It stays in memory, whatever waits there.
    Kept,
}

/// Where a run of a pen is parked.
#[derive(Clone, Copy, Debug)]
enum Park {
    Pen,
    Gate(GateId),
}

/// Lots of gates that are looked at in one go.
const LOTS: usize = 16;

impl Engine {
    /// Puts a resident run that is ready in line.
    pub(super) fn enter_line(&mut self, id: RunId, how: Enter<'_>) {
        let resident = self.runs.expect(id);
        let compiled = Arc::clone(&resident.compiled);
        let (rank, waiting) = (Rank::of(&resident.run), Waiting::of(&resident.run));
        let line = self.line_of(&compiled, rank);
        if let Some(pen) = self.join_pen_of(id) {
            match self.park_of(pen, how) {
                Some(park) => {
                    let key = self.park_in(pen, park);
                    self.put_back(id, key);
                    if matches!(park, Park::Pen) {
                        self.settle_pen(pen);
                    }
                }
                None => {
                    let front = matches!(how, Enter::Front);
                    self.push_pen(pen, waiting, front);
                    self.settle_pen(pen);
                }
            }
            return;
        }
        let may_park = match how {
            Enter::Fresh => true,
            Enter::ReadFrom(key) => key != self.lines.line(line).key(),
            Enter::Front | Enter::Kept => false,
        };
        match how {
            _ if may_park && self.lines.must_park(line) => self.park_resident(id, line),
            Enter::Front => self.lines.push_front(line, waiting),
            _ => self.lines.push(line, waiting),
        }
    }

    /// Makes a run that limits may hold back, in its pen or parked.
    pub(super) fn create_penned(
        &mut self,
        mut run: Run,
        compiled: &Arc<Compiled>,
        gates: &[GateKey],
    ) {
        let line = self.line_of(compiled, Rank::of(&run));
        let pen = self.pen_at(line, gates);
        match self.park_of(pen, Enter::Fresh) {
            Some(park) => {
                run.parked = Some(self.park_in(pen, park));
                self.park_new(run);
                self.settle_pen(pen);
            }
            None => {
                let (id, waiting) = (run.id, Waiting::of(&run));
                self.building.run_inserted(&run);
                self.hold_run(run, Arc::clone(compiled));
                self.runs.expect_mut(id).pen = Some(pen);
                self.pens.expect_mut(pen).users += 1;
                self.push_pen(pen, waiting, false);
                self.settle_pen(pen);
            }
        }
    }

    /// Takes a resident run that waits out of its line or pen.
    pub(super) fn leave_line(&mut self, id: RunId) {
        let resident = self.runs.expect(id);
        match resident.pen {
            Some(pen) => {
                if self.pens.take(pen, id) {
                    self.count_penned(pen, -1);
                }
                self.settle_pen(pen);
            }
            None => {
                let compiled = Arc::clone(&resident.compiled);
                let rank = Rank::of(&resident.run);
                let line = self.line_of(&compiled, rank);
                self.lines.remove(line, id);
            }
        }
    }

    /// Makes the run belong to the pen of its gates and line, if it has any.
    pub(super) fn join_pen_of(&mut self, id: RunId) -> Option<PenId> {
        let resident = self.runs.expect(id);
        let compiled = Arc::clone(&resident.compiled);
        let rank = Rank::of(&resident.run);
        let gates = self.gates_of(&resident.run, &compiled);
        let line = self.line_of(&compiled, rank);
        let pen = (!gates.is_empty()).then(|| self.pen_at(line, &gates));
        if self.runs.expect(id).pen != pen {
            if let Some(pen) = pen {
                self.pens.expect_mut(pen).users += 1;
            }
            self.leave_pen(id);
            self.runs.expect_mut(id).pen = pen;
        }
        pen
    }

    /// The run belongs to no pen any more.
    pub(super) fn leave_pen(&mut self, id: RunId) {
        if let Some(pen) = self.runs.expect_mut(id).pen.take() {
            self.let_pen_go(pen);
        }
    }

    /// A run that belonged to the pen does so no more.
    pub(super) fn let_pen_go(&mut self, pen: PenId) {
        self.pens.expect_mut(pen).users -= 1;
        self.drop_pen(pen);
    }

    fn pen_at(&mut self, line: LineIx, gates: &[GateKey]) -> PenId {
        let key = pen_key(gates, self.lines.line(line).key());
        match self.pens.find(&key) {
            Some(pen) => pen,
            None => self.add_pen(Arc::from(key), line, gates),
        }
    }

    fn add_pen(&mut self, key: Arc<str>, line: LineIx, gates: &[GateKey]) -> PenId {
        let gates: Arc<[GateId]> = gates.iter().map(|gate| self.gates.of(gate)).collect();
        for gate in gates.iter() {
            self.gates.expect_mut(*gate).pens += 1;
        }
        self.pens.add(key, line, gates)
    }

    fn drop_pen(&mut self, id: PenId) {
        let Some(pen) = self.pens.remove_idle(id) else {
            return;
        };
        for gate in pen.gates.iter() {
            self.gates.expect_mut(*gate).pens -= 1;
            self.drop_gate(*gate);
        }
    }

    /// How many runs of one pen memory holds before others are parked.
    fn pen_window(&self) -> usize {
        (self.options.ready_window / 64).max(1)
    }

    /// Whether a run that comes to the pen must be parked, and where.
    fn park_of(&self, id: PenId, how: Enter<'_>) -> Option<Park> {
        let from = match how {
            Enter::Fresh => None,
            Enter::ReadFrom(key) => Some(key),
            Enter::Front | Enter::Kept => return None,
        };
        let pen = self.pens.expect(id);
        if from == Some(&*pen.key) {
            return None;
        }
        let crowded = self.pens.length() >= self.options.ready_window;
        // Once memory is full of what waits, one run of each kind is enough to know of it.
        let window = if crowded { 1 } else { self.pen_window() };
        if pen.lot.has_parked() || pen.queue.len() >= window {
            return Some(Park::Pen);
        }
        let root = self.gates.expect(pen.root());
        let from_root = from.is_some_and(|key| GateKey::parse(key).as_ref() == Some(&root.key));
        let parked = root.lot.has_parked() || crowded;
        (parked && !from_root).then_some(Park::Gate(pen.root()))
    }

    /// Notes that a run is parked, and returns the key.
    fn park_in(&mut self, pen: PenId, park: Park) -> String {
        let seq = self.building_seq();
        match park {
            Park::Pen => {
                let pen = self.pens.expect_mut(pen);
                pen.lot.park(seq);
                pen.key.to_string()
            }
            Park::Gate(gate) => {
                self.gates.park(gate, seq);
                self.gates.expect(gate).key.to_string()
            }
        }
    }

    fn push_pen(&mut self, pen: PenId, waiting: Waiting, front: bool) {
        self.pens.push(pen, waiting, front);
        self.count_penned(pen, 1);
    }

    /// Puts a resident run back at the head of its pen; whoever took it out settles the pen.
    pub(super) fn back_in_pen(&mut self, pen: PenId, waiting: Waiting) {
        self.push_pen(pen, waiting, true);
    }

    fn count_penned(&mut self, id: PenId, change: isize) {
        let pen = self.pens.expect(id);
        self.lines.penned(pen.line, change);
        for gate in pen.gates.iter() {
            let waiting = &mut self.gates.expect_mut(*gate).waiting;
            *waiting = waiting.saturating_add_signed(change);
        }
    }

    /// The next run of a pen that stands in line; `None` when a gate has become full, or when the store must be read first.
    pub(super) fn next_in_pen(&mut self, id: PenId) -> Option<RunId> {
        let gates = Arc::clone(&self.pens.expect(id).gates);
        if gates.iter().any(|gate| self.obstacle(*gate).is_some()) {
            self.settle_pen(id);
            return None;
        }
        let run = self.pens.pop(id);
        if run.is_some() {
            self.count_penned(id, -1);
        }
        let low = self.pen_window() / 4;
        let (acknowledged, pen) = (self.acknowledged, self.pens.expect_mut(id));
        if pen.lot.can_be_read() && pen.queue.len() <= low {
            pen.lot.begin_scan(acknowledged);
            let key = pen.key.to_string();
            self.want(LoadKey::Parked { key, after: None });
        }
        if run.is_none() {
            self.settle_pen(id);
        }
        run
    }

    /// Finds the place of a pen in which something has changed, and gives its turn to whoever has waited longest.
    pub(super) fn settle_pen(&mut self, id: PenId) {
        if !self.pens.contains(id) {
            // Its last run ended instead of being given out.
            return;
        }
        self.lift_pen(id);
        let pen = self.pens.expect(id);
        let (line, gates) = (pen.line, Arc::clone(&pen.gates));
        if let Some(head) = pen.head() {
            self.block_pen(id, pen.root(), head);
        }
        for gate in gates.iter() {
            self.next_turn(*gate, line);
        }
        self.drop_pen(id);
    }

    fn lift_pen(&mut self, id: PenId) {
        let pen = self.pens.expect_mut(id);
        let (line, gates) = (pen.line, Arc::clone(&pen.gates));
        match std::mem::replace(&mut pen.place, Place::Away) {
            Place::Away => {}
            Place::AtGate(gate, head) => self.gates.set_blocked(gate, line, (head, id), false),
            Place::InLine(head) => {
                self.lines.set_ready(line, head, id, false);
                for gate in gates.iter() {
                    self.gates.expect_mut(*gate).ready.remove(&line);
                }
            }
        }
    }

    fn block_pen(&mut self, id: PenId, gate: GateId, head: RunId) {
        let pen = self.pens.expect_mut(id);
        pen.place = Place::AtGate(gate, head);
        let line = pen.line;
        self.gates.set_blocked(gate, line, (head, id), true);
    }

    /// Lets the first pen of a line that waits at a gate stand in line, if there is room and none does.
    fn next_turn(&mut self, gate: GateId, line: LineIx) {
        loop {
            let at = self.gates.expect(gate);
            if at.ready.contains_key(&line) {
                return;
            }
            let first = at.blocked.get(&line).and_then(BTreeSet::first);
            let Some((_, pen)) = first.copied() else {
                return;
            };
            match self.obstacle(gate) {
                Some(Obstacle::Rate { at }) => return self.arm_gate(gate, at),
                Some(Obstacle::Paused | Obstacle::Full { .. }) => return,
                None => {}
            }
            self.lift_pen(pen);
            self.place_pen(pen);
        }
    }

    /// Puts a pen in line, or at the first gate that does not let it through.
    fn place_pen(&mut self, id: PenId) {
        let pen = self.pens.expect(id);
        let (line, gates) = (pen.line, Arc::clone(&pen.gates));
        let Some(head) = pen.head() else {
            return;
        };
        for gate in gates.iter().copied() {
            let obstacle = self.obstacle(gate);
            if let Some(Obstacle::Rate { at }) = obstacle {
                self.arm_gate(gate, at);
            }
            if obstacle.is_some() || self.gates.expect(gate).ready.contains_key(&line) {
                self.block_pen(id, gate, head);
                return;
            }
        }
        for gate in gates.iter() {
            self.gates.expect_mut(*gate).ready.insert(line, id);
        }
        self.pens.expect_mut(id).place = Place::InLine(head);
        self.lines.set_ready(line, head, id, true);
    }

    /// There may be room at a gate: the first pen of each line that waits there gets its turn.
    pub(super) fn wake_gate(&mut self, id: GateId) {
        let lines: Vec<LineIx> = self.gates.expect(id).blocked.keys().copied().collect();
        for line in lines {
            self.next_turn(id, line);
        }
    }

    /// Reads what is parked under gates that have room, as far as memory has.
    pub(super) fn read_lots(&mut self) {
        for id in self.gates.some_with_lot(LOTS) {
            if !self.gates.expect(id).lot.can_be_read() {
                continue;
            }
            match self.obstacle(id) {
                Some(Obstacle::Rate { at }) => self.arm_gate(id, at),
                Some(Obstacle::Paused | Obstacle::Full { .. }) => {}
                None if self.has_room_for_lot(id) => {
                    let (acknowledged, gate) = (self.acknowledged, self.gates.expect_mut(id));
                    gate.lot.begin_scan(acknowledged);
                    let key = gate.key.to_string();
                    self.want(LoadKey::Parked { key, after: None });
                }
                None => {}
            }
        }
    }

    /// What limits hold back may fill memory. A gate that has nothing to give out is read nevertheless, until it has: of those
    /// that come in then, each key that is full keeps one, and there are no more such keys than attempts under way.
    fn has_room_for_lot(&self, id: GateId) -> bool {
        let starves = self.gates.expect(id).ready.is_empty();
        starves || self.pens.length() < self.options.ready_window.div_ceil(2)
    }

    /// A scan of what is parked under a gate or for a pen brought rows up to `last`; `all` says there are no more.
    pub(super) fn lot_scanned(&mut self, key: &str, last: Option<RunId>, all: bool) {
        let repeats = !armed(Fault::LotScanNotRepeated);
        let more = LoadKey::Parked {
            key: key.to_owned(),
            after: last,
        };
        if let Some(id) = self.pens.find(key) {
            let pen = self.pens.expect(id);
            if !all && pen.queue.len() < self.pen_window() {
                return self.want(more);
            }
            self.pens.expect_mut(id).lot.end_scan(all, repeats);
            self.settle_pen(id);
        } else if let Some(id) = GateKey::parse(key).and_then(|gate| self.gates.find(&gate)) {
            if !all && self.obstacle(id).is_none() && self.has_room_for_lot(id) {
                return self.want(more);
            }
            self.gates.end_scan(id, all, repeats);
            self.drop_gate(id);
        }
    }

    /// The store holds runs under the key of a gate or a pen.
    pub(super) fn lot_known(&mut self, key: &str) {
        let parked = parked_at(key);
        let gates = parked.as_ref().map(|(gates, _)| gates);
        if let Some(GateKey::Queue(queue)) = gates.and_then(|gates| gates.last())
            && self.queues.is_paused(queue)
        {
            self.sort_parked(key);
        }
        match parked {
            Some((gates, Some(line))) => {
                let line = self.line_keyed(line);
                let pen = self.pen_at(line, &gates);
                self.pens.expect_mut(pen).lot.park(0);
                self.settle_pen(pen);
            }
            Some((gates, None)) => {
                for gate in gates {
                    let id = self.gates.of(&gate);
                    self.gates.park(id, 0);
                }
            }
            None => panic!("`{key}` is not a key that runs are parked under"),
        }
    }
}
