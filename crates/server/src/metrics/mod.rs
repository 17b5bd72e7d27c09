//! Figures for Prometheus: what was counted since the server started, and what stands now.
//!
//! ```text
//! tap ─► Counted (drained twice a second and before each scrape) ─┐
//! driver's vitals, engine's figures, fleet, files ────────────────┴─► text
//! ```
//!
//! Counting happens off the driver's thread, from facts; the driver itself adds to a few atomics for each commit. Names,
//! types and labels are the table in [`names`], and `docs/reference/metrics.md` says the same: a contract.
//!
//! Series are bounded: jobs beyond [`jobs::KEPT`] by recent use are counted together as `_other`, and so are workers. A
//! caller bound to a namespace sees the series of its own jobs and workers and none of the server's.

mod counted;
mod histogram;
mod jobs;
mod names;
mod queues;
mod scrape;
mod text;
mod totals;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::driver::tap::{Interest, Subscription, Tap};

pub use histogram::Histogram;
pub use names::{BATCH_BOUNDS, COMMIT_BOUNDS, FAMILIES, Family, Kind};
pub use scrape::scrape;

use counted::Counted;

/// The ring of the tap holds more than a second of facts at full load.
const DRAIN_EVERY: Duration = Duration::from_millis(500);

struct Shared {
    counted: Counted,
    facts: Subscription,
}

#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Mutex<Shared>>,
    refused: Arc<Mutex<BTreeMap<&'static str, u64>>>,
    started: Instant,
}

impl Metrics {
    pub fn new(tap: &Tap) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared {
                counted: Counted::default(),
                facts: tap.subscribe(Interest::Committed),
            })),
            refused: Arc::default(),
            started: Instant::now(),
        }
    }

    /// Keeps up with the tap, for ever.
    pub async fn follow(self) {
        let mut ticks = tokio::time::interval(DRAIN_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            drop(self.drained());
        }
    }

    /// A request was answered with a problem.
    pub fn refused(&self, code: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(code).or_default() += 1;
    }

    fn drained(&self) -> MutexGuard<'_, Shared> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(heard) = shared.facts.ready() {
            shared.counted.hear(&heard);
        }
        shared
    }
}
