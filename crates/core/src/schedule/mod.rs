//! When a job is due: the set of nominal times that a manifest's `schedule:` list describes.
//!
//! Owns the language of schedules (cron, intervals, instants, durations, calendars, bounds), their errors, and the
//! arithmetic of time zones. Leaves to others which of the times make runs (misfire, overlap, pause) and how far a job
//! has fired.
//!
//! A schedule is a pure function of its text, of the calendars it names and of the bundled time-zone database: it reads
//! no clock. Times are milliseconds since the Unix epoch.
//!
//! Invariants:
//! - [`next_after`](Schedule::next_after) is strictly greater than its argument, and skips nothing;
//! - entries are united as sets: times that coincide are one;
//! - every question ends after bounded work, also for a cron line that never matches and for calendars without a day.
//!
//! Each kind of entry has its own file and answers the same questions: `next_from` (the first time at or after),
//! `prev_from` (the last time at or before) and `count`, under the calendars of one era at a time.

mod at;
mod calendars;
mod civil;
mod compile;
mod cron;
mod dates;
mod duration;
mod eras;
mod error;
mod excluded;
mod filter;
mod interval;
mod jitter;
mod preview;
mod spec;
#[cfg(test)]
mod tests;
mod words;
mod zone;

pub use calendars::{AnyDay, CalendarEra, Calendars};
pub use dates::DateSet;
pub use duration::{format_duration, parse_duration};
pub use error::{CronFault, Error, Problem};
pub use excluded::{Excluded, Exclusion};
pub(crate) use jitter::offset as spread;
pub use preview::{Direction, MOST_TIMES, Preview, PreviewTime, Warning, WarningCode, preview};
pub use spec::{Bounds, CalendarUse, DayRule, DstFold, DstGap, Roll, ScheduleEntry, ScheduleSpec};
pub use words::{Language, describe};

use at::At;
use cron::Cron;
use eras::{Eras, Span};
use filter::Filter;
use interval::Interval;

/// A compiled schedule: the union of its entries, less what calendars and bounds take away.
#[derive(Debug, Clone)]
pub struct Schedule {
    entries: Box<[Entry]>,
    /// `None` when the entries say it all, as most do.
    rest: Option<Box<Rest>>,
}

#[derive(Debug, Clone)]
enum Entry {
    Cron(Box<Cron>),
    Every(Box<Interval>),
    At(i64),
    /// An instant whose local date or time matters.
    Local(Box<At>),
}

#[derive(Debug, Clone)]
struct Rest {
    /// The first instant, and the end of all.
    start: i64,
    end: i64,
    max_fires: Option<u64>,
    jitter: Option<u64>,
    after_end: Option<i64>,
    eras: Option<Eras>,
}

impl Default for Rest {
    fn default() -> Self {
        Self {
            start: i64::MIN,
            end: i64::MAX,
            max_fires: None,
            jitter: None,
            after_end: None,
            eras: None,
        }
    }
}

impl Rest {
    fn is_needed(&self) -> bool {
        let bounded = self.start > i64::MIN || self.end < i64::MAX;
        bounded
            || self.max_fires.is_some()
            || self.jitter.is_some()
            || self.after_end.is_some()
            || self.eras.is_some()
    }

    /// The stretch around `t`, within the bounds, in which the calendars do not change; `None` outside the bounds.
    fn span(&self, t: i64) -> Option<Span> {
        let last = self.end.saturating_sub(1);
        if t < self.start || t > last {
            return None;
        }
        let whole = Span {
            first: i64::MIN,
            last: i64::MAX,
        };
        let span = self.eras.as_ref().map_or(whole, |eras| eras.span(t));
        Some(Span {
            first: span.first.max(self.start),
            last: span.last.min(last),
        })
    }

    fn filter(&self, first: i64, last: i64) -> Option<Filter<'_>> {
        let eras = self.eras.as_ref()?;
        Some(eras.filter(eras.span(first), first, last))
    }
}

impl Entry {
    fn next_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        match self {
            Entry::Cron(cron) => cron.next_from(from, filter),
            Entry::Every(interval) => interval.next_from(from, filter),
            Entry::At(at) => (*at >= from).then_some(*at),
            Entry::Local(at) => at.placed(filter).next_from(from),
        }
    }

    fn prev_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        match self {
            Entry::Cron(cron) => cron.prev_from(from, filter),
            Entry::Every(interval) => interval.prev_from(from, filter),
            Entry::At(at) => (*at <= from).then_some(*at),
            Entry::Local(at) => at.placed(filter).prev_from(from),
        }
    }

    /// How many times lie in `(after, through]`.
    fn count(&self, after: i64, through: i64, filter: Option<&Filter<'_>>) -> u64 {
        match self {
            Entry::Cron(cron) => cron.count(after, through, filter),
            Entry::Every(interval) => interval.count(after, through, filter),
            Entry::At(at) => u64::from(after < *at && *at <= through),
            Entry::Local(at) => {
                let at = at.placed(filter);
                let within = |at: &i64| after < *at && *at <= through;
                [at.first, at.second]
                    .iter()
                    .flatten()
                    .filter(|at| within(at))
                    .count() as u64
            }
        }
    }

    fn names_times_of_day(&self) -> bool {
        match self {
            Entry::Cron(cron) => cron.is_fixed(),
            Entry::Every(_) => false,
            Entry::At(_) | Entry::Local(_) => true,
        }
    }
}

impl Schedule {
    /// Compiles everything that a manifest says about when a job is due; `None` when it says nothing.
    pub fn compile(
        spec: &ScheduleSpec<'_>,
        calendars: &dyn Calendars,
    ) -> Result<Option<Self>, Error> {
        compile::schedule(spec, calendars)
    }

    /// When the occurrence at `nominal` of the job is to start: the same moment, or up to the jitter later, but before the
    /// next nominal time.
    pub fn due_of(&self, job: u64, nominal: i64) -> i64 {
        let Some(jitter) = self.rest.as_ref().and_then(|rest| rest.jitter) else {
            return nominal;
        };
        let room = self.period_at(nominal).map_or(jitter, i64::unsigned_abs);
        let offset = jitter::offset(job, nominal, jitter.min(room));
        nominal.saturating_add_unsigned(offset)
    }

    /// The first instant at or after `at` that lies within the bounds; `None` when they are over.
    pub fn within_bounds(&self, at: i64) -> Option<i64> {
        let Some(rest) = &self.rest else {
            return Some(at);
        };
        Some(at.max(rest.start)).filter(|at| *at < rest.end)
    }

    /// The delay of a schedule that counts from the end of the last run; such a one has no nominal times of its own.
    pub fn after_end_ms(&self) -> Option<i64> {
        self.rest.as_ref()?.after_end
    }

    /// How many runs the schedule may make in all.
    pub fn max_fires(&self) -> Option<u64> {
        self.rest.as_ref()?.max_fires
    }

    /// The first nominal time strictly after `after`; `None` when there is none.
    pub fn next_after(&self, after: i64) -> Option<i64> {
        let mut from = after.checked_add(1)?;
        let Some(rest) = &self.rest else {
            return self.next_from(from, None);
        };
        from = from.max(rest.start);
        loop {
            let span = rest.span(from)?;
            let filter = rest.filter(from, span.last);
            let found = self.next_from(from, filter.as_ref());
            if let Some(found) = found.filter(|at| *at <= span.last) {
                return Some(found);
            }
            from = span.last.checked_add(1)?;
        }
    }

    /// The last nominal time at or before `t`; `None` when there is none.
    pub fn prev_at_or_before(&self, t: i64) -> Option<i64> {
        let Some(rest) = &self.rest else {
            return self.prev_from(t, None);
        };
        let mut from = t.min(rest.end.saturating_sub(1));
        loop {
            let span = rest.span(from)?;
            let filter = rest.filter(span.first, from);
            let found = self.prev_from(from, filter.as_ref());
            if let Some(found) = found.filter(|at| *at >= span.first) {
                return Some(found);
            }
            from = span.first.checked_sub(1)?;
        }
    }

    /// How many nominal times lie in `(after, through]`, counted up to `cap`. A single entry is computed; a union is
    /// walked, so that what coincides is counted once, and `cap` bounds the work.
    pub fn count_between(&self, after: i64, through: i64, cap: u64) -> u64 {
        match self.entries.as_ref() {
            [entry] => self.count_of(entry, after, through).min(cap),
            _ => self.walked(after, through, cap),
        }
    }

    fn count_of(&self, entry: &Entry, after: i64, through: i64) -> u64 {
        let Some(rest) = &self.rest else {
            return entry.count(after, through, None);
        };
        let mut after = after.max(rest.start.saturating_sub(1));
        let mut count: u64 = 0;
        while after < through
            && let Some(span) = rest.span(after + 1)
        {
            let last = span.last.min(through);
            let filter = rest.filter(after + 1, last);
            count = count.saturating_add(entry.count(after, last, filter.as_ref()));
            after = last;
        }
        count
    }

    fn walked(&self, after: i64, through: i64, cap: u64) -> u64 {
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

    fn next_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let times = self
            .entries
            .iter()
            .filter_map(|entry| entry.next_from(from, filter));
        times.min()
    }

    fn prev_from(&self, from: i64, filter: Option<&Filter<'_>>) -> Option<i64> {
        let times = self
            .entries
            .iter()
            .filter_map(|entry| entry.prev_from(from, filter));
        times.max()
    }
}
