//! Lists of times, notes on them, and each warning with the text that a person reads.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::super::calendars::{AnyDay, CalendarEra, Calendars};
use super::super::dates::DateSet;
use super::super::spec::{Bounds, CalendarUse, DayRule, DstFold, DstGap, Roll, ScheduleEntry};
use super::*;
use crate::model::{CalendarKind, CalendarName, CalendarSpec, NamespaceName, Weekday};

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn cron(line: &str, zone: &str) -> ScheduleEntry {
    ScheduleEntry {
        cron: Some(line.to_owned()),
        timezone: Some(zone.to_owned()),
        ..ScheduleEntry::default()
    }
}

fn every(every: &str) -> ScheduleEntry {
    ScheduleEntry {
        every: Some(every.to_owned()),
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

/// Monday to Friday but for the first of May, under every name but `never`, which has no day.
struct Workdays;

impl Calendars for Workdays {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let weekly = match name.to_string().as_str() {
            "never" => Vec::new(),
            _ => vec![
                Weekday::Mon,
                Weekday::Tue,
                Weekday::Wed,
                Weekday::Thu,
                Weekday::Fri,
            ],
        };
        let days = DateSet::compile(&CalendarSpec {
            kind: CalendarKind::Calendar,
            name: name.clone(),
            namespace: NamespaceName::default(),
            description: String::new(),
            weekly,
            include: Vec::new(),
            exclude: vec!["05-01".to_owned()],
        });
        let days = Arc::new(days.unwrap());
        Some(vec![CalendarEra {
            from: i64::MIN,
            days,
        }])
    }
}

fn shown(spec: &ScheduleSpec<'_>, from: &str, count: usize, direction: Direction) -> Preview {
    let schedule = Schedule::compile(spec, &Workdays).unwrap().unwrap();
    preview(&schedule, spec, None, ms(from), count, direction)
}

fn local(preview: &Preview) -> Vec<(&str, Option<&str>)> {
    let times = preview.times.iter();
    times
        .map(|time| (time.local.as_str(), time.note.as_deref()))
        .collect()
}

/// The warnings about one entry, asked on 2026-01-01.
fn warned(entry: ScheduleEntry) -> Vec<(WarningCode, String)> {
    let entries = [entry];
    let preview = shown(
        &spec(&entries),
        "2026-01-01T00:00:00Z",
        1,
        Direction::Forwards,
    );
    let warnings = preview.warnings.into_iter();
    warnings
        .map(|warning| (warning.code, warning.text))
        .collect()
}

#[test]
fn times_are_listed_in_both_directions() {
    let entries = [cron("30 2 * * *", "Europe/Berlin")];
    let next = shown(
        &spec(&entries),
        "2026-03-28T01:30:00Z",
        2,
        Direction::Forwards,
    );
    assert_eq!(
        local(&next),
        [
            (
                "2026-03-29T03:30:00+02:00[Europe/Berlin]",
                Some("stands for 02:30, which clocks skip")
            ),
            ("2026-03-30T02:30:00+02:00[Europe/Berlin]", None)
        ]
    );
    let back = shown(
        &spec(&entries),
        "2026-03-28T01:30:00Z",
        2,
        Direction::Backwards,
    );
    assert_eq!(
        local(&back),
        [
            ("2026-03-28T02:30:00+01:00[Europe/Berlin]", None),
            ("2026-03-27T02:30:00+01:00[Europe/Berlin]", None)
        ]
    );
    let many = shown(
        &spec(&[every("1ms")]),
        "2026-03-28T01:30:00Z",
        usize::MAX,
        Direction::Backwards,
    );
    assert_eq!(many.times.len(), MOST_TIMES);
    assert_eq!(many.times[1].local, "2026-03-28T01:29:59.999+00:00[UTC]");
}

#[test]
fn each_time_is_shown_where_its_entry_is_read() {
    let entries = [
        cron("0 9 * * *", "Asia/Kolkata"),
        cron("0 9 * * *", "America/St_Johns"),
    ];
    let next = shown(
        &spec(&entries),
        "2026-01-01T00:00:00Z",
        2,
        Direction::Forwards,
    );
    assert_eq!(
        local(&next),
        [
            ("2026-01-01T09:00:00+05:30[Asia/Kolkata]", None),
            ("2026-01-01T09:00:00-03:30[America/St_Johns]", None)
        ]
    );
}

#[test]
fn notes_tell_passes_and_moves_apart() {
    let both = ScheduleEntry {
        dst_fold: Some(DstFold::Both),
        ..cron("30 2 * * *", "Europe/Berlin")
    };
    let fold = shown(
        &spec(&[both]),
        "2026-10-24T12:00:00Z",
        2,
        Direction::Forwards,
    );
    let notes: Vec<_> = local(&fold)
        .into_iter()
        .map(|(_, note)| note.unwrap())
        .collect();
    assert_eq!(
        notes,
        [
            "the first pass: clocks show this time twice",
            "the second pass: clocks show this time twice"
        ]
    );
    let at_change = ScheduleEntry {
        dst_gap: Some(DstGap::AtTransition),
        ..cron("15,45 2 * * *", "Europe/Berlin")
    };
    let gap = shown(
        &spec(&[at_change]),
        "2026-03-28T12:00:00Z",
        1,
        Direction::Forwards,
    );
    assert_eq!(
        local(&gap),
        [(
            "2026-03-29T03:00:00+02:00[Europe/Berlin]",
            Some("stands for 02:15, which clocks skip")
        )]
    );
    // 03:30 is written as well, so it stands for itself.
    let named = shown(
        &spec(&[cron("30 2,3 * * *", "Europe/Berlin")]),
        "2026-03-28T12:00:00Z",
        1,
        Direction::Forwards,
    );
    assert_eq!(
        local(&named),
        [("2026-03-29T03:30:00+02:00[Europe/Berlin]", None)]
    );
}

fn calendar(only: &str, roll: Roll) -> CalendarUse {
    CalendarUse {
        only: vec![CalendarName::new(only).unwrap()],
        minus: Vec::new(),
        roll,
    }
}

#[test]
fn rolled_times_say_where_they_come_from() {
    let entries = [cron("0 9 1 * *", "UTC")];
    let used = calendar("workdays", Roll::Next);
    let spec = ScheduleSpec {
        calendar: Some(&used),
        ..spec(&entries)
    };
    let preview = shown(&spec, "2026-04-02T00:00:00Z", 2, Direction::Forwards);
    assert_eq!(
        local(&preview),
        [
            (
                "2026-05-04T09:00:00+00:00[UTC]",
                Some("moved from 2026-05-01, which does not count")
            ),
            ("2026-06-01T09:00:00+00:00[UTC]", None)
        ]
    );
    let warning = &preview.warnings[0];
    assert_eq!(
        (warning.code, warning.entry),
        (WarningCode::CalendarExcludesSome, None)
    );
    assert_eq!(
        warning.text,
        "in the coming 400 days 4 times fall on days that do not count; the first, 2026-05-01T09:00:00 in UTC, is moved to another day because of `workdays`"
    );
}

#[test]
fn a_calendar_that_leaves_nothing_is_told() {
    let entries = [cron("0 9 * * *", "UTC")];
    let used = calendar("never", Roll::None);
    let spec = ScheduleSpec {
        calendar: Some(&used),
        ..spec(&entries)
    };
    let preview = shown(&spec, "2026-01-01T00:00:00Z", 5, Direction::Forwards);
    assert!(preview.times.is_empty());
    let codes: Vec<&str> = preview
        .warnings
        .iter()
        .map(|warning| warning.code.as_str())
        .collect();
    assert_eq!(codes, ["never_fires", "calendar_excludes_all"]);
}

#[test]
fn gaps_ahead_are_told_with_what_they_do() {
    let gap = |gap| ScheduleEntry {
        dst_gap: Some(gap),
        ..cron("30 2 * * *", "Europe/Berlin")
    };
    let text = |entry| {
        let warnings = warned(entry);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].0, WarningCode::DstGap);
        warnings[0].1.clone()
    };
    let start = "02:30 on 2026-03-29 does not exist in Europe/Berlin, clocks go forward: it";
    assert_eq!(
        text(gap(DstGap::Shift)),
        format!("{start} happens at 03:30 instead")
    );
    assert_eq!(
        text(gap(DstGap::AtTransition)),
        format!("{start} happens at 03:00 instead")
    );
    assert_eq!(text(gap(DstGap::Skip)), format!("{start} is left out"));
    assert_eq!(
        text(cron("0 0 * * *", "Africa/Cairo")),
        "00:00 on 2026-04-24 does not exist in Africa/Cairo, clocks go forward: it happens at 01:00 instead"
    );
    // A line within an hour that is skipped has nothing on that day.
    let within = warned(cron("*/20 2 * * *", "America/New_York"));
    assert_eq!(
        within[0],
        (
            WarningCode::DstGap,
            "02:00 to 02:40 on 2026-03-08, 3 times, do not exist in America/New_York, clocks go forward: they are left out"
                .to_owned()
        )
    );
    // Neither lines that go round the clock, nor those at other hours or without changes.
    for (line, zone) in [
        ("*/5 * * * *", "Europe/Berlin"),
        ("30 4 * * *", "Europe/Berlin"),
        ("30 2 * * *", "Asia/Shanghai"),
        ("30 2 * * *", "UTC"),
        ("30 2 1 5 *", "Europe/Berlin"),
    ] {
        assert_eq!(warned(cron(line, zone)), [], "{line} {zone}");
    }
    let at = ScheduleEntry {
        at: Some("2026-03-29T02:30:00".to_owned()),
        timezone: Some("Europe/Berlin".to_owned()),
        ..ScheduleEntry::default()
    };
    assert_eq!(text(at), format!("{start} happens at 03:30 instead"));
}

#[test]
fn folds_ahead_are_told_when_both_passes_count() {
    let fold = |fold| ScheduleEntry {
        dst_fold: Some(fold),
        ..cron("30 1 * * *", "America/New_York")
    };
    assert_eq!(warned(fold(DstFold::First)), []);
    assert_eq!(warned(fold(DstFold::Last)), []);
    let text = "clocks in America/New_York go back and show 01:30 on 2026-11-01 twice: it happens at both passes";
    assert_eq!(
        warned(fold(DstFold::Both)),
        [(WarningCode::DstFold, text.to_owned())]
    );
    // Such a line follows the clock on the wall.
    let within = warned(cron("*/20 1 * * *", "America/New_York"));
    assert_eq!(within[0].0, WarningCode::DstFold);
}

#[test]
fn what_never_or_no_longer_happens_is_told() {
    let never = warned(cron("0 0 30 2 *", "UTC"));
    let text = "never: no date has these days, months and years together";
    assert_eq!(never, [(WarningCode::NeverFires, text.to_owned())]);
    let skipped = ScheduleEntry {
        at: Some("2026-03-29T02:30:00".to_owned()),
        timezone: Some("Europe/Berlin".to_owned()),
        dst_gap: Some(DstGap::Skip),
        ..ScheduleEntry::default()
    };
    assert_eq!(warned(skipped)[0].1, "never: clocks skip this time");
    let past = warned(cron("0 0 0 1 1 ? 2020", "UTC"));
    assert_eq!(
        past,
        [(
            WarningCode::NoMoreTimes,
            "nothing is due any more: the last time was 2020-01-01T00:00:00+00:00[UTC]".to_owned()
        )]
    );
    let entries = [cron("0 0 * * *", "UTC")];
    let bounds = Bounds {
        end: Some("2025-06-01T00:00:00Z".to_owned()),
        ..Bounds::default()
    };
    let ended = ScheduleSpec {
        bounds: Some(&bounds),
        ..spec(&entries)
    };
    let preview = shown(&ended, "2026-01-01T00:00:00Z", 3, Direction::Forwards);
    assert_eq!(preview.warnings[0].code, WarningCode::NoMoreTimes);
}

#[test]
fn surprises_of_the_text_are_told() {
    let codes = |entry| -> Vec<&'static str> {
        let warnings = warned(entry);
        warnings.iter().map(|(code, _)| code.as_str()).collect()
    };
    assert_eq!(codes(every("250ms")), ["sub_second"]);
    assert_eq!(warned(every("250ms"))[0].1, "4 times a second");
    assert_eq!(
        warned(every("800ms"))[0].1,
        "more than once a second: every 800ms"
    );
    assert!(codes(every("1s")).is_empty());
    assert_eq!(codes(cron("0 0 13 * fri", "UTC")), ["day_rule_or"]);
    let chosen = |rule| ScheduleEntry {
        day_rule: Some(rule),
        ..cron("0 0 13 * fri", "UTC")
    };
    assert!(codes(chosen(DayRule::Or)).is_empty());
    assert!(codes(chosen(DayRule::And)).is_empty());
    assert_eq!(codes(cron("0 0 */2 * mon", "UTC")), ["day_rule_and"]);
    assert_eq!(codes(cron("0 0 1 * */2", "UTC")), ["day_rule_and"]);
    assert!(codes(cron("0 0 */2 * *", "UTC")).is_empty());
    assert_eq!(codes(cron("0 0 31 * *", "UTC")), ["short_months"]);
    assert_eq!(
        warned(cron("0 0 31 * *", "UTC"))[0].1,
        "5 of these months have no 31st; `L` is the last day of every month"
    );
    assert!(codes(cron("0 0 31 1,3,5 *", "UTC")).is_empty());
    assert_eq!(codes(cron("0 0 30 * *", "UTC")), ["short_months"]);
    assert_eq!(codes(cron("0 0 29 * *", "UTC")), ["short_months"]);
    assert_eq!(
        warned(cron("0 0 29 2 *", "UTC"))[0].1,
        "29 February is a date of leap years only"
    );
    assert_eq!(codes(cron("0 0 * * fri#5", "UTC")), ["short_months"]);
    assert!(codes(cron("0 0 L * *", "UTC")).is_empty());
    assert_eq!(codes(cron("0 0 * * *", "EST")), ["zone_abbreviation"]);
    assert_eq!(codes(cron("0 0 * * *", "Etc/GMT+5")), ["zone_sign"]);
    assert_eq!(
        warned(cron("0 0 * * *", "Etc/GMT+5"))[0].1,
        "timezone `Etc/GMT+5` is UTC-5: the sign in these names is the reverse of the usual one"
    );
    assert!(codes(cron("0 0 * * *", "Etc/GMT")).is_empty());
}

#[test]
fn jitter_is_applied_to_a_job_and_told_when_it_is_cut() {
    let entries = [every("10s")];
    let spread = ScheduleSpec {
        jitter: Some("1m"),
        ..spec(&entries)
    };
    let schedule = Schedule::compile(&spread, &AnyDay).unwrap().unwrap();
    let shown = preview(&schedule, &spread, Some(7), 0, 20, Direction::Forwards);
    let within = |time: &PreviewTime| (0..10_000).contains(&(time.due - time.nominal));
    assert!(shown.times.iter().all(within));
    assert!(shown.times.iter().any(|time| time.due > time.nominal));
    assert_eq!(
        shown.warnings,
        [Warning {
            code: WarningCode::JitterCut,
            entry: None,
            text: "a jitter of 1m is longer than the 10s between times, and ends with the next one"
                .to_owned()
        }]
    );
    let nobody = preview(&schedule, &spread, None, 0, 5, Direction::Forwards);
    assert!(nobody.times.iter().all(|time| time.due == time.nominal));
}

#[test]
fn a_delay_after_the_end_has_no_times_and_no_warnings() {
    let delay = ScheduleEntry {
        after_end: Some("5m".to_owned()),
        ..ScheduleEntry::default()
    };
    let preview = shown(
        &spec(&[delay]),
        "2026-01-01T00:00:00Z",
        5,
        Direction::Forwards,
    );
    assert!(preview.times.is_empty() && preview.warnings.is_empty());
}

#[test]
fn codes_are_written_as_they_are_named() {
    let warning = Warning {
        code: WarningCode::CalendarExcludesAll,
        entry: Some(1),
        text: String::new(),
    };
    let json = serde_json::to_value(&warning).unwrap();
    assert_eq!(json["code"], WarningCode::CalendarExcludesAll.as_str());
    assert_eq!(json["entry"], 1);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks_a_preview(
        line in "([-*0-9/,]{1,4} ){2}([1-9]W|L|L-[1-9]|[1-9]|\\*|31) ([1-9]|\\*) ([0-7]L|[0-7]#[1-5]|\\*|[0-7])",
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Pacific/Apia", "Africa/Casablanca"]),
        from in prop_oneof![any::<i64>(), -10_000_000_000_000i64..10_000_000_000_000, Just(i64::MIN), Just(i64::MAX)],
        roll in prop::sample::select(vec![None, Some(Roll::None), Some(Roll::Nearest)]),
        back in any::<bool>(),
    ) {
        let used = roll.map(|roll| calendar("workdays", roll));
        for entries in [vec![cron(&line, zone)], vec![every("7m")]] {
            let spec = ScheduleSpec { calendar: used.as_ref(), ..spec(&entries) };
            if let Ok(Some(schedule)) = Schedule::compile(&spec, &Workdays) {
                let direction = if back { Direction::Backwards } else { Direction::Forwards };
                let shown = preview(&schedule, &spec, Some(1), from, 10, direction);
                let nominal: Vec<i64> = shown.times.iter().map(|time| time.nominal).collect();
                let ordered = nominal.is_sorted_by(|a, b| (a > b) == back && a != b);
                prop_assert!(ordered, "{nominal:?}");
            }
        }
    }
}
