//! Calendars: how their text is read, what they take away, where times roll, and how edits divide the past from the
//! future.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::date;

use super::super::{
    AnyDay, CalendarEra, CalendarUse, Calendars, DateSet, Error, Roll, Schedule, ScheduleEntry,
    ScheduleSpec,
};
use super::{at_entry, cron_entry, every_entry, ms, spec, times, utc};
use crate::model::{CalendarKind, CalendarName, CalendarSpec, NamespaceName, SpecError, Weekday};

const WORKING: &[Weekday] = &[
    Weekday::Mon,
    Weekday::Tue,
    Weekday::Wed,
    Weekday::Thu,
    Weekday::Fri,
];

pub(super) fn calendar(weekly: &[Weekday], include: &[&str], exclude: &[&str]) -> CalendarSpec {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    CalendarSpec {
        kind: CalendarKind::Calendar,
        name: name("days"),
        namespace: NamespaceName::default(),
        description: String::new(),
        weekly: weekly.to_vec(),
        include: owned(include),
        exclude: owned(exclude),
    }
}

pub(super) fn name(text: &str) -> CalendarName {
    CalendarName::new(text).unwrap()
}

/// Calendars by name, each with its versions and when they began.
pub(super) struct Known(pub(super) BTreeMap<&'static str, Vec<(i64, CalendarSpec)>>);

impl Calendars for Known {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let era = |(from, spec): &(i64, CalendarSpec)| CalendarEra {
            from: *from,
            days: Arc::new(DateSet::compile(spec).unwrap()),
        };
        let versions = self.0.get(name.as_str())?;
        Some(versions.iter().map(era).collect())
    }
}

pub(super) fn known() -> Known {
    let always = |spec| vec![(i64::MIN, spec)];
    Known(BTreeMap::from([
        (
            "working",
            always(calendar(
                WORKING,
                &["2026-10-10"],
                &["12-25", "2026-10-01..2026-10-07"],
            )),
        ),
        ("never", always(calendar(&[], &[], &[]))),
        ("once", always(calendar(&[], &["2026-06-10"], &[]))),
        (
            "closed",
            always(calendar(&[], &["2026-05-01..2026-05-03", "02-29"], &[])),
        ),
    ]))
}

pub(super) fn only(text: &str, roll: Roll) -> CalendarUse {
    CalendarUse {
        only: vec![name(text)],
        roll,
        ..CalendarUse::default()
    }
}

pub(super) fn compiled(
    entry: ScheduleEntry,
    used: &CalendarUse,
    known: &Known,
) -> Result<Schedule, Error> {
    let entries = [entry];
    let spec = ScheduleSpec {
        calendar: Some(used),
        ..spec(&entries)
    };
    Schedule::compile(&spec, known).map(|schedule| schedule.expect("there are entries"))
}

fn on(entry: ScheduleEntry, used: &CalendarUse) -> Schedule {
    compiled(entry, used, &known()).unwrap()
}

#[test]
fn a_calendar_is_its_week_less_exceptions_and_more() {
    let set = DateSet::compile(&known().0["working"][0].1).unwrap();
    let in_it = [
        date(2026, 9, 30),
        date(2026, 10, 8),
        date(2026, 10, 10),
        date(2026, 12, 24),
    ];
    let not = [
        date(2026, 10, 1),
        date(2026, 10, 7),
        date(2026, 10, 11),
        date(2026, 12, 25),
        date(2031, 12, 25),
        date(2026, 10, 3),
    ];
    assert!(in_it.iter().all(|date| set.contains(*date)));
    assert!(!not.iter().any(|date| set.contains(*date)));
    // What is included stays, whatever is excluded.
    let both = DateSet::compile(&calendar(WORKING, &["02-29"], &["2028-02-29"])).unwrap();
    assert!(both.contains(date(2028, 2, 29)) && both.contains(date(2032, 2, 29)));
    assert!(!both.contains(date(2032, 2, 28)));
    assert!(DateSet::every_day().contains(date(2026, 1, 1)));
    assert!(!DateSet::no_day().contains(date(2026, 1, 1)));
}

#[test]
fn a_date_that_is_not_one_is_refused_with_its_key() {
    let refused = |include: &[&str], exclude: &[&str]| -> SpecError {
        DateSet::compile(&calendar(WORKING, include, exclude)).unwrap_err()
    };
    let error = refused(&["2026-01-01", "2026-02-30"], &[]);
    assert_eq!(error.field, "include[1]");
    assert_eq!(
        error.message,
        "`2026-02-30` does not exist: write year, month and day, as in `2026-10-10`"
    );
    let cases = [
        ("13-01", "is not a day of any year"),
        ("02-30", "is not a day of any year"),
        ("2026-10-07..2026-10-01", "runs backwards"),
        ("2026-10-07..10-01", "is not understood"),
        ("2026-1-1", "is not understood"),
        ("26-01-01", "is not understood"),
        ("1026-01-01", "outside 1900 to 2999"),
        ("christmas", "write a date `2026-10-10`"),
        ("", "is not understood"),
        ("2026-10-01..", "is not understood"),
        ("2026-10-01..2026-10-02..2026-10-03", "is not understood"),
        ("２０２６-10-01", "is not understood"),
    ];
    for (text, expected) in cases {
        let error = refused(&[], &[text]);
        assert_eq!(error.field, "exclude[0]");
        assert!(
            error.message.contains(expected),
            "{text}: {}",
            error.message
        );
    }
    let many = vec!["12-25"; 5001];
    let error = refused(&many, &[]);
    assert_eq!(error.field, "include");
    assert!(
        error
            .message
            .contains("5001 dates are too many: write up to 5000")
    );
}

#[test]
fn times_on_days_that_do_not_count_are_left_out() {
    let used = only("working", Roll::None);
    let daily = on(cron_entry("0 9 * * *", "Asia/Shanghai"), &used);
    assert_eq!(
        times(&daily, "2026-09-29T12:00:00Z", "2026-10-12T12:00:00Z"),
        [
            "2026-09-30T01:00:00Z",
            "2026-10-08T01:00:00Z",
            "2026-10-09T01:00:00Z",
            "2026-10-10T01:00:00Z",
            "2026-10-12T01:00:00Z"
        ]
    );
    let minus = CalendarUse {
        minus: vec![name("closed")],
        ..only("working", Roll::None)
    };
    let daily = on(cron_entry("0 9 * * *", "UTC"), &minus);
    // The 1st of May 2026 is a Friday.
    assert_eq!(
        times(&daily, "2026-04-30T00:00:00Z", "2026-05-04T12:00:00Z"),
        ["2026-04-30T09:00:00Z", "2026-05-04T09:00:00Z"]
    );
}

#[test]
fn an_interval_asks_for_the_local_date() {
    let entry = ScheduleEntry {
        timezone: Some("Asia/Shanghai".to_owned()),
        ..every_entry("6h", None)
    };
    let working = on(entry, &only("working", Roll::None));
    // Friday the 9th and Saturday the 10th count; in Shanghai the 9th begins at 16:00 of the 8th.
    assert_eq!(
        times(&working, "2026-10-10T11:00:00Z", "2026-10-11T22:00:00Z"),
        ["2026-10-10T12:00:00Z", "2026-10-11T18:00:00Z"]
    );
    let ticking = on(every_entry("1ms", None), &only("once", Roll::None));
    let (first, last) = (ms("2026-06-10T00:00:00Z"), ms("2026-06-10T23:59:59.999Z"));
    assert_eq!(ticking.next_after(0), Some(first));
    assert_eq!(ticking.next_after(last), None);
    assert_eq!(ticking.prev_at_or_before(i64::MAX), Some(last));
    assert_eq!(ticking.prev_at_or_before(first - 1), None);
    assert_eq!(ticking.count_between(0, i64::MAX, u64::MAX), 86_400_000);
}

#[test]
fn a_day_that_returns_counts_again() {
    // At 00:01 on the 7th, clocks of St John's went back to 23:01 on the 6th.
    let entry = ScheduleEntry {
        timezone: Some("America/St_Johns".to_owned()),
        ..every_entry("20m", None)
    };
    let days = vec![(0, calendar(&[], &["2010-11-06"], &[]))];
    let known = Known(BTreeMap::from([("days", days)]));
    let sixth = compiled(entry, &only("days", Roll::None), &known).unwrap();
    let last = [
        "2010-11-07T02:20:00Z",
        "2010-11-07T02:40:00Z",
        "2010-11-07T03:00:00Z",
        "2010-11-07T03:20:00Z",
    ];
    assert_eq!(
        times(&sixth, "2010-11-07T02:00:00Z", "2011-01-01T00:00:00Z"),
        last
    );
    assert_eq!(sixth.count_between(0, i64::MAX, 1000), 75);
    let days = vec![(0, calendar(&[], &["2010-11-07"], &[]))];
    let known = Known(BTreeMap::from([("days", days)]));
    let entry = ScheduleEntry {
        timezone: Some("America/St_Johns".to_owned()),
        ..every_entry("30s", None)
    };
    let seventh = compiled(entry, &only("days", Roll::None), &known).unwrap();
    let before = seventh.prev_at_or_before(ms("2010-11-07T03:15:00Z"));
    assert_eq!(before.map(utc).unwrap(), "2010-11-07T02:30:30Z");
}

#[test]
fn a_time_rolls_to_a_day_that_counts() {
    // The 1st of a month: Sunday the 1st of February and March, the holiday week of October, Sunday the 1st of November.
    let rolled = |roll| {
        let monthly = on(
            cron_entry("30 8 1 2,3,10,11 *", "UTC"),
            &only("working", roll),
        );
        times(&monthly, "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z")
    };
    let day = |days: &[&str]| -> Vec<String> {
        days.iter()
            .map(|day| format!("2026-{day}T08:30:00Z"))
            .collect()
    };
    assert_eq!(rolled(Roll::None), day(&[]));
    assert_eq!(
        rolled(Roll::Next),
        day(&["02-02", "03-02", "10-08", "11-02"])
    );
    assert_eq!(
        rolled(Roll::Previous),
        day(&["01-30", "02-27", "09-30", "10-30"])
    );
    assert_eq!(
        rolled(Roll::Nearest),
        day(&["02-02", "03-02", "09-30", "11-02"])
    );
    // As far either way: the later day.
    let tie = on(
        cron_entry("0 9 4 10 *", "UTC"),
        &only("working", Roll::Nearest),
    );
    assert_eq!(
        tie.next_after(ms("2026-01-01T00:00:00Z")).map(utc).unwrap(),
        "2026-10-08T09:00:00Z"
    );
    // Several times that go to one day are one.
    let weekend = on(cron_entry("0 9 * * *", "UTC"), &only("working", Roll::Next));
    assert_eq!(
        times(&weekend, "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"),
        ["2026-01-09T09:00:00Z", "2026-01-12T09:00:00Z"]
    );
}

#[test]
fn an_instant_rolls_with_its_time_of_day() {
    let local = ScheduleEntry {
        timezone: Some("Europe/Berlin".to_owned()),
        ..at_entry("2026-10-03T08:00:00")
    };
    let at = |entry: &ScheduleEntry, roll| {
        let schedule = on(entry.clone(), &only("working", roll));
        times(&schedule, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
    };
    assert!(at(&local, Roll::None).is_empty());
    assert_eq!(at(&local, Roll::Next), ["2026-10-08T06:00:00Z"]);
    assert_eq!(at(&local, Roll::Previous), ["2026-09-30T06:00:00Z"]);
    assert_eq!(at(&local, Roll::Nearest), ["2026-09-30T06:00:00Z"]);
    // An instant with an offset falls on a date of the zone: the 26th of October in Shanghai is a Monday.
    let shanghai = ScheduleEntry {
        timezone: Some("Asia/Shanghai".to_owned()),
        ..at_entry("2026-10-25T20:00:00Z")
    };
    assert_eq!(at(&shanghai, Roll::None), ["2026-10-25T20:00:00Z"]);
    // The second pass of a fold is that instant and no other.
    let second = ScheduleEntry {
        timezone: Some("Europe/Berlin".to_owned()),
        ..at_entry("2026-10-25T01:30:00Z")
    };
    let sunday = Known(BTreeMap::from([(
        "sunday",
        vec![(0, calendar(&[Weekday::Sun], &[], &[]))],
    )]));
    let once = compiled(second, &only("sunday", Roll::Next), &sunday).unwrap();
    assert_eq!(once.next_after(0), Some(ms("2026-10-25T01:30:00Z")));
}

#[test]
fn a_roll_reaches_four_hundred_days() {
    let rolled = |include: &str, roll| {
        let days = vec![(0, calendar(&[], &[include], &[]))];
        let known = Known(BTreeMap::from([("days", days)]));
        let entry = cron_entry("0 0 0 1 1 ? 2026", "UTC");
        let schedule = compiled(entry, &only("days", roll), &known).unwrap();
        (schedule.next_after(0), schedule.prev_at_or_before(i64::MAX))
    };
    let (far, near) = (("2027-02-05", "2027-02-06"), ("2024-11-27", "2024-11-26"));
    for roll in [Roll::Next, Roll::Nearest] {
        let at = ms("2027-02-05T00:00:00Z");
        assert_eq!(rolled(far.0, roll), (Some(at), Some(at)));
        assert_eq!(rolled(far.1, roll), (None, None));
    }
    for roll in [Roll::Previous, Roll::Nearest] {
        let at = ms("2024-11-27T00:00:00Z");
        assert_eq!(rolled(near.0, roll), (Some(at), Some(at)));
        assert_eq!(rolled(near.1, roll), (None, None));
    }
}

#[test]
fn a_calendar_without_days_ends_every_search() {
    let seconds = || cron_entry("* * * * * *", "Europe/Berlin");
    let fixed = || cron_entry("0 2 * * *", "America/New_York");
    let entries = [
        (seconds(), Roll::None),
        (fixed(), Roll::None),
        (fixed(), Roll::Next),
        (fixed(), Roll::Previous),
        (fixed(), Roll::Nearest),
        (every_entry("1ms", None), Roll::None),
        (at_entry("2026-01-01T00:00:00Z"), Roll::Nearest),
    ];
    for (entry, roll) in entries {
        let never = on(entry, &only("never", roll));
        for t in [i64::MIN, 0, ms("2026-01-01T00:00:00Z"), i64::MAX] {
            assert_eq!(never.next_after(t), None);
            assert_eq!(never.prev_at_or_before(t), None);
        }
        assert_eq!(never.count_between(i64::MIN, i64::MAX, u64::MAX), 0);
    }
}

#[test]
fn an_edit_of_a_calendar_changes_later_times_only() {
    let edited = ms("2026-03-04T09:00:00Z");
    let versions = vec![
        (ms("2026-01-01T00:00:00Z"), calendar(WORKING, &[], &[])),
        (edited, calendar(&[Weekday::Sat, Weekday::Sun], &[], &[])),
    ];
    let known = Known(BTreeMap::from([("days", versions)]));
    let daily = compiled(
        cron_entry("0 9 * * *", "UTC"),
        &only("days", Roll::None),
        &known,
    )
    .unwrap();
    // The 4th is a Wednesday; the time of the edit itself belongs to what was in force.
    let expected = [
        "2026-03-03T09:00:00Z",
        "2026-03-04T09:00:00Z",
        "2026-03-07T09:00:00Z",
        "2026-03-08T09:00:00Z",
        "2026-03-14T09:00:00Z",
    ];
    assert_eq!(
        times(&daily, "2026-03-02T12:00:00Z", "2026-03-14T12:00:00Z"),
        expected
    );
    let last = std::iter::successors(Some(ms(expected[4])), |at| daily.prev_at_or_before(at - 1));
    let back: Vec<String> = last.take(5).map(utc).collect();
    assert!(back.iter().rev().eq(expected.iter()));
    let count = |from: &str, to: &str| daily.count_between(ms(from), ms(to), 100);
    assert_eq!(count("2026-03-02T12:00:00Z", "2026-03-14T12:00:00Z"), 5);
    // What the oldest version says counts before it, too.
    assert_eq!(
        daily
            .prev_at_or_before(ms("2020-03-08T12:00:00Z"))
            .map(utc)
            .unwrap(),
        "2020-03-06T09:00:00Z"
    );
}

#[test]
fn calendars_that_cannot_be_used_are_refused() {
    let refused =
        |entry: ScheduleEntry, used: &CalendarUse| compiled(entry, used, &known()).unwrap_err();
    let daily = || cron_entry("0 9 * * *", "UTC");
    let unknown = CalendarUse {
        minus: vec![name("closed"), name("nowhere")],
        ..CalendarUse::default()
    };
    let error = refused(daily(), &unknown);
    assert_eq!(error.field(), "calendar.minus[1]");
    assert!(
        error.to_string().contains("no calendar `nowhere`"),
        "{error}"
    );
    let error = refused(daily(), &CalendarUse::default());
    assert_eq!(error.field(), "calendar");
    let many = CalendarUse {
        only: vec![name("working"); 17],
        ..CalendarUse::default()
    };
    assert_eq!(refused(daily(), &many).field(), "calendar.only");
    for entry in [every_entry("5s", None), cron_entry("* 9 * * *", "UTC")] {
        let error = refused(entry, &only("working", Roll::Next));
        assert_eq!(error.field(), "calendar.roll");
        assert!(
            error.to_string().contains("entry 1 names no times of day"),
            "{error}"
        );
    }
    let used = only("working", Roll::None);
    let alone = ScheduleSpec {
        calendar: Some(&used),
        ..spec(&[])
    };
    assert_eq!(
        Schedule::compile(&alone, &AnyDay).unwrap_err().field(),
        "calendar"
    );
}
