//! Runs that wait in the store under one key, and the scan that reads them back.
//!
//! A scan reads what was committed when it began. What was parked in a later batch is not all found by it, so the lot counts
//! as full until a scan that began after that batch has come to the end.

#[derive(Debug, Default)]
pub(super) struct Lot {
    /// The store may hold runs under the key.
    parked: bool,
    /// The last batch that parked one.
    last_parked: u64,
    /// A scan is under way; every batch up to this one was visible when it began.
    scan: Option<u64>,
}

impl Lot {
    /// A run is parked by batch `seq`.
    pub(super) fn park(&mut self, seq: u64) {
        self.parked = true;
        self.last_parked = seq;
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

    /// A scan begins, to which every batch up to `acknowledged` is visible.
    pub(super) fn begin_scan(&mut self, acknowledged: u64) {
        self.scan = Some(acknowledged);
    }

    /// The scan has ended; `all` says that it came to the end. False `repeats` is for those who break the rule on purpose.
    pub(super) fn end_scan(&mut self, all: bool, repeats: bool) {
        let began_at = self.scan.take().unwrap_or(0);
        let missed = self.last_parked > began_at && repeats;
        self.parked = !all || missed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_parked_after_a_scan_began_is_read_by_the_next() {
        let mut lot = Lot::default();
        assert!(lot.is_idle());
        lot.park(5);
        lot.begin_scan(5);
        assert!(!lot.can_be_read());
        lot.park(6);
        lot.end_scan(true, true);
        assert!(lot.can_be_read());
        lot.begin_scan(6);
        lot.end_scan(false, true);
        assert!(lot.can_be_read(), "it did not come to the end");
        lot.begin_scan(6);
        lot.end_scan(true, true);
        assert!(lot.is_idle());
    }
}
