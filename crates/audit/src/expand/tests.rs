//! The plain expansion against times worked out by hand, and against the scheduler's own where both must agree.

use drumtower_core::model::{Actor, JobId, JobSpec, JobVersion, WallMs};
use drumtower_core::schedule::Schedule;
use jiff::Timestamp;

use super::{Plan, milliseconds};

fn version(schedule: serde_json::Value) -> JobVersion {
    let spec: JobSpec = serde_json::from_value(serde_json::json!({
        "kind": "Job", "name": "a", "schedule": schedule, "task": {"exec": {"argv": ["true"]}}
    }))
    .expect("a manifest");
    JobVersion {
        job: JobId(1),
        version: 1,
        spec,
        created: WallMs(0),
        actor: Actor::new("test"),
    }
}

fn at(text: &str) -> WallMs {
    WallMs(text.parse::<Timestamp>().expect(text).as_millisecond())
}

fn times(schedule: serde_json::Value, from: &str, through: &str) -> Vec<String> {
    let plan = Plan::new(&version(schedule)).expect("a plan");
    let text = |time: WallMs| {
        Timestamp::from_millisecond(time.0)
            .expect("a time")
            .to_string()
    };
    plan.times(at(from), at(through))
        .into_iter()
        .map(text)
        .collect()
}

#[test]
fn union_is_sorted_and_each_time_is_there_once() {
    let schedule = serde_json::json!([
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
    let fixed = serde_json::json!([{"cron": "30 2 * * *", "timezone": "Europe/Berlin"}]);
    let spring = times(
        fixed.clone(),
        "2026-03-28T12:00:00Z",
        "2026-03-30T12:00:00Z",
    );
    assert_eq!(spring, ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = times(fixed, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    let hourly = serde_json::json!([{"cron": "30 * * * *", "timezone": "Europe/Berlin"}]);
    assert_eq!(
        times(hourly, "2026-10-25T00:00:00Z", "2026-10-25T02:59:00Z").len(),
        3
    );
}

#[test]
fn both_readings_agree_over_a_year_of_changes() {
    let lines = [
        "*/7 3-5 * * *",
        "0 2 * * *",
        "15,45 1-3 1-7 * mon",
        "0 0 29 2 *",
        "30 2 * mar-oct fri-sun",
        "0 12 */10 * *",
        "@weekly",
        "0 30 2 ? * 0",
        "5 4 1 * ?",
        "0 0 3 * * 1/3 2026",
    ];
    let (from, through) = (at("2026-01-01T00:00:00Z"), at("2026-12-31T23:59:59Z"));
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
    ] {
        for line in lines {
            let version = version(serde_json::json!([{"cron": line, "timezone": zone}]));
            let ours = Plan::new(&version).expect(line).times(from, through);
            let theirs = Schedule::parse(&version.spec.schedule).expect(line);
            let mut next = theirs.next_after(from.0 - 1);
            for time in ours {
                assert_eq!(next, Some(time.0), "{line} in {zone}");
                next = theirs.next_after(time.0);
            }
            assert!(
                next.is_none_or(|next| next > through.0),
                "{line} in {zone}: {next:?} is missing"
            );
        }
    }
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
