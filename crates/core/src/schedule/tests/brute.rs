//! Schedules around clock changes, against a matcher that looks at every second by itself.
//!
//! The matcher shares nothing with the code under test: it asks of each value whether the text of a field admits it,
//! walks from day to day to learn where a time rolls, and takes what clocks show, and where skipped and repeated civil
//! times belong, from jiff's own conversions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;

use super::lines::{Reading, line};
use super::ms;
use super::plan::{Plan, plan};
use crate::schedule::{DstFold, DstGap, Schedule};

/// Some hours around a clock change, second by second.
struct Window {
    zone: &'static str,
    start: Timestamp,
    end: Timestamp,
    /// What clocks show at each instant.
    shown: Vec<(Timestamp, DateTime)>,
    /// Where each civil time may be put.
    placed: Vec<(DateTime, Place)>,
}

#[derive(Clone, Copy)]
enum Place {
    Once(Timestamp),
    /// Shifted, or at the change.
    Gap(Timestamp, Timestamp),
    Fold(Timestamp, Timestamp),
}

impl Place {
    fn of(tz: &TimeZone, civil: DateTime) -> Self {
        let ambiguous = tz.to_ambiguous_timestamp(civil);
        let (early, late) = (ambiguous.earlier().unwrap(), ambiguous.later().unwrap());
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => Place::Once(early),
            AmbiguousOffset::Fold { .. } => Place::Fold(early, late),
            AmbiguousOffset::Gap { .. } => {
                let change = tz.following(early - SignedDuration::from_secs(1));
                Place::Gap(
                    late,
                    change.map(|change| change.timestamp()).next().unwrap(),
                )
            }
        }
    }

    fn instants(self, gap: DstGap, fold: DstFold) -> Vec<Timestamp> {
        match (self, gap, fold) {
            (Place::Once(at), _, _) => vec![at],
            (Place::Gap(..), DstGap::Skip, _) => vec![],
            (Place::Gap(shifted, _), DstGap::Shift, _) => vec![shifted],
            (Place::Gap(_, change), DstGap::AtTransition, _) => vec![change],
            (Place::Fold(early, _), _, DstFold::First) => vec![early],
            (Place::Fold(_, late), _, DstFold::Last) => vec![late],
            (Place::Fold(early, late), _, DstFold::Both) => vec![early, late],
        }
    }
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
            .map(|civil| (civil, Place::of(&tz, civil)))
            .collect();
        Self {
            zone,
            start,
            end,
            shown,
            placed,
        }
    }

    fn day(&self) -> Date {
        self.shown[self.shown.len() / 2].1.date()
    }

    /// What each era of the plan says, put together.
    fn expected(&self, plan: &Plan) -> Vec<i64> {
        let mut found = BTreeSet::new();
        for era in 0..plan.eras() {
            let times = self.expected_in(plan, era);
            found.extend(times.into_iter().filter(|at| plan.in_force(era, *at)));
        }
        found
            .into_iter()
            .filter(|at| plan.within_bounds(*at))
            .collect()
    }

    fn expected_in(&self, plan: &Plan, era: usize) -> Vec<i64> {
        let reading = Reading::new(&plan.line, plan.both_days);
        let mut days = BTreeMap::new();
        let mut fires = |date: Date| {
            *days
                .entry(date)
                .or_insert_with(|| plan.fires(&reading, date, era))
        };
        let mut found = Vec::new();
        if reading.fixed {
            for (civil, place) in &self.placed {
                if reading.matches_time(civil) && fires(civil.date()) {
                    found.extend(place.instants(plan.gap, plan.fold));
                }
            }
            found.retain(|at| (self.start..self.end).contains(at));
        } else {
            let now = self.shown.iter();
            let now = now.filter(|(_, civil)| reading.matches_time(civil) && fires(civil.date()));
            found.extend(now.map(|(at, _)| *at));
        }
        found.into_iter().map(|at| at.as_millisecond()).collect()
    }

    /// The beats of an interval, in seconds from the epoch, on dates that count.
    fn expected_beats(&self, plan: &Plan, every: i64) -> Vec<i64> {
        let beats = self
            .shown
            .iter()
            .filter(|(at, _)| at.as_second() % every == 0);
        let era = |at: i64| {
            (0..plan.eras())
                .find(|era| plan.in_force(*era, at))
                .unwrap()
        };
        let beats = beats.map(|(at, civil)| (at.as_millisecond(), civil.date()));
        let counting = beats.filter(|(at, date)| plan.counts(*date, era(*at)));
        let times = counting.map(|(at, _)| at);
        times.filter(|at| plan.within_bounds(*at)).collect()
    }

    fn check(&self, plan: &Plan, probe: u64) {
        self.compare(plan, &plan.compile(self.zone), &self.expected(plan), probe);
    }

    fn check_beats(&self, plan: &Plan, every: i64, probe: u64) {
        let schedule = plan.compile_every(&format!("{every}s"), self.zone);
        self.compare(plan, &schedule, &self.expected_beats(plan, every), probe);
    }

    fn compare(&self, plan: &Plan, schedule: &Schedule, expected: &[i64], probe: u64) {
        let (start, end) = (self.start.as_millisecond(), self.end.as_millisecond());
        let context = format!("{plan:?} in {} around {}", self.zone, self.start);
        assert_eq!(forwards(schedule, start, end), expected, "{context}");
        let mut backwards = backwards(schedule, start, end);
        backwards.reverse();
        assert_eq!(backwards, expected, "{context}, backwards");
        let count = |from: i64, to: i64| schedule.count_between(from, to, u64::MAX);
        assert_eq!(
            count(start - 1, end - 1),
            expected.len() as u64,
            "{context}, counted"
        );
        let probe = start + (probe % (end - start) as u64) as i64;
        let before = expected.iter().filter(|at| **at <= probe).count();
        assert_eq!(
            count(start - 1, probe),
            before as u64,
            "{context}, counted to {probe}"
        );
        if let Some(next) = expected.get(before) {
            assert_eq!(
                schedule.next_after(probe),
                Some(*next),
                "{context}, {probe}"
            );
        }
        if let Some(prev) = before.checked_sub(1).map(|last| expected[last]) {
            assert_eq!(
                schedule.prev_at_or_before(probe),
                Some(prev),
                "{context}, {probe}"
            );
        }
    }
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

fn agree(windows: Vec<Window>, cases: u32) {
    compare_all(&windows, cases, Window::check);
}

fn compare_all(windows: &[Window], cases: u32, check: impl Fn(&Window, &Plan, u64)) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let case = (0..windows.len()).prop_flat_map(|window| {
        let (day, start) = (windows[window].day(), windows[window].start);
        let plan = (line(), Just(day)).prop_flat_map(move |(line, day)| plan(line, day, start));
        (Just(window), plan, any::<u64>())
    });
    let outcome = runner.run(&case, |(window, plan, probe)| {
        check(&windows[window], &plan, probe);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn around(zone: &'static str, changes: &[&str], margin: i64) -> Vec<Window> {
    let window = |at: &&str| Window::new(zone, at, 4, margin);
    changes.iter().map(window).collect()
}

#[test]
fn agrees_around_the_changes_of_berlin() {
    let changes = ["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"];
    agree(around("Europe/Berlin", &changes, 2), 70);
}

#[test]
fn agrees_around_the_changes_of_new_york() {
    // One of them lies beyond the listed changes, where the rule of the zone is computed.
    let changes = [
        "2026-03-08T07:00:00Z",
        "2026-11-01T06:00:00Z",
        "2089-11-06T06:00:00Z",
    ];
    agree(around("America/New_York", &changes, 2), 70);
}

#[test]
fn agrees_where_a_fold_goes_back_over_midnight() {
    // In 2010 clocks of St John's went from 00:01 back to 23:01 of the day before.
    let changes = [
        "2026-03-08T05:30:00Z",
        "2026-11-01T04:30:00Z",
        "2010-11-07T02:31:00Z",
        "2010-03-14T03:31:00Z",
    ];
    agree(around("America/St_Johns", &changes, 2), 70);
}

#[test]
fn agrees_in_shanghai_with_and_without_changes() {
    let changes = [
        "1986-05-03T18:00:00Z",
        "1991-09-14T17:00:00Z",
        "2026-03-31T16:00:00Z",
    ];
    agree(around("Asia/Shanghai", &changes, 2), 60);
}

#[test]
fn agrees_around_the_month_of_fasting_in_casablanca() {
    let changes = ["2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"];
    agree(around("Africa/Casablanca", &changes, 2), 60);
}

#[test]
fn agrees_at_the_ends_of_months_in_utc() {
    let ends = [
        "2028-02-29T00:00:00Z",
        "2100-03-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    ];
    agree(around("UTC", &ends, 0), 60);
}

#[test]
fn agrees_where_half_an_hour_and_where_a_whole_day_is_skipped() {
    let windows = vec![
        Window::new("Australia/Lord_Howe", "2026-10-03T15:30:00Z", 4, 1),
        Window::new("Australia/Lord_Howe", "2026-04-04T15:00:00Z", 4, 1),
        Window::new("Pacific/Apia", "2011-12-30T10:00:00Z", 4, 25),
    ];
    agree(windows, 70);
}

#[test]
fn intervals_agree_on_the_dates_that_clocks_show() {
    let windows = vec![
        Window::new("America/St_Johns", "2010-11-07T02:31:00Z", 5, 0),
        Window::new("Pacific/Apia", "2011-12-30T10:00:00Z", 5, 0),
        Window::new("America/New_York", "2026-11-01T06:00:00Z", 5, 0),
    ];
    compare_all(&windows, 60, |window, plan, probe| {
        window.check_beats(plan, [1, 7, 60, 3600, 5000][probe as usize % 5], probe);
    });
}

#[test]
fn the_matcher_sees_the_changes() {
    let window = Window::new("Europe/Berlin", "2026-03-29T01:00:00Z", 2, 2);
    let expected = |line: &str| window.expected(&Plan::plain(line));
    assert_eq!(expected("30 2 * * *"), [ms("2026-03-29T01:30:00Z")]);
    assert_eq!(expected("30 2 * * sun#5"), [ms("2026-03-29T01:30:00Z")]);
    assert_eq!(expected("30 2 L-2 * *"), [ms("2026-03-29T01:30:00Z")]);
    assert_eq!(expected("*/30 2 * * *").len(), 0);
    let skipped = Plan {
        gap: DstGap::Skip,
        ..Plan::plain("30 2 * * *")
    };
    assert_eq!(window.expected(&skipped).len(), 0);
}
