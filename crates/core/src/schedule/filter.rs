//! Which days count under the calendars of one era, and where a time on another day goes.
//!
//! A roll moves days, not times: a day that counts takes the times of the named days that roll to it, which are the named
//! days in a window around it ([`Filter::window`]). So a search goes from one day that counts to the next and looks into
//! windows; it never tries where each named day would go.

use super::dates::DateSet;
use super::spec::Roll;

/// How many days a roll looks ahead or back.
const REACH: i32 = 400;

/// A set of days that is searched in either direction: what an entry names.
pub(super) trait Named {
    /// The first of them at or after `from`.
    fn next_day(&self, from: i32) -> Option<i32>;
    /// The last of them at or before `until`.
    fn prev_day(&self, until: i32) -> Option<i32>;
}

pub(super) struct Filter<'a> {
    /// Days must be in all of these,
    pub(super) only: Vec<&'a DateSet>,
    /// and in none of these.
    pub(super) minus: Vec<&'a DateSet>,
    pub(super) roll: Roll,
    /// Days outside are not asked for. They bound the work, also when no day counts.
    pub(super) first: i32,
    pub(super) last: i32,
}

impl Filter<'_> {
    /// All days from `first` to `last`.
    pub(super) fn stretch(first: i32, last: i32) -> Self {
        Self {
            only: Vec::new(),
            minus: Vec::new(),
            roll: Roll::None,
            first,
            last,
        }
    }

    pub(super) fn counts(&self, day: i32) -> bool {
        self.only.iter().all(|set| set.holds(day)) && !self.minus.iter().any(|set| set.holds(day))
    }

    /// Whether a day takes times of named days.
    pub(super) fn takes(&self, named: &impl Named, day: i32) -> bool {
        if day < self.first || day > self.last || !self.counts(day) {
            return false;
        }
        let (first, last) = self.window(day);
        named.next_day(first).is_some_and(|found| found <= last)
    }

    /// The first day from `from` to `last` that takes times of named days.
    pub(super) fn next_day(&self, named: &impl Named, from: i32, last: i32) -> Option<i32> {
        let (from, end) = (from.max(self.first), last.min(self.last));
        if from > end {
            return None;
        }
        if self.roll == Roll::None {
            return self.next_named(named, from, end);
        }
        let mut day = self.next_counting(from, end)?;
        loop {
            let (first, last) = self.window(day);
            let found = named.next_day(first)?;
            if found <= last {
                return Some(day);
            }
            // Nothing is named before `found`, which goes to one of its two neighbours that count.
            let below = self.prev_counting(found.min(end), day + 1);
            day = match below {
                Some(below) => below,
                None => self.next_counting(found.max(day + 1), end)?,
            };
        }
    }

    /// The last day at or before `until` that takes times of named days.
    pub(super) fn prev_day(&self, named: &impl Named, until: i32) -> Option<i32> {
        let until = until.min(self.last);
        if until < self.first {
            return None;
        }
        if self.roll == Roll::None {
            return self.prev_named(named, until);
        }
        let mut day = self.prev_counting(until, self.first)?;
        loop {
            let (first, last) = self.window(day);
            let found = named.prev_day(last)?;
            if found >= first {
                return Some(day);
            }
            let above = self.next_counting(found.max(self.first), day - 1);
            day = match above {
                Some(above) => above,
                None => self.prev_counting(found.min(day - 1), self.first)?,
            };
        }
    }

    fn next_named(&self, named: &impl Named, from: i32, last: i32) -> Option<i32> {
        let mut from = from;
        loop {
            let day = named.next_day(from).filter(|day| *day <= last)?;
            if self.counts(day) {
                return Some(day);
            }
            from = self.next_counting(day + 1, last)?;
        }
    }

    fn prev_named(&self, named: &impl Named, until: i32) -> Option<i32> {
        let mut until = until;
        loop {
            let day = named.prev_day(until).filter(|day| *day >= self.first)?;
            if self.counts(day) {
                return Some(day);
            }
            until = self.prev_counting(day - 1, self.first)?;
        }
    }

    /// The days that roll to `day`, which counts; itself among them.
    fn window(&self, day: i32) -> (i32, i32) {
        let reach = match self.roll {
            Roll::None => return (day, day),
            // Half-way to a neighbour further off than this is beyond the reach.
            Roll::Nearest => 2 * REACH,
            Roll::Next | Roll::Previous => REACH,
        };
        let before = || self.prev_counting(day - 1, day - reach);
        let after = || self.next_counting(day + 1, day + reach);
        let first = match self.roll {
            Roll::Next => before().map(|before| before + 1),
            Roll::Nearest => before().map(|before| middle(before, day)),
            Roll::None | Roll::Previous => Some(day),
        };
        let last = match self.roll {
            Roll::Previous => after().map(|after| after - 1),
            Roll::Nearest => after().map(|after| middle(day, after) - 1),
            Roll::None | Roll::Next => Some(day),
        };
        (
            first.unwrap_or(day - REACH).max(day - REACH),
            last.unwrap_or(day + REACH).min(day + REACH),
        )
    }

    /// Where a time on `day` goes; `None` when it makes no occurrence.
    pub(super) fn target(&self, day: i32) -> Option<i32> {
        if self.counts(day) {
            return Some(day);
        }
        let next = || self.next_counting(day, day + REACH);
        let previous = || self.prev_counting(day, day - REACH);
        match self.roll {
            Roll::None => None,
            Roll::Next => next(),
            Roll::Previous => previous(),
            Roll::Nearest => match (previous(), next()) {
                (Some(previous), Some(next)) if next - day > day - previous => Some(previous),
                (previous, next) => next.or(previous),
            },
        }
    }

    pub(super) fn next_counting(&self, from: i32, last: i32) -> Option<i32> {
        (from..=last).find(|day| self.counts(*day))
    }

    pub(super) fn prev_counting(&self, until: i32, first: i32) -> Option<i32> {
        (first..=until).rev().find(|day| self.counts(*day))
    }
}

/// The first of the days between two that is at least as near to the later one.
fn middle(early: i32, late: i32) -> i32 {
    early + (late - early + 1) / 2
}
