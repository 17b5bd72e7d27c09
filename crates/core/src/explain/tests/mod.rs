//! Examples of what is told of a job; the property test is in the submodule.

mod every_time;
mod past;

use jiff::Timestamp;

use super::*;
use crate::schedule::{AnyDay, Exclusion};
use past::{Days, Past};

fn at(text: &str) -> WallMs {
    WallMs(text.parse::<Timestamp>().unwrap().as_millisecond())
}

/// Each row as `first..last xcount: text`, short times.
fn told(answer: &Answer) -> Vec<String> {
    let short = |at: WallMs| {
        let at = Timestamp::from_millisecond(at.0).unwrap();
        at.strftime("%d %H:%M:%S").to_string()
    };
    let row = |row: &Row| match row.count {
        1 => format!("{}: {}", short(row.first), row.text()),
        count => format!(
            "{}..{} x{count}: {}",
            short(row.first),
            short(row.last),
            row.text()
        ),
    };
    answer.rows.iter().map(row).collect()
}

#[test]
fn a_week_without_a_server_reads_clearly() {
    let mut past = Past::new(
        r#"{"schedule": [{"cron": "0 2 * * *"}]}"#,
        at("2026-01-01T12:00:00Z"),
    );
    past.runs_until(at("2026-01-03T12:00:00Z"));
    past.unfired(7, UnfiredReason::Misfire);
    past.run_late(at("2026-01-11T02:30:00Z"));
    past.now = at("2026-01-11T12:00:00Z");
    let answer = past.explain(at("2026-01-02T00:00:00Z"), at("2026-01-14T00:00:00Z"));
    assert_eq!(
        told(&answer),
        [
            "02 02:00:00: COMPLETED, started 7ms after its due time",
            "03 02:00:00: COMPLETED, started 7ms after its due time",
            "04 02:00:00..10 02:00:00 x7: missed while nothing could fire it: the newest of 8 ran",
            "11 02:00:00: COMPLETED, started 30m after its due time",
            "12 02:00:00..13 02:00:00 x2: planned",
        ]
    );
}

#[test]
fn a_run_in_time_after_old_misses_is_not_taken_for_their_newest() {
    let mut past = Past::new(
        r#"{"schedule": [{"cron": "0 2 * * *"}]}"#,
        at("2026-01-01T12:00:00Z"),
    );
    past.unfired(3, UnfiredReason::Misfire);
    past.runs_until(at("2026-01-05T12:00:00Z"));
    let answer = past.explain(at("2026-01-02T00:00:00Z"), at("2026-01-05T12:00:00Z"));
    assert_eq!(
        told(&answer)[0],
        "02 02:00:00..04 02:00:00 x3: missed while nothing could fire it, and beyond what `misfire` makes up for"
    );
}

#[test]
fn a_year_of_a_paused_one_second_job_is_one_row() {
    let mut past = Past::new(
        r#"{"schedule": [{"every": "1s"}]}"#,
        at("2026-01-01T00:00:00Z"),
    );
    past.pause(at("2026-01-01T00:00:00.500Z"));
    past.now = at("2026-12-31T23:59:59.500Z");
    let answer = past.explain(at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:05Z"));
    assert_eq!(
        told(&answer),
        [
            "01 00:00:01..31 23:59:59 x10000: paused by ana since 2026-01-01T00:00:00.5Z; `on_resume` decides when the job is resumed",
            "01 00:00:00..01 00:00:04 x5: no run while the job is paused by ana since 2026-01-01T00:00:00.5Z",
        ]
    );
    assert_eq!(answer.next, None);
}

#[test]
fn what_clocks_and_bounds_take_away_is_told() {
    let spec = r#"{"schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst_gap": "skip"}],
                   "bounds": {"end": "2026-03-31T00:00:00Z"}}"#;
    let mut past = Past::new(spec, at("2026-03-27T12:00:00Z"));
    past.runs_until(at("2026-03-30T12:00:00Z"));
    let answer = past.explain(at("2026-03-28T00:00:00Z"), at("2026-04-02T00:00:00Z"));
    assert_eq!(
        told(&answer)[1..],
        [
            "29 01:00:00: clocks in Europe/Berlin skip 2026-03-29T02:30:00",
            "30 00:30:00: COMPLETED, started 7ms after its due time",
            "31 00:30:00..01 00:30:00 x2: after the end of the schedule's bounds",
        ]
    );
}

#[test]
fn times_belong_to_the_version_in_force() {
    let mut past = Past::new(
        r#"{"schedule": [{"cron": "0 * * * *"}]}"#,
        at("2026-01-01T00:30:00Z"),
    );
    past.runs_until(at("2026-01-01T02:10:00Z"));
    past.edit(
        r#"{"schedule": [{"cron": "15 * * * *"}], "bounds": {"max_fires": 4}}"#,
        at("2026-01-01T02:20:00Z"),
    );
    past.runs_until(at("2026-01-01T03:30:00Z"));
    let answer = past.explain(at("2026-01-01T00:00:00Z"), at("2026-01-01T08:00:00Z"));
    assert_eq!(
        told(&answer),
        [
            "01 01:00:00: COMPLETED, started 7ms after its due time",
            "01 02:00:00: COMPLETED, started 7ms after its due time",
            "01 03:15:00: COMPLETED, started 7ms after its due time",
            "01 04:15:00: planned",
            "01 05:15:00..01 07:15:00 x3: the schedule had made its 4 runs",
        ]
    );
    let versions: Vec<u32> = answer.rows.iter().map(|row| row.version).collect();
    assert_eq!(versions, [1, 1, 2, 2, 2]);
}

#[test]
fn what_is_older_than_the_runs_kept_is_no_longer_known() {
    let mut past = Past::new(
        r#"{"schedule": [{"every": "1h"}]}"#,
        at("2026-01-01T00:30:00Z"),
    );
    past.runs_until(at("2026-01-02T00:30:00Z"));
    past.forget_before(at("2026-01-01T20:30:00Z"));
    let answer = past.explain(at("2026-01-01T00:00:00Z"), at("2026-01-02T00:30:00Z"));
    assert_eq!(
        told(&answer)[0],
        "01 01:00:00..01 20:00:00 x20: no longer known: older than the runs that are kept"
    );
    assert_eq!(answer.rows.len(), 5);
}

#[test]
fn runs_of_a_schedule_that_counts_from_the_end_are_told_with_the_planned_one() {
    let mut past = Past::new(
        r#"{"schedule": [{"after_end": "10m"}]}"#,
        at("2026-01-01T00:00:00Z"),
    );
    past.run_at(at("2026-01-01T00:10:00Z"));
    past.run_at(at("2026-01-01T00:20:01Z"));
    past.record.schedule.next_nominal = Some(at("2026-01-01T00:30:02Z"));
    past.now = at("2026-01-01T00:25:00Z");
    let answer = past.explain(at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
    assert_eq!(
        told(&answer),
        [
            "01 00:10:00: COMPLETED, started 7ms after its due time",
            "01 00:20:01: COMPLETED, started 7ms after its due time",
            "01 00:30:02: planned",
        ]
    );
}

#[test]
fn an_answer_that_grows_too_long_says_where_it_goes_on() {
    let mut past = Past::new(
        r#"{"schedule": [{"every": "1s"}]}"#,
        at("2026-01-01T00:00:00Z"),
    );
    past.runs_until(at("2026-01-01T00:10:00.500Z"));
    let timeline = past.timeline(&AnyDay);
    let (from, to) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
    let reach = timeline.reach(from, to, 100);
    assert_eq!(reach, at("2026-01-01T00:01:40.001Z"));
    let answer = timeline.explain(from, to, &past.runs, 100);
    assert_eq!(answer.rows.len(), 100);
    assert_eq!(answer.next, Some(reach));
    assert_eq!(timeline.reach(at("2026-01-01T00:09:00Z"), to, 100), to);
}

#[test]
fn an_exclusion_of_a_calendar_names_it() {
    let spec = r#"{"schedule": [{"cron": "0 9 * * *"}], "calendar": {"minus": ["holidays"], "roll": "next"}}"#;
    let past = Past::with(spec, at("2026-01-01T00:00:00Z"), Days::new(&["2026-01-02"]));
    let answer = past.explain(at("2026-01-01T00:00:00Z"), at("2026-01-04T00:00:00Z"));
    let excluded = answer.rows.iter().find_map(|row| match &row.fate {
        Fate::Excluded(excluded) => Some(excluded.why.clone()),
        _ => None,
    });
    assert_eq!(
        excluded,
        Some(Exclusion::Calendar {
            name: "holidays".parse().unwrap(),
            rolled_to: Some(at("2026-01-03T09:00:00Z").0),
        })
    );
    assert_eq!(
        told(&answer)[1],
        "02 09:00:00: calendar holidays leaves the day out: moved to 2026-01-03T09:00:00Z"
    );
}
