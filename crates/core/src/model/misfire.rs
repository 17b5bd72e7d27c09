//! What becomes of due times that passed while nothing could fire them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::parse_duration;

use super::{Limits, SpecError};

/// What to do with times that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// None of them makes a run.
    Skip,
    /// The newest of them makes a run.
    Latest,
    /// Each of them makes a run, within `window` and `max`.
    All,
}

/// How missed times are made up for. Whatever makes no run is recorded with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Misfire {
    /// `skip`, `latest` or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<MisfirePolicy>,
    /// The oldest that a missed time may be and still make a run, such as `30m`; `1h` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// How many missed times make runs under `all`, the newest ones; 100 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max: Option<u32>,
    /// How far apart runs that catch up are made under `all`; at once unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// The same, read and with defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchUp {
    pub policy: MisfirePolicy,
    pub window_ms: i64,
    pub max: u32,
    pub gap_ms: i64,
}

impl CatchUp {
    pub const WINDOW_MS: i64 = 3_600_000;
    pub const MAX: u32 = 100;

    pub fn with(policy: MisfirePolicy) -> Self {
        Self {
            policy,
            window_ms: Self::WINDOW_MS,
            max: Self::MAX,
            gap_ms: 0,
        }
    }
}

impl Misfire {
    /// Reads it under the manifest's key `field`; `policy` is taken unless another is given.
    pub fn parsed(&self, field: &str, policy: MisfirePolicy) -> Result<CatchUp, SpecError> {
        let duration = |key: &str, text: &Option<String>, default: i64| match text {
            None => Ok(default),
            Some(text) => parse_duration(text)
                .map(|ms| i64::try_from(ms).unwrap_or(i64::MAX))
                .map_err(|error| SpecError::new(format!("{field}.{key}"), error.to_string())),
        };
        let max = self.max.unwrap_or(CatchUp::MAX);
        if max == 0 || max > Limits::CATCH_UP_RUNS {
            let message = format!("`{max}` is not between 1 and {}", Limits::CATCH_UP_RUNS);
            return Err(SpecError::new(format!("{field}.max"), message));
        }
        Ok(CatchUp {
            policy: self.policy.unwrap_or(policy),
            window_ms: duration("window", &self.window, CatchUp::WINDOW_MS)?,
            max,
            gap_ms: duration("gap", &self.gap, 0)?,
        })
    }
}
