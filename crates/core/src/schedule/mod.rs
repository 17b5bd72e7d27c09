//! When a job is due: the set of nominal times that a manifest's `schedule:` list describes.
//!
//! Owns the language of schedules (cron, intervals, instants, durations), their errors, and the
//! arithmetic of time zones. Leaves to others which of the times make runs (misfire, overlap,
//! pause) and how far a job has fired.
//!
//! A schedule is a pure function of its text and of the bundled time-zone database: it reads no
//! clock. Times are milliseconds since the Unix epoch.
//!
//! Invariants:
//! - [`next_after`](Schedule::next_after) is strictly greater than its argument, and skips nothing;
//! - entries are united as sets: times that coincide are one;
//! - every question ends after bounded work, also for a cron line that never matches.
//!
//! Each kind of entry has its own file and answers the same two questions, `next_from` (the first
//! time at or after) and `prev_from` (the last time at or before).

mod calendars;
mod cron;
mod dates;
mod duration;
mod error;
mod interval;
mod spec;
#[cfg(test)]
mod tests;
mod zone;

pub use calendars::{AnyDay, CalendarEra, Calendars};
pub use dates::DateSet;
pub use duration::{format_duration, parse_duration};
pub use error::{CronFault, Error};
pub use spec::{Bounds, CalendarUse, DayRule, DstFold, DstGap, Roll, ScheduleEntry, ScheduleSpec};

use cron::Cron;
use interval::Interval;

/// A compiled schedule: the union of its entries.
#[derive(Debug, Clone)]
pub struct Schedule {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    Cron(Cron),
    Every(Interval),
    At(i64),
}

impl Entry {
    fn next_from(&self, from: i64) -> Option<i64> {
        match self {
            Entry::Cron(cron) => cron.next_from(from),
            Entry::Every(interval) => interval.next_from(from),
            Entry::At(at) => (*at >= from).then_some(*at),
        }
    }

    fn prev_from(&self, from: i64) -> Option<i64> {
        match self {
            Entry::Cron(cron) => cron.prev_from(from),
            Entry::Every(interval) => interval.prev_from(from),
            Entry::At(at) => (*at <= from).then_some(*at),
        }
    }
}

impl Schedule {
    /// Compiles everything that a manifest says about when a job is due; `None` when it says nothing.
    pub fn compile(
        spec: &ScheduleSpec<'_>,
        _calendars: &dyn Calendars,
    ) -> Result<Option<Self>, Error> {
        if spec.entries.is_empty() {
            return Ok(None);
        }
        Self::parse(spec.entries).map(Some)
    }

    /// When the occurrence at `nominal` of the job is to start: the same moment, or up to the jitter later, but before the
    /// next nominal time.
    pub fn due_of(&self, _job: u64, nominal: i64) -> i64 {
        nominal
    }

    /// The delay of a schedule that counts from the end of the last run; such a one has no nominal times of its own.
    pub fn after_end_ms(&self) -> Option<i64> {
        None
    }

    /// How many runs the schedule may make in all.
    pub fn max_fires(&self) -> Option<u64> {
        None
    }

    /// Compiles the `schedule:` list of a manifest. An empty list never fires.
    pub fn parse(spec: &[ScheduleEntry]) -> Result<Self, Error> {
        let compile = |(index, entry): (usize, &ScheduleEntry)| {
            spec::compile(entry).map_err(|error| error.in_entry(index + 1))
        };
        let entries = spec.iter().enumerate().map(compile);
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// The first nominal time strictly after `after`; `None` when there is none.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        let from = after.checked_add(1)?;
        self.entries.iter().filter_map(|e| e.next_from(from)).min()
    }

    /// The last nominal time at or before `t`; `None` when there is none.
    pub fn prev_at_or_before(&self, t: i64) -> Option<i64> {
        self.entries.iter().filter_map(|e| e.prev_from(t)).max()
    }

    /// How many nominal times lie in `(after, through]`, counted up to `cap`. A single interval
    /// is computed; anything else is walked, so `cap` bounds the work.
    pub fn count_between(&self, after: i64, through: i64, cap: u64) -> u64 {
        if let [Entry::Every(interval)] = self.entries.as_slice() {
            return interval.count_between(after, through).min(cap);
        }
        let mut count = 0;
        let mut cursor = after;
        while count < cap {
            match self.next_after(cursor) {
                Some(at) if at <= through => cursor = at,
                _ => break,
            }
            count += 1;
        }
        count
    }

    /// The distance from the nominal time `t` to the following one; `None` after the last.
    pub fn period_at(&self, t: i64) -> Option<i64> {
        self.next_after(t).map(|next| next.saturating_sub(t))
    }
}
