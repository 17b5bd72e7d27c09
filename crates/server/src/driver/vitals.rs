//! What the driver counts of its own work, for whoever wants to know how it does.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::metrics::{BATCH_BOUNDS, COMMIT_BOUNDS, Histogram};

#[derive(Clone, Debug)]
pub struct Counts {
    /// How long commits took, from being sent to being known.
    pub seconds: Histogram,
    pub rows: Histogram,
    /// Commits that had to be sent again.
    pub failures: u64,
    /// How far our clock is ahead of the database's, where servers share one.
    pub clock_ahead_ms: Option<i64>,
}

/// One lock a commit, hardly ever contended.
#[derive(Debug)]
pub struct Vitals(Mutex<Counts>);

impl Default for Vitals {
    fn default() -> Self {
        Self(Mutex::new(Counts {
            seconds: Histogram::new(COMMIT_BOUNDS),
            rows: Histogram::new(BATCH_BOUNDS),
            failures: 0,
            clock_ahead_ms: None,
        }))
    }
}

impl Vitals {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self) -> Counts {
        self.lock().clone()
    }

    pub(super) fn committed(&self, took: Duration, rows: usize) {
        let mut counts = self.lock();
        counts.seconds.observe(took.as_secs_f64());
        counts.rows.observe(rows as f64);
    }

    pub(super) fn clock_is_ahead(&self, ms: Option<i64>) {
        self.lock().clock_ahead_ms = ms;
    }

    pub(super) fn failed(&self) {
        self.lock().failures += 1;
    }
}
