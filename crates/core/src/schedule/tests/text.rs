//! What people write: errors that help, durations, and the shape of the manifest.

use proptest::prelude::*;

use super::super::{DayRule, DstFold, DstGap, format_duration, parse_duration};
use super::{ScheduleEntry, at_entry, compiled, cron_entry, every_entry};

fn refusal(entry: ScheduleEntry) -> String {
    compiled(&[entry]).expect_err("refused").to_string()
}

fn cron_refusal(line: &str) -> String {
    refusal(cron_entry(line, "UTC"))
}

#[test]
fn cron_errors_name_the_field_the_position_and_the_remedy() {
    let cases = [
        (
            "60 * * * *",
            "minute field, position 1: `60` is out of range: use 0-59; the full hour is `0`",
        ),
        (
            "0 24 * * *",
            "hour field, position 3: `24` is out of range: use 0-23; midnight is `0`",
        ),
        (
            "60 0 0 * * *",
            "second field, position 1: `60` is out of range: use 0-59; the full minute is `0`",
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
            "0, 30 * * * *",
            "second field, position 3: a value is missing: use 0-59; lists are written without spaces",
        ),
        (
            "0 22-2 * * *",
            "hour field, position 3: range `22-2` runs backwards: write `22-23,0-2`",
        ),
        (
            "0 0 * * fri-mon",
            "range `fri-mon` runs backwards: write `fri-sat,sun-mon`",
        ),
        (
            "0 0 * nov-jan *",
            "range `nov-jan` runs backwards: write `nov-dec,jan`",
        ),
        (
            "*/0 * * * *",
            "minute field, position 3: step `0` is out of range: use 1 to 60",
        ),
        (
            "*/90 * * * *",
            "step `90` is out of range: use 1 to 60, or for an interval `every: 90m`",
        ),
        (
            "*/ * * * *",
            "minute field, position 3: a value is missing: use a step from 1 to 60",
        ),
        (
            "/5 * * * *",
            "minute field, position 1: a value is missing: write `*/5`",
        ),
        (
            "*5 * * * *",
            "`*5` is not understood: write `*/5` for a step, or `5` for the value",
        ),
        (
            "0 ? * * *",
            "hour field, position 3: `?` is not understood: write `*`",
        ),
        (
            "H 2 * * *",
            "`H` is not understood: give the value, and `jitter`",
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
            "0 12 * * ? 2026",
            "month field, position 10: `?` is not understood: in a line of six fields the first is the second",
        ),
        (
            "0 12 * * 1 2026",
            "day of week field, position 12: `2026` is out of range: a year needs all seven fields",
        ),
        (
            "0 0 99999999999 * *",
            "day of month field, position 5: `99999999999` is out of range",
        ),
        (
            "0 0 * * monday",
            "day of week field, position 9: `monday` is not understood: write `mon`",
        ),
        (
            "0 0 mon * *",
            "day of month field, position 5: `mon` is not understood: the name goes into the day of week field",
        ),
        ("0 0 * * jan", "the name goes into the month field"),
        (
            "0 0 * * L",
            "day of week field, position 9: `L` does not belong here: write `6` or `sat`",
        ),
        (
            "0 0 * * 15W",
            "`15W` is not understood: write `mon-fri` for weekdays",
        ),
        (
            "0 0 fri#2 * *",
            "day of month field, position 5: `fri#2` does not belong here: `#` goes into the day of week field",
        ),
        (
            "0 0 5L * *",
            "`5L` is not understood: write `L` for the last day of the month",
        ),
        ("0 0 W * *", "`W` is not understood: write `15W`"),
        (
            "0 0 1-5W * *",
            "`1-5W` does not belong here: give each day its own `W`",
        ),
        (
            "0 0 20-L * *",
            "day of month field, position 8: `L` does not belong here: write `20-31`",
        ),
        (
            "0 0 L-31 * *",
            "day of month field, position 7: `31` is out of range: use 1-30",
        ),
        (
            "0 0 L- * *",
            "day of month field, position 7: a value is missing: write `L-3`",
        ),
        ("0 0 32W * *", "`32` is out of range: use 1-31"),
        (
            "0 0 * * fri#6",
            "day of week field, position 13: `6` is out of range: use 1-5",
        ),
        ("0 0 * * fri#l", "write `friL` for the last one"),
        (
            "0 0 * * #2",
            "day of week field, position 9: a value is missing",
        ),
        (
            "0 0 * * mon-friL",
            "`mon-friL` does not belong here: give each weekday its own `L`",
        ),
        (
            "0 L * * *",
            "hour field, position 3: `L` is not understood: use 0-23; `L`, `W` and `#` are for the day fields",
        ),
        ("0 0 * *", "4 fields: write 5"),
        ("0 0 0 * * * * *", "8 fields: write 5"),
        (
            "5m",
            "1 field: for an interval give `every: 5m` instead of `cron`",
        ),
        (
            "2026-01-31T08:00:00Z",
            "for a single instant give `at: 2026-01-31T08:00:00Z` instead of `cron`",
        ),
        ("", "0 fields: write 5"),
        (
            "@reboot",
            "unknown name: a schedule knows times, not starts of machines: use @hourly",
        ),
        (
            "@every 5m",
            "unknown name: for an interval give `every: 5m` instead of `cron`",
        ),
        ("@dayly", "unknown name: use @hourly"),
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
        let schedule = compiled(&[cron_entry(line, "UTC")]).unwrap();
        std::iter::successors(schedule.next_after(0), |at| schedule.next_after(*at))
            .take(20)
            .collect::<Vec<i64>>()
    };
    let same: [&[&str]; 14] = [
        &["@hourly", "0 * * * *", "0 0 * * * *", " 0  0\t*/1 * * ? * "],
        &["@daily", "@midnight", "0 0 * * *", "@DAILY"],
        &["@weekly", "0 0 * * sun", "0 0 * * 7", "0 0 ? * 0"],
        &["@monthly", "0 0 1 * ?"],
        &["@yearly", "@annually", "0 0 1 JAN *"],
        &["0 0 * * fri-sun", "0 0 * * 5-7", "0 0 * * 0,5,6"],
        &[
            "0 0 * * mon-sun",
            "0 0 * * *",
            "0 0 * * 0-7",
            "0 0 * * sun-sat",
        ],
        &["0 0 L * *", "0 0 l * ?", "0 0 0 L * ? *"],
        &["0 0 * * friL", "0 0 ? * 5L", "0 0 * * FRIl"],
        &["0 0 * * sun#2", "0 0 * * 7#2", "0 0 * * 0#2"],
        &["0 0 15W * *", "0 0 15w * ?"],
        &["0 0 L-2W * *", "0 0 l-2w * *"],
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
fn a_message_stays_short_whatever_was_written() {
    for line in [
        "9".repeat(900),
        "x ".repeat(400),
        "ü".repeat(5000),
        "1,".repeat(400),
    ] {
        let message = cron_refusal(&line);
        assert!(message.chars().count() < 600, "{message}");
    }
    assert!(
        cron_refusal(&"* ".repeat(501)).contains("1002 characters are too many: write up to 1000")
    );
}

#[test]
fn entries_must_have_one_form() {
    let empty = ScheduleEntry::default();
    assert!(
        refusal(empty).contains("exactly one of `cron`, `every`, `at` and `after_end`; found none")
    );
    let both = ScheduleEntry {
        at: Some("2026-01-01T00:00:00Z".to_owned()),
        ..every_entry("5s", None)
    };
    assert!(refusal(both).contains("found `every` and `at`"));
    let both = ScheduleEntry {
        after_end: Some("5s".to_owned()),
        ..every_entry("5s", None)
    };
    assert!(refusal(both).contains("found `every` and `after_end`"));
    assert!(refusal(every_entry("0s", None)).contains("every must be at least `1ms`"));
    assert!(refusal(every_entry("5", None)).contains("duration `5`: a unit is missing"));
    assert!(refusal(cron_entry("@daily", "Mars/Olympus")).contains("timezone `Mars/Olympus`"));
    for at in [
        "tomorrow",
        "2026-01-01T00:00:00.0005Z",
        "2026-01-01",
        "2026-13-01T00:00:00",
        "",
    ] {
        assert!(refusal(at_entry(at)).contains("use RFC 3339"), "{at}");
    }
    let second = [every_entry("5s", None), every_entry("x", None)];
    let message = compiled(&second).unwrap_err().to_string();
    assert!(message.starts_with("entry 2: duration `x`"), "{message}");
    let many = vec![every_entry("5s", None); 65];
    let message = compiled(&many).unwrap_err().to_string();
    assert!(
        message.contains("65 entries are too many: write up to 64"),
        "{message}"
    );
}

#[test]
fn a_key_without_effect_is_refused() {
    let text = |text: &str| Some(text.to_owned());
    let daily = cron_entry("0 2 * * *", "UTC");
    let hourly = cron_entry("0 * * * *", "UTC");
    let instant = at_entry("2026-01-01T00:00:00Z");
    let interval = every_entry("5s", None);
    let local = ScheduleEntry {
        timezone: text("UTC"),
        ..at_entry("2026-01-01T00:00:00")
    };
    let delay = ScheduleEntry {
        after_end: text("5s"),
        ..ScheduleEntry::default()
    };
    let anchor = |entry: &ScheduleEntry| ScheduleEntry {
        anchor: text("2026-01-01T00:00:00Z"),
        ..entry.clone()
    };
    let zone = |entry: &ScheduleEntry| ScheduleEntry {
        timezone: text("UTC"),
        ..entry.clone()
    };
    let rule = |entry: &ScheduleEntry| ScheduleEntry {
        day_rule: Some(DayRule::And),
        ..entry.clone()
    };
    let gap = |entry: &ScheduleEntry| ScheduleEntry {
        dst_gap: Some(DstGap::Skip),
        ..entry.clone()
    };
    let fold = |entry: &ScheduleEntry| ScheduleEntry {
        dst_fold: Some(DstFold::Both),
        ..entry.clone()
    };
    let refused = [
        (
            anchor(&daily),
            "`anchor` has no effect here: it belongs to `every`",
        ),
        (anchor(&instant), "`anchor` has no effect here"),
        (
            anchor(&delay),
            "`anchor` has no effect here: `after_end` counts",
        ),
        (
            zone(&interval),
            "`timezone` has no effect here: `every` needs it only with a `calendar`",
        ),
        (
            zone(&instant),
            "`timezone` has no effect here: the time has an offset",
        ),
        (zone(&delay), "`timezone` has no effect here"),
        (
            rule(&interval),
            "`day_rule` has no effect here: it belongs to `cron`",
        ),
        (rule(&local), "`day_rule` has no effect here"),
        (
            gap(&hourly),
            "`dst_gap` has no effect here: the line holds `*`",
        ),
        (
            fold(&hourly),
            "`dst_fold` has no effect here: the line holds `*`",
        ),
        (
            gap(&interval),
            "`dst_gap` has no effect here: `every` counts elapsed time",
        ),
        (
            fold(&instant),
            "`dst_fold` has no effect here: the time has an offset",
        ),
        (at_entry("2026-01-01T00:00:00"), "has no offset: add one"),
        (
            zone(&at_entry("1969-12-31T00:00:00")),
            "outside the years 1970 to 2199",
        ),
    ];
    for (entry, expected) in refused {
        let message = refusal(entry);
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    for taken in [
        rule(&daily),
        gap(&daily),
        fold(&daily),
        gap(&local),
        fold(&local),
        anchor(&interval),
        delay,
    ] {
        compiled(&[taken]).unwrap();
    }
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
    assert_eq!(fields.len(), 9);
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
}
