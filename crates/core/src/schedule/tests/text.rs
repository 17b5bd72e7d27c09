//! What people write: errors that help, durations, and the shape of the manifest.

use proptest::prelude::*;

use super::super::{format_duration, parse_duration};
use super::{Schedule, ScheduleEntry, at_entry, cron_entry, every_entry};

fn refusal(entry: ScheduleEntry) -> String {
    Schedule::parse(&[entry]).expect_err("refused").to_string()
}

fn cron_refusal(line: &str) -> String {
    refusal(cron_entry(line, "UTC"))
}

#[test]
fn cron_errors_name_the_field_the_position_and_the_remedy() {
    let cases = [
        (
            "60 * * * *",
            "minute field, position 1: `60` is out of range: use 0-59",
        ),
        (
            "0 0  * foo *",
            "month field, position 8: `foo` is not understood: use 1-12 or jan-dec",
        ),
        (
            "0 1,,2 * * *",
            "hour field, position 5: a value is missing: use 0-23",
        ),
        (
            "0 22-2 * * *",
            "hour field, position 3: range `22-2` runs backwards: write `22-23,0-2`",
        ),
        (
            "*/0 * * * *",
            "minute field, position 3: step `0` is not a number from 1 to 60",
        ),
        (
            "*/90 * * * *",
            "minute field, position 3: step `90` is not a number from 1 to 60",
        ),
        ("0 ? * * *", "hour field, position 3: `?` is not understood"),
        (
            "0 0 L * *",
            "day of month field, position 5: `L` is not understood",
        ),
        (
            "0 0 1-ü * *",
            "day of month field, position 7: `ü` is not understood",
        ),
        (
            "0 0 0 1 1 ? 1969",
            "year field, position 13: `1969` is out of range: use 1970-2199",
        ),
        (
            "0 0 99999999999 * *",
            "day of month field, position 5: `99999999999` is out of range",
        ),
        ("0 0 * *", "4 fields: write 5"),
        ("", "0 fields: write 5"),
        ("@reboot", "unknown name: use @hourly"),
    ];
    for (line, expected) in cases {
        let message = cron_refusal(line);
        let start = format!("entry 1: cron `{line}`: ");
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
}

#[test]
fn every_spelling_of_a_line_means_the_same() {
    let next = |line: &str| {
        let schedule = Schedule::parse(&[cron_entry(line, "UTC")]).unwrap();
        std::iter::successors(schedule.next_after(0), |at| schedule.next_after(*at))
            .take(20)
            .collect::<Vec<i64>>()
    };
    let same: [&[&str]; 8] = [
        &["@hourly", "0 * * * *", "0 0 * * * *", " 0  0\t*/1 * * ? * "],
        &["@daily", "@midnight", "0 0 * * *", "@DAILY"],
        &["@weekly", "0 0 * * sun", "0 0 * * 7", "0 0 ? * 0"],
        &["@monthly", "0 0 1 * ?"],
        &["@yearly", "@annually", "0 0 1 JAN *"],
        &["0 0 * * fri-sun", "0 0 * * 5-7", "0 0 * * 0,5,6"],
        &["0 0 * * mon/2", "0 0 * * 1,3,5"],
        &["10/20 0 * * *", "10,30,50 0 * * *", "10-59/20 0 * * *"],
    ];
    for spellings in same {
        for spelling in spellings {
            assert_eq!(next(spelling), next(spellings[0]), "{spelling}");
        }
    }
}

#[test]
fn entries_must_have_one_form_and_nothing_without_effect() {
    let empty = ScheduleEntry::default();
    assert!(refusal(empty).contains("exactly one of `cron`, `every` and `at`; found none"));
    let both = ScheduleEntry {
        at: Some("2026-01-01T00:00:00Z".to_owned()),
        ..every_entry("5s", None)
    };
    assert!(refusal(both).contains("found `every` and `at`"));
    let stray = ScheduleEntry {
        timezone: Some("UTC".to_owned()),
        ..every_entry("5s", None)
    };
    assert!(refusal(stray).contains("`timezone` belongs to `cron`"));
    let stray = ScheduleEntry {
        anchor: Some("2026-01-01T00:00:00Z".to_owned()),
        ..at_entry("2026-01-01T00:00:00Z")
    };
    assert!(refusal(stray).contains("`anchor` belongs to `every`"));
    assert!(refusal(every_entry("0s", None)).contains("at least `1ms`"));
    assert!(refusal(every_entry("5", None)).contains("duration `5`: a unit is missing"));
    assert!(refusal(cron_entry("@daily", "Mars/Olympus")).contains("timezone `Mars/Olympus`"));
    for at in [
        "tomorrow",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.0005Z",
        "",
    ] {
        assert!(refusal(at_entry(at)).contains("use RFC 3339"), "{at}");
    }
    let second = [every_entry("5s", None), every_entry("x", None)];
    let message = Schedule::parse(&second).unwrap_err().to_string();
    assert!(message.starts_with("entry 2: duration `x`"), "{message}");
}

#[test]
fn the_manifest_form_is_plain_and_documented() {
    let entry: ScheduleEntry = serde_json::from_str(r#"{"cron":"@daily"}"#).unwrap();
    assert_eq!(
        serde_json::to_string(&entry).unwrap(),
        r#"{"cron":"@daily"}"#
    );
    let unknown = serde_json::from_str::<ScheduleEntry>(r#"{"crom":"@daily"}"#);
    assert!(unknown.unwrap_err().to_string().contains("crom"));
    let schema = serde_json::to_value(schemars::schema_for!(ScheduleEntry)).unwrap();
    let fields = schema["properties"].as_object().unwrap();
    assert_eq!(fields.len(), 5);
    for (name, field) in fields {
        assert!(
            field["description"].is_string(),
            "{name} has no description"
        );
    }
}

#[test]
fn durations_are_read_and_written() {
    let cases = [
        ("250ms", 250),
        ("5s", 5000),
        ("1h30m", 5_400_000),
        ("2d1ms", 172_800_001),
        ("0s", 0),
        ("18446744073709551615ms", u64::MAX),
    ];
    for (text, ms) in cases {
        assert_eq!(parse_duration(text), Ok(ms), "{text}");
    }
    let refused = [
        ("", "is empty"),
        ("5", "a unit is missing"),
        ("h", "a number is missing"),
        ("1.5h", "a unit is missing"),
        ("-5s", "a number is missing"),
        ("5 s", "a unit is missing"),
        ("30m1h", "out of order"),
        ("1s1s", "out of order"),
        ("5w", "unknown unit"),
        ("5S", "unknown unit"),
        ("18446744073709551616ms", "too long"),
        ("18446744073709551615s", "too long"),
        ("18446744073709551s616ms", "too long"),
    ];
    for (text, problem) in refused {
        let message = parse_duration(text).expect_err(text).to_string();
        assert!(message.contains(problem), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_duration_survives_being_written(ms in any::<u64>()) {
        prop_assert_eq!(parse_duration(&format_duration(ms)), Ok(ms));
    }

    #[test]
    fn no_text_breaks_the_parsers(
        line in prop_oneof![
            any::<String>(),
            "[-0-9*/,?@a-zLW# ]{0,40}",
            "([-*0-9/,?a-z]{1,6} ){4,6}[-*0-9/,?a-z]{1,6}",
        ],
        zone in any::<String>(),
        t in any::<i64>(),
    ) {
        if let Ok(schedule) = Schedule::parse(&[cron_entry(&line, "Europe/Berlin")]) {
            schedule.next_after(t);
            schedule.prev_at_or_before(t);
        }
        let _ = Schedule::parse(&[cron_entry("@daily", &zone)]);
        let _ = Schedule::parse(&[every_entry(&line, Some(&zone))]);
        let _ = Schedule::parse(&[at_entry(&line)]);
        let _ = parse_duration(&line);
    }
}
