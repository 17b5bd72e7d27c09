//! What is held against the world, by eyes that see what no node sees: true time, every worker's tasks, every commit.
//!
//! | when | what |
//! |---|---|
//! | a commit becomes durable (`commits`) | V2 cursors, V4 start limits, V6 fences and marks, V7, V8, V11 overlap and limits (`limits`), V12 drains by key (`overlap`), V13, V14, circuit breakers (`breakers`); nobody is authorised for what has ended |
//! | the same (`owners`) | V14 whoever writes of a segment owns it, and nobody is revoked whose session has not ended |
//! | the same (`followers`) | V15 whoever follows a job is told of each end once, and none is forgotten |
//! | the same (`jitter`) | V12 a retry waits for its backoff and some jitter |
//! | a batch is decided on (`isolation`) | who is kept away from work gets none, or one run at a time |
//! | the same (`backfills`) | V2 each time of a backfill once, V8 its row tells of its runs, V11 not too many at once |
//! | the same (`letters`, `locks`, `checkpoints`) | who failed for good is a letter once; a lock has one holder; a checkpoint never goes back |
//! | an effect is performed or an answer arrives (`answers`) | V9: what is told is durable |
//! | a task is started (`leases`) | V3, V5, V6, V11 credit; it goes on from what was told to be kept |
//! | a worker says something (`credit`) | V11 it grants no more than it has, over all servers |
//! | a task ends (`leases`) | V16: it did not run longer than it may |
//! | again and again once all is calm (`in_time`) | V4: nothing waits for nothing |
//! | the world has come to rest (`rest`) | V1, V2, V10, V12, V18 and the rest of the audit, with schedules expanded a second time |
//!
//! V16 is the world's own: it must come to rest. Nothing here asks the engine anything, except whom it
//! keeps away from work on purpose.

mod answers;
mod backfills;
mod breakers;
mod checkpoints;
mod commits;
mod credit;
mod followers;
mod in_time;
mod isolation;
mod jitter;
mod leases;
mod letters;
mod limits;
mod locks;
mod overlap;
mod owners;
mod rest;

use std::collections::{BTreeMap, BTreeSet};

use drumtower_audit::Record;
use drumtower_core::model::{
    BackfillId, Counters, Fence, JobId, NamespaceName, RunId, SegmentId, WallMs, WorkerName,
};

use crate::clock::At;

pub(crate) use credit::Ledger;
pub(crate) use isolation::KeptAway;

use backfills::Made;
use commits::Row;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The promise, such as `V5`, or what broke.
    pub promise: &'static str,
    pub words: String,
}

#[derive(Default)]
pub struct Checks {
    pub findings: Vec<Finding>,
    /// When everything must have come to its end, unless tasks go on to end.
    pub(crate) drained_by: At,
    /// The same, whatever goes on.
    pub(crate) drained_at_last: At,
    owners: owners::Owners,
    runs: BTreeMap<RunId, Row>,
    fences: BTreeMap<SegmentId, Fence>,
    marks: BTreeMap<SegmentId, u64>,
    cursors: BTreeMap<JobId, WallMs>,
    overlaps: overlap::Overlaps,
    breakers: breakers::Breakers,
    followers: followers::Followers,
    jitter: jitter::Jitter,
    /// Starts under rates.
    starts: BTreeMap<String, limits::Starts>,
    /// Workers that are drained, by name.
    drained: BTreeSet<WorkerName>,
    /// Workers that have had nothing to do lately.
    idle: in_time::Idle,
    backfills: BTreeMap<BackfillId, Made>,
    tallies: BTreeMap<NamespaceName, Counters>,
    /// The highest fence that a task was started with, for each run.
    started: BTreeMap<RunId, (u32, u64)>,
    /// What tasks wrote.
    tasks: Vec<Record>,
    pub(crate) letters: letters::Letters,
    pub(crate) locks: locks::Locks,
    pub(crate) saved: checkpoints::Saved,
    /// The furthest that the wall clock of each server has been.
    furthest: BTreeMap<usize, WallMs>,
    /// How far clocks of servers were set, in all.
    stepped_ms: i64,
    /// How far wall clocks have been ahead of the world's time, the least and the most of all readings.
    ahead_ms: Option<(i64, i64)>,
    pub(crate) jobs_made: u64,
    pub(crate) runs_made: u64,
    pub(crate) tasks_run: u64,
}

impl Checks {
    pub(crate) fn find(&mut self, promise: &'static str, words: String) {
        self.findings.push(Finding { promise, words });
    }

    /// How far two readings of wall clocks may be apart, of the same instant or of one clock that was set meanwhile.
    fn spread_ms(&self) -> i64 {
        self.ahead_ms.map_or(0, |(least, most)| most - least)
    }

    pub(crate) fn clock_stepped(&mut self, ms: i64) {
        self.stepped_ms += ms.abs();
    }
}
