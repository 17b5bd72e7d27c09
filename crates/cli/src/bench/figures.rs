//! How figures are gathered and rounded.

use drumtower_core::model::{RunId, RunState};
use drumtower_store::{Read, RunFilter};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};

/// Runs read of a store at a time.
const PAGE: usize = 1000;

/// Delays in microseconds.
pub struct Delays(Histogram<u64>);

impl Delays {
    const LONGEST_US: u64 = 3_600_000_000;

    pub fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, Self::LONGEST_US, 3);
        histogram
            .map(Self)
            .map_err(|error| Failure::failed(format!("no histogram: {error}")))
    }

    pub fn add(&mut self, from_us: u64, to_us: u64) {
        self.0
            .saturating_record(to_us.saturating_sub(from_us).max(1));
    }

    /// In milliseconds; null when there is none.
    pub fn value(&self) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let ms = |us: u64| rounded(us as f64 / 1000.0);
        json!({
            "p50": ms(self.0.value_at_quantile(0.5)),
            "p99": ms(self.0.value_at_quantile(0.99)),
            "p999": ms(self.0.value_at_quantile(0.999)),
            "max": ms(self.0.max()),
        })
    }
}

/// What [`Delays::value`] gave, for people.
pub fn delay_words(delays: &Value) -> String {
    match delays {
        Value::Null => "-".to_owned(),
        delays => format!(
            "p50 {} · p99 {} · p99.9 {} · max {} ms",
            delays["p50"], delays["p99"], delays["p999"], delays["max"]
        ),
    }
}

/// Two places are enough for anyone.
pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

pub fn megabytes(bytes: &Value) -> String {
    bytes
        .as_u64()
        .map_or("-".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000))
}

/// Reads when each completed run was recorded as such.
pub fn ends(store: &dyn Read) -> Result<Vec<(RunId, u64)>> {
    let mut ends = Vec::new();
    let mut before = None;
    loop {
        let page = store.runs(&RunFilter::default(), before, PAGE)?;
        for run in page
            .runs
            .iter()
            .filter(|run| run.state == RunState::Completed)
        {
            if let Some(last) = run.transitions.last() {
                // The store keeps whole milliseconds, cut off: count each to its end.
                ends.push((run.id, (u64::try_from(last.at.0).unwrap_or(0) + 1) * 1000));
            }
        }
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    ends.sort_unstable();
    Ok(ends)
}
