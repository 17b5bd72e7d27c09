//! Two clocks, never mixed: schedules live on the wall clock, leases and timers on the monotonic one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch on a wall clock, which may step either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallMs(pub i64);

/// Milliseconds on a clock that only goes forward and counts suspension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MonoMs(pub u64);

/// The time of one step, read once by whoever drives the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub wall: WallMs,
    pub mono: MonoMs,
}

/// A time within a sentence: `2026-11-16 08:00:05 UTC`.
pub fn instant(at: WallMs) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{} ms after 1970", at.0),
    }
}

impl WallMs {
    pub fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How many milliseconds `self` lies after `earlier`; negative when before.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl MonoMs {
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Now {
    /// Wall minus monotonic time. It moves only when the wall clock is stepped.
    pub fn offset(self) -> i64 {
        self.wall
            .0
            .saturating_sub(i64::try_from(self.mono.0).unwrap_or(i64::MAX))
    }

    /// The monotonic instant at which the wall clock will show `wall`, as far as is known now.
    pub fn mono_at(self, wall: WallMs) -> MonoMs {
        let ahead = wall.since(self.wall);
        if ahead <= 0 {
            self.mono
        } else {
            self.mono.plus(ahead.unsigned_abs())
        }
    }
}
