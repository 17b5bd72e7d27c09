//! Keys that say on which days a job fires, and what clock changes do to it. Seen by asking for its next times.

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use ureq::http::Method;

use super::world::{World, world};

/// The next times of a job made from these keys, from an instant on.
fn next(world: &World, keys: Value, from: &str, count: usize) -> Vec<String> {
    let name = world.job(keys)["name"].as_str().expect("a name").to_owned();
    let path = format!("/api/v1/namespaces/default/jobs/{name}/next?count={count}&from={from}");
    let answer = world.api.get(&path);
    let times = answer["times"].as_array().expect("times").iter();
    times
        .map(|time| time["nominal"].as_str().expect("a time").to_owned())
        .collect()
}

fn weekday(time: &str) -> Weekday {
    let at: Timestamp = time.parse().expect("a time");
    at.to_zoned(TimeZone::UTC).weekday()
}

fn calendar(world: &World, name: &str, weekly: &[&str]) {
    let path = format!("/api/v1/namespaces/default/calendars/{name}");
    let spec = json!({"kind": "Calendar", "weekly": weekly});
    world.api.send(Method::PUT, &path, Some(&spec));
}

pub fn day_rule() {
    let world = world();
    let friday = |rule: &str| json!({"schedule": [{"cron": "0 0 13 * fri", "day_rule": rule}]});
    let from = "2026-11-01T00:00:00Z";
    assert_eq!(
        next(&world, friday("or"), from, 2),
        ["2026-11-06T00:00:00.000Z", "2026-11-13T00:00:00.000Z"]
    );
    assert_eq!(
        next(&world, friday("and"), from, 2),
        ["2026-11-13T00:00:00.000Z", "2027-08-13T00:00:00.000Z"]
    );
}

fn nightly(key: &str, choice: &str) -> Value {
    json!({"schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin", key: choice}]})
}

/// Clocks in Berlin skip from two to three in the night to the 28th.
pub fn dst_gap() {
    let world = world();
    let first = |choice: &str| {
        let times = next(
            &world,
            nightly("dst_gap", choice),
            "2027-03-27T12:00:00Z",
            1,
        );
        times[0].clone()
    };
    assert_eq!(first("shift"), "2027-03-28T01:30:00.000Z");
    assert_eq!(first("at_transition"), "2027-03-28T01:00:00.000Z");
    assert_eq!(first("skip"), "2027-03-29T00:30:00.000Z");
}

/// And show half past two twice in the night to the 31st.
pub fn dst_fold() {
    let world = world();
    let two = |choice: &str| {
        next(
            &world,
            nightly("dst_fold", choice),
            "2027-10-30T12:00:00Z",
            2,
        )
    };
    let (early, late, after) = (
        "2027-10-31T00:30:00.000Z",
        "2027-10-31T01:30:00.000Z",
        "2027-11-01T01:30:00.000Z",
    );
    assert_eq!(two("first"), [early, after]);
    assert_eq!(two("last"), [late, after]);
    assert_eq!(two("both"), [early, late]);
}

pub fn only() {
    let world = world();
    calendar(&world, "sundays", &["sun"]);
    let keys = json!({"schedule": [{"cron": "0 9 * * *"}], "calendar": {"only": ["sundays"]}});
    for time in next(&world, keys, "2026-11-01T00:00:00Z", 5) {
        assert_eq!(weekday(&time), Weekday::Sunday, "{time}");
    }
}

pub fn minus() {
    let world = world();
    calendar(&world, "weekends", &["sat", "sun"]);
    let keys = json!({"schedule": [{"cron": "0 9 * * *"}], "calendar": {"minus": ["weekends"]}});
    let times = next(&world, keys, "2026-11-01T00:00:00Z", 10);
    assert!(!times.is_empty());
    for time in times {
        let day = weekday(&time);
        assert!(day != Weekday::Saturday && day != Weekday::Sunday, "{time}");
    }
}

/// The first of November 2026 is a Sunday.
pub fn roll() {
    let world = world();
    calendar(&world, "working-days", &["mon", "tue", "wed", "thu", "fri"]);
    let first = |roll: &str| {
        let keys = json!({
            "schedule": [{"cron": "0 9 1 * *"}],
            "calendar": {"only": ["working-days"], "roll": roll},
        });
        next(&world, keys, "2026-10-20T00:00:00Z", 1)[0].clone()
    };
    assert_eq!(first("none"), "2026-12-01T09:00:00.000Z");
    assert_eq!(first("next"), "2026-11-02T09:00:00.000Z");
    assert_eq!(first("previous"), "2026-10-30T09:00:00.000Z");
    assert_eq!(first("nearest"), "2026-11-02T09:00:00.000Z");
}

pub fn bounds() {
    let world = world();
    let keys = json!({
        "schedule": [{"cron": "0 9 * * *"}],
        "bounds": {"start": "2100-01-01T09:00:00Z", "end": "2100-01-03T09:00:00Z"},
    });
    assert_eq!(
        next(&world, keys, "2026-11-01T00:00:00Z", 5),
        ["2100-01-01T09:00:00.000Z", "2100-01-02T09:00:00.000Z"],
        "from the start on, and before the end"
    );
}
