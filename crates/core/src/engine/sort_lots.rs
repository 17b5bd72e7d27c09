//! Parked runs that have to go elsewhere.
//!
//! A job has moved to another queue, or to none: those of its runs that are parked under the old one go along.
//! What is parked under a queue is read only when the queue lets something through, and one that is paused or full may not for
//! long. So its rows are read once, whatever holds them back: those of jobs that have moved come into memory and go where they belong,
//! the others are left as they are. After a restart what is parked under a queue is looked through again, since
//! the last engine may not have come to its end.
//!
//! An earlier program parked runs under a gate alone, whatever their line. Such a key is looked through when an engine comes to
//! life, and nothing belongs there: all of it goes into memory, or to the lots of pens.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{GateKey, QueueRef, Run, RunId, pen_key};

use super::lines::Rank;
use super::{Engine, LOAD_ROWS, LoadKey};

#[derive(Debug, Default)]
pub(super) struct Sorts {
    /// What is to be looked through, once this batch is visible.
    wanted: BTreeMap<String, u64>,
    /// What is being looked through.
    reading: bool,
}

impl Engine {
    /// Runs of a job may be parked under a queue that is not its own any more.
    pub(super) fn sort_queue(&mut self, queue: QueueRef) {
        let Some(root) = self.gates.find(&GateKey::Queue(queue)) else {
            return;
        };
        let pens = self.pens.all();
        let parked = pens.filter(|pen| pen.root() == root && pen.lot().has_parked());
        let keys: Vec<String> = parked.map(|pen| pen.key.to_string()).collect();
        // What this batch parks is seen by who reads after it.
        let seq = self.building_seq();
        self.sorts
            .wanted
            .extend(keys.into_iter().map(|key| (key, seq)));
    }

    /// The store holds runs under this key that may belong elsewhere.
    pub(super) fn sort_parked(&mut self, key: &str) {
        self.sorts.wanted.insert(key.to_owned(), 0);
    }

    /// Looks through the next, one at a time.
    pub(super) fn read_sorts(&mut self) {
        if self.sorts.reading {
            return;
        }
        let mut wanted = self.sorts.wanted.iter();
        let visible = wanted.find(|(_, seq)| **seq <= self.acknowledged);
        let Some(key) = visible.map(|(key, _)| key.clone()) else {
            return;
        };
        self.sorts.reading = true;
        self.sorts.wanted.remove(&key);
        self.want(LoadKey::Sorted { key, after: None });
    }

    /// Some of the runs that are parked under a key, in order.
    pub(super) fn take_sorted(&mut self, tag: u64, key: &str, runs: Vec<Run>) {
        let last = runs.last().map(|run| run.id);
        let all = runs.len() < LOAD_ROWS;
        for run in runs {
            match self.belongs(&run, key) {
                true => self.consider(run.job),
                false => self.adopt_run(run, tag),
            }
        }
        self.sorts.reading = !all;
        if !all {
            let (key, after): (String, Option<RunId>) = (key.to_owned(), last);
            self.want(LoadKey::Sorted { key, after });
        }
    }

    /// Whether a run would be parked under this key as its job stands now.
    fn belongs(&mut self, run: &Run, key: &str) -> bool {
        let compiled = self.pinned(run.job, run.job_version);
        let gates = self.gates_of(run, &compiled);
        let line = self.line_of(&Arc::clone(&compiled), Rank::of(run));
        let line = self.lines.line(line).key();
        (0..gates.len()).any(|first| pen_key(&gates[first..], line) == key)
    }
}
