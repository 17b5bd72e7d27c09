//! Several events in one message: counts, and a few of them as examples.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{JobName, NotifyOn, WallMs};
use serde::{Deserialize, Serialize};

use super::event::Event;

/// Events that a message tells of in full.
pub const EXAMPLES: usize = 10;
/// Jobs that are told apart; beyond them a message says "at least".
pub const JOBS: usize = 1000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    pub counts: BTreeMap<NotifyOn, u64>,
    pub jobs: BTreeSet<JobName>,
    pub first: WallMs,
    pub last: WallMs,
    pub examples: Vec<Event>,
}

impl Digest {
    pub fn of(event: Event) -> Self {
        let mut digest = Self {
            counts: BTreeMap::new(),
            jobs: BTreeSet::new(),
            first: event.at,
            last: event.at,
            examples: Vec::new(),
        };
        digest.add(event);
        digest
    }

    pub fn add(&mut self, event: Event) {
        *self.counts.entry(event.kind).or_default() += 1;
        self.first = self.first.min(event.at);
        self.last = self.last.max(event.at);
        if self.jobs.len() < JOBS {
            self.jobs.insert(event.job.clone());
        }
        // One example a job says more than ten of one job, but one job is told in full too.
        let known = self
            .examples
            .iter()
            .filter(|it| it.job == event.job)
            .count();
        if self.examples.len() < EXAMPLES && known < 3 {
            self.examples.push(event);
        }
    }

    pub fn join(&mut self, other: Self) {
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        let room = JOBS.saturating_sub(self.jobs.len());
        self.jobs.extend(other.jobs.into_iter().take(room));
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn count(&self, kind: NotifyOn) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// The one event, when there is only one.
    pub fn single(&self) -> Option<&Event> {
        match (self.total(), &self.examples[..]) {
            (1, [event]) => Some(event),
            _ => None,
        }
    }
}
