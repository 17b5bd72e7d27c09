//! The verdict: counts, and every disagreement with its evidence.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many violations of one promise are kept in full. All are counted.
const KEPT_PER_PROMISE: u64 = 50;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Runs of the store that were looked at.
    pub checked: u64,
    /// Answered or due and without a fate, or completed without ever having started.
    pub lost: u64,
    /// One attempt started twice, attempts that overlap, two runs for one occurrence or key.
    pub duplicated: u64,
    /// First attempts that started before their run was due.
    pub early: u64,
    /// Empty means that every promise looked at was kept. The first fifty of each promise.
    pub violations: Vec<Violation>,
    pub counts: Counts,
    /// The longest time between when a run was due and when it first started.
    pub latest_start_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The number of the promise, such as `V9`.
    pub promise: &'static str,
    /// The run, job, key or namespace it concerns.
    pub subject: String,
    pub evidence: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Of the journals.
    pub journal_files: u64,
    pub sent: u64,
    pub answered: u64,
    pub refused: u64,
    /// Requests without an answer, whether said so or cut off.
    pub unknown: u64,
    pub started: u64,
    pub ended: u64,
    /// Kills by what was killed and where, as `server at before-commit`.
    pub kills: BTreeMap<String, u64>,
    /// Of the store.
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub live: u64,
    pub pruned: u64,
    /// Of the schedules.
    pub jobs: u64,
    pub due_times: u64,
    pub fired_times: u64,
    /// At least: of 10,000 and more in one range nobody counts them all.
    pub unfired_times: u64,
    /// Spans that hold too many times to list: only their beginning and their ends were looked at.
    pub sampled_spans: u64,
    /// Violations by promise.
    pub violations: BTreeMap<&'static str, u64>,
}

/// Which of the headline numbers a violation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Lost,
    Duplicated,
    Early,
    Other,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.counts.violations.is_empty()
    }

    pub(super) fn add(
        &mut self,
        class: Class,
        promise: &'static str,
        subject: impl ToString,
        evidence: impl FnOnce() -> String,
    ) {
        self.add_many(1, class, promise, subject, evidence);
    }

    /// One piece of evidence that stands for several of a kind.
    pub(super) fn add_many(
        &mut self,
        times: u64,
        class: Class,
        promise: &'static str,
        subject: impl ToString,
        evidence: impl FnOnce() -> String,
    ) {
        match class {
            Class::Lost => self.lost += times,
            Class::Duplicated => self.duplicated += times,
            Class::Early => self.early += times,
            Class::Other => {}
        }
        let seen = self.counts.violations.entry(promise).or_default();
        if *seen < KEPT_PER_PROMISE {
            self.violations.push(Violation {
                promise,
                subject: subject.to_string(),
                evidence: evidence(),
            });
        }
        *seen += times;
    }
}
