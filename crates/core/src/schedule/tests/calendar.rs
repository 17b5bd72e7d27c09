//! Days over years: lines that fire at noon, against a walk over every day.

use jiff::ToSpan;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::lines::{Reading, field, special_day, special_weekday};
use super::{cron, ms};

fn noon_line() -> impl Strategy<Value = String> {
    let year = prop_oneof![
        2 => Just("*".to_owned()),
        1 => (2095u32..2106).prop_map(|year| year.to_string()),
        1 => (2090u32..2106, 1u32..6).prop_map(|(year, n)| format!("{year}-2110/{n}")),
    ];
    let day = prop_oneof![2 => field(1, 31), 2 => special_day(), 1 => Just("29".to_owned()), 1 => Just("?".to_owned())];
    let month = prop_oneof![2 => field(1, 12), 1 => Just("feb".to_owned())];
    let weekday = prop_oneof![2 => field(0, 6), 2 => special_weekday(), 1 => Just("?".to_owned()), 1 => Just("mon-fri".to_owned())];
    (day, month, weekday, year).prop_map(|(d, m, w, y)| format!("0 0 12 {d} {m} {w} {y}"))
}

fn noon(date: Date) -> i64 {
    let noon = date.at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
    noon.timestamp().as_millisecond()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn days_agree_over_a_century_that_is_no_leap_year(line in noon_line()) {
        let schedule = cron(&line, "UTC");
        let reading = Reading::new(&line, false);
        let (first, last) = (date(2095, 1, 1), date(2105, 12, 31));
        let days = first.series(1.day()).take_while(|day| *day <= last);
        let mut expected: Vec<i64> =
            days.filter(|day| reading.matches_day(*day)).map(noon).collect();
        let next = |at: i64| schedule.next_after(at).filter(|at| *at <= noon(last));
        let found: Vec<i64> = std::iter::successors(next(noon(first) - 1), |at| next(*at)).collect();
        prop_assert_eq!(&found, &expected);
        let prev = |at: i64| schedule.prev_at_or_before(at).filter(|at| *at >= noon(first));
        let found: Vec<i64> = std::iter::successors(prev(noon(last)), |at| prev(*at - 1)).collect();
        expected.reverse();
        prop_assert_eq!(&found, &expected);
    }

    #[test]
    fn previous_and_next_enclose_any_time(
        line in noon_line(),
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai"][..]),
        t in 0..ms("2200-01-01T00:00:00Z"),
    ) {
        let schedule = cron(&line, zone);
        if let Some(next) = schedule.next_after(t) {
            prop_assert!(next > t);
            prop_assert_eq!(schedule.prev_at_or_before(next), Some(next));
            prop_assert_eq!(schedule.prev_at_or_before(next - 1), schedule.prev_at_or_before(t));
        }
        if let Some(prev) = schedule.prev_at_or_before(t) {
            prop_assert!(prev <= t);
            prop_assert_eq!(schedule.next_after(prev - 1), Some(prev));
            prop_assert_eq!(schedule.next_after(prev), schedule.next_after(t));
        }
    }

    #[test]
    fn an_interval_agrees_with_its_definition(
        period in prop_oneof![1u64..5000, any::<u64>().prop_map(|n| n.max(1))],
        anchor in 0i64..253_402_300_799_000,
        t in prop_oneof![any::<i64>(), -100_000i64..100_000],
    ) {
        let anchor_text = jiff::Timestamp::from_millisecond(anchor).unwrap().to_string();
        let entry = super::every_entry(&format!("{period}ms"), Some(&anchor_text));
        let schedule = super::schedule(&[entry]);
        let on_beat = |at: i64| (i128::from(at) - i128::from(anchor)) % i128::from(period) == 0;
        if let Some(next) = schedule.next_after(t) {
            prop_assert!(next > t && on_beat(next));
            prop_assert!(i128::from(next) - i128::from(t) <= i128::from(period));
        }
        if let Some(prev) = schedule.prev_at_or_before(t) {
            prop_assert!(prev <= t && on_beat(prev));
            prop_assert!(i128::from(t) - i128::from(prev) < i128::from(period));
        }
    }
}
