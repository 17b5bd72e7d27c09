//! Reads back what is parked in the lots of pens.
//!
//! A lot is read when it is its pen's turn: all of the pen's gates let something through, nothing in memory that could be given
//! out is older, and its line has workers. While memory has room it is read before that, as far as the gates let something through.
//!
//! Each run that is read goes into memory, or into a lot further down the tree, where fewer wait. Nothing that was looked at is
//! left behind, and the next scan goes on where the last one ended, so every scan comes closer to the end whatever breaks it
//! off. Once memory is full a scan takes no more than may be given out at once: what is in memory beyond the window is what
//! workers are about to get.

use crate::fault::{Fault, armed};
use crate::model::{GateKey, Run, RunId, parked_at};

use super::pens::{Pen, PenId};
use super::{Engine, LOAD_ROWS, LoadKey};

/// Lots that are looked at in one go.
const LOTS: usize = 16;

impl Engine {
    /// Reads lots of pens that could give something out, as long as memory has room.
    pub(super) fn read_lots(&mut self) {
        if !self.has_room_ahead() || self.pens.lots() == 0 {
            return;
        }
        for id in self.pens.some_with_lot(LOTS) {
            let pen = self.pens.expect(id);
            let short = pen.lot().can_be_read() && pen.queue.len() <= self.pen_window() / 4;
            if short && self.gates_are_open(id) {
                self.scan_lot(id);
                self.settle_pen(id);
            }
        }
    }

    fn has_room_ahead(&self) -> bool {
        self.pens.length() < self.options.ready_window.div_ceil(2)
    }

    fn gates_are_open(&self, id: PenId) -> bool {
        let mut gates = self.pens.expect(id).gates.iter();
        gates.all(|gate| self.obstacle(*gate).is_none())
    }

    /// It is the turn of a pen: reads its lot when that has the older runs, or memory few of them.
    pub(super) fn read_if_short(&mut self, id: PenId) {
        let pen = self.pens.expect(id);
        let older = |run: RunId| pen.lot().oldest() < run;
        let front = pen.queue.front().map(|waiting| waiting.run);
        let few = pen.queue.len() <= self.pen_window() / 4 + 1 && !self.pens_are_crowded();
        let short = front.is_none_or(older) || few;
        if short && pen.lot().can_be_read() {
            self.scan_lot(id);
        }
    }

    fn scan_lot(&mut self, id: PenId) {
        let gates = self.pens.expect(id).gates.iter();
        let room = gates.map(|gate| self.room_at(*gate)).min();
        let most = room.unwrap_or(1).clamp(1, self.pen_window());
        let acknowledged = self.acknowledged;
        let after = self.pens.begin_scan(id, acknowledged, most);
        let rows = match (self.pens_are_crowded(), self.is_leaf(self.pens.expect(id))) {
            (true, true) => most,
            // Some of what lies there goes further down.
            (true, false) => 4 * most + 16,
            (false, true) => self.most_of_one_pen(),
            (false, false) => LOAD_ROWS,
        };
        self.read_on(id, after, rows.min(LOAD_ROWS));
    }

    fn read_on(&mut self, id: PenId, after: Option<RunId>, rows: usize) {
        let key = self.pens.expect(id).key.to_string();
        self.want(LoadKey::Parked { key, after, rows });
    }

    /// Whether no run has further gates beside those of the pen: a run with a limit by a key of its job has one of the job too.
    fn is_leaf(&self, pen: &Pen) -> bool {
        let keys: Vec<&GateKey> = pen
            .gates
            .iter()
            .map(|gate| &self.gates.expect(*gate).key)
            .collect();
        matches!(
            keys[..],
            [GateKey::JobKey(..), ..] | [GateKey::QueueKey(..), GateKey::Queue(_)]
        )
    }

    /// How many runs of one pen a scan brings into memory while that has room.
    fn most_of_one_pen(&self) -> usize {
        (self.options.ready_window / 4).max(1)
    }

    /// Whether the scan of a lot has brought what is needed.
    fn has_enough(&self, id: PenId) -> bool {
        let pen = self.pens.expect(id);
        let full = self.pens_are_crowded() && pen.scan.taken >= pen.scan.most;
        let own = pen.scan.taken > 0 && pen.queue.len() >= self.most_of_one_pen();
        pen.scan.left.is_some() || full || own
    }

    /// Takes a run that was parked in the lot of a pen, unless the scan has brought enough.
    pub(super) fn take_of_lot(&mut self, key: &str, run: Run, tag: u64) {
        let (id, job) = (run.id, run.job);
        let Some(pen) = self.pens.find(key) else {
            panic!("the pen `{key}` is gone while its lot is read");
        };
        if self.has_enough(pen) {
            self.pens.expect_mut(pen).scan.left.get_or_insert(id);
            self.consider(job);
            return;
        }
        let before = self.runs.get(id).is_some();
        self.adopt_run(run, tag);
        let taken = !before && self.runs.get(id).is_some();
        self.pens.expect_mut(pen).scan.taken += usize::from(taken);
    }

    /// A scan of the lot of a pen brought rows up to `last`; `all` says there are no more.
    pub(super) fn lot_scanned(&mut self, key: &str, last: Option<RunId>, all: bool) {
        let Some(id) = self.pens.find(key) else {
            return;
        };
        let pen = self.pens.expect(id);
        let scan = pen.scan;
        // What is read while memory has room should be worth the way.
        let few = pen.queue.len() < self.pen_window() && self.has_room_ahead();
        let enough = self.has_enough(id) || (scan.taken > 0 && !few);
        if !all && !enough && self.gates_are_open(id) {
            return self.read_on(id, last, LOAD_ROWS);
        }
        let next = scan.left.or(last.filter(|_| !all));
        let next = next.filter(|_| !armed(Fault::LotLeftUnread));
        let repeats = !armed(Fault::LotScanNotRepeated);
        self.pens.end_scan(id, next, repeats);
        self.settle_pen(id);
    }

    /// The store holds runs under the key of a pen, or, parked by an earlier program, under that of a gate.
    pub(super) fn lot_known(&mut self, key: &str) {
        match parked_at(key) {
            Some((gates, Some(line))) => {
                // The server may have died before it had looked for runs whose job has left the queue, which may let
                // nothing through for a long time.
                if let Some(GateKey::Queue(_)) = gates.last() {
                    self.sort_parked(key);
                }
                let line = self.line_keyed(line);
                let pen = self.pen_at(line, &gates);
                self.pens.lot_found(pen);
                self.settle_pen(pen);
            }
            Some((_, None)) => self.sort_parked(key),
            None => panic!("`{key}` is not a key that runs are parked under"),
        }
    }
}
