//! Days of months and calendars, by a printed calendar.

use serde_json::{Value, json};

use super::super::{Calendars, Plan};
use super::{at, calendar, calendars, version, written};

/// The dates on which a line of noons fires in a stretch of days.
fn noons(day: &str, weekday: &str, rule: &str, from: &str, through: &str) -> Vec<String> {
    let line = format!("0 12 {day} * {weekday}");
    let keys = json!({"schedule": [{"cron": line, "day_rule": rule}]});
    dates(keys, &Calendars::new(), from, through)
}

fn dates(keys: Value, calendars: &Calendars, from: &str, through: &str) -> Vec<String> {
    let plan = Plan::new(&version(keys), calendars).expect("a plan");
    let from = at(&format!("{from}T00:00:00Z"));
    let times = plan.times(from, at(&format!("{through}T23:59:59Z")));
    written(times)
        .into_iter()
        .map(|time| time.replace("T12:00:00Z", ""))
        .collect()
}

/// All of 2026, month and day.
fn year(day: &str, weekday: &str) -> Vec<String> {
    noons(day, weekday, "or", "2026-01-01", "2026-12-31")
        .into_iter()
        .map(|date| date[5..].to_owned())
        .collect()
}

#[test]
fn days_counted_from_the_end_of_the_month() {
    assert_eq!(year("L", "?")[..4], ["01-31", "02-28", "03-31", "04-30"]);
    assert_eq!(year("L-1", "*")[..3], ["01-30", "02-27", "03-30"]);
    // Only months of 31 days have a day thirty days before their last.
    assert_eq!(year("L-30", "*").len(), 7);
    assert_eq!(
        noons("L", "?", "or", "2028-02-01", "2028-03-01"),
        ["2028-02-29"]
    );
}

#[test]
fn working_days_near_a_day() {
    // In 2026 the 15th of February and of March is a Sunday, the 15th of August a Saturday.
    let middle = year("15W", "?");
    assert_eq!(middle[1..3], ["02-16", "03-16"]);
    assert_eq!(middle[7], "08-14");
    // The 1st is a Sunday in February, March and November, a Saturday in August: the month is not left.
    let first = year("1w", "?");
    assert_eq!((&first[1][..], &first[7][..]), ("02-02", "08-03"));
    // The 31st is a Sunday in May; months without one have none.
    assert_eq!(
        year("31W", "*"),
        [
            "01-30", "03-31", "05-29", "07-31", "08-31", "10-30", "12-31"
        ]
    );
    // Two days before the end is a Sunday in March, a Saturday in August and November.
    let near = year("L-2W", "?");
    assert_eq!(
        (&near[2][..], &near[7][..], &near[10][..]),
        ("03-30", "08-28", "11-27")
    );
    let last = year("LW", "?");
    assert_eq!(last[..5], ["01-30", "02-27", "03-31", "04-30", "05-29"]);
}

#[test]
fn weekdays_of_a_month() {
    assert_eq!(year("?", "fri#2")[..3], ["01-09", "02-13", "03-13"]);
    assert_eq!(year("?", "5#5"), ["01-30", "05-29", "07-31", "10-30"]);
    assert_eq!(year("?", "friL")[..3], ["01-30", "02-27", "03-27"]);
    assert_eq!(year("?", "7L")[..2], ["01-25", "02-22"]);
    assert_eq!(year("?", "mon#1,sunL")[..3], ["01-05", "01-25", "02-02"]);
}

#[test]
fn day_fields_go_together_as_told() {
    let thirteenth = |rule| noons("13", "fri", rule, "2026-02-01", "2026-03-31");
    assert_eq!(thirteenth("and"), ["2026-02-13", "2026-03-13"]);
    assert_eq!(thirteenth("or").len(), 8);
    assert_eq!(
        noons("*/2", "fri", "or", "2026-02-01", "2026-02-28").len(),
        2
    );
    assert_eq!(noons("L", "mon", "or", "2026-02-01", "2026-02-28").len(), 5);
}

fn working() -> Value {
    json!({
        "weekly": ["mon", "tue", "wed", "thu", "fri"],
        "include": ["2026-10-10"],
        "exclude": ["2026-10-01..2026-10-07", "12-25", "2026-10-10"]
    })
}

fn on_working_days(roll: &str, line: &str, from: &str, through: &str) -> Vec<String> {
    let keys = json!({"schedule": [{"cron": line}], "calendar": {"only": ["c"], "roll": roll}});
    let known = calendars(vec![calendar(1, "2020-01-01T00:00:00Z", working())]);
    dates(keys, &known, from, through)
}

#[test]
fn a_calendar_takes_days_out() {
    let days = on_working_days("none", "0 12 * * *", "2026-10-01", "2026-10-12");
    assert_eq!(
        days,
        ["2026-10-08", "2026-10-09", "2026-10-10", "2026-10-12"]
    );
    assert_eq!(
        on_working_days("none", "0 12 25 12 *", "2026-12-01", "2030-12-31"),
        [""; 0]
    );
    let minus = json!({"schedule": [{"cron": "0 12 * * *"}], "calendar": {"minus": ["c"]}});
    let known = calendars(vec![calendar(1, "2020-01-01T00:00:00Z", working())]);
    assert_eq!(
        dates(minus, &known, "2026-10-08", "2026-10-12"),
        ["2026-10-11"]
    );
}

#[test]
fn a_roll_goes_to_the_day_that_counts() {
    let rolled = |roll, line| on_working_days(roll, line, "2026-09-01", "2026-10-31");
    assert_eq!(rolled("next", "0 12 3 10 *"), ["2026-10-08"]);
    assert_eq!(rolled("previous", "0 12 3 10 *"), ["2026-09-30"]);
    assert_eq!(rolled("nearest", "0 12 3 10 *"), ["2026-09-30"]);
    // Four days to either side: the later one.
    assert_eq!(rolled("nearest", "0 12 4 10 *"), ["2026-10-08"]);
    // All of the holidays come together with the day's own time.
    assert_eq!(rolled("next", "0 12 1-8 10 *"), ["2026-10-08"]);
    let none = json!({"schedule": [{"at": "2026-10-03T12:00:00Z"}], "calendar": {"only": ["c"], "roll": "next"}});
    let known = calendars(vec![calendar(
        1,
        "2020-01-01T00:00:00Z",
        json!({"include": ["2027-11-08"]}),
    )]);
    assert_eq!(
        dates(none.clone(), &known, "2026-01-01", "2028-01-01"),
        [""; 0]
    );
    let known = calendars(vec![calendar(
        1,
        "2020-01-01T00:00:00Z",
        json!({"include": ["2027-11-07"]}),
    )]);
    assert_eq!(
        dates(none, &known, "2026-01-01", "2028-01-01"),
        ["2027-11-07"]
    );
}

#[test]
fn the_date_is_the_one_that_is_written() {
    // 00:30 in Shanghai is the day before in UTC; an interval goes by the date of its zone.
    let only = |schedule: Value| {
        let keys = json!({"schedule": schedule, "calendar": {"only": ["c"]}});
        let days = json!({"include": ["2026-05-10"]});
        let known = calendars(vec![calendar(1, "2020-01-01T00:00:00Z", days)]);
        let plan = Plan::new(&version(keys), &known).expect("a plan");
        written(plan.times(at("2026-05-01T00:00:00Z"), at("2026-05-31T00:00:00Z")))
    };
    let shanghai = "Asia/Shanghai";
    assert_eq!(
        only(json!([{"cron": "30 0 * * *", "timezone": shanghai}])),
        ["2026-05-09T16:30:00Z"]
    );
    assert_eq!(
        only(json!([{"every": "12h", "timezone": shanghai}])),
        ["2026-05-10T00:00:00Z", "2026-05-10T12:00:00Z"]
    );
    assert_eq!(
        only(json!([{"at": "2026-05-09T20:00:00Z", "timezone": shanghai}])),
        ["2026-05-09T20:00:00Z"]
    );
    assert_eq!(only(json!([{"at": "2026-05-09T20:00:00Z"}])), [""; 0]);
}

#[test]
fn an_edited_calendar_counts_for_the_times_after_it() {
    let keys = json!({"schedule": [{"cron": "0 12 * * *"}], "calendar": {"minus": ["c"]}});
    let known = calendars(vec![
        calendar(
            1,
            "2026-01-01T00:00:00Z",
            json!({"include": ["2026-05-01", "2026-05-04"]}),
        ),
        calendar(
            2,
            "2026-05-02T12:00:00Z",
            json!({"include": ["2026-05-02", "2026-05-03"]}),
        ),
    ]);
    // The time of the edit itself belongs to what was before.
    assert_eq!(
        dates(keys, &known, "2026-05-01", "2026-05-05"),
        ["2026-05-02", "2026-05-04", "2026-05-05"]
    );
}
