//! Times as callers see and give them: RFC 3339, shown in UTC with milliseconds.

use std::borrow::Cow;
use std::fmt;

use drumtower_core::model::WallMs;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub WallMs);

impl From<WallMs> for Time {
    fn from(wall: WallMs) -> Self {
        Self(wall)
    }
}

/// The wall clock, for what is said of the future. Nothing is decided by it.
pub fn now() -> WallMs {
    WallMs(Timestamp::now().as_millisecond())
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A worker's clock may claim anything; what no calendar holds is shown as the nearest that one does.
        let nearest = if self.0.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        let timestamp = Timestamp::from_millisecond(self.0.0).unwrap_or(nearest);
        write!(f, "{timestamp:.3}")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Reads an instant that a caller gives. Finer ones than a millisecond are refused, not cut.
pub fn instant(field: &str, value: &str) -> Result<WallMs, Problem> {
    match value.trim().parse::<Timestamp>() {
        Ok(at) if at.as_nanosecond() % 1_000_000 == 0 => Ok(WallMs(at.as_millisecond())),
        _ => Err(Problem::field(
            field,
            format!(
                "{field}: `{value}` is not an instant: use RFC 3339 with an offset and at most milliseconds, such as `2026-01-31T08:00:00Z`"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_a_z() {
        assert_eq!(
            Time(WallMs(1_735_689_600_000)).to_string(),
            "2025-01-01T00:00:00.000Z"
        );
        assert_eq!(
            Time(WallMs(1_735_689_600_007)).to_string(),
            "2025-01-01T00:00:00.007Z"
        );
        for extreme in [i64::MIN, i64::MAX] {
            assert!(Time(WallMs(extreme)).to_string().ends_with('Z'));
        }
    }
}
