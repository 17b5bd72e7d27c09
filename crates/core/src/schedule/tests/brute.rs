//! Cron lines around clock changes, against a matcher that looks at every second by itself.
//!
//! The matcher shares nothing with the code under test: it reads fields by asking of each value
//! whether the text admits it, and takes what clocks show, and where skipped and repeated civil
//! times belong, from jiff's own conversions.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;

use super::{Schedule, cron, ms};

const MONTHS: [&str; 13] = [
    "", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether a field's text admits a value.
fn admits(text: &str, value: i64, min: i64, max: i64, names: &[&str]) -> bool {
    let number = |word: &str| {
        let named = names.iter().position(|name| *name == word);
        named.map_or_else(|| word.parse::<i64>().unwrap(), |index| index as i64)
    };
    text.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low), number(high)),
            None if range == "*" || range == "?" => (min, max),
            None if item.contains('/') => (number(range), max),
            None => (number(range), number(range)),
        };
        low <= value && value <= high && (value - low) % step.parse::<i64>().unwrap() == 0
    })
}

/// A line as tables: whether each value of each field is admitted.
pub(super) struct Line {
    second: Vec<bool>,
    minute: Vec<bool>,
    hour: Vec<bool>,
    day: Vec<bool>,
    month: Vec<bool>,
    weekday: Vec<bool>,
    year: String,
    either: bool,
    fixed: bool,
}

impl Line {
    pub(super) fn read(text: &str) -> Self {
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
        let mut weekday = table(5, 0, 6, &WEEKDAYS);
        // A range or a list may call Sunday 7.
        weekday[0] |= !words[5].starts_with(['*', '?']) && {
            let plain = words[5]
                .split(',')
                .any(|item| item == "7" || item.ends_with("-7"));
            plain && admits(words[5], 7, 0, 7, &WEEKDAYS)
        };
        let restricted = |word: usize| !words[word].starts_with(['*', '?']);
        Self {
            second: table(0, 0, 59, &[]),
            minute: table(1, 0, 59, &[]),
            hour: table(2, 0, 23, &[]),
            day: table(3, 1, 31, &[]),
            month: table(4, 1, 12, &MONTHS),
            weekday,
            year: words[6].to_owned(),
            either: restricted(3) && restricted(5),
            fixed: words[..3].iter().all(|word| !word.contains('*')),
        }
    }

    pub(super) fn matches(&self, civil: &DateTime) -> bool {
        self.second[civil.second() as usize]
            && self.minute[civil.minute() as usize]
            && self.hour[civil.hour() as usize]
            && self.matches_day(civil)
    }

    fn matches_day(&self, civil: &DateTime) -> bool {
        let day = self.day[civil.day() as usize];
        let weekday = self.weekday[civil.weekday().to_sunday_zero_offset() as usize];
        let day = if self.either {
            day || weekday
        } else {
            day && weekday
        };
        day && self.month[civil.month() as usize]
            && admits(&self.year, civil.year().into(), 1970, 2199, &[])
    }
}

/// Some hours around a clock change, second by second.
struct Window {
    zone: &'static str,
    start: Timestamp,
    end: Timestamp,
    /// What clocks show at each instant.
    shown: Vec<(Timestamp, DateTime)>,
    /// Where each civil time belongs, if each is to happen once.
    placed: Vec<(DateTime, Timestamp)>,
}

impl Window {
    fn new(zone: &'static str, around: &str, hours: i64, margin: i64) -> Self {
        let tz = TimeZoneDatabase::bundled().get(zone).unwrap();
        let around: Timestamp = around.parse().unwrap();
        let start = around - SignedDuration::from_hours(hours);
        let end = around + SignedDuration::from_hours(hours);
        let seconds = start.as_second()..end.as_second();
        let instants = seconds.map(|second| Timestamp::from_second(second).unwrap());
        let shown = instants.map(|at| (at, tz.to_datetime(at))).collect();
        let first = tz.to_datetime(start) - margin.hours();
        let last = tz.to_datetime(end) + margin.hours();
        let placed = first
            .series(1.second())
            .take_while(|civil| *civil <= last)
            .map(|civil| (civil, place(&tz, civil)))
            .filter(|(_, at)| (start..end).contains(at))
            .collect();
        Self {
            zone,
            start,
            end,
            shown,
            placed,
        }
    }

    fn expected(&self, line: &str) -> Vec<i64> {
        let line = Line::read(line);
        let found: BTreeSet<Timestamp> = if line.fixed {
            let named = self.placed.iter().filter(|(civil, _)| line.matches(civil));
            named.map(|(_, at)| *at).collect()
        } else {
            let now = self.shown.iter().filter(|(_, civil)| line.matches(civil));
            now.map(|(at, _)| *at).collect()
        };
        found.into_iter().map(|at| at.as_millisecond()).collect()
    }

    fn check(&self, line: &str, probe: u64) {
        let expected = self.expected(line);
        let schedule = cron(line, self.zone);
        let (start, end) = (self.start.as_millisecond(), self.end.as_millisecond());
        let context = format!("`{line}` in {} around {}", self.zone, self.start);
        assert_eq!(forwards(&schedule, start, end), expected, "{context}");
        let mut backwards = backwards(&schedule, start, end);
        backwards.reverse();
        assert_eq!(backwards, expected, "{context}, backwards");
        let count = schedule.count_between(start - 1, end - 1, u64::MAX);
        assert_eq!(count, expected.len() as u64, "{context}, counted");
        let probe = start + (probe % (end - start) as u64) as i64;
        let next = expected.iter().find(|at| **at > probe);
        let prev = expected.iter().rev().find(|at| **at <= probe);
        if next.is_some() {
            assert_eq!(
                schedule.next_after(probe).as_ref(),
                next,
                "{context}, {probe}"
            );
        }
        if prev.is_some() {
            assert_eq!(
                schedule.prev_at_or_before(probe).as_ref(),
                prev,
                "{context}, {probe}"
            );
        }
    }
}

/// Skipped times move on by the gap, repeated ones count at their first pass.
fn place(tz: &TimeZone, civil: DateTime) -> Timestamp {
    tz.to_ambiguous_timestamp(civil).compatible().unwrap()
}

fn forwards(schedule: &Schedule, start: i64, end: i64) -> Vec<i64> {
    let first = schedule.next_after(start - 1);
    let all = std::iter::successors(first, |at| {
        let next = schedule.next_after(*at);
        assert!(next.is_none_or(|next| next > *at));
        next
    });
    all.take_while(|at| *at < end).collect()
}

fn backwards(schedule: &Schedule, start: i64, end: i64) -> Vec<i64> {
    let last = schedule.prev_at_or_before(end - 1);
    let all = std::iter::successors(last, |at| schedule.prev_at_or_before(at - 1));
    all.take_while(|at| *at >= start).collect()
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

/// Day fields that match often enough for a window of hours to see something.
fn day_fields() -> impl Strategy<Value = (String, String, String)> {
    let text = |choices: &'static [&'static str]| {
        prop::sample::select(choices)
            .prop_map(str::to_owned)
            .boxed()
    };
    (
        prop_oneof![
            3 => text(&["*", "?"]),
            1 => text(&["28-31", "1,29-31", "*/2", "1-8,25"]),
            1 => field(1, 31),
        ],
        prop_oneof![
            3 => text(&["*"]),
            1 => text(&["mar,oct", "jan-jun", "2-11", "*/2"]),
        ],
        prop_oneof![
            3 => text(&["*", "?"]),
            1 => text(&["sun", "sat-7", "fri-7", "0-7", "*/2", "mon,7"]),
            1 => field(0, 6),
        ],
    )
}

fn line() -> impl Strategy<Value = String> {
    let hour = prop_oneof![2 => field(0, 23), 3 => field(0, 4), 1 => Just("*".to_owned())];
    let second = prop_oneof![3 => Just(String::new()), 1 => field(0, 59).prop_map(|s| s + " ")];
    (second, field(0, 59), hour, day_fields())
        .prop_map(|(s, m, h, (day, month, weekday))| format!("{s}{m} {h} {day} {month} {weekday}"))
}

fn agree(windows: Vec<Window>, cases: u32) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let case = (0..windows.len(), line(), any::<u64>());
    let outcome = runner.run(&case, |(window, line, probe)| {
        windows[window].check(&line, probe);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn agrees_around_the_changes_of_berlin() {
    let changes = ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"];
    agree(
        changes
            .map(|at| Window::new("Europe/Berlin", at, 5, 2))
            .into(),
        120,
    );
}

#[test]
fn agrees_around_the_changes_of_new_york() {
    // One of them lies beyond the listed changes, where the rule of the zone is computed.
    let changes = [
        "2026-03-08T07:00:00Z",
        "2026-11-01T06:00:00Z",
        "2089-11-06T06:00:00Z",
    ];
    agree(
        changes
            .map(|at| Window::new("America/New_York", at, 5, 2))
            .into(),
        120,
    );
}

#[test]
fn agrees_in_shanghai_with_and_without_changes() {
    let changes = [
        "1986-05-03T18:00:00Z",
        "1991-09-14T17:00:00Z",
        "2026-03-31T16:00:00Z",
    ];
    agree(
        changes
            .map(|at| Window::new("Asia/Shanghai", at, 5, 2))
            .into(),
        120,
    );
}

#[test]
fn agrees_at_the_ends_of_months_in_utc() {
    let ends = [
        "2028-02-29T00:00:00Z",
        "2100-03-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    ];
    agree(ends.map(|at| Window::new("UTC", at, 5, 0)).into(), 120);
}

#[test]
fn agrees_where_half_an_hour_and_where_a_whole_day_is_skipped() {
    let windows = vec![
        Window::new("Australia/Lord_Howe", "2026-10-03T15:30:00Z", 4, 1),
        Window::new("Australia/Lord_Howe", "2026-04-04T15:00:00Z", 4, 1),
        Window::new("Pacific/Apia", "2011-12-30T10:00:00Z", 4, 25),
    ];
    agree(windows, 120);
}

#[test]
fn the_matcher_sees_the_changes() {
    let window = Window::new("Europe/Berlin", "2026-03-29T01:00:00Z", 2, 2);
    assert_eq!(window.expected("30 2 * * *"), [ms("2026-03-29T01:30:00Z")]);
    assert_eq!(window.expected("*/30 2 * * *").len(), 0);
}
