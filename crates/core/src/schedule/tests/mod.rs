//! Examples of what schedules mean; the property tests are in the submodules.

mod brute;
mod calendar;
mod choices;
mod dates;
mod excluded;
mod fuzz;
mod lines;
mod peers;
mod plan;
mod rolled;
mod text;

use jiff::Timestamp;

use super::{AnyDay, Error, Schedule, ScheduleEntry, ScheduleSpec};

fn cron_entry(line: &str, zone: &str) -> ScheduleEntry {
    ScheduleEntry {
        cron: Some(line.to_owned()),
        timezone: Some(zone.to_owned()),
        ..ScheduleEntry::default()
    }
}

fn every_entry(every: &str, anchor: Option<&str>) -> ScheduleEntry {
    ScheduleEntry {
        every: Some(every.to_owned()),
        anchor: anchor.map(str::to_owned),
        ..ScheduleEntry::default()
    }
}

fn at_entry(at: &str) -> ScheduleEntry {
    ScheduleEntry {
        at: Some(at.to_owned()),
        ..ScheduleEntry::default()
    }
}

fn spec(entries: &[ScheduleEntry]) -> ScheduleSpec<'_> {
    ScheduleSpec {
        entries,
        calendar: None,
        jitter: None,
        bounds: None,
    }
}

fn compiled(entries: &[ScheduleEntry]) -> Result<Schedule, Error> {
    let schedule = Schedule::compile(&spec(entries), &AnyDay)?;
    Ok(schedule.expect("there are entries"))
}

fn schedule(entries: &[ScheduleEntry]) -> Schedule {
    compiled(entries).unwrap_or_else(|error| panic!("{error}"))
}

fn cron(line: &str, zone: &str) -> Schedule {
    schedule(&[cron_entry(line, zone)])
}

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn utc(ms: i64) -> String {
    Timestamp::from_millisecond(ms).unwrap().to_string()
}

/// The times in `(after, through]`.
fn times(schedule: &Schedule, after: &str, through: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = ms(after);
    while let Some(next) = schedule.next_after(at).filter(|next| *next <= ms(through)) {
        found.push(utc(next));
        at = next;
    }
    found
}

#[test]
fn a_fixed_time_in_a_gap_is_moved_by_the_length_of_the_gap() {
    let daily = cron("30 2 * * *", "Europe/Berlin");
    // 02:30 does not exist on the 29th: 03:30 summer time stands in for it.
    assert_eq!(
        times(&daily, "2026-03-28T00:00:00Z", "2026-03-30T12:00:00Z"),
        [
            "2026-03-28T01:30:00Z",
            "2026-03-29T01:30:00Z",
            "2026-03-30T00:30:00Z"
        ]
    );
    // The moved time coincides with another one: both are one.
    let both = cron("30 2,3 * * *", "Europe/Berlin");
    assert_eq!(
        times(&both, "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
        ["2026-03-29T01:30:00Z"]
    );
}

#[test]
fn a_fixed_time_in_a_fold_counts_at_its_first_pass() {
    let daily = cron("30 2 * * *", "Europe/Berlin");
    assert_eq!(
        times(&daily, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
}

#[test]
fn any_other_line_follows_the_clock_on_the_wall() {
    let half_hourly = cron("*/30 1-2 * * *", "America/New_York");
    assert_eq!(
        times(&half_hourly, "2026-03-08T00:00:00Z", "2026-03-08T12:00:00Z"),
        ["2026-03-08T06:00:00Z", "2026-03-08T06:30:00Z"]
    );
    let hourly = cron("@hourly", "America/New_York");
    assert_eq!(
        times(&hourly, "2026-11-01T04:00:00Z", "2026-11-01T07:00:00Z"),
        [
            "2026-11-01T05:00:00Z",
            "2026-11-01T06:00:00Z",
            "2026-11-01T07:00:00Z"
        ]
    );
}

#[test]
fn either_day_field_counts_when_both_are_restricted() {
    let either = cron("0 0 13 * fri", "UTC");
    assert_eq!(
        times(&either, "2026-03-10T12:00:00Z", "2026-04-13T12:00:00Z").len(),
        6
    );
    // As in Vixie cron, a field that begins with `*` does not restrict: both must match.
    let both = cron("0 0 */2 * mon", "UTC");
    assert_eq!(
        times(&both, "2026-03-01T12:00:00Z", "2026-03-31T12:00:00Z"),
        ["2026-03-09T00:00:00Z", "2026-03-23T00:00:00Z"]
    );
}

#[test]
fn a_line_that_never_matches_ends_the_search() {
    for zone in ["UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai"] {
        let never = cron("0 0 30 2 *", zone);
        for t in [i64::MIN, -1, 0, ms("2026-01-01T00:00:00Z"), i64::MAX] {
            assert_eq!(never.next_after(t), None);
            assert_eq!(never.prev_at_or_before(t), None);
        }
        assert_eq!(never.count_between(0, i64::MAX, u64::MAX), 0);
    }
}

#[test]
fn rare_times_are_found_across_decades() {
    let rare = cron("0 0 12 29 2 ? 1972,2196", "Europe/Berlin");
    assert_eq!(rare.next_after(0).map(utc).unwrap(), "1972-02-29T11:00:00Z");
    let first = rare.next_after(0).unwrap();
    let last = rare.next_after(first).unwrap();
    assert_eq!(utc(last), "2196-02-29T11:00:00Z");
    assert_eq!(rare.next_after(last), None);
    assert_eq!(rare.prev_at_or_before(i64::MAX), Some(last));
    assert_eq!(rare.prev_at_or_before(last - 1), Some(first));
    assert_eq!(rare.prev_at_or_before(first - 1), None);
}

#[test]
fn the_first_and_the_last_second_of_the_range_count() {
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Niue"] {
        let all = cron("* * * * * *", zone);
        let first = all.next_after(i64::MIN).unwrap();
        let last = all.prev_at_or_before(i64::MAX).unwrap();
        let shown = |at: i64| {
            let at = Timestamp::from_millisecond(at).unwrap();
            at.in_tz(zone).unwrap().datetime().to_string()
        };
        assert_eq!(shown(first), "1970-01-01T00:00:00");
        assert_eq!(shown(last), "2199-12-31T23:59:59");
        assert_eq!(all.next_after(last), None);
        assert_eq!(all.prev_at_or_before(first - 1), None);
    }
}

#[test]
fn intervals_count_from_their_anchor_in_both_directions() {
    let plain = schedule(&[every_entry("250ms", None)]);
    assert_eq!(plain.next_after(0), Some(250));
    assert_eq!(plain.next_after(-1), Some(0));
    assert_eq!(plain.prev_at_or_before(-1), Some(-250));
    assert_eq!(plain.next_after(i64::MAX), None);
    assert_eq!(plain.prev_at_or_before(i64::MIN), None);
    let anchored = schedule(&[every_entry("1h", Some("2026-01-01T00:10:00+01:00"))]);
    assert_eq!(
        times(&anchored, "2025-12-31T21:30:00Z", "2025-12-31T23:30:00Z"),
        ["2025-12-31T22:10:00Z", "2025-12-31T23:10:00Z"]
    );
    assert_eq!(
        anchored.period_at(ms("2025-12-31T22:10:00Z")),
        Some(3_600_000)
    );
}

#[test]
fn counting_an_interval_does_not_walk_it() {
    let tick = schedule(&[every_entry("1ms", None)]);
    assert_eq!(
        tick.count_between(0, 1_000_000_000_000, u64::MAX),
        1_000_000_000_000
    );
    assert_eq!(tick.count_between(i64::MIN, i64::MAX, u64::MAX), u64::MAX);
    assert_eq!(tick.count_between(0, 1000, 7), 7);
    assert_eq!(tick.count_between(5, 5, 7), 0);
    assert_eq!(tick.count_between(9, 5, 7), 0);
    let daily = cron("@daily", "UTC");
    let (from, to) = (ms("2026-01-01T00:00:00Z"), ms("2027-01-01T00:00:00Z"));
    assert_eq!(daily.count_between(from, to, 1000), 365);
    assert_eq!(daily.count_between(from, to, 10), 10);
}

#[test]
fn a_union_merges_what_coincides() {
    let union = schedule(&[
        every_entry("30m", None),
        cron_entry("0 * * * *", "UTC"),
        at_entry("2026-01-01T00:30:00.000Z"),
        at_entry("2026-01-01T00:45:00.001+00:00"),
    ]);
    assert_eq!(
        times(&union, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        [
            "2026-01-01T00:30:00Z",
            "2026-01-01T00:45:00.001Z",
            "2026-01-01T01:00:00Z"
        ]
    );
    let (from, to) = (ms("2026-01-01T00:00:00Z"), ms("2026-01-01T01:00:00Z"));
    assert_eq!(union.count_between(from, to, 100), 3);
    assert_eq!(union.period_at(from), Some(1_800_000));
    assert_eq!(
        union.prev_at_or_before(to - 1).map(utc).unwrap(),
        "2026-01-01T00:45:00.001Z"
    );
}

#[test]
fn a_single_instant_happens_once() {
    let once = schedule(&[at_entry("2026-06-01T00:00:00Z")]);
    let at = ms("2026-06-01T00:00:00Z");
    assert_eq!(once.next_after(at - 1), Some(at));
    assert_eq!(once.next_after(at), None);
    assert_eq!(once.period_at(at), None);
    assert_eq!(once.prev_at_or_before(at), Some(at));
    assert_eq!(once.prev_at_or_before(at - 1), None);
    assert!(Schedule::compile(&spec(&[]), &AnyDay).unwrap().is_none());
}

#[test]
fn milliseconds_round_towards_the_right_second() {
    let tick = cron("* * * * * *", "UTC");
    assert_eq!(tick.next_after(999), Some(1000));
    assert_eq!(tick.next_after(1000), Some(2000));
    assert_eq!(tick.prev_at_or_before(1999), Some(1000));
    assert_eq!(tick.prev_at_or_before(1000), Some(1000));
}
