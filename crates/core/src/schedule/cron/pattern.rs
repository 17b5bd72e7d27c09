//! A cron pattern as sets of bits, searched on the civil calendar in either direction.
//!
//! Knows nothing of zones. The days of one month are one set ([`Pattern::days_of`]), which is all
//! that the search asks about days.

use jiff::civil::{Date, DateTime, Time};

/// The years a pattern can match. They bound every search.
pub(super) const FIRST_YEAR: u32 = 1970;
pub(super) const LAST_YEAR: u32 = 2199;

const YEAR_WORDS: usize = (LAST_YEAR - FIRST_YEAR) as usize / 64 + 1;

/// A set of years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Years([u64; YEAR_WORDS]);

impl Years {
    pub(super) const NONE: Years = Years([0; YEAR_WORDS]);

    pub(super) fn insert(&mut self, year: u32) {
        let bit = year - FIRST_YEAR;
        self.0[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn contains(&self, year: u32) -> bool {
        (FIRST_YEAR..=LAST_YEAR).contains(&year) && {
            let bit = year - FIRST_YEAR;
            self.0[bit as usize / 64] >> (bit % 64) & 1 == 1
        }
    }

    fn at_or_after(&self, year: u32) -> Option<u32> {
        (year.max(FIRST_YEAR)..=LAST_YEAR).find(|year| self.contains(*year))
    }

    fn at_or_before(&self, year: u32) -> Option<u32> {
        let years = FIRST_YEAR..=year.min(LAST_YEAR);
        years.rev().find(|year| self.contains(*year))
    }
}

/// Bit `n` of a set stands for the value `n`. No set is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    /// Sunday is 0.
    pub(super) weekdays: u64,
    pub(super) years: Years,
    /// Both day fields are restricted, so that a day matching either counts.
    pub(super) either_day: bool,
    pub(super) fixed: bool,
}

impl Pattern {
    /// Whether the times of day are listed, so that each is meant to happen once on its day.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The first match at or after `from`.
    pub(super) fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let date = self.date_from(from.date())?;
        if date > from.date() {
            return Some(date.to_datetime(self.first_time()?));
        }
        if let Some(time) = self.time_from(from.time()) {
            return Some(date.to_datetime(time));
        }
        let date = self.date_from(date.tomorrow().ok()?)?;
        Some(date.to_datetime(self.first_time()?))
    }

    /// The last match at or before `from`.
    pub(super) fn prev_from(&self, from: DateTime) -> Option<DateTime> {
        let date = self.date_until(from.date())?;
        if date < from.date() {
            return Some(date.to_datetime(self.last_time()?));
        }
        if let Some(time) = self.time_until(from.time()) {
            return Some(date.to_datetime(time));
        }
        let date = self.date_until(date.yesterday().ok()?)?;
        Some(date.to_datetime(self.last_time()?))
    }

    fn date_from(&self, from: Date) -> Option<Date> {
        let (mut year, mut month, mut day) = parts(from);
        loop {
            let found = self.years.at_or_after(year)?;
            if found != year {
                (year, month, day) = (found, 1, 1);
            }
            match at_or_above(self.months, month) {
                Some(found) if found == month => {}
                Some(found) => (month, day) = (found, 1),
                None => {
                    (year, month, day) = (year + 1, 1, 1);
                    continue;
                }
            }
            if let Some(day) = at_or_above(self.days_of(year, month), day) {
                return date(year, month, day);
            }
            (month, day) = (month + 1, 1);
        }
    }

    fn date_until(&self, until: Date) -> Option<Date> {
        let (mut year, mut month, mut day) = parts(until);
        loop {
            let found = self.years.at_or_before(year)?;
            if found != year {
                (year, month, day) = (found, 12, 31);
            }
            match at_or_below(self.months, month) {
                Some(found) if found == month => {}
                Some(found) => (month, day) = (found, 31),
                None => {
                    (year, month, day) = (year - 1, 12, 31);
                    continue;
                }
            }
            if let Some(day) = at_or_below(self.days_of(year, month), day) {
                return date(year, month, day);
            }
            // No set of months holds 0, so the search goes on in the year before.
            (month, day) = (month - 1, 31);
        }
    }

    /// The matching days of one month, as a set of days of month.
    fn days_of(&self, year: u32, month: u32) -> u64 {
        let Some(first) = date(year, month, 1) else {
            return 0;
        };
        let exists = (2 << first.days_in_month() as u32) - 2;
        let first_weekday = first.weekday().to_sunday_zero_offset() as u32;
        // Bit n of `week` stands for the n-th day after the first.
        let week = (self.weekdays | self.weekdays << 7) >> first_weekday & 0x7f;
        let by_weekday = (0..5).fold(0, |days, n| days | week << (1 + 7 * n));
        let chosen = match self.either_day {
            true => self.days | by_weekday,
            false => self.days & by_weekday,
        };
        chosen & exists
    }

    fn first_time(&self) -> Option<Time> {
        self.time_from(Time::midnight())
    }

    fn last_time(&self) -> Option<Time> {
        self.time_until(Time::constant(23, 59, 59, 0))
    }

    fn time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = clock(from);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = at_or_above(self.seconds, second)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = at_or_above(self.minutes, minute + 1) {
                return time(hour, minute, at_or_above(self.seconds, 0)?);
            }
        }
        let hour = at_or_above(self.hours, hour + 1)?;
        let minute = at_or_above(self.minutes, 0)?;
        time(hour, minute, at_or_above(self.seconds, 0)?)
    }

    fn time_until(&self, until: Time) -> Option<Time> {
        let (hour, minute, second) = clock(until);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = at_or_below(self.seconds, second)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = below(self.minutes, minute) {
                return time(hour, minute, at_or_below(self.seconds, 59)?);
            }
        }
        let hour = below(self.hours, hour)?;
        let minute = at_or_below(self.minutes, 59)?;
        time(hour, minute, at_or_below(self.seconds, 59)?)
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

/// A year before our era counts as 0, which no set of years holds.
fn parts(date: Date) -> (u32, u32, u32) {
    let year = u32::try_from(date.year()).unwrap_or(0);
    (year, date.month() as u32, date.day() as u32)
}

fn clock(time: Time) -> (u32, u32, u32) {
    (
        time.hour() as u32,
        time.minute() as u32,
        time.second() as u32,
    )
}

fn date(year: u32, month: u32, day: u32) -> Option<Date> {
    Date::new(year as i16, month as i8, day as i8).ok()
}

fn time(hour: u32, minute: u32, second: u32) -> Option<Time> {
    Time::new(hour as i8, minute as i8, second as i8, 0).ok()
}
