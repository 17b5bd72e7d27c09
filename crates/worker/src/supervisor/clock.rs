//! Time for leases: milliseconds on a clock that all processes of this machine share, that never jumps, and that
//! goes on while the machine is suspended.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::sys;

/// A reading of the machine's boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootMs(pub u64);

impl BootMs {
    pub fn now() -> Self {
        BootMs(sys::boot_clock_ms())
    }

    /// The reading `span` later; a span too long to count means never.
    pub fn plus(self, span: Duration) -> Self {
        BootMs(
            self.0
                .saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    /// Milliseconds from `earlier` to here, zero if `earlier` is not earlier.
    pub fn ms_since(self, earlier: BootMs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Milliseconds since 1970 by the wall clock: for people, never for leases.
pub(crate) fn wall_ms() -> u64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
