//! Credit: how much weight one server may still assign.
//!
//! What was granted on a stream and not yet consumed by an assignment is outstanding. A broken stream voids it; totals
//! restart at zero with the next one. How much is granted is decided by the [shares](super::shares).

#[derive(Debug, Default)]
pub(super) struct Credit {
    /// The total told to the server on this stream.
    granted: u64,
    /// The weight of all assignments received on this stream.
    consumed: u64,
}

impl Credit {
    /// Counts an assignment. False when the server had no credit for it.
    pub(super) fn consume(&mut self, weight: u32) -> bool {
        self.consumed = self.consumed.saturating_add(u64::from(weight));
        let covered = self.consumed <= self.granted;
        // A server that overdrew has nothing outstanding; later grants start from what it consumed.
        self.granted = self.granted.max(self.consumed);
        covered
    }

    /// The new total to tell.
    pub(super) fn grant(&mut self, weight: u64) -> u64 {
        self.granted = self.granted.saturating_add(weight);
        self.granted
    }

    /// The server takes what it did not use for gone.
    pub(super) fn recalled(&mut self) {
        self.granted = self.consumed;
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.granted - self.consumed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overdraft_is_seen_and_gives_no_credit() {
        let mut credit = Credit::default();
        credit.grant(2);
        assert!(!credit.consume(5));
        assert_eq!(credit.outstanding(), 0);
        assert_eq!(credit.grant(2), 7);
    }

    #[test]
    fn recalled_credit_can_be_granted_anew() {
        let mut credit = Credit::default();
        credit.grant(3);
        assert!(credit.consume(1));
        credit.recalled();
        assert_eq!(credit.outstanding(), 0);
        assert_eq!(credit.grant(2), 3);
    }
}
