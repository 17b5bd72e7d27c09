//! Calendars, read for the second time: which days count, and where a time on another day goes.

use std::collections::BTreeSet;

use drumtower_core::model::{CalendarSpec, Weekday};
use drumtower_core::schedule::Roll;
use jiff::civil::Date;

/// How far away a day may be that a time is rolled to.
const ROLL_DAYS: i32 = 400;

/// The days of one version of a calendar.
#[derive(Clone, Debug)]
pub(super) struct Days {
    weekly: Vec<i8>,
    include: Listed,
    exclude: Listed,
}

#[derive(Clone, Debug, Default)]
struct Listed {
    single: BTreeSet<Date>,
    ranges: Vec<(Date, Date)>,
    /// Month and day of every year.
    yearly: BTreeSet<(i8, i8)>,
}

/// The calendars of a job in force at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub only: Vec<Days>,
    pub minus: Vec<Days>,
    pub roll: Roll,
}

impl Days {
    pub fn read(spec: &CalendarSpec) -> Result<Self, String> {
        Ok(Self {
            weekly: spec.weekly.iter().map(|day| from_monday(*day)).collect(),
            include: Listed::read(&spec.include)?,
            exclude: Listed::read(&spec.exclude)?,
        })
    }

    fn contains(&self, date: Date) -> bool {
        let weekly = self.weekly.contains(&date.weekday().to_monday_one_offset());
        self.include.contains(date) || weekly && !self.exclude.contains(date)
    }
}

fn from_monday(day: Weekday) -> i8 {
    match day {
        Weekday::Mon => 1,
        Weekday::Tue => 2,
        Weekday::Wed => 3,
        Weekday::Thu => 4,
        Weekday::Fri => 5,
        Weekday::Sat => 6,
        Weekday::Sun => 7,
    }
}

impl Listed {
    fn read(texts: &[String]) -> Result<Self, String> {
        let mut listed = Self::default();
        for text in texts {
            let text = text.trim();
            if let Some((first, last)) = text.split_once("..") {
                listed.ranges.push((date(first)?, date(last)?));
            } else if text.len() == 5 {
                listed.yearly.insert(month_day(text)?);
            } else {
                listed.single.insert(date(text)?);
            }
        }
        Ok(listed)
    }

    fn contains(&self, date: Date) -> bool {
        self.single.contains(&date)
            || self.yearly.contains(&(date.month(), date.day()))
            || self
                .ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&date))
    }
}

fn date(text: &str) -> Result<Date, String> {
    text.trim()
        .parse()
        .map_err(|error| format!("`{text}`: {error}"))
}

fn month_day(text: &str) -> Result<(i8, i8), String> {
    // The 29th of February must be a day of the year that stands for all.
    let date = date(&format!("2000-{text}"))?;
    Ok((date.month(), date.day()))
}

impl Choice {
    pub fn counts(&self, date: Date) -> bool {
        self.only.iter().all(|days| days.contains(date))
            && !self.minus.iter().any(|days| days.contains(date))
    }

    /// Whether there are no calendars to ask.
    pub fn is_open(&self) -> bool {
        self.only.is_empty() && self.minus.is_empty()
    }

    /// How many days on either side of a date its times may come from.
    pub fn reach(&self) -> i32 {
        if self.roll == Roll::None {
            0
        } else {
            ROLL_DAYS
        }
    }

    /// The day on which the times of `date` happen, if they do.
    pub fn target(&self, date: Date) -> Option<Date> {
        if self.counts(date) {
            return Some(date);
        }
        let (later, earlier) = match self.roll {
            Roll::None => return None,
            Roll::Next => (true, false),
            Roll::Previous => (false, true),
            Roll::Nearest => (true, true),
        };
        let (mut after, mut before) = (date, date);
        for _ in 0..ROLL_DAYS {
            after = after.tomorrow().ok()?;
            before = before.yesterday().ok()?;
            if later && self.counts(after) {
                return Some(after);
            }
            if earlier && self.counts(before) {
                return Some(before);
            }
        }
        None
    }
}
