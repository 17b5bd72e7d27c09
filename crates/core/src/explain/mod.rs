//! What became of each due time of a job: the answer to "why did it not run?". Why a run is where it is, [`run`] tells.
//!
//! Put together from what is recorded (runs, ranges of unfired times) and what can be computed (the schedule of the version
//! in force at each time, with the calendars in force then; what calendars, clock changes and bounds took away). Reading
//! the records is left to the caller, as is showing the rows.
//!
//! Invariants:
//! - every time of the schedule in the interval lies in exactly one row, and so does every run of the schedule;
//! - rows are in order of their first time; neighbours with the same fate are one row, except runs, which each have their
//!   own; what is taken away is told beside the times that other entries make meanwhile, and not within recorded ranges;
//! - work is bounded: a range is stepped over, not walked, and an answer that would grow too long says where it goes on.

mod reigns;
pub mod run;
#[cfg(test)]
mod tests;
mod walk;
mod words;

use std::collections::BTreeMap;

use crate::model::{
    JobRecord, JobVersion, Pause, Run, RunId, RunState, SegmentId, Unfired, UnfiredReason, WallMs,
    raw_floor,
};
use crate::schedule::{Calendars, Excluded};

use reigns::Reign;

/// The most rows of one answer.
pub const ROWS: usize = 10_000;
/// Times that one answer looks at one by one.
const WALKED: u64 = 100_000;
/// Counts of times in a row stop here, as those of recorded ranges do.
const COUNT_CAP: u64 = 10_000;

/// What is known of a job beside its runs.
pub struct History<'a> {
    pub record: &'a JobRecord,
    /// The versions that were in force in the interval, oldest first.
    pub versions: &'a [JobVersion],
    /// With every era that is known.
    pub calendars: &'a dyn Calendars,
    /// The ranges that touch the interval, oldest first.
    pub unfired: &'a [Unfired],
    /// Runs created before this may be gone.
    pub kept_since: WallMs,
    pub now: WallMs,
}

/// What there is to tell of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFact {
    pub id: RunId,
    pub state: RunState,
    pub version: u32,
    pub due: WallMs,
    pub created: WallMs,
    /// When its first attempt began, by the worker's clock.
    pub started: Option<WallMs>,
    /// It waits for its turn in the queue of its job.
    pub queued: bool,
}

impl From<&Run> for RunFact {
    fn from(run: &Run) -> Self {
        Self {
            id: run.id,
            state: run.state,
            queued: run.standing.queued,
            version: run.job_version,
            due: run.due,
            created: run.created,
            started: run.attempts.first().and_then(|attempt| attempt.started),
        }
    }
}

/// An id that no run created before `at` reaches, and every later one does.
pub fn run_ids_from(at: WallMs) -> RunId {
    RunId(raw_floor(at, SegmentId(0)))
}

/// The runs that the schedule made, by nominal time.
pub type Runs = BTreeMap<WallMs, RunFact>;

/// Times that follow each other with one fate.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub first: WallMs,
    pub last: WallMs,
    /// How many times; from 10,000 on it is a lower bound.
    pub count: u64,
    /// When the time is due, if it is one and jitter puts it off.
    pub due: Option<WallMs>,
    /// The version of the job it belongs to.
    pub version: u32,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Run(RunFact),
    /// Recorded as a time that made no run.
    Unfired(Unmade),
    /// The schedule names it, and something takes it away or moves it.
    Excluded(Box<Excluded>),
    /// The schedule had made all the runs it may.
    UsedUp {
        most: u64,
    },
    /// Its time has come, and nothing is decided yet.
    Pending,
    /// It passed while the job is paused: decided when it is resumed.
    Paused(Pause),
    Planned,
    /// It will pass without a run if the job is still paused then.
    PlannedPaused(Pause),
    /// Older than what is kept.
    Forgotten,
    /// Nothing is recorded of it, although it should be.
    Unrecorded,
}

/// Why a recorded time made no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmade {
    Overlap,
    QueueFull,
    Breaker,
    Paused,
    Edited,
    /// Missed; the next time, decided together with these, made a run.
    MissedButNewest {
        of: u64,
    },
    Missed,
    /// Missed, and the job makes no runs of missed times.
    MissedAndSkipped,
}

impl Unmade {
    pub fn reason(self) -> UnfiredReason {
        match self {
            Self::Overlap => UnfiredReason::Overlap,
            Self::QueueFull => UnfiredReason::QueueFull,
            Self::Breaker => UnfiredReason::Breaker,
            Self::Paused => UnfiredReason::Paused,
            Self::Edited => UnfiredReason::Edited,
            Self::MissedButNewest { .. } | Self::Missed | Self::MissedAndSkipped => {
                UnfiredReason::Misfire
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub rows: Vec<Row>,
    /// Where the next answer goes on; `None` when this one is complete.
    pub next: Option<WallMs>,
}

/// A job's schedules through time, ready to be asked.
pub struct Timeline<'a> {
    history: History<'a>,
    /// In order of time.
    reigns: Vec<Reign<'a>>,
}

impl<'a> Timeline<'a> {
    pub fn new(history: History<'a>) -> Self {
        let reigns = Reign::compile(history.record, history.versions, history.calendars);
        Self { history, reigns }
    }

    /// The first time of the schedule at or after `at`.
    pub fn next_from(&self, at: WallMs) -> Option<WallMs> {
        self.next_after(at.plus(-1))
    }

    /// How far an answer of so many rows can go from `from` on, at most to `to`: beyond, there may be more runs than rows.
    pub fn reach(&self, from: WallMs, to: WallMs, rows: usize) -> WallMs {
        let decided = self.history.record.schedule.fired_through;
        let end = to.min(decided.plus(1));
        let mut cursor = from.max(self.history.kept_since).plus(-1);
        let mut ranges = self.history.unfired.iter().peekable();
        for _ in 0..rows {
            let Some(at) = self.next_after(cursor).filter(|at| *at < end) else {
                return to;
            };
            while ranges.next_if(|range| range.last < at).is_some() {}
            cursor = match ranges.peek() {
                Some(range) if range.first <= at => range.last,
                _ => at,
            };
        }
        cursor.plus(1).min(to)
    }

    /// The longest that a run may be created after its nominal time.
    pub fn latest_ms(&self) -> i64 {
        let reigns = self.reigns.iter();
        reigns.map(Reign::latest_ms).max().unwrap_or_default()
    }

    /// The fate of every time in `[from, to)`. `runs` holds all that the schedule made for times in it.
    pub fn explain(&self, from: WallMs, to: WallMs, runs: &Runs, rows: usize) -> Answer {
        walk::Walk::new(self, from, to, runs, rows).answer()
    }

    /// The first time of any version after `t`.
    fn next_after(&self, t: WallMs) -> Option<WallMs> {
        let later = self.reigns.iter().filter(|reign| reign.through > t);
        later.into_iter().find_map(|reign| reign.next_after(t))
    }

    /// The last time of any version at or before `t`.
    fn last_until(&self, t: WallMs) -> Option<WallMs> {
        let earlier = self.reigns.iter().rev().filter(|reign| reign.after < t);
        earlier.into_iter().find_map(|reign| reign.last_until(t))
    }

    /// How many times lie in `(after, through]`, up to a cap.
    fn count(&self, after: WallMs, through: WallMs, cap: u64) -> u64 {
        let mut count = 0;
        for reign in &self.reigns {
            count += reign.count(after, through, cap - count);
        }
        count
    }

    /// What is taken away from the schedules in `(after, through]`, in order; the first of it.
    fn excluded(&self, after: WallMs, through: WallMs) -> Vec<Excluded> {
        let mut all = Vec::new();
        for reign in &self.reigns {
            all.extend(reign.excluded(after, through, ROWS - all.len()));
        }
        all
    }

    fn reign_at(&self, t: WallMs) -> Option<&Reign<'a>> {
        let holds = |reign: &&Reign<'_>| reign.after < t && t <= reign.through;
        self.reigns.iter().find(holds)
    }
}
