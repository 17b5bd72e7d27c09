//! Cron, read for the second time.
//!
//! Fields are sets of numbers, and of rules for days. An entry whose second, minute and hour hold no star names times of
//! day: those are looked up on each date, and what clocks skip or repeat is the entry's choice. Any other entry follows
//! the clock: each minute that passes is held against the fields.

use drumtower_core::schedule::DayRule;
use jiff::ToSpan;
use jiff::civil::{Date, Time};

use super::days::Choice;
use super::local::Local;
use super::month::{Monthday, Weekday};

#[derive(Clone, Debug)]
pub(super) struct Cron {
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<Monthday>,
    months: Vec<i8>,
    weekdays: Vec<Weekday>,
    years: Option<Vec<i16>>,
    /// Both day fields are restricted and either of them is enough.
    either_day: bool,
    fixed: bool,
    local: Local,
}

const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";

impl Cron {
    pub fn parse(text: &str, rule: DayRule, local: Local) -> Result<Self, String> {
        let text = long_form(text.trim().to_ascii_lowercase());
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (second, rest, year) = match fields.len() {
            5 => ("0", &fields[..], None),
            6 => (fields[0], &fields[1..], None),
            7 => (fields[0], &fields[1..6], Some(fields[6])),
            count => return Err(format!("`{text}` has {count} fields")),
        };
        let [minute, hour, day, month, weekday] = rest else {
            return Err(format!("`{text}` has too few fields"));
        };
        let open = |field: &str| field.starts_with(['*', '?']);
        let both = !open(day) && !open(weekday);
        Ok(Self {
            seconds: small(numbers(second, Span::plain(0, 59), "")?),
            minutes: small(numbers(minute, Span::plain(0, 59), "")?),
            hours: small(numbers(hour, Span::plain(0, 23), "")?),
            days: Monthday::field(day)?,
            months: small(numbers(month, Span::plain(1, 12), MONTHS)?),
            weekdays: Weekday::field(weekday)?,
            years: year
                .map(|year| numbers(year, Span::plain(1970, 2199), ""))
                .transpose()?,
            either_day: both && rule == DayRule::Or,
            fixed: ![second, minute, hour]
                .iter()
                .any(|field| field.contains('*')),
            local,
        })
    }

    /// The least distance between two of its times that need be thought of.
    pub fn spacing_ms(&self) -> i64 {
        if self.seconds.len() > 1 {
            1_000
        } else {
            60_000
        }
    }

    /// Times in `[from, through]`, in any order and possibly repeated.
    pub fn times(&self, from: i64, through: i64, choice: &Choice) -> Vec<i64> {
        let mut found = if self.fixed {
            self.by_date(from, through, choice)
        } else {
            self.by_minute(from, through, choice)
        };
        found.retain(|at| (from..=through).contains(at));
        found
    }

    fn by_date(&self, from: i64, through: i64, choice: &Choice) -> Vec<i64> {
        let mut found = Vec::new();
        let (Some(first), Some(last)) = (self.local.date_at(from), self.local.date_at(through))
        else {
            return found;
        };
        // A gap can carry a time into the next day, and a roll much further.
        let reach = choice.reach() + 1;
        let mut date = first.saturating_sub(reach.days());
        let last = last.saturating_add(choice.reach().days());
        while date <= last {
            let day = self.names(date).then(|| choice.target(date)).flatten();
            if let Some(day) = day {
                for time in self.times_of_day() {
                    found.extend(self.local.instants(day.to_datetime(time)));
                }
            }
            let Ok(next) = date.tomorrow() else { break };
            date = next;
        }
        found
    }

    fn by_minute(&self, from: i64, through: i64, choice: &Choice) -> Vec<i64> {
        let mut found = Vec::new();
        let mut minute = from.div_euclid(60_000) * 60_000;
        let mut day = None;
        while minute <= through {
            let Some(civil) = self.local.shown(minute) else {
                break;
            };
            let date = civil.date();
            let matches = match day {
                Some((known, matches)) if known == date => matches,
                _ => {
                    day.insert((date, self.names(date) && choice.counts(date)))
                        .1
                }
            };
            if matches
                && self.hours.contains(&civil.hour())
                && self.minutes.contains(&civil.minute())
            {
                let seconds = self.seconds.iter();
                found.extend(seconds.map(|second| minute + i64::from(*second) * 1_000));
            }
            minute += 60_000;
        }
        found
    }

    fn times_of_day(&self) -> impl Iterator<Item = Time> + '_ {
        let minutes = self
            .hours
            .iter()
            .flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)));
        let seconds = minutes.flat_map(|(hour, minute)| {
            self.seconds
                .iter()
                .map(move |second| (hour, minute, *second))
        });
        seconds.filter_map(|(hour, minute, second)| Time::new(hour, minute, second, 0).ok())
    }

    fn names(&self, date: Date) -> bool {
        let by_day = self.days.iter().any(|day| day.is(date));
        let by_weekday = self.weekdays.iter().any(|weekday| weekday.is(date));
        let day = if self.either_day {
            by_day || by_weekday
        } else {
            by_day && by_weekday
        };
        let year = self
            .years
            .as_ref()
            .is_none_or(|years| years.contains(&date.year()));
        day && year && self.months.contains(&date.month())
    }
}

fn small(values: Vec<i16>) -> Vec<i8> {
    values.into_iter().map(|value| value as i8).collect()
}

fn long_form(text: String) -> String {
    let line = match text.as_str() {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * sun",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 jan *",
        _ => return text,
    };
    line.to_owned()
}

/// What a field may hold: from `low` to `high`, where `*` and open steps end at `last`.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub low: i16,
    pub last: i16,
    pub high: i16,
}

impl Span {
    pub fn plain(low: i16, high: i16) -> Self {
        Self {
            low,
            last: high,
            high,
        }
    }
}

/// The numbers that a field holds. `names` stand for the numbers from the lowest on.
pub(super) fn numbers(field: &str, span: Span, names: &str) -> Result<Vec<i16>, String> {
    let number = |text: &str| -> Result<i16, String> {
        let named = names
            .split_whitespace()
            .position(|name| name == text)
            .map(|index| index as i16 + span.low);
        let value = named
            .or_else(|| text.parse().ok())
            .filter(|value| (span.low..=span.high).contains(value));
        value.ok_or_else(|| {
            format!(
                "`{text}` of `{field}` is not between {} and {}",
                span.low, span.high
            )
        })
    };
    let mut found = Vec::new();
    for item in field.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (
                range,
                Some(
                    step.parse::<usize>()
                        .map_err(|error| format!("`{item}`: {error}"))?,
                ),
            ),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None if range == "*" || range == "?" => (span.low, span.last),
            None if step.is_some() => (number(range)?, span.last.max(number(range)?)),
            None => (number(range)?, number(range)?),
        };
        let step = step.unwrap_or(1);
        if from > to || step == 0 {
            return Err(format!("`{item}` holds nothing"));
        }
        found.extend((from..=to).step_by(step));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
