//! Runs get in line: at once, or by way of a pen when limits may hold them back.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{GateKey, Run, RunId, pen_key};

use super::Engine;
use super::gates::GateId;
use super::jobs::Compiled;
use super::limits::Obstacle;
use super::lines::{LineIx, Rank, Waiting};
use super::pens::{PenId, Place};

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
                    let key = self.park_in(park, id);
                    self.put_back(id, key);
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
                run.parked = Some(self.park_in(park, run.id));
                self.park_new(run);
                self.drop_pen(pen);
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

    /// A run or a pen that belonged to the pen does so no more.
    pub(super) fn let_pen_go(&mut self, pen: PenId) {
        self.pens.expect_mut(pen).users -= 1;
        self.drop_pen(pen);
    }

    pub(super) fn pen_at(&mut self, line: LineIx, gates: &[GateKey]) -> PenId {
        let key = pen_key(gates, self.lines.line(line).key());
        match self.pens.find(&key) {
            Some(pen) => pen,
            None => self.add_pen(Arc::from(key), line, gates),
        }
    }

    fn add_pen(&mut self, key: Arc<str>, line: LineIx, gates: &[GateKey]) -> PenId {
        let wider = &gates[1..];
        let parent = (!wider.is_empty()).then(|| self.pen_at(line, wider));
        if let Some(parent) = parent {
            self.pens.expect_mut(parent).users += 1;
        }
        let gates: Arc<[GateId]> = gates.iter().map(|gate| self.gates.of(gate)).collect();
        for gate in gates.iter() {
            self.gates.expect_mut(*gate).pens += 1;
        }
        self.lines.pens(line, 1);
        self.pens.add(key, line, gates, parent)
    }

    /// Lets go of a pen that nothing needs, and then of its parent.
    fn drop_pen(&mut self, id: PenId) {
        let Some(pen) = self.pens.remove_idle(id) else {
            return;
        };
        self.lines.pens(pen.line, -1);
        for gate in pen.gates.iter() {
            self.gates.expect_mut(*gate).pens -= 1;
            self.drop_gate(*gate);
        }
        if let Some(parent) = pen.parent {
            self.let_pen_go(parent);
        }
    }

    /// How many runs of one pen memory holds before others are parked.
    pub(super) fn pen_window(&self) -> usize {
        (self.options.ready_window / 64).max(1)
    }

    /// Memory is full of what waits in pens, or of pens whose runs the store holds.
    pub(super) fn pens_are_crowded(&self) -> bool {
        self.pens.length().max(self.pens.lots()) >= self.options.ready_window
    }

    /// Whether a run that comes to the pen must be parked, and in the lot of which pen.
    fn park_of(&self, id: PenId, how: Enter<'_>) -> Option<PenId> {
        let from = match how {
            Enter::Fresh => None,
            Enter::ReadFrom(key) => Some(key),
            Enter::Front | Enter::Kept => return None,
        };
        // Where it may be parked, the widest last. What was read goes further down, or into memory.
        let mut lots = self.lineage(id);
        let came_down = from.and_then(|key| {
            let is_it = |pen: &PenId| *self.pens.expect(*pen).key == *key;
            lots.iter().position(is_it)
        });
        if let Some(place) = came_down {
            lots.truncate(place);
        }
        let own = *lots.first()?;
        let has_parked = |pen: &&PenId| self.pens.expect(**pen).lot().has_parked();
        if let Some(before_it) = lots.iter().rev().find(has_parked) {
            return Some(*before_it);
        }
        let crowded = self.pens_are_crowded();
        // Once memory is full of what waits, one run of each kind is enough to know of it.
        let window = if crowded { 1 } else { self.pen_window() };
        if self.pens.expect(own).queue.len() >= window {
            return Some(own);
        }
        match came_down {
            _ if !crowded => None,
            None => lots.last().copied(),
            // Only what may be given out at once comes into a memory that is full. For the rest the widest gate at which
            // others of its line wait, or that lets nothing through, is where it is looked for when that changes.
            Some(_) => lots.iter().rev().copied().find(|pen| {
                let pen = self.pens.expect(*pen);
                let gate = pen.gates[0];
                self.gates.expect(gate).is_wanted_by(pen.line) || self.obstacle(gate).is_some()
            }),
        }
    }

    /// A pen and those above it, the widest last.
    fn lineage(&self, id: PenId) -> Vec<PenId> {
        let parent = |id: &PenId| self.pens.expect(*id).parent;
        std::iter::successors(Some(id), parent).collect()
    }

    /// Notes that a run is parked in the lot of a pen, and returns the key.
    fn park_in(&mut self, id: PenId, run: RunId) -> String {
        let before = self.pens.expect(id).head();
        let seq = self.building_seq();
        self.pens.park(id, seq, run);
        let pen = self.pens.expect(id);
        let key = pen.key.to_string();
        if pen.head() != before {
            self.settle_pen(id);
        }
        key
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
        self.read_if_short(id);
        let run = self.pens.pop(id);
        match run {
            Some(_) => self.count_penned(id, -1),
            None => self.settle_pen(id),
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
}
