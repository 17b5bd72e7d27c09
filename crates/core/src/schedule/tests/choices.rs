//! Choices for clock changes, local instants, bounds, jitter and delays after the end.

use super::super::{
    AnyDay, Bounds, DayRule, DstFold, DstGap, Error, Schedule, ScheduleEntry, ScheduleSpec,
};
use super::{at_entry, cron_entry, every_entry, ms, schedule, spec, times, utc};

fn berlin(gap: DstGap, fold: DstFold) -> Schedule {
    schedule(&[ScheduleEntry {
        dst_gap: Some(gap),
        dst_fold: Some(fold),
        ..cron_entry("15,30 2 * * *", "Europe/Berlin")
    }])
}

fn local(text: &str, gap: DstGap, fold: DstFold) -> Schedule {
    schedule(&[ScheduleEntry {
        timezone: Some("Europe/Berlin".to_owned()),
        dst_gap: Some(gap),
        dst_fold: Some(fold),
        ..at_entry(text)
    }])
}

fn bounded(entry: ScheduleEntry, bounds: &Bounds) -> Result<Schedule, Error> {
    let entries = [entry];
    let spec = ScheduleSpec {
        bounds: Some(bounds),
        ..spec(&entries)
    };
    Schedule::compile(&spec, &AnyDay).map(|schedule| schedule.expect("there are entries"))
}

fn spread(entry: ScheduleEntry, jitter: &str) -> Result<Schedule, Error> {
    let entries = [entry];
    let spec = ScheduleSpec {
        jitter: Some(jitter),
        ..spec(&entries)
    };
    Schedule::compile(&spec, &AnyDay).map(|schedule| schedule.expect("there are entries"))
}

#[test]
fn a_skipped_time_goes_where_it_was_told() {
    let on_the_29th = |gap| {
        times(
            &berlin(gap, DstFold::First),
            "2026-03-28T12:00:00Z",
            "2026-03-29T12:00:00Z",
        )
    };
    assert_eq!(
        on_the_29th(DstGap::Shift),
        ["2026-03-29T01:15:00Z", "2026-03-29T01:30:00Z"]
    );
    assert_eq!(on_the_29th(DstGap::AtTransition), ["2026-03-29T01:00:00Z"]);
    assert!(on_the_29th(DstGap::Skip).is_empty());
}

#[test]
fn a_repeated_time_counts_at_the_chosen_pass() {
    let on_the_25th = |fold| {
        times(
            &berlin(DstGap::Shift, fold),
            "2026-10-24T12:00:00Z",
            "2026-10-25T12:00:00Z",
        )
    };
    let (first, last) = (
        ["2026-10-25T00:15:00Z", "2026-10-25T00:30:00Z"],
        ["2026-10-25T01:15:00Z", "2026-10-25T01:30:00Z"],
    );
    assert_eq!(on_the_25th(DstFold::First), first);
    assert_eq!(on_the_25th(DstFold::Last), last);
    assert_eq!(on_the_25th(DstFold::Both), [first, last].concat());
}

#[test]
fn a_local_instant_follows_the_same_choices() {
    let all = |text: &str, gap, fold| {
        times(
            &local(text, gap, fold),
            "2026-01-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        )
    };
    let (shift, first) = (DstGap::Shift, DstFold::First);
    assert_eq!(
        all("2026-06-01T08:00:00.250", shift, first),
        ["2026-06-01T06:00:00.25Z"]
    );
    let skipped = "2026-03-29 02:30:00";
    assert_eq!(all(skipped, shift, first), ["2026-03-29T01:30:00Z"]);
    assert_eq!(
        all(skipped, DstGap::AtTransition, first),
        ["2026-03-29T01:00:00Z"]
    );
    assert!(all(skipped, DstGap::Skip, first).is_empty());
    let repeated = "2026-10-25T02:30:00";
    assert_eq!(all(repeated, shift, first), ["2026-10-25T00:30:00Z"]);
    assert_eq!(
        all(repeated, shift, DstFold::Last),
        ["2026-10-25T01:30:00Z"]
    );
    assert_eq!(
        all(repeated, shift, DstFold::Both),
        ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
    );
    let both = local(repeated, shift, DstFold::Both);
    assert_eq!(
        both.prev_at_or_before(i64::MAX).map(utc).unwrap(),
        "2026-10-25T01:30:00Z"
    );
    assert_eq!(both.count_between(0, i64::MAX, 9), 2);
}

#[test]
fn both_day_fields_must_match_when_asked() {
    let and = schedule(&[ScheduleEntry {
        day_rule: Some(DayRule::And),
        ..cron_entry("0 0 13 * fri", "UTC")
    }]);
    assert_eq!(
        times(&and, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        [
            "2026-02-13T00:00:00Z",
            "2026-03-13T00:00:00Z",
            "2026-11-13T00:00:00Z"
        ]
    );
}

#[test]
fn nothing_is_due_outside_the_bounds() {
    let bounds = Bounds {
        start: Some("2026-01-01T00:00:00Z".to_owned()),
        end: Some("2026-01-01T03:00:00Z".to_owned()),
        max_fires: Some(7),
    };
    for entry in [cron_entry("0 * * * *", "UTC"), every_entry("1h", None)] {
        let hourly = bounded(entry, &bounds).unwrap();
        let all = [
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00Z",
            "2026-01-01T02:00:00Z",
        ];
        assert_eq!(
            times(&hourly, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
            all
        );
        assert_eq!(hourly.next_after(i64::MIN), Some(ms(all[0])));
        assert_eq!(hourly.next_after(ms(all[2])), None);
        assert_eq!(hourly.prev_at_or_before(i64::MAX), Some(ms(all[2])));
        assert_eq!(hourly.prev_at_or_before(ms(all[0]) - 1), None);
        assert_eq!(hourly.count_between(i64::MIN, i64::MAX, u64::MAX), 3);
        assert_eq!(hourly.max_fires(), Some(7));
    }
}

#[test]
fn bounds_without_sense_are_refused() {
    let bounds = |start: Option<&str>, end: Option<&str>, max_fires| Bounds {
        start: start.map(str::to_owned),
        end: end.map(str::to_owned),
        max_fires,
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let cases = [
        (
            bounds(Some(late), Some(early), None),
            "bounds.end",
            "is not after start",
        ),
        (
            bounds(Some(early), Some(early), None),
            "bounds.end",
            "is not after start",
        ),
        (
            bounds(Some("monday"), None, None),
            "bounds.start",
            "start `monday` is not an instant",
        ),
        (
            bounds(None, Some("2026-01-01T00:00:00"), None),
            "bounds.end",
            "RFC 3339",
        ),
        (
            bounds(None, None, Some(0)),
            "bounds.max_fires",
            "at least 1",
        ),
    ];
    for (bounds, field, expected) in cases {
        let error = bounded(every_entry("5s", None), &bounds).unwrap_err();
        assert_eq!(error.field(), field);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn jitter_is_steady_and_stays_before_the_next_time() {
    let hourly = spread(cron_entry("0 * * * *", "UTC"), "10m").unwrap();
    let tight = spread(every_entry("5s", None), "1h").unwrap();
    let mut moved = 0;
    for hour in 0..1000i64 {
        let at = hour * 3_600_000;
        let due = hourly.due_of(42, at);
        assert_eq!(due, hourly.due_of(42, at));
        assert!((at..at + 600_000).contains(&due));
        moved += i32::from(due != hourly.due_of(43, at));
        assert!((at..at + 5000).contains(&tight.due_of(42, at)));
    }
    assert!(moved > 900);
    // The last time has no next one to stay before.
    let once = spread(at_entry("2026-01-01T00:00:00Z"), "10m").unwrap();
    let at = ms("2026-01-01T00:00:00Z");
    assert!((at..at + 600_000).contains(&once.due_of(1, at)));
    assert_eq!(schedule(&[every_entry("5s", None)]).due_of(42, 5000), 5000);
    for (jitter, expected) in [
        ("0s", "at least `1ms`"),
        ("40000d", "too long"),
        ("x", "duration `x`"),
    ] {
        let error = spread(every_entry("5s", None), jitter).unwrap_err();
        assert_eq!(error.field(), "jitter");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn a_delay_after_the_end_stands_alone() {
    let delay = ScheduleEntry {
        after_end: Some("90s".to_owned()),
        ..ScheduleEntry::default()
    };
    let alone = bounded(
        delay.clone(),
        &Bounds {
            max_fires: Some(3),
            ..Bounds::default()
        },
    )
    .unwrap();
    assert_eq!(alone.after_end_ms(), Some(90_000));
    assert_eq!(alone.max_fires(), Some(3));
    assert_eq!(alone.next_after(0), None);
    assert_eq!(alone.prev_at_or_before(i64::MAX), None);
    assert_eq!(alone.count_between(i64::MIN, i64::MAX, 9), 0);
    assert_eq!(alone.due_of(1, 5), 5);
    assert_eq!(schedule(&[every_entry("5s", None)]).after_end_ms(), None);
    let two = super::compiled(&[every_entry("5s", None), delay.clone()]).unwrap_err();
    assert_eq!(
        two.to_string(),
        "entry 2: `after_end` must be the only entry: give it a job of its own"
    );
    let start = Bounds {
        start: Some("2026-01-01T00:00:00Z".to_owned()),
        end: Some("2026-01-02T00:00:00Z".to_owned()),
        ..Bounds::default()
    };
    let within = bounded(delay.clone(), &start).unwrap();
    let (first, last) = (ms("2026-01-01T00:00:00Z"), ms("2026-01-02T00:00:00Z"));
    assert_eq!(within.within_bounds(5), Some(first));
    assert_eq!(within.within_bounds(last - 1), Some(last - 1));
    assert_eq!(within.within_bounds(last), None);
    let due = spread(delay.clone(), "5s").unwrap().due_of(1, 5);
    assert!((5..5_005).contains(&due));
    for zero in ["0s", "40000d"] {
        let delay = ScheduleEntry {
            after_end: Some(zero.to_owned()),
            ..ScheduleEntry::default()
        };
        assert!(super::compiled(&[delay]).is_err(), "{zero}");
    }
}

#[test]
fn what_belongs_to_a_schedule_needs_one() {
    let bounds = Bounds::default();
    let alone = ScheduleSpec {
        jitter: Some("5s"),
        ..spec(&[])
    };
    assert_eq!(
        Schedule::compile(&alone, &AnyDay).unwrap_err().field(),
        "jitter"
    );
    let alone = ScheduleSpec {
        bounds: Some(&bounds),
        ..spec(&[])
    };
    let error = Schedule::compile(&alone, &AnyDay).unwrap_err();
    assert_eq!(error.field(), "bounds");
    assert_eq!(
        error.to_string(),
        "`bounds` has no effect here: there is no `schedule`: remove it"
    );
}

#[test]
fn counting_a_year_of_seconds_does_not_walk_it() {
    for (line, zone) in [
        ("* * * * * *", "Europe/Berlin"),
        ("0-59 0-59 0-23 * * *", "Europe/Berlin"),
    ] {
        let tick = super::cron(line, zone);
        let count = tick.count_between(0, ms("2199-01-01T00:00:00Z"), u64::MAX);
        // A fixed line has nothing for a second pass, and moved times coincide with shown ones.
        let seconds = ms("2199-01-01T00:00:00Z") as u64 / 1000;
        assert!(
            count <= seconds && count > seconds - 3600 * 300,
            "{line}: {count}"
        );
    }
    let tick = super::cron("* * * * * *", "Europe/Berlin");
    let (from, to) = (ms("2026-01-01T00:00:00Z"), ms("2027-01-01T00:00:00Z"));
    assert_eq!(tick.count_between(from, to, u64::MAX), 365 * 86_400);
}
