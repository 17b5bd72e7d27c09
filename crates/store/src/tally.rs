//! Roll-ups: what one finished run adds to its job's minute. Shared by the stores, so that they count alike.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, Run, RunState};
use serde::{Deserialize, Serialize};

use crate::Rollup;

const MINUTE_MS: i64 = 60_000;

/// Minutes since the Unix epoch and the job: the key that roll-ups are kept and read in.
pub(crate) type Key = (i64, JobId);

/// How long roll-ups are kept, in minutes.
pub(crate) const KEPT_MINUTES: i64 = 30 * 24 * 60;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub delay_ms: Vec<u64>,
    pub duration_ms: Vec<u64>,
}

/// What is counted of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub key: Key,
    state: RunState,
    delay_ms: Option<u64>,
    duration_ms: Option<u64>,
}

impl Sample {
    pub fn of(run: &Run) -> Self {
        let ended = run.finished().unwrap_or(run.created);
        let started = run.attempts.iter().find_map(|attempt| attempt.started);
        let last = run.attempts.last().and_then(|attempt| attempt.end.as_ref());
        Self {
            key: (ended.0.div_euclid(MINUTE_MS), run.job),
            state: run.state,
            delay_ms: started.map(|at| u64::try_from(at.since(run.due)).unwrap_or(0)),
            duration_ms: last.map(|end| end.duration_ms),
        }
    }
}

impl Tally {
    pub fn add(&mut self, sample: &Sample) {
        match sample.state {
            RunState::Completed => self.completed += 1,
            RunState::Cancelled => self.cancelled += 1,
            _ => self.failed += 1,
        }
        count(&mut self.delay_ms, sample.delay_ms);
        count(&mut self.duration_ms, sample.duration_ms);
    }

    pub fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        sum(&mut self.delay_ms, &other.delay_ms);
        sum(&mut self.duration_ms, &other.duration_ms);
    }

    pub fn into_rollup(self, (minute, job): Key) -> Rollup {
        let Self {
            completed,
            failed,
            cancelled,
            delay_ms,
            duration_ms,
        } = self;
        Rollup {
            job,
            minute,
            completed,
            failed,
            cancelled,
            delay_ms,
            duration_ms,
        }
    }
}

/// Adds `from` to `into`, key by key.
pub(crate) fn merge_all(
    into: &mut BTreeMap<Key, Tally>,
    from: impl IntoIterator<Item = (Key, Tally)>,
) {
    for (key, tally) in from {
        into.entry(key).or_default().merge(&tally);
    }
}

/// Place 0 is for nothing at all, place k for [2^(k-1), 2^k). The sketch ends at its last place in use.
fn count(sketch: &mut Vec<u64>, value: Option<u64>) {
    let Some(value) = value else { return };
    let place = (u64::BITS - value.leading_zeros()) as usize;
    if sketch.len() <= place {
        sketch.resize(place + 1, 0);
    }
    sketch[place] += 1;
}

fn sum(into: &mut Vec<u64>, from: &[u64]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (slot, value) in into.iter_mut().zip(from) {
        *slot += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_has_a_place_for_each_power_of_two() {
        let mut sketch = Vec::new();
        for value in [0, 1, 2, 3, 4, 7, 8] {
            count(&mut sketch, Some(value));
        }
        count(&mut sketch, None);
        assert_eq!(sketch, [1, 1, 2, 2, 1]);
        count(&mut sketch, Some(u64::MAX));
        assert_eq!(sketch.len(), 65);
    }

    #[test]
    fn sums_grow_to_the_longer_sketch() {
        let mut into = vec![1];
        sum(&mut into, &[1, 0, 5]);
        assert_eq!(into, [2, 0, 5]);
    }
}
