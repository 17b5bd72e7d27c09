//! Which times of an interval a backfill makes runs of: a pure function of the pinned schedule and of what is recorded.
//!
//! An interval is gone through in pages of times, in either direction. Reading the records of a page is left to the
//! caller, as is making the runs.
//!
//! The fate of a time, the first that fits:
//! - the newest run that stands for it, whoever made it: the schedule, a repetition or another backfill;
//! - pending: the live schedule has not decided it and may still make a run of it;
//! - missing: it lies in a recorded range of unfired times, or before the job was made;
//! - forgotten: it is older than what is kept, so whether a run was made cannot be told;
//! - missing: nothing is recorded of it, so nothing was made of it.

use std::collections::BTreeMap;

use crate::model::{
    BackfillOrder, BackfillWhich, JobRecord, MisfirePolicy, RunId, RunState, Unfired, WallMs,
};
use crate::schedule::Schedule;

/// Times that one page goes through.
pub const PAGE_TIMES: usize = 10_000;

/// What became of a time of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeFate {
    Missing,
    Failed,
    Completed,
    Cancelled,
    /// A run of it has not ended.
    Live,
    /// The schedule will decide it.
    Pending,
    Forgotten,
}

impl TimeFate {
    pub const ALL: [Self; 7] = [
        Self::Missing,
        Self::Failed,
        Self::Completed,
        Self::Cancelled,
        Self::Live,
        Self::Pending,
        Self::Forgotten,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Live => "live",
            Self::Pending => "pending",
            Self::Forgotten => "forgotten",
        }
    }
}

impl From<RunState> for TimeFate {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Completed => Self::Completed,
            RunState::Failed => Self::Failed,
            RunState::Cancelled => Self::Cancelled,
            RunState::Pending | RunState::Scheduled | RunState::Running => Self::Live,
        }
    }
}

impl BackfillWhich {
    pub fn takes(self, fate: TimeFate) -> bool {
        match self {
            Self::All => true,
            Self::Missing => fate == TimeFate::Missing,
            Self::Failed => fate == TimeFate::Failed,
        }
    }
}

/// The newest run of each time.
#[derive(Clone, Debug, Default)]
pub struct Newest(BTreeMap<WallMs, (RunId, RunState)>);

impl Newest {
    /// A run that stands for a time: kept if it is newer than what is known of it.
    pub fn add(&mut self, at: WallMs, run: RunId, state: RunState) {
        let entry = self.0.entry(at).or_insert((run, state));
        if run > entry.0 {
            *entry = (run, state);
        }
    }
}

/// What is recorded of the times of a page.
pub struct Records<'a> {
    pub record: &'a JobRecord,
    pub runs: &'a Newest,
    /// Those that touch the page, oldest first.
    pub unfired: &'a [Unfired],
    /// Runs created before this may be gone.
    pub kept_since: WallMs,
}

impl Records<'_> {
    pub fn fate(&self, at: WallMs) -> TimeFate {
        if let Some((_, state)) = self.runs.0.get(&at) {
            return TimeFate::from(*state);
        }
        if self.is_undecided(at) {
            return TimeFate::Pending;
        }
        let forgotten = at < self.kept_since && at >= self.record.row.created;
        if forgotten && !self.is_unfired(at) {
            return TimeFate::Forgotten;
        }
        TimeFate::Missing
    }

    /// Whether the live schedule may still make a run of a time.
    fn is_undecided(&self, at: WallMs) -> bool {
        let JobRecord { row, schedule, .. } = self.record;
        if row.paused.is_some() {
            let on_resume = self.record.version.spec.parsed_on_resume();
            let skips = |it: crate::model::CatchUp| it.policy == MisfirePolicy::Skip;
            return at > schedule.fired_through && !on_resume.is_ok_and(skips);
        }
        schedule.next_nominal.is_some_and(|next| at >= next)
    }

    fn is_unfired(&self, at: WallMs) -> bool {
        let after = self.unfired.partition_point(|range| range.first <= at);
        let before = self.unfired[..after].iter().rev();
        before.take(1).any(|range| range.last >= at)
    }
}

/// Times that follow each other in the interval, in the order that a backfill goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    pub times: Vec<WallMs>,
    /// Whether there are more after these.
    pub more: bool,
}

impl Times {
    /// The earliest and the latest; `None` when there are none.
    pub fn bounds(&self) -> Option<(WallMs, WallMs)> {
        let (first, last) = (*self.times.first()?, *self.times.last()?);
        Some((first.min(last), first.max(last)))
    }
}

/// The next times of `[from, to)` after `after`, at most so many.
pub fn times(
    schedule: &Schedule,
    (from, to): (WallMs, WallMs),
    order: BackfillOrder,
    after: Option<WallMs>,
    limit: usize,
) -> Times {
    let next = |place: Option<WallMs>| match order {
        BackfillOrder::OldestFirst => {
            let after = place.map_or(from.plus(-1), |place| place.max(from.plus(-1)));
            schedule.next_after(after.0)
        }
        BackfillOrder::NewestFirst => {
            let before = place.map_or(to, |place| place.min(to));
            schedule.prev_at_or_before(before.0.saturating_sub(1))
        }
    };
    let inside = |at: &WallMs| (from..to).contains(at);
    let mut found = Times {
        times: Vec::new(),
        more: false,
    };
    let mut place = after;
    while let Some(at) = next(place).map(WallMs).filter(inside) {
        if found.times.len() >= limit {
            found.more = true;
            break;
        }
        found.times.push(at);
        place = Some(at);
    }
    found
}

/// A time to make a run of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    pub at: WallMs,
    /// Times that were passed over since the last pick.
    pub passed: u64,
}

/// What a backfill does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub picks: Vec<Pick>,
    /// Times that were passed over since the last pick.
    pub passed: u64,
    /// The last time of the page; `None` when it goes to the end of the interval.
    pub through: Option<WallMs>,
}

impl Page {
    pub fn of(which: BackfillWhich, times: &Times, fate: impl Fn(WallMs) -> TimeFate) -> Self {
        let mut page = Self::default();
        for at in &times.times {
            if which == BackfillWhich::All || which.takes(fate(*at)) {
                let passed = std::mem::take(&mut page.passed);
                page.picks.push(Pick { at: *at, passed });
            } else {
                page.passed += 1;
            }
        }
        page.through = times.times.last().copied().filter(|_| times.more);
        page
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{
        Actor, JobId, JobRow, JobSpec, JobVersion, Pause, ScheduleRow, SegmentId, Tallies,
        UnfiredReason,
    };
    use crate::schedule::AnyDay;

    fn spec(every: &str, keys: serde_json::Value) -> JobSpec {
        let mut spec = json!({"kind": "Job", "name": "a", "task": {"handler": {"name": "x"}},
            "schedule": [{"every": every}]});
        for (key, value) in keys.as_object().expect("keys") {
            spec[key] = value.clone();
        }
        serde_json::from_value(spec).expect("a manifest")
    }

    fn schedule(every: &str) -> Schedule {
        let compiled = spec(every, json!({})).compiled_schedule(&AnyDay);
        compiled.expect("valid").expect("a schedule")
    }

    /// A job made at second 100 that has decided everything up to second 200.
    fn record(keys: serde_json::Value) -> JobRecord {
        let spec = spec("10s", keys);
        let (id, actor) = (JobId(1), Actor::new("t"));
        let (namespace, name) = (spec.namespace.clone(), spec.name.clone());
        JobRecord {
            row: JobRow {
                id,
                namespace,
                name,
                segment: SegmentId(0),
                version: 1,
                revision: 1,
                paused: None,
                deleted: false,
                created: WallMs(100_000),
                updated: WallMs(100_000),
                actor: actor.clone(),
            },
            version: JobVersion {
                job: id,
                version: 1,
                spec,
                created: WallMs(100_000),
                actor,
            },
            schedule: ScheduleRow {
                job: id,
                fired_through: WallMs(200_000),
                next_nominal: Some(WallMs(210_000)),
                next_due: Some(WallMs(210_000)),
                fires: 0,
                paused_through: None,
            },
            live_scheduled: 0,
            tallies: Tallies::default(),
            breaker: None,
            waits: None,
            followed: false,
            last_unfired: None,
        }
    }

    fn range(first: i64, last: i64) -> Unfired {
        Unfired {
            job: JobId(1),
            first: WallMs(first),
            last: WallMs(last),
            version: 1,
            count: 1,
            reason: UnfiredReason::Paused,
            server: Actor::new("s"),
        }
    }

    #[test]
    fn times_come_in_either_order_and_in_pages() {
        let schedule = schedule("10s");
        let interval = (WallMs(10_000), WallMs(50_000));
        let of = |order, limit| {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let page = times(&schedule, interval, order, after, limit);
                all.extend(page.times.iter().map(|at| at.0 / 1000));
                after = page.times.last().copied();
                if !page.more {
                    return all;
                }
            }
        };
        for limit in [1, 2, 3, 4, 100] {
            assert_eq!(of(BackfillOrder::OldestFirst, limit), [10, 20, 30, 40]);
            assert_eq!(of(BackfillOrder::NewestFirst, limit), [40, 30, 20, 10]);
        }
        let nothing = times(
            &schedule,
            interval,
            BackfillOrder::OldestFirst,
            Some(WallMs(40_000)),
            9,
        );
        assert_eq!(
            nothing,
            Times {
                times: vec![],
                more: false
            }
        );
        let whole = (WallMs(i64::MIN), WallMs(30_000));
        let newest = times(&schedule, whole, BackfillOrder::NewestFirst, None, 1);
        assert_eq!(newest.times, [WallMs(20_000)]);
    }

    #[test]
    fn each_time_has_the_first_fate_that_fits() {
        let record = record(json!({}));
        let unfired = [range(110_000, 120_000), range(140_000, 140_000)];
        let runs = Newest(BTreeMap::from([
            (WallMs(120_000), (RunId(1), RunState::Failed)),
            (WallMs(150_000), (RunId(2), RunState::Running)),
        ]));
        let records = Records {
            record: &record,
            runs: &runs,
            unfired: &unfired,
            kept_since: WallMs(170_000),
        };
        let fate = |second: i64| records.fate(WallMs(second * 1000));
        assert_eq!(fate(90), TimeFate::Missing, "before the job");
        assert_eq!(fate(110), TimeFate::Missing, "in a range");
        assert_eq!(fate(120), TimeFate::Failed, "a run wins over a range");
        assert_eq!(fate(130), TimeFate::Forgotten);
        assert_eq!(fate(140), TimeFate::Missing);
        assert_eq!(fate(150), TimeFate::Live);
        assert_eq!(fate(160), TimeFate::Forgotten);
        assert_eq!(fate(170), TimeFate::Missing, "nothing is recorded");
        assert_eq!(fate(210), TimeFate::Pending);
    }

    #[test]
    fn the_times_of_a_pause_are_missing_unless_resuming_makes_them() {
        let runs = Newest::default();
        let fate = |keys| {
            let mut record = record(keys);
            record.schedule.next_nominal = None;
            let (at, actor) = (WallMs(205_000), Actor::new("t"));
            record.row.paused = Some(Pause { at, actor });
            let records = Records {
                record: &record,
                runs: &runs,
                unfired: &[],
                kept_since: WallMs(0),
            };
            records.fate(WallMs(220_000))
        };
        assert_eq!(fate(json!({})), TimeFate::Missing);
        let all = json!({"on_resume": {"policy": "all"}});
        assert_eq!(fate(all), TimeFate::Pending);
    }

    #[test]
    fn a_page_counts_what_it_passes_over() {
        let ten = |n: i64| WallMs(n * 10_000);
        let times = Times {
            times: (1..=6).map(ten).collect(),
            more: true,
        };
        let fate = |at: WallMs| match at.0 / 10_000 {
            2 | 5 => TimeFate::Missing,
            _ => TimeFate::Completed,
        };
        let page = Page::of(BackfillWhich::Missing, &times, fate);
        let picks = [
            Pick {
                at: ten(2),
                passed: 1,
            },
            Pick {
                at: ten(5),
                passed: 2,
            },
        ];
        assert_eq!(page.picks, picks);
        assert_eq!((page.passed, page.through), (1, Some(ten(6))));
        let page = Page::of(BackfillWhich::Failed, &times, fate);
        assert_eq!((page.picks.len(), page.passed), (0, 6));
        let last = Times {
            more: false,
            ..times
        };
        let page = Page::of(BackfillWhich::All, &last, fate);
        assert_eq!((page.picks.len(), page.passed, page.through), (6, 0, None));
    }

    #[test]
    fn the_newest_run_of_a_time_counts() {
        let (mut newest, at) = (Newest::default(), WallMs(120_000));
        newest.add(at, RunId(2), RunState::Failed);
        newest.add(at, RunId(1), RunState::Completed);
        assert_eq!(newest.0[&at].1, RunState::Failed);
        newest.add(at, RunId(3), RunState::Completed);
        assert_eq!(newest.0[&at].1, RunState::Completed);
    }
}
