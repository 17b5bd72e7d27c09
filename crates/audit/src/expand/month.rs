//! The two day fields of a cron line: numbers, and days that depend on how the month lies.

use jiff::ToSpan;
use jiff::civil::Date;

use super::cron::{Span, numbers};

/// One item of the day-of-month field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Monthday {
    Number(i8),
    /// `L`, `L-3`: so many days before the last.
    FromEnd(i8),
    /// `15W`: the working day of the month that is nearest.
    Near(i8),
    /// `LW`: the last working day.
    LastWorking,
    /// `L-3W`: the working day nearest to the day so many before the last.
    NearFromEnd(i8),
}

/// One item of the day-of-week field; Sunday is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weekday {
    Every(i8),
    /// `fri#2`: the second of the month.
    Nth(i8, i8),
    /// `friL`: the last of the month.
    Last(i8),
}

const WEEKDAYS: &str = "sun mon tue wed thu fri sat";

impl Monthday {
    pub fn field(field: &str) -> Result<Vec<Self>, String> {
        let mut items = Vec::new();
        for item in field.split(',') {
            if item == "l" {
                items.push(Self::FromEnd(0));
            } else if item == "lw" {
                items.push(Self::LastWorking);
            } else if let Some(back) = item.strip_prefix("l-") {
                items.push(match back.strip_suffix('w') {
                    Some(back) => Self::NearFromEnd(number(back, 1, 30)?),
                    None => Self::FromEnd(number(back, 1, 30)?),
                });
            } else if let Some(day) = item.strip_suffix('w') {
                items.push(Self::Near(number(day, 1, 31)?));
            } else {
                let days = numbers(item, Span::plain(1, 31), "")?;
                items.extend(days.into_iter().map(|day| Self::Number(day as i8)));
            }
        }
        Ok(items)
    }

    pub fn is(self, date: Date) -> bool {
        let length = date.days_in_month();
        match self {
            Self::Number(day) => date.day() == day,
            Self::FromEnd(back) => date.day() == length - back,
            Self::Near(day) => near(date, day) == Some(date),
            Self::NearFromEnd(back) => near(date, length - back) == Some(date),
            Self::LastWorking => {
                let last = (1..=length)
                    .rev()
                    .filter_map(|day| on(date, day))
                    .find(|date| is_working(*date));
                last == Some(date)
            }
        }
    }
}

/// The working day nearest to a day of the month of `date`, without leaving the month; none when it has no such day.
fn near(date: Date, day: i8) -> Option<Date> {
    let wanted = on(date, day)?;
    // At the same distance there are never two: Saturday and Sunday lie side by side.
    [0, -1, 1, -2, 2]
        .into_iter()
        .filter_map(|days: i32| wanted.checked_add(days.days()).ok())
        .find(|near| near.month() == wanted.month() && is_working(*near))
}

fn on(date: Date, day: i8) -> Option<Date> {
    Date::new(date.year(), date.month(), day).ok()
}

fn is_working(date: Date) -> bool {
    (1..=5).contains(&date.weekday().to_monday_one_offset())
}

impl Weekday {
    pub fn field(field: &str) -> Result<Vec<Self>, String> {
        let mut items = Vec::new();
        for item in field.split(',') {
            if let Some((day, nth)) = item.split_once('#') {
                items.push(Self::Nth(weekday(day)?, number(nth, 1, 5)?));
            } else if let Some(day) = item.strip_suffix('l') {
                items.push(Self::Last(weekday(day)?));
            } else {
                items.extend(weekdays(item)?.into_iter().map(Self::Every));
            }
        }
        Ok(items)
    }

    pub fn is(self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        match self {
            Self::Every(day) => weekday == day,
            Self::Nth(day, nth) => weekday == day && (date.day() - 1) / 7 + 1 == nth,
            Self::Last(day) => weekday == day && date.day() + 7 > date.days_in_month(),
        }
    }
}

fn weekdays(item: &str) -> Result<Vec<i8>, String> {
    // A week that ends on Sunday is written with 7; open ends stop at Saturday.
    let item = item.replace("-sun", "-7");
    let span = Span {
        low: 0,
        last: 6,
        high: 7,
    };
    let days = numbers(&item, span, WEEKDAYS)?;
    Ok(days.into_iter().map(|day| (day % 7) as i8).collect())
}

fn weekday(text: &str) -> Result<i8, String> {
    match weekdays(text)?[..] {
        [day] => Ok(day),
        _ => Err(format!("`{text}` is not one day of the week")),
    }
}

fn number(text: &str, low: i8, high: i8) -> Result<i8, String> {
    text.parse()
        .ok()
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| format!("`{text}` is not between {low} and {high}"))
}
