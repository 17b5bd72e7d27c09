//! Text that nobody would write, and text that somebody nearly wrote.

use proptest::prelude::*;

use super::super::cron::line::Line;
use super::super::{DateSet, Schedule, parse_duration};
use super::dates::calendar;
use super::lines::{line, special_day, special_weekday};
use super::{at_entry, compiled, cron_entry, every_entry};

/// A line with a few characters changed, dropped or put in.
fn mutated() -> impl Strategy<Value = String> {
    let alphabet = "0123456789*/,-?LWlw#@ \tfrimonsun24605HüÖ日";
    let character = prop::sample::select(alphabet.chars().collect::<Vec<char>>());
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3u8, character), 1..5);
    let base = prop_oneof![
        3 => line(),
        1 => (special_day(), special_weekday()).prop_map(|(day, weekday)| format!("0 30 2 {day} * {weekday} 2026")),
        1 => Just("@daily".to_owned()),
    ];
    (base, edits).prop_map(|(base, edits)| {
        let mut text: Vec<char> = base.chars().collect();
        for (index, edit, character) in edits {
            let at = index.index(text.len() + 1);
            match edit {
                0 if at < text.len() => text[at] = character,
                1 if at < text.len() => drop(text.remove(at)),
                _ => text.insert(at, character),
            }
        }
        text.into_iter().collect()
    })
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => any::<String>(),
        2 => "[-0-9*/,?@a-zLW# ]{0,40}",
        2 => "([-*0-9/,?a-zLW#]{1,6} ){4,6}[-*0-9/,?a-zLW#]{1,6}",
        6 => mutated(),
        1 => "[0-9,*/LW# -]{900,1100}",
    ]
}

fn ask(schedule: &Schedule, t: i64) {
    let next = schedule.next_after(t);
    assert!(next.is_none_or(|next| next > t));
    let prev = schedule.prev_at_or_before(t);
    assert!(prev.is_none_or(|prev| prev <= t));
    if let Some(next) = next {
        assert_eq!(schedule.prev_at_or_before(next), Some(next));
        assert_eq!(schedule.count_between(t, next, u64::MAX), 1);
    }
    schedule.excluded_between(t, t.saturating_add(1_000_000_000_000), 10);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fault_lies_inside_the_line(line in any_line()) {
        if let Err(fault) = Line::parse(&line) {
            let chars = line.chars().count();
            prop_assert!(fault.position().is_none_or(|at| (1..=chars + 1).contains(&at)), "{line}: {fault}");
            prop_assert!(fault.to_string().chars().count() < 500, "{fault}");
        }
    }

    #[test]
    fn no_line_breaks_a_schedule(line in any_line(), t in prop_oneof![any::<i64>(), 0..7_000_000_000_000i64]) {
        if let Ok(schedule) = compiled(&[cron_entry(&line, "Europe/Berlin")]) {
            ask(&schedule, t);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_other_parsers(
        text in prop_oneof![any::<String>(), "[-0-9TZ:. +]{0,30}", "[0-9dhms]{0,12}", "[0-9-]{3,10}(\\.\\.[0-9-]{3,10})?"],
        zone in any::<String>(),
        t in any::<i64>(),
    ) {
        let _ = compiled(&[cron_entry("@daily", &zone)]);
        for entry in [every_entry(&text, None), every_entry("5s", Some(&text)), at_entry(&text)] {
            if let Ok(schedule) = compiled(&[entry]) {
                ask(&schedule, t);
            }
        }
        let local = super::ScheduleEntry { timezone: Some("Asia/Shanghai".to_owned()), ..at_entry(&text) };
        let _ = compiled(&[local]);
        let _ = parse_duration(&text);
        let _ = DateSet::compile(&calendar(&[], &[&text], &[&text]));
    }
}
