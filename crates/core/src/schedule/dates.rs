//! A calendar's days as a set that can be asked about any date.
//!
//! A day is in the set when `include` names it, or when `weekly` holds its day of the week and `exclude` does not name it.

use jiff::civil::Date;

use crate::model::{CalendarSpec, Limits, SpecError, Weekday};

use super::civil::{day_number, days_in_month, number_of, weekday, year_month_day};
use super::error::shown;

#[derive(Debug, Clone, Default)]
pub struct DateSet {
    /// Bit 0 is Sunday.
    weekly: u8,
    include: Dates,
    exclude: Dates,
}

/// Days listed one by one, as stretches, and by their place in the year.
#[derive(Debug, Clone, Default)]
struct Dates {
    /// First and last days, in order, neither overlapping nor touching.
    stretches: Box<[(i32, i32)]>,
    /// `month * 32 + day`, in order.
    yearly: Box<[u16]>,
}

impl DateSet {
    /// Reads what a manifest says. The first fault is reported with its key.
    pub fn compile(spec: &CalendarSpec) -> Result<Self, SpecError> {
        let found = spec.include.len() + spec.exclude.len();
        if found > Limits::CALENDAR_DATES {
            let key = if spec.include.len() > spec.exclude.len() {
                "include"
            } else {
                "exclude"
            };
            let most = Limits::CALENDAR_DATES;
            return Err(SpecError::new(
                key,
                format!(
                    "{found} dates are too many: write up to {most}; a range `2026-10-01..2026-10-07` counts as one"
                ),
            ));
        }
        Ok(Self {
            weekly: spec
                .weekly
                .iter()
                .fold(0, |set, day| set | 1 << sunday_first(*day)),
            include: Dates::read("include", &spec.include)?,
            exclude: Dates::read("exclude", &spec.exclude)?,
        })
    }

    pub fn every_day() -> Self {
        Self {
            weekly: 0x7f,
            ..Self::default()
        }
    }

    /// The days of a calendar that is deleted or cannot be read.
    pub fn no_day() -> Self {
        Self::default()
    }

    pub fn contains(&self, date: Date) -> bool {
        self.holds(number_of(date))
    }

    pub(super) fn holds(&self, day: i32) -> bool {
        let by_week = self.weekly >> weekday(day) & 1 == 1 && !self.exclude.holds(day);
        by_week || self.include.holds(day)
    }

    /// The first and the last day, when the set has them; days of the week and of every year have not.
    pub(super) fn ends(&self) -> Option<(i32, i32)> {
        if self.weekly != 0 || !self.include.yearly.is_empty() {
            return None;
        }
        let stretches = &self.include.stretches;
        let ends = stretches.first().zip(stretches.last());
        Some(ends.map_or((i32::MAX, i32::MIN), |(first, last)| (first.0, last.1)))
    }
}

fn sunday_first(day: Weekday) -> u32 {
    match day {
        Weekday::Sun => 0,
        Weekday::Mon => 1,
        Weekday::Tue => 2,
        Weekday::Wed => 3,
        Weekday::Thu => 4,
        Weekday::Fri => 5,
        Weekday::Sat => 6,
    }
}

impl Dates {
    fn read(key: &str, texts: &[String]) -> Result<Self, SpecError> {
        let mut stretches = Vec::new();
        let mut yearly = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let fault = |problem| {
                SpecError::new(
                    format!("{key}[{index}]"),
                    format!("`{}` {problem}", shown(text)),
                )
            };
            match read(text.trim()).map_err(fault)? {
                Entry::Stretch(first, last) => stretches.push((first, last)),
                Entry::Yearly(month, day) => yearly.push((month * 32 + day) as u16),
            }
        }
        yearly.sort_unstable();
        yearly.dedup();
        Ok(Self {
            stretches: merged(stretches),
            yearly: yearly.into(),
        })
    }

    fn holds(&self, day: i32) -> bool {
        let after = self.stretches.partition_point(|(first, _)| *first <= day);
        let listed = after > 0 && day <= self.stretches[after - 1].1;
        listed
            || (!self.yearly.is_empty() && {
                let (_, month, day) = year_month_day(day);
                self.yearly
                    .binary_search(&((month * 32 + day) as u16))
                    .is_ok()
            })
    }
}

fn merged(mut stretches: Vec<(i32, i32)>) -> Box<[(i32, i32)]> {
    stretches.sort_unstable();
    let mut merged: Vec<(i32, i32)> = Vec::new();
    for (first, last) in stretches {
        match merged.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged.into()
}

enum Entry {
    Stretch(i32, i32),
    /// Month and day.
    Yearly(u32, u32),
}

const FORMS: &str = "is not understood: write a date `2026-10-10`, a range `2026-10-01..2026-10-07`, or a day of every year `12-25`";

fn read(text: &str) -> Result<Entry, &'static str> {
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (date(first.trim())?, date(last.trim())?);
        return match first <= last {
            true => Ok(Entry::Stretch(first, last)),
            false => Err("runs backwards: write the earlier date first"),
        };
    }
    if let [month, day] = numbers(text).as_slice() {
        // A leap year: the 29th of February is a day of those years.
        return match exists(2000, *month, *day) {
            true => Ok(Entry::Yearly(*month, *day)),
            false => Err("is not a day of any year: write month and day, as in `12-25`"),
        };
    }
    date(text).map(|day| Entry::Stretch(day, day))
}

fn date(text: &str) -> Result<i32, &'static str> {
    let &[year, month, day] = numbers(text).as_slice() else {
        return Err(FORMS);
    };
    if !(1900..=2999).contains(&year) {
        return Err("has a year outside 1900 to 2999: write four digits, as in `2026-10-10`");
    }
    match exists(year as i32, month, day) {
        true => Ok(day_number(year as i32, month, day)),
        false => Err("does not exist: write year, month and day, as in `2026-10-10`"),
    }
}

fn exists(year: i32, month: u32, day: u32) -> bool {
    (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day)
}

/// The numbers of a text such as `2026-10-10`; none when it is anything else. Each has two digits, a year four.
fn numbers(text: &str) -> Vec<u32> {
    let parts: Vec<&str> = text.splitn(4, '-').collect();
    let lengths: &[usize] = match parts.len() {
        2 => &[2, 2],
        3 => &[4, 2, 2],
        _ => return Vec::new(),
    };
    let read = |(part, length): (&&str, &usize)| {
        let digits = part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| digits)
    };
    let numbers: Option<Vec<u32>> = parts.iter().zip(lengths).map(read).collect();
    numbers.unwrap_or_default()
}
