//! Cron, read for the second time.
//!
//! Fields are sets of numbers. An entry whose second, minute and hour hold no star names times of day: those are looked
//! up on each date, shifted over a gap and taken once in a fold. Any other entry follows the clock: each minute that
//! passes is held against the fields.

use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

#[derive(Clone, Debug)]
pub(super) struct Cron {
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    weekdays: Vec<i8>,
    years: Option<Vec<i16>>,
    /// Both day fields are restricted: either of them is enough.
    either_day: bool,
    fixed: bool,
    zone: TimeZone,
}

const MONTHS: &str = "jan feb mar apr may jun jul aug sep oct nov dec";
const WEEKDAYS: &str = "sun mon tue wed thu fri sat";

impl Cron {
    pub fn parse(text: &str, zone: &str) -> Result<Self, String> {
        let zone = TimeZoneDatabase::bundled()
            .get(zone.trim())
            .map_err(|error| error.to_string())?;
        let text = long_form(text.trim().to_ascii_lowercase());
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (second, rest, year) = match fields.len() {
            5 => ("0", &fields[..], None),
            6 => (fields[0], &fields[1..], None),
            7 => (fields[0], &fields[1..6], Some(fields[6])),
            count => return Err(format!("`{text}` has {count} fields")),
        };
        // A week that ends on Sunday is written with 7; open ends stop at Saturday.
        let weekdays = numbers(
            &rest[4].replace("-sun", "-7"),
            Span {
                low: 0,
                last: 6,
                high: 7,
            },
            WEEKDAYS,
        )?;
        let weekdays = weekdays.into_iter().map(|day| day % 7).collect();
        let plain = |field, low, high| {
            numbers(
                field,
                Span {
                    low,
                    last: high,
                    high,
                },
                "",
            )
        };
        let small = |values: Vec<i16>| {
            values
                .into_iter()
                .map(|value| value as i8)
                .collect::<Vec<i8>>()
        };
        let open = |field: &str| field.starts_with(['*', '?']);
        Ok(Self {
            seconds: small(plain(second, 0, 59)?),
            minutes: small(plain(rest[0], 0, 59)?),
            hours: small(plain(rest[1], 0, 23)?),
            days: small(plain(rest[2], 1, 31)?),
            months: small(numbers(
                rest[3],
                Span {
                    low: 1,
                    last: 12,
                    high: 12,
                },
                MONTHS,
            )?),
            weekdays: small(weekdays),
            years: year.map(|year| plain(year, 1970, 2199)).transpose()?,
            either_day: !open(rest[2]) && !open(rest[4]),
            fixed: ![second, rest[0], rest[1]]
                .iter()
                .any(|field| field.contains('*')),
            zone,
        })
    }

    /// Times in `(after, through]`, in seconds since 1970, in any order and possibly repeated.
    pub fn times(&self, after: i64, through: i64) -> Vec<i64> {
        let mut found = if self.fixed {
            self.by_date(after, through)
        } else {
            self.by_minute(after, through)
        };
        found.retain(|at| *at > after && *at <= through);
        found
    }

    fn by_date(&self, after: i64, through: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let (Some(mut date), Some(last)) = (self.date_at(after), self.date_at(through)) else {
            return found;
        };
        // A gap can carry a time into the next day.
        date = date.checked_sub(1.day()).unwrap_or(date);
        while date <= last {
            if self.day_matches(date) {
                found.extend(
                    self.times_of_day()
                        .filter_map(|time| self.instant(date, time)),
                );
            }
            let Ok(next) = date.tomorrow() else { break };
            date = next;
        }
        found
    }

    fn by_minute(&self, after: i64, through: i64) -> Vec<i64> {
        let mut found = Vec::new();
        let mut minute = after.div_euclid(60) * 60;
        let mut day = None;
        while minute <= through {
            let Ok(at) = Timestamp::from_second(minute) else {
                break;
            };
            let civil = self.zone.to_datetime(at);
            let matches = match day {
                Some((date, matches)) if date == civil.date() => matches,
                _ => day.insert((civil.date(), self.day_matches(civil.date()))).1,
            };
            if matches
                && self.hours.contains(&civil.hour())
                && self.minutes.contains(&civil.minute())
            {
                found.extend(
                    self.seconds
                        .iter()
                        .map(|second| minute + i64::from(*second)),
                );
            }
            minute += 60;
        }
        found
    }

    fn date_at(&self, second: i64) -> Option<Date> {
        Some(
            self.zone
                .to_datetime(Timestamp::from_second(second).ok()?)
                .date(),
        )
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

    /// In a gap the time moves on by its length; of a fold the first pass counts.
    fn instant(&self, date: Date, time: Time) -> Option<i64> {
        let ambiguous = self.zone.to_ambiguous_timestamp(date.to_datetime(time));
        ambiguous.compatible().ok().map(Timestamp::as_second)
    }

    fn day_matches(&self, date: Date) -> bool {
        let by_day = self.days.contains(&date.day());
        let by_weekday = self
            .weekdays
            .contains(&date.weekday().to_sunday_zero_offset());
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
struct Span {
    low: i16,
    last: i16,
    high: i16,
}

/// The numbers that a field holds. `names` stand for the numbers from the lowest on.
fn numbers(field: &str, span: Span, names: &str) -> Result<Vec<i16>, String> {
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
