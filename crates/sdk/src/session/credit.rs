//! Credits: how much weight the server may still assign.
//!
//! Invariant: `outstanding + running ≤ capacity`, where outstanding is what was granted on this stream and not yet
//! consumed by an assignment. An assignment moves weight from outstanding to running, an end frees it, and what is free
//! is granted again. A broken stream voids what is outstanding; totals restart at zero with the next one.

#[derive(Debug)]
pub(super) struct Credits {
    capacity: u64,
    running: u64,
    /// The total told to the server on this stream.
    granted: u64,
    /// The weight of all assignments received on this stream.
    consumed: u64,
}

impl Credits {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity: u64::from(capacity),
            running: 0,
            granted: 0,
            consumed: 0,
        }
    }

    pub(super) fn void(&mut self) {
        self.granted = 0;
        self.consumed = 0;
    }

    /// Counts an assignment. False when the server had no credit for it.
    pub(super) fn consume(&mut self, weight: u32) -> bool {
        self.consumed = self.consumed.saturating_add(u64::from(weight));
        let covered = self.consumed <= self.granted;
        // A server that overdrew has nothing outstanding; later grants start from what it consumed.
        self.granted = self.granted.max(self.consumed);
        covered
    }

    pub(super) fn occupy(&mut self, weight: u32) {
        self.running += u64::from(weight);
    }

    pub(super) fn free(&mut self, weight: u32) {
        self.running = self.running.saturating_sub(u64::from(weight));
    }

    /// The new total to tell, when there is something to add.
    pub(super) fn grant(&mut self) -> Option<u64> {
        let free = self
            .capacity
            .saturating_sub(self.running + self.outstanding());
        self.granted += free;
        (free > 0).then_some(self.granted)
    }

    /// The server said what it used; the rest is back.
    pub(super) fn recalled(&mut self) {
        self.granted = self.consumed;
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.granted - self.consumed
    }

    pub(super) fn running(&self) -> u64 {
        self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_granted_again() {
        let mut credits = Credits::new(10);
        assert_eq!(credits.grant(), Some(10));
        assert_eq!(credits.grant(), None);
        assert!(credits.consume(4));
        credits.occupy(4);
        assert_eq!(credits.grant(), None);
        credits.free(4);
        assert_eq!(credits.grant(), Some(14));
    }

    #[test]
    fn a_new_stream_grants_what_does_not_run() {
        let mut credits = Credits::new(10);
        credits.grant();
        credits.consume(4);
        credits.occupy(4);
        credits.void();
        assert_eq!(credits.grant(), Some(6));
    }

    #[test]
    fn an_overdraft_is_seen_and_gives_no_credit() {
        let mut credits = Credits::new(2);
        credits.grant();
        assert!(!credits.consume(5));
        assert_eq!(credits.outstanding(), 0);
        assert_eq!(credits.grant(), Some(7));
    }

    #[test]
    fn recalled_credit_can_be_granted_anew() {
        let mut credits = Credits::new(3);
        credits.grant();
        credits.consume(1);
        credits.occupy(1);
        credits.recalled();
        assert_eq!(credits.outstanding(), 0);
        assert_eq!(credits.grant(), Some(3));
    }
}
