//! Runs that wait in the store under one key, and the scan that reads them back.
//!
//! A scan reads what was committed when it began. What was parked in a later batch is not all found by it, so the lot counts
//! as full until a scan that began after that batch has come to the end.
//!
//! A lot knows an id that none of its runs lies below, those aside that memory holds. The next scan begins there, so one that
//! was broken off is gone on with and not begun anew; and it is the age by which the lot takes its turn among others.

use crate::model::RunId;

#[derive(Debug)]
pub(super) struct Lot {
    /// The store may hold runs under the key.
    parked: bool,
    /// No run of it that memory does not hold is older.
    oldest: RunId,
    /// The last batch that parked one.
    last_parked: u64,
    /// What batches parked that the last scan did not see: the last of them, and the oldest run. First what was parked before
    /// that scan began, then what was parked since.
    unseen: [Option<(u64, RunId)>; 2],
    /// A scan is under way; every batch up to this one was visible when it began.
    scan: Option<u64>,
}

impl Default for Lot {
    fn default() -> Self {
        Self {
            parked: false,
            oldest: RunId(0),
            last_parked: 0,
            unseen: [None; 2],
            scan: None,
        }
    }
}

fn merged(one: Option<(u64, RunId)>, other: Option<(u64, RunId)>) -> Option<(u64, RunId)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.max(other.0), one.1.min(other.1))),
        _ => one.or(other),
    }
}

impl Lot {
    /// A run is parked by batch `seq`.
    pub(super) fn park(&mut self, seq: u64, run: RunId) {
        self.oldest = if self.parked {
            self.oldest.min(run)
        } else {
            run
        };
        self.parked = true;
        self.last_parked = seq;
        self.unseen[1] = merged(self.unseen[1], Some((seq, run)));
    }

    /// The store holds runs under the key, nobody knows which.
    pub(super) fn found(&mut self) {
        self.park(0, RunId(0));
    }

    pub(super) fn has_parked(&self) -> bool {
        self.parked
    }

    /// Whether there is something to read and nobody reads it.
    pub(super) fn can_be_read(&self) -> bool {
        self.parked && self.scan.is_none()
    }

    /// Nothing is in it, and nobody looks.
    pub(super) fn is_idle(&self) -> bool {
        !self.parked && self.scan.is_none()
    }

    pub(super) fn oldest(&self) -> RunId {
        self.oldest
    }

    /// A scan begins, to which every batch up to `acknowledged` is visible. It reads what comes after the run that is returned.
    pub(super) fn begin_scan(&mut self, acknowledged: u64) -> Option<RunId> {
        self.scan = Some(acknowledged);
        let unseen = |slot: &(u64, RunId)| slot.0 > acknowledged;
        let [before, since] = self.unseen.map(|slot| slot.filter(unseen));
        self.unseen = [merged(before, since), None];
        self.oldest.0.checked_sub(1).map(RunId)
    }

    /// The scan has ended. It came to the end, or has left the run `next` and what comes after it. False `repeats` is for
    /// those who break the rule on purpose.
    pub(super) fn end_scan(&mut self, next: Option<RunId>, repeats: bool) {
        let began_at = self.scan.take().unwrap_or(0);
        let missed = self.last_parked > began_at && repeats;
        self.parked = next.is_some() || missed;
        let unseen = self.unseen.iter().flatten().map(|(_, run)| *run);
        self.oldest = unseen.chain(next).min().unwrap_or(RunId(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_parked_after_a_scan_began_is_read_by_the_next() {
        let mut lot = Lot::default();
        assert!(lot.is_idle());
        lot.park(5, RunId(50));
        lot.begin_scan(5);
        assert!(!lot.can_be_read());
        lot.park(6, RunId(60));
        lot.end_scan(None, true);
        assert!(lot.can_be_read());
        lot.begin_scan(6);
        lot.end_scan(Some(RunId(60)), true);
        assert!(lot.can_be_read(), "it did not come to the end");
        lot.begin_scan(6);
        lot.end_scan(None, true);
        assert!(lot.is_idle());
    }

    #[test]
    fn a_scan_goes_on_where_the_last_one_ended() {
        let mut lot = Lot::default();
        for (seq, run) in [(5, 50), (5, 51), (6, 60)] {
            lot.park(seq, RunId(run));
        }
        assert_eq!(lot.begin_scan(6), Some(RunId(49)));
        lot.end_scan(Some(RunId(60)), true);
        assert_eq!(lot.begin_scan(6), Some(RunId(59)));
        lot.end_scan(None, true);
        lot.park(7, RunId(55));
        assert_eq!(lot.oldest(), RunId(55), "an old one that came back");
    }

    #[test]
    fn what_a_scan_could_not_see_is_not_passed_over_by_the_next() {
        let mut lot = Lot::default();
        lot.park(5, RunId(50));
        lot.park(6, RunId(45));
        assert_eq!(lot.begin_scan(5), Some(RunId(44)));
        lot.park(7, RunId(40));
        lot.end_scan(Some(RunId(70)), true);
        assert_eq!(lot.oldest(), RunId(40));
        assert_eq!(lot.begin_scan(6), Some(RunId(39)));
        lot.end_scan(Some(RunId(80)), true);
        assert_eq!(lot.oldest(), RunId(40), "batch 7 was not visible yet");
        lot.begin_scan(7);
        lot.end_scan(Some(RunId(80)), true);
        assert_eq!(lot.oldest(), RunId(80));
    }

    #[test]
    fn what_is_found_is_read_from_its_beginning() {
        let mut lot = Lot::default();
        lot.found();
        assert_eq!(lot.begin_scan(0), None);
        lot.end_scan(None, true);
        assert!(lot.is_idle());
    }
}
