//! Roll-ups that are gathered in memory before they are written, a few rows in each commit.
//!
//! The runs of the open range are counted here; when it is long enough, or a minute has passed, it closes, and its rows
//! are written in order of key over the next commits. What says how far that is, and how a restart finds the rest, is the
//! store's own.

use std::collections::BTreeMap;

use drumtower_core::model::JobId;

use crate::tally::{Key, Sample, Tally, merge_all};

/// A closed range is written within this many commits, however many rows it has.
const COMMITS_A_RANGE: usize = 200;

pub struct Gathered {
    closing: BTreeMap<Key, Tally>,
    open: BTreeMap<Key, Tally>,
    open_rows: u64,
    quota: usize,
    least: usize,
    rows_a_range: u64,
}

impl Gathered {
    /// Nothing yet. `least` rows of a closed range go into each commit at least; a range closes at `rows_a_range` runs.
    pub fn new(least: usize, rows_a_range: u64) -> Self {
        Self {
            closing: BTreeMap::new(),
            open: BTreeMap::new(),
            open_rows: 0,
            quota: 0,
            least: least.max(1),
            rows_a_range,
        }
    }

    /// Takes over the rest of a range that was being written.
    pub fn go_on(&mut self, closing: BTreeMap<Key, Tally>) {
        self.quota = quota(closing.len(), self.least);
        self.closing = closing;
    }

    pub fn add(&mut self, sample: &Sample) {
        self.open.entry(sample.key).or_default().add(sample);
        self.open_rows += 1;
    }

    /// Adds sums of any number of runs.
    #[cfg(feature = "postgres")]
    pub fn merge(&mut self, sums: impl IntoIterator<Item = (Key, Tally)>) {
        merge_all(&mut self.open, sums);
    }

    /// Whether anything gathered is of a minute before `minute`.
    pub fn holds_before(&self, minute: i64) -> bool {
        [&self.closing, &self.open]
            .iter()
            .any(|rows| rows.keys().next().is_some_and(|key| key.0 < minute))
    }

    /// The rows of the closed range that the next commit writes, and whether they are the last.
    pub fn due(&self) -> (impl Iterator<Item = (&Key, &Tally)>, bool) {
        let rows = self.quota.min(self.closing.len());
        (self.closing.iter().take(rows), rows == self.closing.len())
    }

    /// All there is, with the runs of a commit under way.
    pub fn everything(&self, samples: &[Sample]) -> BTreeMap<Key, Tally> {
        let mut rows = self.closing.clone();
        merge_all(
            &mut rows,
            self.open.iter().map(|(key, tally)| (*key, tally.clone())),
        );
        for sample in samples {
            rows.entry(sample.key).or_default().add(sample);
        }
        rows
    }

    /// The first `rows` of the closed range are written.
    pub fn written(&mut self, rows: usize) {
        for _ in 0..rows {
            self.closing.pop_first();
        }
    }

    /// Everything is written.
    pub fn clear(&mut self) {
        self.closing.clear();
        self.open.clear();
        self.open_rows = 0;
    }

    /// Closes the open range if it is long enough and none is being written. True when it did.
    pub fn close(&mut self) -> bool {
        let minutes = (
            self.open.keys().next().map(|key| key.0),
            self.open.keys().next_back().map(|key| key.0),
        );
        let long = self.open_rows >= self.rows_a_range || minutes.0 < minutes.1;
        if !self.closing.is_empty() || !long {
            return false;
        }
        let closing = std::mem::take(&mut self.open);
        self.open_rows = 0;
        self.go_on(closing);
        true
    }

    /// What is not written of the minutes in `[from, to)`.
    pub fn between(&self, job: Option<JobId>, from: i64, to: i64) -> BTreeMap<Key, Tally> {
        let mut found = BTreeMap::new();
        for rows in [&self.closing, &self.open] {
            let rows = rows.range((from, JobId(0))..(to, JobId(0)));
            let rows = rows.filter(|(key, _)| job.is_none_or(|job| key.1 == job));
            merge_all(&mut found, rows.map(|(key, tally)| (*key, tally.clone())));
        }
        found
    }
}

fn quota(rows: usize, least: usize) -> usize {
    rows.div_ceil(COMMITS_A_RANGE).max(least)
}
