//! The calendars that a schedule uses, through their edits.
//!
//! At any instant one era of each calendar is in force; a time belongs to the schedule when it belongs to the one built
//! with those alone. So a search asks era by era, each with its own [`Filter`].

use std::sync::Arc;

use crate::model::{CalendarName, Limits};

use super::civil::DAY_S;
use super::error::Error;
use super::filter::Filter;
use super::spec::{CalendarUse, Roll};
use super::{CalendarEra, Calendars, DateSet};

/// More days than the local date of an instant, or of a time moved out of a gap, differs from its date in UTC by.
const MARGIN_DAYS: i32 = 3;

#[derive(Debug, Clone)]
pub(super) struct Eras {
    used: Box<[Used]>,
    roll: Roll,
}

#[derive(Debug, Clone)]
struct Used {
    name: CalendarName,
    minus: bool,
    eras: Box<[CalendarEra]>,
}

impl Used {
    /// The era in force at an instant, by its place.
    fn at(&self, t: i64) -> usize {
        let begun = self.eras.partition_point(|era| era.from < t);
        begun.saturating_sub(1)
    }

    fn days(&self, t: i64) -> &DateSet {
        &self.eras[self.at(t)].days
    }
}

/// The stretch of instants around one in which no calendar changes: the first and the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Eras {
    pub(super) fn compile(used: &CalendarUse, calendars: &dyn Calendars) -> Result<Self, Error> {
        if used.only.is_empty() && used.minus.is_empty() {
            let remedy = "names no calendar: give `only` or `minus`, or remove it";
            return Err(Error::Calendar(remedy).under("calendar"));
        }
        let mut found = Vec::with_capacity(used.only.len() + used.minus.len());
        for (key, names, minus) in [("only", &used.only, false), ("minus", &used.minus, true)] {
            if names.len() > Limits::CALENDARS_USED {
                let (found, most) = (names.len(), Limits::CALENDARS_USED);
                return Err(
                    Error::TooManyCalendars { found, most }.under(format!("calendar.{key}"))
                );
            }
            for (index, name) in names.iter().enumerate() {
                let eras = calendars.eras(name).filter(|eras| !eras.is_empty());
                let eras = eras.ok_or_else(|| {
                    let name = name.to_string();
                    Error::NoCalendar { name }.under(format!("calendar.{key}[{index}]"))
                })?;
                found.push(Used {
                    name: name.clone(),
                    minus,
                    eras: distinct(eras),
                });
            }
        }
        Ok(Self {
            used: found.into(),
            roll: used.roll,
        })
    }

    pub(super) fn span(&self, t: i64) -> Span {
        let mut span = Span {
            first: i64::MIN,
            last: i64::MAX,
        };
        for used in &self.used {
            let index = used.at(t);
            if index > 0 {
                span.first = span.first.max(used.eras[index].from.saturating_add(1));
            }
            if let Some(following) = used.eras.get(index + 1) {
                span.last = span.last.min(following.from);
            }
        }
        span
    }

    /// What counts in the era of `span`, asked about instants from `first` to `last`.
    pub(super) fn filter(&self, span: Span, first: i64, last: i64) -> Filter<'_> {
        let sets = |minus| {
            let used = self.used.iter().filter(move |used| used.minus == minus);
            used.map(|used| used.days(span.last)).collect()
        };
        let only: Vec<&DateSet> = sets(false);
        let (mut first, mut last) = days_around(first, last);
        for (from, until) in only.iter().filter_map(|set| set.ends()) {
            (first, last) = (first.max(from), last.min(until));
        }
        Filter {
            only,
            minus: sets(true),
            roll: self.roll,
            first,
            last,
        }
    }

    /// The first calendar that keeps a day from counting at an instant.
    pub(super) fn excluding(&self, t: i64, day: i32) -> Option<&CalendarName> {
        let excludes = |used: &&Used| used.days(t).holds(day) == used.minus;
        self.used.iter().find(excludes).map(|used| &used.name)
    }
}

/// The first and the last date that instants from `first` to `last` may fall on somewhere.
pub(super) fn days_around(first: i64, last: i64) -> (i32, i32) {
    let day = |t: i64| t.clamp(FIRST_MS, LAST_MS).div_euclid(DAY_S * 1000) as i32;
    (day(first) - MARGIN_DAYS, day(last) + MARGIN_DAYS)
}

/// Calendars can be asked about any day, but the work must end: instants of these years, and a little more.
const FIRST_MS: i64 = -(DAY_S * 1000);
const LAST_MS: i64 = 7_258_118_400_000 + DAY_S * 1000;

/// In order, and without those that change nothing.
fn distinct(mut eras: Vec<CalendarEra>) -> Box<[CalendarEra]> {
    eras.sort_by_key(|era| era.from);
    eras.dedup_by(|later, earlier| Arc::ptr_eq(&later.days, &earlier.days));
    eras.into()
}
