//! The rules of leases, on both sides of the wire.
//!
//! A worker's lease runs from when it *sent* the heartbeat that a commit's effect echoed. The server never stores its end:
//! it knows when it *received* that heartbeat, which is later, and waits a whole term plus a margin from there. So the
//! worker has always stopped before the server concludes that it has, whatever either clock shows.

use crate::fault::{Fault, armed};
use crate::model::MonoMs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a worker may go on after the heartbeat that was last echoed.
    pub lease_ms: u64,
    pub heartbeat_ms: u64,
    /// How long a worker may take to kill what it runs once the lease is over.
    pub kill_ms: u64,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease_ms: 15_000,
            heartbeat_ms: 3_000,
            kill_ms: 1_000,
        }
    }
}

impl Terms {
    /// What the server waits beyond the term: one per cent for drift between two clocks, and the time to kill.
    pub fn margin_ms(&self) -> u64 {
        if armed(Fault::MarginForgotten) {
            return 0;
        }
        self.lease_ms / 100 + self.kill_ms
    }

    /// When nothing that was leased by a heartbeat received at `received` can still run.
    pub fn over_at(&self, received: MonoMs) -> MonoMs {
        received.plus(self.lease_ms + self.margin_ms())
    }

    /// How long nothing may be heard before a worker is suspected: two heartbeats that did not come.
    pub fn suspect_ms(&self) -> u64 {
        (2 * self.heartbeat_ms).min(self.lease_ms / 2)
    }

    /// Whether a worker whose last heartbeat has this age is heard of as it should be. To one that is not nothing is
    /// given; and an assignment that echoes an older heartbeat leaves too little of the term to be worth sending.
    pub fn fresh(&self, received: MonoMs, now: MonoMs) -> bool {
        now.0.saturating_sub(received.0) < self.suspect_ms()
    }
}
