//! What a cron line amounts to, apart from any language: its times of day, its days, its months and years.
//!
//! Fields become sets first, so that different spellings of the same times are told the same way. What is left is the
//! choice of a form that people use: a few times, a beat within hours, minutes past the hour; and the fields one by one
//! when no such form is exact.

use super::super::civil::{FIRST_YEAR, LAST_YEAR};
use super::super::cron::{Item, Line};
use super::super::spec::DayRule;

pub(super) const HOUR_S: u32 = 3600;
const DAY_S: u32 = 24 * HOUR_S;

/// Up to this many times of day are listed.
const FEW_TIMES: usize = 6;
/// And these when they follow no beat.
const SOME_TIMES: usize = 12;
const FEW_WINDOWS: usize = 3;

pub(super) struct Shape {
    pub(super) clock: Clock,
    pub(super) days: Days,
    /// In order; `None` when all twelve count.
    pub(super) months: Option<Vec<u32>>,
    /// `None` when all count.
    pub(super) years: Option<Vec<Run>>,
}

/// In seconds of the day unless a name says otherwise. All lists are in order and not empty, except where they say so.
pub(super) enum Clock {
    Times(Vec<u32>),
    /// Every so many seconds, from a first time to a last one; without any window round the clock, from midnight on.
    Beat {
        step: u32,
        windows: Vec<(u32, u32)>,
    },
    /// At these minutes of every hour.
    PastHour(Vec<u32>),
    /// At these seconds of every minute.
    PastMinute(Vec<u32>),
    Fields {
        seconds: Vec<u32>,
        minutes: Vec<u32>,
        hours: Vec<u32>,
    },
}

pub(super) enum Days {
    Every,
    Month(Vec<MonthDay>),
    Week(WeekDays),
    Either(Vec<MonthDay>, WeekDays),
    Both(Vec<MonthDay>, WeekDays),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MonthDay {
    Plain(Run),
    NearestWeekday { day: u32 },
    NearestWeekdayToLast { before: u32 },
    Last { before: u32 },
}

/// Monday is 1 and Sunday 7.
pub(super) struct WeekDays {
    /// Those of every week.
    pub(super) weekly: Vec<u32>,
    /// Those of one week of the month.
    pub(super) monthly: Vec<MonthlyWeekday>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MonthlyWeekday {
    Nth { weekday: u32, nth: u32 },
    Last { weekday: u32 },
}

/// A part of a set of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Run {
    One(u32),
    Span { first: u32, last: u32 },
    Steps { first: u32, last: u32, step: u32 },
}

impl Shape {
    pub(super) fn of(line: &Line, rule: DayRule) -> Self {
        let months = values(&line.month, 1, 12);
        let years = values(&line.year, FIRST_YEAR as u32, LAST_YEAR as u32);
        let all_years = (LAST_YEAR - FIRST_YEAR + 1) as usize;
        Self {
            clock: clock(line),
            days: days(line, rule),
            months: (months.len() < 12).then_some(months),
            years: (years.len() < all_years).then(|| runs(&years)),
        }
    }

    /// Whether the times are the same in every zone, as offsets are these days: whole quarters of an hour.
    pub(super) fn is_same_everywhere(&self) -> bool {
        let clock = match &self.clock {
            Clock::Beat { step, windows } => windows.is_empty() && 900 % step == 0,
            Clock::PastMinute(_) => true,
            _ => false,
        };
        clock && matches!(self.days, Days::Every) && self.months.is_none() && self.years.is_none()
    }
}

fn clock(line: &Line) -> Clock {
    let seconds = values(&line.second, 0, 59);
    let minutes = values(&line.minute, 0, 59);
    let hours = values(&line.hour, 0, 23);
    // Hours listed one by one are fixed times of day; only a `*` goes round the clock.
    let round = hours.len() == 24 && line.hour.iter().any(|item| item.has_star());
    if !round {
        return within_hours(seconds, minutes, hours);
    }
    if seconds == [0] {
        return match step_from_zero(&minutes) {
            Some(step) => round_the_clock(step * 60),
            None => Clock::PastHour(minutes),
        };
    }
    if minutes.len() == 60 {
        return match step_from_zero(&seconds) {
            Some(step) => round_the_clock(step),
            None => Clock::PastMinute(seconds),
        };
    }
    Clock::Fields {
        seconds,
        minutes,
        hours,
    }
}

fn round_the_clock(step: u32) -> Clock {
    let windows = Vec::new();
    Clock::Beat { step, windows }
}

fn within_hours(seconds: Vec<u32>, minutes: Vec<u32>, hours: Vec<u32>) -> Clock {
    let count = seconds.len() * minutes.len() * hours.len();
    let mut times = Vec::with_capacity(count);
    for hour in &hours {
        for minute in &minutes {
            times.extend(
                seconds
                    .iter()
                    .map(|second| hour * HOUR_S + minute * 60 + second),
            );
        }
    }
    if count <= FEW_TIMES {
        return Clock::Times(times);
    }
    if let Some(beat) = beat(&times) {
        return beat;
    }
    if count <= SOME_TIMES {
        return Clock::Times(times);
    }
    Clock::Fields {
        seconds,
        minutes,
        hours,
    }
}

/// The times as a few stretches of one beat, if they are.
fn beat(times: &[u32]) -> Option<Clock> {
    let step = times.windows(2).map(|pair| pair[1] - pair[0]).min()?;
    let mut windows: Vec<(u32, u32)> = Vec::new();
    for time in times {
        match windows.last_mut() {
            Some((_, last)) if *last + step == *time => *last = *time,
            _ => windows.push((*time, *time)),
        }
    }
    let long = |(first, last): &(u32, u32)| last - first >= 2 * step;
    let few = windows.len() <= FEW_WINDOWS && windows.iter().all(long);
    few.then_some(Clock::Beat { step, windows })
}

/// The step of values that go evenly round sixty, from 0 on.
fn step_from_zero(values: &[u32]) -> Option<u32> {
    let step = 60 / values.len() as u32;
    let even = (0..60).step_by(step as usize).eq(values.iter().copied());
    (60 % step == 0 && even).then_some(step)
}

fn days(line: &Line, rule: DayRule) -> Days {
    let month = month_days(&line.day);
    let week = week_days(&line.weekday);
    let either = line.restricts_both_days() && rule == DayRule::Or;
    match (month, week) {
        (None, None) => Days::Every,
        // A day of a field that holds all of them is a match by itself.
        (None, Some(_)) | (Some(_), None) if either => Days::Every,
        (Some(month), None) => Days::Month(month),
        (None, Some(week)) => Days::Week(week),
        (Some(month), Some(week)) if either => Days::Either(month, week),
        (Some(month), Some(week)) => Days::Both(month, week),
    }
}

/// `None` when every day of a month counts.
fn month_days(items: &[Item]) -> Option<Vec<MonthDay>> {
    let plain = values(items, 1, 31);
    if plain.len() == 31 {
        return None;
    }
    let mut days: Vec<MonthDay> = runs(&plain).into_iter().map(MonthDay::Plain).collect();
    let mut special: Vec<MonthDay> = items.iter().filter_map(special_day).collect();
    special.sort_unstable();
    special.dedup();
    days.append(&mut special);
    Some(days)
}

fn special_day(item: &Item) -> Option<MonthDay> {
    match *item {
        Item::Last { before } => Some(MonthDay::Last { before }),
        Item::NearestWeekday { day } => Some(MonthDay::NearestWeekday { day }),
        Item::NearestWeekdayToLast { before } => Some(MonthDay::NearestWeekdayToLast { before }),
        _ => None,
    }
}

/// `None` when every day of a week counts.
fn week_days(items: &[Item]) -> Option<WeekDays> {
    let monday_first = |weekday: u32| if weekday == 0 { 7 } else { weekday };
    let mut weekly: Vec<u32> = values(items, 0, 6).into_iter().map(monday_first).collect();
    weekly.sort_unstable();
    weekly.dedup();
    if weekly.len() == 7 {
        return None;
    }
    let special = |item: &Item| match *item {
        Item::Nth { weekday, nth } => Some(MonthlyWeekday::Nth {
            weekday: monday_first(weekday),
            nth,
        }),
        Item::LastOf { weekday } => Some(MonthlyWeekday::Last {
            weekday: monday_first(weekday),
        }),
        _ => None,
    };
    let mut monthly: Vec<MonthlyWeekday> = items.iter().filter_map(special).collect();
    monthly.sort_unstable();
    monthly.dedup();
    Some(WeekDays { weekly, monthly })
}

/// The plain values of a field, in order; `*` stands for `min` to `max`.
fn values(items: &[Item], min: u32, max: u32) -> Vec<u32> {
    let mut values = Vec::new();
    for item in items {
        match *item {
            Item::Any | Item::Blank => values.extend(min..=max),
            Item::Value(value) => values.push(value),
            Item::Range { first, last } => values.extend(first..=last),
            Item::Step {
                first, last, step, ..
            } => values.extend((first..=last).step_by(step as usize)),
            _ => {}
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// A set as it is told: even steps as such, neighbours as stretches.
pub(super) fn runs(values: &[u32]) -> Vec<Run> {
    if let [first, second, .., last] = *values
        && values.len() >= 4
        && second - first >= 2
        && values
            .windows(2)
            .all(|pair| pair[1] - pair[0] == second - first)
    {
        let step = second - first;
        return vec![Run::Steps { first, last, step }];
    }
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == *value => *last = *value,
            _ => stretches.push((*value, *value)),
        }
    }
    let told = |(first, last): (u32, u32)| match last - first {
        0 | 1 => (first..=last).map(Run::One).collect(),
        _ => vec![Run::Span { first, last }],
    };
    stretches.into_iter().flat_map(told).collect()
}

/// The only stretch of neighbours, of three or more, if the values are one.
pub(super) fn stretch(values: &[u32]) -> Option<(u32, u32)> {
    match runs(values).as_slice() {
        [Run::Span { first, last }] => Some((*first, *last)),
        _ => None,
    }
}

/// Times of day as text, with seconds when any has them.
pub(super) fn times_text(times: &[u32]) -> Vec<String> {
    let seconds = times.iter().any(|time| time % 60 != 0);
    let text = |time: &u32| {
        let (hour, minute, second) = (time / HOUR_S, time / 60 % 60, time % 60);
        match seconds {
            true => format!("{hour:02}:{minute:02}:{second:02}"),
            false => format!("{hour:02}:{minute:02}"),
        }
    };
    times.iter().map(text).collect()
}

/// A length of time in its units, from milliseconds: days only when it is longer than three, since a day of 24 hours and
/// a date are not the same.
pub(super) fn units(ms: u64) -> Vec<(u64, Unit)> {
    let day_ms = u64::from(DAY_S) * 1000;
    let mut rest = ms;
    let mut units = Vec::new();
    for (unit, unit_ms) in [
        (Unit::Day, day_ms),
        (Unit::Hour, 3_600_000),
        (Unit::Minute, 60_000),
        (Unit::Second, 1000),
        (Unit::Millisecond, 1),
    ] {
        if unit == Unit::Day && ms < 3 * day_ms {
            continue;
        }
        let number = rest / unit_ms;
        if number > 0 {
            units.push((number, unit));
        }
        rest %= unit_ms;
    }
    units
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}
