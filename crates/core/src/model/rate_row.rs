//! How far a rate has been used, written in the commit of the starts that it admitted.

use serde::{Deserialize, Serialize};

/// When the next would start if all came evenly, by the wall clock: after a restart it says how much time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateRow {
    /// Nanoseconds since the Unix epoch.
    pub reached_ns: i64,
    /// The furthest ahead that it can lie: what lies further was written by another clock.
    pub span_ns: i64,
}
