//! How far workers are trusted: what was heard of a process, and what that means for its name.
//!
//! ```text
//! a process   HEARD ──silent for two heartbeats, or its stream broke──► SUSPECTED ──lease and margin over──► LOST
//!               ▲                                                        │
//!               └─────────────── heartbeat on a stream ──────────────────┘
//!
//! its name    TRUSTED ──a third loss within 10 minutes──► ISOLATED ──period over, or nobody else can do its work──► PROBATION
//!               ▲                                          │    ▲                                                 │  │
//!               ├──────────────── reset ───────────────────┘    └───── lost again: twice as long, up to 30 min ───┘  │
//!               └──────────────────────────────── an attempt came to its end ──────────────────────────────────────┘
//! ```
//!
//! Evidence is of a process, because only a process holds leases. Trust belongs to the name, because a worker that dies and
//! is started again is another process each time. Silence and a broken stream are different evidence and have the same
//! consequence: nothing new is given. Nothing is concluded about attempts before the lease with its margin is over; what a
//! process names when it dials in before that is its own, and what it names after that it is told to stop.
//!
//! A name that was lost lately must have sent as many heartbeats in a row as it had losses before it is given anything. On
//! probation each of its processes is given one run at a time, until one attempt has come to its end, whatever that was.
//! Isolation ends by itself, and at once when no other worker could stand in, so a fleet of bad workers is a slow fleet and
//! not a dead one. Where processes share a name, each of them is good for three losses, also when all are lost together.
//!
//! What does not count as a loss: a process that said goodbye or was draining, one in maintenance, and any that this server
//! concludes about late or has never heard of itself, because then it was the server that was away. All of this is in memory:
//! a restart of the server forgives. Whether anything is given to a worker is asked by `fleet.rs`; who is told is up to
//! `isolate.rs`.

use std::collections::{BTreeMap, VecDeque};

use crate::fault::{Fault, armed};
use crate::model::{Limits, MonoMs, NamespaceName, WorkerName, WorkerRef};

use super::WorkerView;

/// Losses are counted over this long.
pub(super) const WINDOW_MS: u64 = 600_000;
/// So many of them isolate a name, for each process that has it.
pub(super) const LOSSES: usize = 3;
/// The first isolation; each further one is twice as long as the one before.
const FIRST_MS: u64 = 60_000;
const LONGEST_MS: u64 = 1_800_000;
/// After this long without a loss the next isolation is a first one again.
const FORGET_MS: u64 = 3_600_000;
/// Between two looks for records that can be forgotten.
const SWEEP_MS: u64 = 60_000;
/// A server that concludes so late that a lease has ended was away itself.
pub(super) const LATE_MS: u64 = 250;

/// What a process may be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trust {
    #[default]
    Nothing,
    OneRun,
    Full,
}

/// Workers that stand and fall together: those of one name whose tokens are bound alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kin {
    pub(super) name: WorkerName,
    pub(super) namespace: Option<NamespaceName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Trusted,
    Isolated { until: MonoMs },
    Probation,
}

#[derive(Debug)]
pub(super) struct Record {
    losses: VecDeque<MonoMs>,
    /// The most processes that had the name at once since the oldest of those losses.
    processes: usize,
    pub(super) standing: Standing,
    isolations: u32,
    last: MonoMs,
    /// The process that was lost last, as it was.
    pub(super) seen: WorkerView,
}

impl Record {
    /// Losses within the window.
    pub(super) fn losses(&self, now: MonoMs) -> usize {
        let young = |at: &&MonoMs| now.0.saturating_sub(at.0) < WINDOW_MS;
        self.losses.iter().filter(young).count()
    }
}

#[derive(Debug, Default)]
pub(super) struct Health {
    records: BTreeMap<Kin, Record>,
    swept: MonoMs,
}

impl Health {
    pub(super) fn get(&self, kin: &Kin) -> Option<&Record> {
        self.records.get(kin)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Kin, &Record)> {
        self.records.iter()
    }

    /// A process of the name is lost; `processes` had it, this one included. Returns for how long the name is isolated, if
    /// it is from now on.
    pub(super) fn lost(
        &mut self,
        now: MonoMs,
        kin: Kin,
        processes: usize,
        seen: WorkerView,
    ) -> Option<u64> {
        self.sweep(now);
        if self.records.len() >= Limits::LOST_WORKERS && !self.records.contains_key(&kin) {
            return None;
        }
        let record = self.records.entry(kin).or_insert_with(|| Record {
            losses: VecDeque::new(),
            processes: 0,
            standing: Standing::Trusted,
            isolations: 0,
            last: now,
            seen: seen.clone(),
        });
        if now.0.saturating_sub(record.last.0) >= FORGET_MS {
            record.isolations = 0;
        }
        (record.seen, record.last) = (seen, now);
        let before = match record.losses(now) {
            0 => 1,
            _ => record.processes,
        };
        record.processes = processes.max(before);
        let bound = LOSSES.saturating_mul(record.processes);
        record.losses.push_back(now);
        while record.losses.len() > bound {
            record.losses.pop_front();
        }
        let isolated = match record.standing {
            Standing::Trusted => record.losses(now) >= bound,
            Standing::Probation => true,
            Standing::Isolated { .. } => false,
        };
        if !isolated {
            return None;
        }
        let period = (FIRST_MS << record.isolations.min(16)).min(LONGEST_MS);
        record.isolations += 1;
        record.standing = Standing::Isolated {
            until: now.plus(period),
        };
        Some(period)
    }

    /// What a process of the name may be given that has sent so many heartbeats in a row. `alone` says whether nobody else
    /// could do its work; it is asked only about a name that is isolated.
    pub(super) fn trust(
        &mut self,
        now: MonoMs,
        kin: &Kin,
        beats: u32,
        alone: impl FnOnce() -> bool,
    ) -> Trust {
        if beats == 0 {
            return Trust::Nothing;
        }
        let Some(record) = self.records.get_mut(kin) else {
            return Trust::Full;
        };
        match record.standing {
            Standing::Isolated { .. } if armed(Fault::IsolationNeverEnds) => Trust::Nothing,
            Standing::Isolated { .. } if armed(Fault::IsolationIgnored) => Trust::Full,
            Standing::Isolated { until } if now < until && !alone() => Trust::Nothing,
            Standing::Isolated { .. } | Standing::Probation => {
                record.standing = Standing::Probation;
                Trust::OneRun
            }
            Standing::Trusted if (beats as usize) < record.losses(now).min(LOSSES) => {
                Trust::Nothing
            }
            Standing::Trusted => Trust::Full,
        }
    }

    /// An attempt on a process of the name came to its end: probation is over.
    pub(super) fn survived(&mut self, kin: &Kin) {
        if let Some(record) = self.records.get_mut(kin)
            && record.standing == Standing::Probation
        {
            record.standing = Standing::Trusted;
            record.losses.clear();
        }
    }

    /// Forgets what is held against these workers. Returns who they are.
    pub(super) fn reset(&mut self, workers: &WorkerRef) -> Vec<Kin> {
        let named = self.records.keys();
        let named = named.filter(|kin| workers.names(&kin.name, kin.namespace.as_ref()));
        let named: Vec<Kin> = named.cloned().collect();
        for kin in &named {
            self.records.remove(kin);
        }
        named
    }

    fn sweep(&mut self, now: MonoMs) {
        let full = self.records.len() >= Limits::LOST_WORKERS;
        if !full && now.0.saturating_sub(self.swept.0) < SWEEP_MS {
            return;
        }
        self.swept = now;
        self.records.retain(|_, record| {
            let isolated = matches!(record.standing, Standing::Isolated { until } if until > now);
            isolated || now.0.saturating_sub(record.last.0) < FORGET_MS
        });
    }
}

#[cfg(test)]
mod tests;
