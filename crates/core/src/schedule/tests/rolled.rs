//! Days over years: lines that fire at noon, with calendars, rolls and edits, against a walk over every day.

use jiff::ToSpan;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::lines::{Reading, field, special_day, special_weekday};
use super::plan::{Plan, plan_over};

/// Lines that name few days, so that where a time rolls to can be seen.
fn sparse_line() -> impl Strategy<Value = String> {
    let day = prop_oneof![2 => special_day(), 1 => field(1, 31), 1 => (1u32..=31).prop_map(|n| n.to_string())];
    let days = prop_oneof![
        2 => day.prop_map(|day| format!("{day} * ?")),
        1 => special_weekday().prop_map(|weekday| format!("? * {weekday}")),
        1 => (special_day(), special_weekday()).prop_map(|(day, weekday)| format!("{day} */2 {weekday}")),
        1 => (1u32..=28, 1u32..=12).prop_map(|(day, month)| format!("{day} {month} *")),
        1 => Just("* * *".to_owned()),
    ];
    days.prop_map(|days| format!("0 12 {days}"))
}

fn noon(date: Date) -> i64 {
    let noon = date.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
    noon.timestamp().as_millisecond()
}

fn expected(plan: &Plan, first: Date, last: Date) -> Vec<i64> {
    let reading = Reading::new(&plan.line, plan.both_days);
    let era = |at: i64| {
        (0..plan.eras())
            .find(|era| plan.in_force(*era, at))
            .unwrap()
    };
    let days = first.series(1.day()).take_while(|day| *day <= last);
    let days = days.filter(|day| {
        let at = noon(*day);
        plan.within_bounds(at) && plan.fires(&reading, *day, era(at))
    });
    days.map(noon).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn days_agree_with_calendars_and_rolls(
        plan in sparse_line().prop_flat_map(|line| plan_over(line, date(2028, 1, 15), 250)),
        probe in 0..600i64,
    ) {
        let (first, last) = (date(2027, 5, 1), date(2028, 12, 31));
        let expected = expected(&plan, first, last);
        let schedule = plan.compile("UTC");
        let next = |at: i64| schedule.next_after(at).filter(|at| *at <= noon(last));
        let found: Vec<i64> = std::iter::successors(next(noon(first) - 1), |at| next(*at)).collect();
        prop_assert_eq!(&found, &expected);
        let prev = |at: i64| schedule.prev_at_or_before(at).filter(|at| *at >= noon(first));
        let found: Vec<i64> = std::iter::successors(prev(noon(last)), |at| prev(*at - 1)).collect();
        prop_assert!(found.iter().rev().eq(expected.iter()));
        let probe = noon(first + probe.days());
        let count = expected.iter().filter(|at| **at <= probe).count();
        prop_assert_eq!(schedule.count_between(noon(first) - 1, probe, u64::MAX), count as u64);
    }
}
