//! A cron line as sets of bits: which days it names, and which times of day.
//!
//! Knows nothing of zones. The days of one month are one set ([`Pattern::days_of`]), which is all that the search asks
//! about days.

use super::super::civil::{
    FIRST_YEAR, LAST_YEAR, day_number, days_in_month, weekday, year_month_day,
};
use super::super::filter::Named;
use super::super::spec::DayRule;
use super::line::{Item, Line};

const YEAR_WORDS: usize = (LAST_YEAR - FIRST_YEAR) as usize / 64 + 1;

/// Bit `n` of a set stands for the value `n`. The sets of the clock and of months are not empty.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    seconds: u64,
    minutes: u64,
    hours: u32,
    days: u32,
    months: u16,
    /// Sunday is 0.
    weekdays: u8,
    /// Both day fields are restricted and a day that matches either counts.
    either_day: bool,
    fixed: bool,
    /// `None` stands for all of them.
    years: Option<Box<[u64; YEAR_WORDS]>>,
    special: Option<Box<Special>>,
}

/// Days that depend on the month they are in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Special {
    /// Bit `n` stands for the n-th day before the last of the month, here and below.
    last: u32,
    nearest_weekday: u32,
    nearest_weekday_to_last: u32,
    /// Sets of weekdays: the first, second, … of the month.
    nth: [u8; 5],
    last_of: u8,
}

impl Pattern {
    pub(super) fn new(line: &Line, rule: DayRule) -> Self {
        let mut special = Special::default();
        line.day
            .iter()
            .chain(&line.weekday)
            .for_each(|item| special.take(*item));
        let weekdays = bits(&line.weekday, 0, 6);
        Self {
            seconds: bits(&line.second, 0, 59),
            minutes: bits(&line.minute, 0, 59),
            hours: bits(&line.hour, 0, 23) as u32,
            days: bits(&line.day, 1, 31) as u32,
            months: bits(&line.month, 1, 12) as u16,
            weekdays: ((weekdays | weekdays >> 7) & 0x7f) as u8,
            either_day: line.restricts_both_days() && rule == DayRule::Or,
            fixed: line.is_fixed(),
            years: years(&line.year),
            special: (special != Special::default()).then(|| Box::new(special)),
        }
    }

    /// Whether the times of day are listed, so that each is meant to happen once on its day.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// How many days from `first` to `last`, both included, are named.
    pub(super) fn count_days(&self, first: i32, last: i32) -> u64 {
        let mut count = 0;
        let mut from = first;
        while let Some(day) = self.next_day(from).filter(|day| *day <= last) {
            let (year, month, of_month) = year_month_day(day);
            let end = day + (days_in_month(year, month) - of_month) as i32;
            let through = of_month + (end.min(last) - day) as u32;
            let wanted = (2u64 << through) - (1 << of_month);
            count += u64::from((u64::from(self.days_of(year, month)) & wanted).count_ones());
            from = end + 1;
        }
        count
    }

    /// The matching days of one month, as a set of days of month.
    fn days_of(&self, year: i32, month: u32) -> u32 {
        let length = days_in_month(year, month);
        let exists = (2u64 << length) - 2;
        let first_weekday = weekday(day_number(year, month, 1));
        let mut by_day = u64::from(self.days);
        let mut by_weekday = every_week(self.weekdays, first_weekday);
        if let Some(special) = &self.special {
            by_day |= special.by_day(length, first_weekday);
            by_weekday |= special.by_weekday(length, first_weekday);
        }
        let chosen = match self.either_day {
            true => by_day | by_weekday,
            false => by_day & by_weekday,
        };
        (chosen & exists) as u32
    }

    fn year_at_or_after(&self, year: i32) -> Option<i32> {
        let mut years = year.max(FIRST_YEAR)..=LAST_YEAR;
        years.find(|year| self.has_year(*year))
    }

    fn year_at_or_before(&self, year: i32) -> Option<i32> {
        let years = FIRST_YEAR..=year.min(LAST_YEAR);
        years.rev().find(|year| self.has_year(*year))
    }

    /// `year` is one that a pattern can match.
    fn has_year(&self, year: i32) -> bool {
        let Some(years) = &self.years else {
            return true;
        };
        let bit = (year - FIRST_YEAR) as usize;
        years[bit / 64] >> (bit % 64) & 1 == 1
    }

    pub(super) fn times_per_day(&self) -> u64 {
        u64::from(self.hours.count_ones())
            * u64::from(self.minutes.count_ones())
            * u64::from(self.seconds.count_ones())
    }

    /// How many times of day lie before `second` of the day.
    pub(super) fn times_before(&self, second: u32) -> u64 {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let ones = |set: u64, below: u32| u64::from((set & ((1 << below) - 1)).count_ones());
        let per_minute = u64::from(self.seconds.count_ones());
        let per_hour = u64::from(self.minutes.count_ones()) * per_minute;
        let mut count = ones(self.hours.into(), hour) * per_hour;
        if self.hours >> hour & 1 == 1 {
            count += ones(self.minutes, minute) * per_minute;
            if self.minutes >> minute & 1 == 1 {
                count += ones(self.seconds, second);
            }
        }
        count
    }

    /// The first time of day at or after `from`, in seconds of the day.
    pub(super) fn next_time(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let hours = u64::from(self.hours);
        if hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = at_or_above(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = at_or_above(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + self.seconds.trailing_zeros());
            }
        }
        let hour = at_or_above(hours, hour + 1)?;
        Some(hour * 3600 + self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros())
    }

    /// The last time of day at or before `until`, in seconds of the day.
    pub(super) fn prev_time(&self, until: u32) -> Option<u32> {
        let (hour, minute, second) = (until / 3600, until / 60 % 60, until % 60);
        let hours = u64::from(self.hours);
        let last_second = self.seconds.ilog2();
        if hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = at_or_below(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = below(self.minutes, minute) {
                return Some(hour * 3600 + minute * 60 + last_second);
            }
        }
        let hour = below(hours, hour)?;
        Some(hour * 3600 + self.minutes.ilog2() * 60 + last_second)
    }
}

impl Named for Pattern {
    fn next_day(&self, from: i32) -> Option<i32> {
        let (mut year, mut month, mut day) = year_month_day(from);
        loop {
            let found = self.year_at_or_after(year)?;
            if found != year {
                (year, month, day) = (found, 1, 1);
            }
            match at_or_above(self.months.into(), month) {
                Some(found) if found == month => {}
                Some(found) => (month, day) = (found, 1),
                None => {
                    (year, month, day) = (year + 1, 1, 1);
                    continue;
                }
            }
            if let Some(day) = at_or_above(self.days_of(year, month).into(), day) {
                return Some(day_number(year, month, day));
            }
            (month, day) = (month + 1, 1);
        }
    }

    fn prev_day(&self, until: i32) -> Option<i32> {
        let (mut year, mut month, mut day) = year_month_day(until);
        loop {
            let found = self.year_at_or_before(year)?;
            if found != year {
                (year, month, day) = (found, 12, 31);
            }
            match at_or_below(self.months.into(), month) {
                Some(found) if found == month => {}
                Some(found) => (month, day) = (found, 31),
                None => {
                    (year, month, day) = (year - 1, 12, 31);
                    continue;
                }
            }
            if let Some(day) = at_or_below(self.days_of(year, month).into(), day) {
                return Some(day_number(year, month, day));
            }
            // No set of months holds 0, so the search goes on in the year before.
            (month, day) = (month - 1, 31);
        }
    }
}

impl Special {
    fn take(&mut self, item: Item) {
        match item {
            Item::Last { before } => self.last |= 1 << before,
            Item::NearestWeekday { day } => self.nearest_weekday |= 1 << day,
            Item::NearestWeekdayToLast { before } => self.nearest_weekday_to_last |= 1 << before,
            Item::Nth { weekday, nth } => self.nth[nth as usize - 1] |= 1 << weekday,
            Item::LastOf { weekday } => self.last_of |= 1 << weekday,
            Item::Any | Item::Blank | Item::Value(_) | Item::Range { .. } | Item::Step { .. } => {}
        }
    }

    fn by_day(&self, length: u32, first_weekday: u32) -> u64 {
        let from_last = |set| values(set).filter_map(move |before| length.checked_sub(before));
        let last = from_last(self.last).fold(0, |days, day| days | 1u64 << day);
        let centers = values(self.nearest_weekday).chain(from_last(self.nearest_weekday_to_last));
        let centers = centers.filter(|day| (1..=length).contains(day));
        let nearest = centers.map(|day| nearest_weekday(day, length, first_weekday));
        nearest.fold(last, |days, day| days | 1 << day)
    }

    fn by_weekday(&self, length: u32, first_weekday: u32) -> u64 {
        let weeks = (0..).zip(self.nth);
        let nth = weeks.fold(0, |days, (week, set)| {
            days | first_week(set, first_weekday) << (7 * week)
        });
        let last_week = 0x7f << (length - 6);
        nth | every_week(self.last_of, first_weekday) & last_week
    }
}

/// The days of the first week of a month, as days of month, that fall on a set of weekdays.
fn first_week(weekdays: u8, first_weekday: u32) -> u64 {
    let twice = u64::from(weekdays) | u64::from(weekdays) << 7;
    (twice >> first_weekday & 0x7f) << 1
}

fn every_week(weekdays: u8, first_weekday: u32) -> u64 {
    let first = first_week(weekdays, first_weekday);
    first | first << 7 | first << 14 | first << 21 | first << 28
}

/// The day from Monday to Friday nearest to `day` without leaving the month.
fn nearest_weekday(day: u32, length: u32, first_weekday: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

fn values(set: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |value| set >> value & 1 == 1)
}

fn bits(items: &[Item], min: u32, last: u32) -> u64 {
    let mut set = 0;
    each_value(items, min, last, |value| set |= 1u64 << value);
    set
}

fn years(items: &[Item]) -> Option<Box<[u64; YEAR_WORDS]>> {
    if items.contains(&Item::Any) {
        return None;
    }
    let mut years = Box::new([0; YEAR_WORDS]);
    each_value(items, FIRST_YEAR as u32, LAST_YEAR as u32, |year| {
        let bit = year as usize - FIRST_YEAR as usize;
        years[bit / 64] |= 1 << (bit % 64);
    });
    Some(years)
}

/// The values of a field that are the same in every month.
fn each_value(items: &[Item], min: u32, max: u32, mut take: impl FnMut(u32)) {
    for item in items {
        let (first, last, step) = match *item {
            Item::Any | Item::Blank => (min, max, 1),
            Item::Value(value) => (value, value, 1),
            Item::Range { first, last } => (first, last, 1),
            Item::Step {
                first, last, step, ..
            } => (first, last, step),
            Item::Last { .. }
            | Item::NearestWeekday { .. }
            | Item::NearestWeekdayToLast { .. }
            | Item::Nth { .. }
            | Item::LastOf { .. } => continue,
        };
        (first..=last).step_by(step as usize).for_each(&mut take);
    }
}

fn at_or_above(set: u64, n: u32) -> Option<u32> {
    let rest = set.checked_shr(n)?;
    (rest != 0).then(|| n + rest.trailing_zeros())
}

/// `n` is below 64.
fn at_or_below(set: u64, n: u32) -> Option<u32> {
    let rest = set & u64::MAX >> (63 - n);
    (rest != 0).then(|| rest.ilog2())
}

fn below(set: u64, n: u32) -> Option<u32> {
    at_or_below(set, n.checked_sub(1)?)
}
