//! The plain expansion against times worked out by hand, and against the scheduler's own where both must agree.

mod agreement;
mod days;

use drumtower_core::model::{Actor, CalendarSpec, CalendarVersion, JobId, JobVersion, WallMs};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Calendars, Plan, milliseconds};

/// A job whose manifest has these keys besides those it must have.
fn version(mut keys: Value) -> JobVersion {
    let fixed = json!({"kind": "Job", "name": "a", "task": {"exec": {"argv": ["true"]}}});
    let (Value::Object(keys_map), Value::Object(fixed)) = (&mut keys, fixed) else {
        panic!("an object");
    };
    keys_map.extend(fixed);
    JobVersion {
        job: JobId(1),
        version: 1,
        spec: serde_json::from_value(keys).expect("a manifest"),
        created: WallMs(0),
        actor: Actor::new("test"),
    }
}

/// One version of a calendar, made at a time.
fn calendar(version: u32, created: &str, mut keys: Value) -> CalendarVersion {
    keys["kind"] = json!("Calendar");
    keys["name"] = json!("c");
    let spec: CalendarSpec = serde_json::from_value(keys).expect("a calendar");
    CalendarVersion {
        version,
        spec,
        created: at(created),
        actor: Actor::new("test"),
        deleted: false,
    }
}

fn calendars(versions: Vec<CalendarVersion>) -> Calendars {
    let mut calendars = Calendars::new();
    for version in versions {
        let name = version.spec.name.clone();
        calendars.entry(name).or_default().push(version);
    }
    calendars
}

fn at(text: &str) -> WallMs {
    WallMs(text.parse::<Timestamp>().expect(text).as_millisecond())
}

fn written(times: Vec<WallMs>) -> Vec<String> {
    let text = |time: WallMs| {
        Timestamp::from_millisecond(time.0)
            .expect("a time")
            .to_string()
    };
    times.into_iter().map(text).collect()
}

fn times(schedule: Value, from: &str, through: &str) -> Vec<String> {
    let version = version(json!({"schedule": schedule}));
    let plan = Plan::new(&version, &Calendars::new()).expect("a plan");
    written(plan.times(at(from), at(through)))
}

#[test]
fn union_is_sorted_and_each_time_is_there_once() {
    let schedule = json!([
        {"every": "20s", "anchor": "2026-01-01T00:00:05Z"}, {"at": "2026-01-01T00:00:25Z"}, {"cron": "* * * * *"}
    ]);
    let expected = [
        "2026-01-01T00:00:25Z",
        "2026-01-01T00:00:45Z",
        "2026-01-01T00:01:00Z",
        "2026-01-01T00:01:05Z",
    ];
    assert_eq!(
        times(schedule, "2026-01-01T00:00:06Z", "2026-01-01T00:01:05Z"),
        expected
    );
}

#[test]
fn gap_moves_a_time_of_day_and_fold_takes_it_once() {
    let fixed = json!([{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}]);
    let spring = times(
        fixed.clone(),
        "2026-03-28T12:00:00Z",
        "2026-03-30T12:00:00Z",
    );
    assert_eq!(spring, ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = times(fixed, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    let hourly = json!([{"cron": "30 * * * *", "timezone": "Europe/Berlin"}]);
    assert_eq!(
        times(hourly, "2026-10-25T00:00:00Z", "2026-10-25T02:59:00Z").len(),
        3
    );
}

#[test]
fn a_skipped_time_obeys_the_choice() {
    let spring = |zone: &str, entry: &str, time: &str, gap: &str, day: &str| {
        let schedule = json!([{entry: time, "timezone": zone, "dst_gap": gap}]);
        times(
            schedule,
            &format!("{day}T00:00:00Z"),
            &format!("{day}T23:59:59Z"),
        )
    };
    let berlin = |gap| spring("Europe/Berlin", "cron", "30 2 * * *", gap, "2026-03-29");
    assert_eq!(berlin("skip"), [""; 0]);
    assert_eq!(berlin("at_transition"), ["2026-03-29T01:00:00Z"]);
    assert_eq!(berlin("shift"), ["2026-03-29T01:30:00Z"]);
    // Clocks go from 02:00 to 02:30 there.
    let howe = |gap| {
        let local = "2026-10-04T02:15:00";
        spring("Australia/Lord_Howe", "at", local, gap, "2026-10-03")
    };
    assert_eq!(howe("skip"), [""; 0]);
    assert_eq!(howe("at_transition"), ["2026-10-03T15:30:00Z"]);
    assert_eq!(howe("shift"), ["2026-10-03T15:45:00Z"]);
}

#[test]
fn a_day_that_never_was_is_a_gap_of_a_day() {
    let apia = |gap: &str| {
        let schedule = json!([{"cron": "0 8 30 12 *", "timezone": "Pacific/Apia", "dst_gap": gap}]);
        times(schedule, "2011-12-29T00:00:00Z", "2012-01-02T00:00:00Z")
    };
    assert_eq!(apia("skip"), [""; 0]);
    assert_eq!(apia("at_transition"), ["2011-12-30T10:00:00Z"]);
    assert_eq!(apia("shift"), ["2011-12-30T18:00:00Z"]);
}

#[test]
fn a_repeated_time_obeys_the_choice() {
    let autumn = |entry: &str, time: &str, fold: &str| {
        let schedule = json!([{entry: time, "timezone": "Europe/Berlin", "dst_fold": fold}]);
        times(schedule, "2026-10-25T00:00:00Z", "2026-10-25T23:00:00Z")
    };
    for (entry, time) in [("cron", "30 2 * * *"), ("at", "2026-10-25T02:30:00")] {
        assert_eq!(autumn(entry, time, "first"), ["2026-10-25T00:30:00Z"]);
        assert_eq!(autumn(entry, time, "last"), ["2026-10-25T01:30:00Z"]);
        assert_eq!(
            autumn(entry, time, "both"),
            ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
        );
    }
}

#[test]
fn bounds_hold_their_start_and_not_their_end() {
    let version = version(json!({
        "schedule": [{"every": "1m"}],
        "bounds": {"start": "2026-01-01T00:01:00Z", "end": "2026-01-01T00:03:00Z", "max_fires": 7}
    }));
    let plan = Plan::new(&version, &Calendars::new()).expect("a plan");
    let found = plan.times(at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
    assert_eq!(
        written(found),
        ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]
    );
    assert_eq!(plan.max_fires(), Some(7));
}

#[test]
fn a_delay_has_no_times() {
    let version = version(json!({"schedule": [{"after_end": "1m30s"}]}));
    let plan = Plan::new(&version, &Calendars::new()).expect("a plan");
    assert_eq!(plan.after_end_ms(), Some(90_000));
    assert_eq!(plan.times(WallMs(0), WallMs(i64::MAX)), []);
}

#[test]
fn durations_are_read() {
    let read = [
        ("250ms", 250),
        ("5s", 5_000),
        ("1h30m", 5_400_000),
        ("1d1ms", 86_400_001),
    ];
    for (text, expected) in read {
        assert_eq!(milliseconds(text), Some(expected), "{text}");
    }
    for text in ["5", "s", "1x", "1.5s"] {
        assert_eq!(milliseconds(text), None, "{text}");
    }
}
