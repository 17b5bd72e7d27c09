//! The segments this engine owns, and the ids it draws from them.
//!
//! No id above a segment's mark was ever stored or shown. Drawing one above it raises the mark some seconds ahead, in the
//! batch that stores the id; whoever takes the segment over begins above the mark, so an id is never made twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::{Fault, armed};
use crate::model::{
    AuditId, BackfillId, Fence, JobId, RunId, SegmentId, SegmentRow, SegmentSet, SessionId,
    TokenId, WallMs,
};
use crate::model::{raw_floor, raw_next};

use super::{Engine, Transfer};

/// How far ahead a raised mark lies: a row written every few seconds for each busy segment.
const MARK_AHEAD_MS: i64 = 5_000;

#[derive(Debug)]
struct Owned {
    row: SegmentRow,
    last: u64,
}

#[derive(Debug)]
pub(super) struct Segments {
    owned: BTreeMap<SegmentId, Owned>,
    /// The keys of `owned`.
    set: SegmentSet,
    raised: BTreeSet<SegmentId>,
    /// Segments that are known to belong together.
    ties: SegmentSet,
}

impl Segments {
    pub(super) fn new(rows: Vec<SegmentRow>, ties: SegmentSet) -> Self {
        let set = rows.iter().map(|row| row.id).collect();
        let owned = rows
            .into_iter()
            .map(|row| {
                (
                    row.id,
                    Owned {
                        last: row.id_mark,
                        row,
                    },
                )
            })
            .collect();
        Self {
            owned,
            set,
            raised: BTreeSet::new(),
            ties,
        }
    }

    /// Which they are.
    pub(super) fn owned(&self) -> SegmentSet {
        self.set
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<SegmentId> {
        self.owned.keys().next().copied()
    }

    /// The rows, as of an owner that gives all of them up.
    pub(super) fn given_up(&self) -> BTreeMap<SegmentId, SegmentRow> {
        let nobody = |row: &SegmentRow| SegmentRow {
            owner: SessionId(0),
            ..row.clone()
        };
        let rows = self.owned.iter();
        rows.map(|(id, owned)| (*id, nobody(&owned.row))).collect()
    }

    fn draw(&mut self, segment: SegmentId, now: WallMs) -> u64 {
        let Some(owned) = self.owned.get_mut(&segment) else {
            panic!("segment {} is not owned", segment.0);
        };
        let id =
            raw_floor(now, segment).max(raw_next(owned.last.max(raw_floor(WallMs(0), segment))));
        owned.last = id;
        if id > owned.row.id_mark && !armed(Fault::MarkNotRaised) {
            // Ahead of the clock, not of the id: else every restart would carry ids further into the future.
            owned.row.id_mark = raw_floor(now.plus(MARK_AHEAD_MS), segment).max(id);
            self.raised.insert(segment);
        }
        id
    }

    pub(super) fn run_id(&mut self, segment: SegmentId, now: WallMs) -> RunId {
        RunId(self.draw(segment, now))
    }

    pub(super) fn job_id(&mut self, segment: SegmentId, now: WallMs) -> JobId {
        JobId(self.draw(segment, now))
    }

    pub(super) fn token_id(&mut self, now: WallMs) -> TokenId {
        TokenId(self.draw(SegmentId(0), now))
    }

    pub(super) fn audit_id(&mut self, segment: SegmentId, now: WallMs) -> AuditId {
        AuditId(self.draw(segment, now))
    }

    pub(super) fn backfill_id(&mut self, segment: SegmentId, now: WallMs) -> BackfillId {
        BackfillId(self.draw(segment, now))
    }

    /// A fence from the same sequence: it grows strictly over the segment, and so over each run and key in it.
    pub(super) fn fence(&mut self, segment: SegmentId, now: WallMs) -> Fence {
        Fence(self.draw(segment, now))
    }

    /// The rows whose mark was raised since the last call.
    pub(super) fn take_raised(&mut self) -> BTreeMap<SegmentId, SegmentRow> {
        let raised = std::mem::take(&mut self.raised);
        raised
            .into_iter()
            .filter_map(|id| Some((id, self.owned.get(&id)?.row.clone())))
            .collect()
    }
}

impl Engine {
    /// Keeps together what is tied, whatever was known of ties when a transfer was planned: what belongs to the first segment
    /// comes, goes and stays with it.
    pub fn keep_tied(&self, change: &mut Transfer) {
        if armed(Fault::TieNotKept) {
            return;
        }
        let ties = self.segments.ties;
        let tied = ties.within(&self.segments.set);
        let stays = self.owns(SegmentId::HOME) && !change.give.contains(SegmentId::HOME);
        if stays || change.take.iter().any(|row| row.id == SegmentId::HOME) {
            change.give = change.give.without(&tied);
        } else {
            change.give = change.give.union(&tied);
            change.take.retain(|row| !ties.contains(row.id));
        }
    }

    /// What it must give up before it is stepped, if anything: tied to the first segment, which another server has.
    ///
    /// A share is planned from what was seen, and the owner of the first segment may tie more and end before it is taken.
    /// An engine with half of what is tied would count limits that another counts as well, and tell followers whose segments
    /// it does not own.
    pub fn strays(&self) -> Option<Transfer> {
        let mut change = Transfer::default();
        self.keep_tied(&mut change);
        (!change.is_nothing()).then_some(change)
    }

    pub(super) fn owns(&self, segment: SegmentId) -> bool {
        self.segments.set.contains(segment)
    }

    /// Notes that segments belong together, where that is not known yet. Whoever has them is told by the store, and sooner or
    /// later one server has all of them.
    pub(super) fn tie(&mut self, segments: &SegmentSet) {
        let fresh = segments.without(&self.segments.ties);
        if !fresh.is_empty() {
            self.segments.ties = self.segments.ties.union(&fresh);
            self.building.tie(&fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    /// Each life of a server begins at the mark of the one before; none of them may carry ids away from the clock.
    #[test]
    fn restarts_do_not_carry_ids_into_the_future() {
        let id = SegmentId(7);
        let mut row = SegmentRow {
            id,
            owner: SessionId(1),
            epoch: Epoch(1),
            id_mark: 0,
        };
        let mut last = RunId(0);
        for life in 0..1000 {
            let now = WallMs(1_800_000_000_000 + life);
            let mut segments = Segments::new(vec![row], SegmentSet::ALL);
            let drawn = segments.run_id(id, now);
            assert!(drawn > last, "{drawn} after {last}");
            assert!(drawn.created().since(now) <= MARK_AHEAD_MS, "life {life}");
            last = drawn;
            row = segments
                .take_raised()
                .remove(&id)
                .expect("the mark was raised");
            assert!(row.id_mark >= drawn.0);
        }
    }
}
