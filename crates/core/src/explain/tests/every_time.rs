//! Whatever happened to a job, each time of its schedule is in exactly one row, and that row says what happened to it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use super::past::{Days, Past};
use crate::model::*;
use crate::schedule::Calendars;

const SPECS: [&str; 6] = [
    r#"{"schedule": [{"every": "7m"}]}"#,
    r#"{"schedule": [{"cron": "*/20 * * * *"}, {"every": "20m1s"}]}"#,
    r#"{"schedule": [{"cron": "0,30 2,3 * * *", "timezone": "Europe/Berlin"}], "jitter": "5m"}"#,
    r#"{"schedule": [{"cron": "30 * * * *"}], "calendar": {"minus": ["holidays"]}}"#,
    r#"{"schedule": [{"cron": "0 */2 * * *"}], "bounds": {"start": "2026-03-27T00:00:00Z", "end": "2026-03-30T11:00:00Z"}}"#,
    r#"{"schedule": [{"cron": "15 9 * * *", "timezone": "Europe/Berlin"}], "calendar": {"minus": ["holidays"], "roll": "next"}}"#,
];

/// The Friday before clocks change in Berlin.
const BEGIN: WallMs = WallMs(1_774_569_600_000);
const HOUR_MS: i64 = 3_600_000;

#[derive(Clone, Debug)]
enum Act {
    Runs(u64),
    Unfired(u64, usize),
    Edit(usize),
    Pass(i64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_u64..12).prop_map(Act::Runs),
        3 => ((1_u64..20), (0_usize..6)).prop_map(|(count, reason)| Act::Unfired(count, reason)),
        1 => (0_usize..SPECS.len()).prop_map(Act::Edit),
        1 => (0_i64..30 * HOUR_MS).prop_map(Act::Pass),
    ]
}

const REASONS: [UnfiredReason; 6] = [
    UnfiredReason::Overlap,
    UnfiredReason::Misfire,
    UnfiredReason::Paused,
    UnfiredReason::Edited,
    UnfiredReason::QueueFull,
    UnfiredReason::Breaker,
];

/// The times of each version by its own schedule, without anything of this module.
fn times(past: &Past, calendars: &dyn Calendars, from: WallMs, to: WallMs) -> Vec<WallMs> {
    let mut times = Vec::new();
    for (index, version) in past.versions.iter().enumerate() {
        let end = past.versions.get(index + 1).map(|next| next.created);
        let Ok(Some(schedule)) = version.spec.compiled_schedule(calendars) else {
            continue;
        };
        let mut cursor = version.created.0;
        while let Some(next) = schedule.next_after(cursor)
            && WallMs(next) < to
            && end.is_none_or(|end| WallMs(next) <= end)
        {
            times.extend(Some(WallMs(next)).filter(|next| *next >= from));
            cursor = next;
        }
    }
    times
}

fn kind(past: &Past, at: WallMs) -> &'static str {
    let unfired = |range: &Unfired| range.first <= at && at <= range.last;
    if past.runs.contains_key(&at) {
        "run"
    } else if past.unfired.iter().any(unfired) {
        "unfired"
    } else if at > past.record.schedule.fired_through {
        match (past.record.row.paused.is_some(), at <= past.now) {
            (true, true) => "paused",
            (true, false) => "planned paused",
            (false, true) => "pending",
            (false, false) => "planned",
        }
    } else {
        "unknown"
    }
}

fn kind_of(fate: &Fate) -> &'static str {
    match fate {
        Fate::Run(_) => "run",
        Fate::Unfired(_) => "unfired",
        Fate::Pending => "pending",
        Fate::Paused(_) => "paused",
        Fate::Planned => "planned",
        Fate::PlannedPaused(_) => "planned paused",
        Fate::Forgotten | Fate::Unrecorded => "unknown",
        Fate::Excluded(_) | Fate::UsedUp { .. } => "excluded",
    }
}

/// All rows of an interval, answer by answer, as a caller reads them.
fn rows(past: &Past, calendars: &dyn Calendars, from: WallMs, to: WallMs, most: usize) -> Vec<Row> {
    let timeline = past.timeline(calendars);
    let (mut all, mut from) = (Vec::new(), from);
    loop {
        let reach = timeline.reach(from, to, most);
        assert!(reach > from, "it goes on");
        let runs: Runs = past
            .runs
            .range(from..reach)
            .map(|(at, run)| (*at, *run))
            .collect();
        let answer = timeline.explain(from, reach, &runs, most);
        all.extend(answer.rows);
        match answer.next.or(Some(reach).filter(|reach| *reach < to)) {
            Some(next) => {
                assert!(next > from && next < to, "{next:?} after {from:?}");
                from = next;
            }
            None => return all,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_time_is_in_exactly_one_row(
        first in 0_usize..SPECS.len(),
        acts in proptest::collection::vec(act(), 0..12),
        (from, length) in ((-30 * HOUR_MS..100 * HOUR_MS), (1_i64..200 * HOUR_MS)),
        paused in any::<bool>(),
        forgotten in prop_oneof![3 => Just(0_i64), 1 => 0_i64..90 * HOUR_MS],
        most in prop_oneof![Just(ROWS), 1_usize..10],
        ahead in 0_i64..20 * HOUR_MS,
    ) {
        let calendars = Days::new(&["2026-03-28", "2026-03-30", "2026-03-31"]);
        let mut past = Past::with(SPECS[first], BEGIN, calendars.clone());
        for act in acts {
            match act {
                Act::Runs(count) => (0..count).for_each(|_| past.run_next()),
                Act::Unfired(count, reason) => past.unfired(count, REASONS[reason]),
                Act::Edit(index) => {
                    let at = past.now.plus(1);
                    past.edit(SPECS[index], at);
                }
                Act::Pass(ms) => {
                    let now = past.now.plus(ms);
                    past.runs_until(now);
                }
            }
        }
        past.now = past.now.plus(ahead);
        if paused {
            let at = past.record.schedule.fired_through;
            past.pause(at);
        }
        if forgotten > 0 {
            past.forget_before(BEGIN.plus(forgotten));
        }
        let (from, to) = (BEGIN.plus(from), BEGIN.plus(from + length));
        let rows = rows(&past, &calendars, from, to, most);

        let mut told: BTreeMap<WallMs, &str> = BTreeMap::new();
        let times = times(&past, &calendars, from, to);
        let mut counted = 0;
        for row in rows.iter().filter(|row| kind_of(&row.fate) != "excluded") {
            prop_assert!(from <= row.first && row.first <= row.last && row.last < to);
            counted += row.count;
            for at in times.iter().filter(|at| row.first <= **at && **at <= row.last) {
                let twice = told.insert(*at, kind_of(&row.fate));
                prop_assert!(twice.is_none(), "{:?} is in two rows", at);
            }
        }
        let expected: BTreeMap<WallMs, &str> =
            times.iter().map(|at| (*at, kind(&past, *at))).collect();
        prop_assert_eq!(&told, &expected);
        prop_assert_eq!(counted, times.len() as u64);
        prop_assert!(rows.is_sorted_by_key(|row| row.first));
    }
}
