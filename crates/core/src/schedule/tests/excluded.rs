//! What is said about times that make no occurrence.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{
    AnyDay, Bounds, DstFold, DstGap, Excluded, Exclusion, Roll, Schedule, ScheduleEntry,
    ScheduleSpec,
};
use super::dates::{Known, calendar, compiled, known, name, only};
use super::lines::{Reading, line};
use super::{at_entry, cron_entry, every_entry, ms, schedule, spec, utc};
use crate::model::Weekday;

fn rows(schedule: &Schedule, after: &str, through: &str) -> Vec<Excluded> {
    schedule.excluded_between(ms(after), ms(through), 1000)
}

/// First, last, count and the first local time of each row.
fn brief(rows: &[Excluded]) -> Vec<(String, String, u64, &str)> {
    let row = |row: &Excluded| (utc(row.first), utc(row.last), row.count);
    let brief = rows.iter().map(|excluded| {
        let (first, last, count) = row(excluded);
        (first, last, count, excluded.local_first.as_str())
    });
    brief.collect()
}

fn by(calendar: &str, rolled_to: Option<&str>) -> Exclusion {
    Exclusion::Calendar {
        name: name(calendar),
        rolled_to: rolled_to.map(ms),
    }
}

#[test]
fn days_that_do_not_count_are_rows_of_all_their_times() {
    let used = only("working", Roll::None);
    let minutely = compiled(cron_entry("* * * * *", "Europe/Berlin"), &used, &known()).unwrap();
    let found = rows(&minutely, "2026-01-09T12:00:00Z", "2026-01-17T11:00:00Z");
    assert_eq!(
        brief(&found),
        [
            (
                "2026-01-09T23:00:00Z".to_owned(),
                "2026-01-11T22:59:00Z".to_owned(),
                2880,
                "2026-01-10T00:00:00"
            ),
            (
                "2026-01-16T23:00:00Z".to_owned(),
                "2026-01-17T11:00:00Z".to_owned(),
                721,
                "2026-01-17T00:00:00"
            ),
        ]
    );
    assert_eq!(found[0].why, by("working", None));
    assert_eq!(found[0].local_last, "2026-01-11T23:59:00");
    assert_eq!(
        (found[0].entry, found[0].timezone.as_str()),
        (1, "Europe/Berlin")
    );
    let ticking = ScheduleEntry {
        timezone: Some("Europe/Berlin".to_owned()),
        ..every_entry("1m", None)
    };
    let ticking = compiled(ticking, &used, &known()).unwrap();
    assert_eq!(
        rows(&ticking, "2026-01-09T12:00:00Z", "2026-01-17T11:00:00Z"),
        found
    );
}

#[test]
fn a_rolled_time_says_where_it_went() {
    let used = only("working", Roll::Next);
    let daily = compiled(cron_entry("0,30 9 * * *", "UTC"), &used, &known()).unwrap();
    let found = rows(&daily, "2026-01-09T12:00:00Z", "2026-01-12T12:00:00Z");
    assert_eq!(
        brief(&found),
        [(
            "2026-01-10T09:00:00Z".to_owned(),
            "2026-01-11T09:30:00Z".to_owned(),
            4,
            "2026-01-10T09:00:00"
        )]
    );
    assert_eq!(found[0].why, by("working", Some("2026-01-12T09:00:00Z")));
    let once = compiled(at_entry("2026-01-10T09:00:00Z"), &used, &known()).unwrap();
    let found = rows(&once, "2026-01-09T12:00:00Z", "2026-01-12T12:00:00Z");
    assert_eq!(found[0].why, by("working", Some("2026-01-12T09:00:00Z")));
    let never = compiled(
        cron_entry("0 9 10 1 *", "UTC"),
        &only("never", Roll::Next),
        &known(),
    )
    .unwrap();
    assert_eq!(
        rows(&never, "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")[0].why,
        by("never", None)
    );
}

#[test]
fn clock_changes_explain_what_is_missing() {
    let daily = |gap, fold| {
        schedule(&[ScheduleEntry {
            dst_gap: Some(gap),
            dst_fold: Some(fold),
            ..cron_entry("15,30 2 * * *", "Europe/Berlin")
        }])
    };
    let spring = |gap| {
        rows(
            &daily(gap, DstFold::Both),
            "2026-03-20T00:00:00Z",
            "2026-04-01T00:00:00Z",
        )
    };
    let change = "2026-03-29T01:00:00Z";
    for (gap, why) in [
        (DstGap::Skip, Exclusion::DstGapSkipped),
        (
            DstGap::Shift,
            Exclusion::DstGapMoved {
                to: ms("2026-03-29T01:15:00Z"),
            },
        ),
        (
            DstGap::AtTransition,
            Exclusion::DstGapMoved { to: ms(change) },
        ),
    ] {
        let found = spring(gap);
        assert_eq!(
            brief(&found),
            [(
                change.to_owned(),
                change.to_owned(),
                2,
                "2026-03-29T02:15:00"
            )]
        );
        assert_eq!(found[0].local_last, "2026-03-29T02:30:00");
        assert_eq!(found[0].why, why);
    }
    let autumn = |fold| {
        rows(
            &daily(DstGap::Shift, fold),
            "2026-10-20T00:00:00Z",
            "2026-11-01T00:00:00Z",
        )
    };
    assert!(autumn(DstFold::Both).is_empty());
    for (fold, hour) in [(DstFold::First, "01"), (DstFold::Last, "00")] {
        let found = autumn(fold);
        let at = |minute| format!("2026-10-25T{hour}:{minute}:00Z");
        assert_eq!(
            brief(&found),
            [(at("15"), at("30"), 2, "2026-10-25T02:15:00")]
        );
        assert_eq!(found[0].why, Exclusion::FoldNotChosen);
    }
    // A line that follows the clock has nothing to say about folds, and in a gap clocks show none of its times.
    let hourly = schedule(&[cron_entry("*/30 * * * *", "Europe/Berlin")]);
    let found = rows(&hourly, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    assert_eq!(
        brief(&found),
        [(
            change.to_owned(),
            change.to_owned(),
            2,
            "2026-03-29T02:00:00"
        )]
    );
    assert_eq!(found[0].why, Exclusion::DstGapSkipped);
}

#[test]
fn clock_changes_explain_local_instants() {
    let local = |text: &str, gap, fold| {
        let entry = ScheduleEntry {
            timezone: Some("Europe/Berlin".to_owned()),
            dst_gap: Some(gap),
            dst_fold: Some(fold),
            ..at_entry(text)
        };
        let found = rows(
            &schedule(&[entry]),
            "2026-01-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        );
        found
            .into_iter()
            .map(|row| (utc(row.first), row.why))
            .collect::<Vec<_>>()
    };
    let change = || "2026-03-29T01:00:00Z".to_owned();
    let skipped = "2026-03-29T02:30:00";
    assert_eq!(
        local(skipped, DstGap::Skip, DstFold::First),
        [(change(), Exclusion::DstGapSkipped)]
    );
    let to = ms("2026-03-29T01:30:00Z");
    assert_eq!(
        local(skipped, DstGap::Shift, DstFold::First),
        [(change(), Exclusion::DstGapMoved { to })]
    );
    let repeated = "2026-10-25T02:30:00";
    let other = |hour: u32| {
        vec![(
            format!("2026-10-25T0{hour}:30:00Z"),
            Exclusion::FoldNotChosen,
        )]
    };
    assert_eq!(local(repeated, DstGap::Skip, DstFold::First), other(1));
    assert_eq!(local(repeated, DstGap::Skip, DstFold::Last), other(0));
    assert!(local(repeated, DstGap::Skip, DstFold::Both).is_empty());
    assert!(local("2026-06-01T00:00:00", DstGap::Skip, DstFold::First).is_empty());
}

#[test]
fn bounds_explain_what_lies_outside() {
    let entries = [cron_entry("0 * * * *", "UTC"), every_entry("7d", None)];
    let bounds = Bounds {
        start: Some("2026-01-01T10:30:00Z".to_owned()),
        end: Some("2026-01-01T20:00:00Z".to_owned()),
        max_fires: None,
    };
    let spec = ScheduleSpec {
        bounds: Some(&bounds),
        ..spec(&entries)
    };
    let schedule = Schedule::compile(&spec, &AnyDay).unwrap().unwrap();
    let found = rows(&schedule, "2025-12-31T23:00:00Z", "2026-01-02T00:00:00Z");
    let time = |hour: &str| format!("2026-01-{hour}:00:00Z");
    assert_eq!(
        brief(&found),
        [
            (time("01T00"), time("01T10"), 11, "2026-01-01T00:00:00"),
            (time("01T00"), time("01T00"), 1, "2026-01-01T00:00:00"),
            (time("01T20"), time("02T00"), 5, "2026-01-01T20:00:00"),
        ]
    );
    assert_eq!((found[0].entry, found[1].entry), (1, 2));
    assert_eq!(found[0].why, Exclusion::BeforeStart);
    assert_eq!(found[2].why, Exclusion::AfterEnd);
    assert_eq!(
        schedule.excluded_between(ms("2025-12-31T23:00:00Z"), i64::MAX, 2),
        found[..2]
    );
}

#[test]
fn any_question_ends() {
    let entries = [
        cron_entry("* * * * * *", "Europe/Berlin"),
        cron_entry("0 2 * * *", "Europe/Berlin"),
        every_entry("1ms", None),
    ];
    for entry in entries {
        for calendar in ["never", "once", "working"] {
            let schedule = compiled(entry.clone(), &only(calendar, Roll::None), &known()).unwrap();
            let found = schedule.excluded_between(i64::MIN, i64::MAX, 50);
            assert!(!found.is_empty() && found.len() <= 50);
        }
        let plain = schedule(&[entry]);
        assert!(plain.excluded_between(i64::MIN, i64::MAX, 5000).len() < 1000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without a roll, calendars only take away: what they took and what is left make up the whole.
    #[test]
    fn what_is_left_and_what_was_taken_make_the_whole(
        line in line(),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]),
        edit in 0..31_536_000_000i64,
        fixed_weekly in any::<bool>(),
    ) {
        let (after, through) = (ms("2026-01-01T00:00:00Z"), ms("2026-12-31T23:59:59Z"));
        let week = [Weekday::Mon, Weekday::Tue, Weekday::Sat];
        let second = if fixed_weekly { calendar(&week, &["2026-07-01..2026-08-20"], &[]) } else { calendar(&[], &["03-29", "10-25"], &[]) };
        let versions = vec![(0, calendar(&week, &["10-24"], &["03-28"])), (after + edit, second)];
        let known = Known(BTreeMap::from([("days", versions)]));
        let fixed = Reading::new(&line, false).fixed;
        let entry = ScheduleEntry { dst_gap: fixed.then_some(DstGap::Skip), ..cron_entry(&line, zone) };
        let whole = schedule(std::slice::from_ref(&entry));
        let left = compiled(entry, &only("days", Roll::None), &known).unwrap();
        let taken = left.excluded_between(after, through, 100_000);
        let taken = taken.iter().filter(|row| matches!(row.why, Exclusion::Calendar { .. }));
        let taken: u64 = taken.map(|row| row.count).sum();
        let count = |schedule: &Schedule| schedule.count_between(after, through, u64::MAX);
        prop_assert_eq!(count(&whole), count(&left) + taken);
    }
}
