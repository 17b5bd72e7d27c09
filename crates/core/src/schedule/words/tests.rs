//! Lines with their words, the rest of a schedule, and that no words stand for two different schedules.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Cron lines and what is said of them in both languages.
const CASES: &str = include_str!("cases.tsv");

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

fn at(at: &str) -> ScheduleEntry {
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

fn check(spec: &ScheduleSpec<'_>, english: &str, chinese: &str) {
    assert_eq!(describe(spec, Language::English).unwrap(), english);
    assert_eq!(describe(spec, Language::Chinese).unwrap(), chinese);
}

fn check_entry(entry: ScheduleEntry, english: &str, chinese: &str) {
    check(&spec(&[entry]), english, chinese);
}

#[test]
fn every_line_of_the_table_is_told_as_it_says() {
    let lines = CASES.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[line, zone, english, chinese] = columns.as_slice() else {
            panic!("not four columns: {line}");
        };
        check_entry(cron(line, zone), english, chinese);
        count += 1;
    }
    assert!(count > 90, "{count}");
}

#[test]
fn intervals_are_told_in_their_units() {
    let cases = [
        ("90s", "every 1 minute 30 seconds", "每 1 分钟 30 秒"),
        ("1s", "every second", "每秒"),
        ("5m", "every 5 minutes", "每 5 分钟"),
        ("1h", "every hour", "每小时"),
        ("1h30m", "every 1 hour 30 minutes", "每 1 小时 30 分钟"),
        ("250ms", "every 250 milliseconds", "每 250 毫秒"),
        ("1d", "every 24 hours", "每 24 小时"),
        ("2d", "every 48 hours", "每 48 小时"),
        (
            "7d",
            "every 7 days of 24 hours",
            "每 7 天（每天按 24 小时计）",
        ),
    ];
    for (text, english, chinese) in cases {
        check_entry(every(text), english, chinese);
    }
    let anchored = ScheduleEntry {
        anchor: Some("2026-01-01T00:00:10Z".to_owned()),
        ..every("45s")
    };
    check_entry(
        anchored,
        "every 45 seconds, counted from 2026-01-01T00:00:10Z",
        "每 45 秒，从 2026-01-01T00:00:10Z 起算",
    );
}

#[test]
fn instants_and_delays_are_told() {
    check_entry(
        at("2026-01-31T08:00:00+01:00"),
        "once at 2026-01-31T08:00:00+01:00",
        "仅一次，于 2026-01-31T08:00:00+01:00",
    );
    let local = ScheduleEntry {
        timezone: Some("Europe/Berlin".to_owned()),
        dst_gap: Some(DstGap::AtTransition),
        ..at("2026-03-29T02:30:00")
    };
    check_entry(
        local,
        "once at 2026-03-29T02:30:00, Europe/Berlin, at the moment of the change when clocks skip it",
        "仅一次，于 2026-03-29T02:30:00（Europe/Berlin），拨快时跳过的时刻在拨钟的瞬间触发",
    );
    let delay = ScheduleEntry {
        after_end: Some("5m".to_owned()),
        ..ScheduleEntry::default()
    };
    check_entry(
        delay,
        "5 minutes after the end of the last run",
        "上次运行结束后 5 分钟",
    );
    check(
        &spec(&[]),
        "never by itself, only when triggered",
        "不自动触发，仅手动触发",
    );
}

#[test]
fn choices_for_clock_changes_are_told_when_they_are_not_the_usual_ones() {
    let chosen = |gap, fold| ScheduleEntry {
        dst_gap: Some(gap),
        dst_fold: Some(fold),
        ..cron("30 2 * * *", "Europe/Berlin")
    };
    check_entry(
        chosen(DstGap::Shift, DstFold::First),
        "every day at 02:30, Europe/Berlin",
        "每天 02:30（Europe/Berlin）",
    );
    check_entry(
        chosen(DstGap::Skip, DstFold::Both),
        "every day at 02:30, Europe/Berlin, left out when clocks skip it, at both passes when clocks show it twice",
        "每天 02:30（Europe/Berlin），拨快时跳过的时刻不触发，拨慢时重复的时刻两次都触发",
    );
    check_entry(
        chosen(DstGap::Shift, DstFold::Last),
        "every day at 02:30, Europe/Berlin, at the second pass when clocks show it twice",
        "每天 02:30（Europe/Berlin），拨慢时重复的时刻取第二次",
    );
}

#[test]
fn the_day_rule_is_told() {
    let both = |line| ScheduleEntry {
        day_rule: Some(super::super::spec::DayRule::And),
        ..cron(line, "UTC")
    };
    check_entry(
        both("0 0 13 * fri"),
        "on the 13th of every month if it is a Friday, at 00:00, UTC",
        "每月 13 日（须为周五）00:00（UTC）",
    );
    check_entry(
        both("*/5 * 1-7 * mon,fri#1"),
        "on the 1st to the 7th of every month if it is a Monday or the first Friday of the month, every 5 minutes, UTC",
        "每月 1 日至 7 日（须为周一或当月第 1 个周五），每 5 分钟（UTC）",
    );
    check_entry(
        both("0 0 1-31 * mon-fri"),
        "every weekday at 00:00, UTC",
        "每周一至周五 00:00（UTC）",
    );
}

fn calendar(only: &[&str], minus: &[&str], roll: Roll) -> CalendarUse {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| CalendarName::new(name).unwrap())
            .collect()
    };
    CalendarUse {
        only: names(only),
        minus: names(minus),
        roll,
    }
}

#[test]
fn calendars_are_told() {
    let entries = [cron("30 2 * * mon-fri", "Asia/Shanghai")];
    let told = |calendar: &CalendarUse, english: &str, chinese: &str| {
        let spec = ScheduleSpec {
            calendar: Some(calendar),
            ..spec(&entries)
        };
        let (en, zh) = (
            "every weekday at 02:30, Asia/Shanghai; ",
            "每周一至周五 02:30（Asia/Shanghai）；",
        );
        check(&spec, &format!("{en}{english}"), &format!("{zh}{chinese}"));
    };
    told(
        &calendar(&["cn-workdays"], &["maintenance"], Roll::Next),
        "only on days in cn-workdays; not on days in maintenance; otherwise on the next such day",
        "仅在属于 cn-workdays 的日子；不在属于 maintenance 的日子；否则顺延到下一个符合的日子",
    );
    told(
        &calendar(&["a", "b"], &[], Roll::Previous),
        "only on days in both a and b; otherwise on the previous such day",
        "仅在同时属于 a 和 b 的日子；否则提前到上一个符合的日子",
    );
    told(
        &calendar(&[], &["a", "b", "c"], Roll::None),
        "not on days in a, b or c",
        "不在属于 a、b 或 c 的日子",
    );
    told(
        &calendar(&["a", "b", "c"], &[], Roll::Nearest),
        "only on days in all of a, b and c; otherwise on the nearest such day, the later of two",
        "仅在同时属于 a、b 和 c 的日子；否则移到最近的符合的日子，一样近时取后一个",
    );
    let entries = [every("90s")];
    let used = calendar(&["a"], &[], Roll::None);
    check(
        &ScheduleSpec {
            calendar: Some(&used),
            ..spec(&entries)
        },
        "every 1 minute 30 seconds, dates in UTC; only on days in a",
        "每 1 分钟 30 秒（日期按 UTC）；仅在属于 a 的日子",
    );
}

#[test]
fn unions_spread_and_bounds_are_told() {
    let entries = [cron("0 9 * * *", "Asia/Shanghai"), every("7m")];
    check(
        &spec(&entries),
        "every day at 09:00, Asia/Shanghai; also every 7 minutes",
        "每天 09:00（Asia/Shanghai）；以及 每 7 分钟",
    );
    let bounds = Bounds {
        start: Some("2026-01-01T00:00:00Z".to_owned()),
        end: Some("2027-01-01T00:00:00Z".to_owned()),
        max_fires: Some(10),
    };
    let whole = ScheduleSpec {
        jitter: Some("30s"),
        bounds: Some(&bounds),
        ..spec(&entries)
    };
    check(
        &whole,
        "every day at 09:00, Asia/Shanghai; also every 7 minutes. All of it each put off by less than 30 seconds; from 2026-01-01T00:00:00Z on; only before 2027-01-01T00:00:00Z; at most 10 runs",
        "每天 09:00（Asia/Shanghai）；以及 每 7 分钟。以上全部：每次推迟，不到 30 秒；自 2026-01-01T00:00:00Z 起；仅在 2027-01-01T00:00:00Z 之前；最多运行 10 次",
    );
}

#[test]
fn a_schedule_that_is_refused_has_no_words() {
    let refused = |entry| {
        describe(&spec(&[entry]), Language::Chinese)
            .unwrap_err()
            .to_string()
    };
    assert!(
        refused(cron("60 * * * *", "UTC")).starts_with("entry 1: cron `60 * * * *`: minute field")
    );
    assert!(refused(ScheduleEntry::default()).contains("exactly one of"));
}

#[test]
fn languages_have_tags() {
    assert_eq!(Language::from_tag("zh-CN"), Some(Language::Chinese));
    assert_eq!(Language::from_tag("EN"), Some(Language::English));
    assert_eq!(Language::from_tag("fr"), None);
}

/// Fields that people write, chosen so that many lines are told alike.
fn simple_line() -> impl Strategy<Value = String> {
    let second = proptest::sample::select(vec![
        "", "", "", "0 ", "* ", "*/10 ", "0-59/10 ", "15 ", "5,10 ", "*/7 ",
    ]);
    let minute = proptest::sample::select(vec![
        "0", "30", "*", "*/5", "0-59/5", "*/7", "0,30", "15,45", "1-59/2", "0-29", "0/20", "1,2",
        "0-59",
    ]);
    let hour = proptest::sample::select(vec![
        "*",
        "0",
        "9",
        "9-17",
        "0-23",
        "*/2",
        "0-22/2",
        "1/2",
        "9,12",
        "8,9,17,18",
        "*/5",
        "0,23",
        "1-4,6",
    ]);
    let day = proptest::sample::select(vec![
        "*", "*", "?", "1", "1,15", "1-7", "1-31", "*/2", "1/2", "L", "L-3", "31", "15W", "LW",
        "L-3W", "1W", "2-10/2",
    ]);
    let month = proptest::sample::select(vec![
        "*", "*", "*", "1", "jan-mar", "1,7", "*/3", "1-12", "2", "1/6",
    ]);
    let weekday = proptest::sample::select(vec![
        "*",
        "*",
        "?",
        "1-5",
        "mon",
        "0",
        "7",
        "5-7",
        "sat,sun",
        "fri#2",
        "5L",
        "*/2",
        "0-6",
        "1,3,5",
        "1/2",
        "mon,fri#1",
    ]);
    (second, minute, hour, day, month, weekday).prop_map(
        |(second, minute, hour, day, month, weekday)| {
            format!("{second}{minute} {hour} {day} {month} {weekday}")
        },
    )
}

/// Times from several starts, which tell lines apart.
fn sample(entry: &ScheduleEntry) -> Vec<i64> {
    let schedule = Schedule::compile(&spec(std::slice::from_ref(entry)), &AnyDay)
        .unwrap()
        .unwrap();
    let mut times = Vec::new();
    // Far enough apart, and at all times of day, to meet every field.
    for start in (0..60).map(|n| 1_767_225_000_000 + n * (9 * 24 + 7) * 3_601_000) {
        let next = |at: &i64| schedule.next_after(*at);
        times.extend(std::iter::successors(schedule.next_after(start), next).take(3));
    }
    times
}

#[test]
fn no_words_stand_for_two_different_schedules() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut told: BTreeMap<String, (String, Vec<i64>)> = BTreeMap::new();
    let mut alike = 0;
    for _ in 0..3000 {
        let tree = simple_line().new_tree(&mut runner).unwrap();
        let line = proptest::strategy::ValueTree::current(&tree);
        let entry = cron(&line, "UTC");
        let times = sample(&entry);
        for language in [Language::English, Language::Chinese] {
            let words = describe(&spec(std::slice::from_ref(&entry)), language).unwrap();
            if let Some((other, theirs)) = told.get(&words) {
                assert_eq!(
                    &times, theirs,
                    "`{line}` and `{other}` are both told as: {words}"
                );
                alike += usize::from(*other != line);
            }
            told.insert(words, (line.clone(), times.clone()));
        }
    }
    assert!(alike > 80, "only {alike} lines were told like another");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_written_breaks_the_words(
        line in prop_oneof![
            any::<String>(),
            "([-*0-9/,?a-z#LW]{1,6} ){4,6}[-*0-9/,?a-z]{1,6}",
            "(([0-9]|1[0-9]|2[0-3]|[1-9]-2[0-3]|\\*|\\*/[1-9]|[0-9]/[1-9]),){0,5}[0-9] [0-9] ([1-9]W?|L|L-[1-9]W?|LW) [1-9] [0-7](L|#[1-5])?",
        ],
        zone in prop_oneof![Just("UTC".to_owned()), any::<String>()],
        number in any::<u64>(),
    ) {
        for entry in [cron(&line, &zone), every(&line), at(&line), every(&format!("{number}ms"))] {
            for language in [Language::English, Language::Chinese] {
                if let Ok(words) = describe(&spec(std::slice::from_ref(&entry)), language) {
                    prop_assert!(!words.is_empty() && !words.contains("  "), "{words}");
                }
            }
        }
    }
}
