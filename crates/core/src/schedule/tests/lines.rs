//! Random cron lines, and a reading of them that asks of each value whether the text admits it.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};
use proptest::prelude::*;

const MONTHS: [&str; 13] = [
    "", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn number(word: &str, names: &[&str]) -> i64 {
    let named = names.iter().position(|name| *name == word);
    named.map_or_else(|| word.parse::<i64>().unwrap(), |index| index as i64)
}

/// Whether one item of a field admits a value.
fn item_admits(item: &str, value: i64, min: i64, max: i64, names: &[&str]) -> bool {
    let (range, step) = item.split_once('/').unwrap_or((item, "1"));
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (number(low, names), number(high, names)),
        None if range == "*" || range == "?" => (min, max),
        None if item.contains('/') => (number(range, names), max),
        None => (number(range, names), number(range, names)),
    };
    low <= value && value <= high && (value - low) % step.parse::<i64>().unwrap() == 0
}

fn admits(text: &str, value: i64, min: i64, max: i64, names: &[&str]) -> bool {
    text.split(',')
        .any(|item| item_admits(item, value, min, max, names))
}

/// The Monday to Friday of the month of `date` that is nearest to a day of it, if that day exists.
fn nearest_weekday(date: Date, day: i64) -> Option<i64> {
    let length = i64::from(date.days_in_month());
    let working = |day: &i64| {
        let date = date.with().day(*day as i8).build().unwrap();
        !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
    };
    let days = (1..=length).filter(working);
    let exists = (1..=length).contains(&day);
    days.min_by_key(|other| (other - day).abs())
        .filter(|_| exists)
}

fn admits_day(text: &str, date: Date) -> bool {
    let (day, length) = (i64::from(date.day()), i64::from(date.days_in_month()));
    let center = |text: &str| match text.strip_prefix('L') {
        Some("") => length,
        Some(before) => length + before.parse::<i64>().unwrap(),
        None => text.parse().unwrap(),
    };
    text.split(',').any(|item| match item.strip_suffix('W') {
        Some(item) => nearest_weekday(date, center(item)) == Some(day),
        None if item.starts_with('L') => center(item) == day,
        None => item_admits(item, day, 1, 31, &[]),
    })
}

fn admits_weekday(text: &str, date: Date) -> bool {
    let weekday = i64::from(date.weekday().to_sunday_zero_offset());
    text.split(',').any(|item| {
        if let Some((name, nth)) = item.split_once('#') {
            let which = (i64::from(date.day()) - 1) / 7 + 1;
            return number(name, &WEEKDAYS) % 7 == weekday && which == nth.parse::<i64>().unwrap();
        }
        if let Some(name) = item.strip_suffix('L') {
            let last = (date + 7.days()).month() != date.month();
            return number(name, &WEEKDAYS) % 7 == weekday && last;
        }
        // A value or the end of a range may call Sunday 7.
        let seven = (item == "7" || item.ends_with("-7")) && weekday == 0;
        item_admits(item, weekday, 0, 6, &WEEKDAYS)
            || seven && item_admits(item, 7, 0, 7, &WEEKDAYS)
    })
}

/// A line as tables: whether each value of the clock's fields is admitted; the day fields stay text.
pub(super) struct Reading {
    second: Vec<bool>,
    minute: Vec<bool>,
    hour: Vec<bool>,
    day: String,
    month: Vec<bool>,
    weekday: String,
    year: String,
    either: bool,
    pub(super) fixed: bool,
}

impl Reading {
    pub(super) fn new(text: &str, both_days: bool) -> Self {
        let mut words: Vec<&str> = text.split(' ').collect();
        if words.len() == 5 {
            words.insert(0, "0");
        }
        if words.len() == 6 {
            words.push("*");
        }
        let table = |word: usize, min: i64, max: i64, names: &[&str]| {
            let admitted = |value| admits(words[word], value, min, max, names);
            (0..=max).map(admitted).collect::<Vec<bool>>()
        };
        let restricted = |word: usize| !words[word].starts_with(['*', '?']);
        Self {
            second: table(0, 0, 59, &[]),
            minute: table(1, 0, 59, &[]),
            hour: table(2, 0, 23, &[]),
            day: words[3].to_owned(),
            month: table(4, 1, 12, &MONTHS),
            weekday: words[5].to_owned(),
            year: words[6].to_owned(),
            either: restricted(3) && restricted(5) && !both_days,
            fixed: words[..3].iter().all(|word| !word.contains('*')),
        }
    }

    pub(super) fn matches_time(&self, civil: &DateTime) -> bool {
        self.second[civil.second() as usize]
            && self.minute[civil.minute() as usize]
            && self.hour[civil.hour() as usize]
    }

    pub(super) fn matches_day(&self, date: Date) -> bool {
        let (day, weekday) = (
            admits_day(&self.day, date),
            admits_weekday(&self.weekday, date),
        );
        let day = if self.either {
            day || weekday
        } else {
            day && weekday
        };
        day && self.month[date.month() as usize]
            && admits(&self.year, date.year().into(), 1970, 2199, &[])
    }
}

pub(super) fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = min..=max;
    let span = (value.clone(), value.clone()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let step = 1..=(max - min + 1);
    let item = prop_oneof![
        4 => value.clone().prop_map(|a| a.to_string()),
        2 => span.clone().prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (span, step.clone()).prop_map(|((a, b), n)| format!("{a}-{b}/{n}")),
        1 => (value, step.clone()).prop_map(|(a, n)| format!("{a}/{n}")),
    ];
    prop_oneof![
        2 => Just("*".to_owned()),
        1 => step.prop_map(|n| format!("*/{n}")),
        4 => prop::collection::vec(item, 1..4).prop_map(|items| items.join(",")),
    ]
}

/// Days of month that depend on the month.
pub(super) fn special_day() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        Just("L".to_owned()),
        Just("LW".to_owned()),
        (1u32..=30).prop_map(|n| format!("L-{n}")),
        (1u32..=30).prop_map(|n| format!("L-{n}W")),
        (1u32..=31).prop_map(|n| format!("{n}W")),
        (1u32..=31).prop_map(|n| n.to_string()),
    ];
    prop::collection::vec(item, 1..4).prop_map(|items| items.join(","))
}

pub(super) fn special_weekday() -> impl Strategy<Value = String> {
    let names = [
        "sun", "mon", "tue", "wed", "thu", "fri", "sat", "0", "3", "5", "7",
    ];
    let name = || prop::sample::select(names.to_vec());
    let item = prop_oneof![
        (name(), 1u32..=5).prop_map(|(name, nth)| format!("{name}#{nth}")),
        name().prop_map(|name| format!("{name}L")),
        name().prop_map(str::to_owned),
    ];
    prop::collection::vec(item, 1..4).prop_map(|items| items.join(","))
}

/// Day fields that match often enough for a window of hours to see something.
fn day_fields() -> impl Strategy<Value = (String, String, String)> {
    let text = |choices: &'static [&'static str]| {
        prop::sample::select(choices)
            .prop_map(str::to_owned)
            .boxed()
    };
    (
        prop_oneof![
            4 => text(&["*", "?"]),
            1 => text(&["28-31", "1,29-31", "*/2", "1-8,25", "L", "LW", "1W,15W", "L-2,L-6,8"]),
            1 => field(1, 31),
            1 => special_day(),
        ],
        prop_oneof![
            4 => text(&["*"]),
            1 => text(&["mar,oct", "jan-jun", "2-11", "*/2"]),
        ],
        prop_oneof![
            4 => text(&["*", "?"]),
            1 => text(&["sun", "sat-7", "fri-7", "0-7", "*/2", "mon,7", "sunL", "sun#1,sun#2", "satL,sat#1"]),
            1 => field(0, 6),
            1 => special_weekday(),
        ],
    )
}

pub(super) fn line() -> impl Strategy<Value = String> {
    let hour = prop_oneof![2 => field(0, 23), 4 => field(0, 4), 1 => Just("*".to_owned())];
    // Listed minutes more often than not, so that the line is fixed.
    let minute = || prop_oneof![2 => field(0, 59), 1 => Just("30".to_owned()), 1 => Just("0-59/7".to_owned())];
    let second = prop_oneof![4 => Just(String::new()), 1 => field(0, 59).prop_map(|s| s + " ")];
    (second, minute(), hour, day_fields())
        .prop_map(|(s, m, h, (day, month, weekday))| format!("{s}{m} {h} {day} {month} {weekday}"))
}
