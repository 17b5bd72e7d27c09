//! A line with everything that can be said beside it: choices for clock changes, calendars through edits, bounds.

use std::ops::Range;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;

use super::lines::Reading;
use super::{cron_entry, every_entry, spec};
use crate::model::{CalendarKind, CalendarName, CalendarSpec, NamespaceName, Weekday};
use crate::schedule::{
    Bounds, CalendarEra, CalendarUse, Calendars, DateSet, DayRule, DstFold, DstGap, Roll, Schedule,
    ScheduleEntry, ScheduleSpec,
};

#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) line: String,
    pub(super) both_days: bool,
    pub(super) gap: DstGap,
    pub(super) fold: DstFold,
    pub(super) roll: Roll,
    /// The versions of two calendars, with when each began; the second one takes days away. Empty without calendars.
    pub(super) only: Vec<(i64, CalendarSpec)>,
    pub(super) minus: Vec<(i64, CalendarSpec)>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

/// What a calendar says of a date, read from its text each time.
fn names(texts: &[String], date: Date) -> bool {
    texts.iter().any(|text| match text.split_once("..") {
        Some((first, last)) => {
            first.parse::<Date>().unwrap() <= date && date <= last.parse::<Date>().unwrap()
        }
        None if text.len() == 5 => date.to_string().ends_with(text.as_str()),
        None => text.parse::<Date>().unwrap() == date,
    })
}

fn holds(spec: &CalendarSpec, date: Date) -> bool {
    let weekday = format!("{:?}", date.weekday());
    let weekly = spec
        .weekly
        .iter()
        .any(|day| weekday.starts_with(&format!("{day:?}")));
    names(&spec.include, date) || weekly && !names(&spec.exclude, date)
}

fn in_force(versions: &[(i64, CalendarSpec)], t: i64) -> Option<&CalendarSpec> {
    let begun = versions.iter().rev().find(|(from, _)| *from < t);
    begun.or(versions.first()).map(|(_, spec)| spec)
}

struct Known<'a>(&'a Plan);

impl Calendars for Known<'_> {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let versions = match name.as_str() {
            "only" => &self.0.only,
            _ => &self.0.minus,
        };
        let era = |(from, spec): &(i64, CalendarSpec)| CalendarEra {
            from: *from,
            days: Arc::new(DateSet::compile(spec).unwrap()),
        };
        Some(versions.iter().map(era).collect())
    }
}

impl Plan {
    pub(super) fn plain(line: &str) -> Self {
        Self {
            line: line.to_owned(),
            both_days: false,
            gap: DstGap::default(),
            fold: DstFold::default(),
            roll: Roll::None,
            only: Vec::new(),
            minus: Vec::new(),
            start: None,
            end: None,
        }
    }

    pub(super) fn compile(&self, zone: &str) -> Schedule {
        let fixed = Reading::new(&self.line, false).fixed;
        let entry = ScheduleEntry {
            day_rule: self.both_days.then_some(DayRule::And),
            dst_gap: fixed.then_some(self.gap),
            dst_fold: fixed.then_some(self.fold),
            ..cron_entry(&self.line, zone)
        };
        self.compile_with(entry, self.roll)
    }

    /// An interval in place of the line.
    pub(super) fn compile_every(&self, every: &str, zone: &str) -> Schedule {
        let uses = !self.only.is_empty() || !self.minus.is_empty();
        let entry = ScheduleEntry {
            timezone: uses.then(|| zone.to_owned()),
            ..every_entry(every, None)
        };
        self.compile_with(entry, Roll::None)
    }

    fn compile_with(&self, entry: ScheduleEntry, roll: Roll) -> Schedule {
        let name = |name: &str| CalendarName::new(name).unwrap();
        let named = |versions: &[_], text| match versions.is_empty() {
            true => vec![],
            false => vec![name(text)],
        };
        let used = CalendarUse {
            only: named(&self.only, "only"),
            minus: named(&self.minus, "minus"),
            roll,
        };
        let text = |t: i64| Timestamp::from_millisecond(t).unwrap().to_string();
        let bounds = Bounds {
            start: self.start.map(text),
            end: self.end.map(text),
            max_fires: None,
        };
        let uses = !self.only.is_empty() || !self.minus.is_empty();
        let entries = [entry];
        let spec = ScheduleSpec {
            calendar: uses.then_some(&used),
            bounds: Some(&bounds),
            ..spec(&entries)
        };
        Schedule::compile(&spec, &Known(self)).unwrap().unwrap()
    }

    fn borders(&self) -> Vec<i64> {
        let later = |versions: &[(i64, CalendarSpec)]| -> Vec<i64> {
            versions.iter().skip(1).map(|(from, _)| *from).collect()
        };
        let mut borders = [later(&self.only), later(&self.minus)].concat();
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    pub(super) fn eras(&self) -> usize {
        self.borders().len() + 1
    }

    pub(super) fn in_force(&self, era: usize, t: i64) -> bool {
        self.borders().iter().filter(|border| **border < t).count() == era
    }

    pub(super) fn within_bounds(&self, t: i64) -> bool {
        self.start.is_none_or(|start| start <= t) && self.end.is_none_or(|end| t < end)
    }

    pub(super) fn counts(&self, date: Date, era: usize) -> bool {
        let border = self.borders().get(era).copied().unwrap_or(i64::MAX);
        in_force(&self.only, border).is_none_or(|only| holds(only, date))
            && in_force(&self.minus, border).is_none_or(|minus| !holds(minus, date))
    }

    /// Whether a date has the line's times in an era: as a day that the line names and that counts, or as the one that
    /// such a day rolls to.
    pub(super) fn fires(&self, reading: &Reading, date: Date, era: usize) -> bool {
        if !self.counts(date, era) {
            return false;
        }
        if reading.matches_day(date) {
            return true;
        }
        // Days on the far side of another day that counts go there or further.
        let idle = |date: &Date| !self.counts(*date, era);
        let days = |step: i64| {
            (1..=400i64)
                .map(move |n| date + (step * n).days())
                .take_while(idle)
        };
        let (before, after) = (days(-1), days(1));
        let mut sources = before
            .chain(after)
            .filter(|source| reading.matches_day(*source));
        sources.any(|source| self.target(source, era) == Some(date))
    }

    fn target(&self, source: Date, era: usize) -> Option<Date> {
        let distance = |n: i64| {
            let (next, previous) = (source + n.days(), source - n.days());
            let counts = |date: Date| self.counts(date, era).then_some(date);
            match self.roll {
                Roll::None => None,
                Roll::Next => counts(next),
                Roll::Previous => counts(previous),
                Roll::Nearest => counts(next).or_else(|| counts(previous)),
            }
        };
        (0..=400).find_map(distance)
    }
}

fn calendar(day: Date, reach: i64) -> impl Strategy<Value = CalendarSpec> {
    use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
    let weekly = prop_oneof![
        3 => Just(vec![Mon, Tue, Wed, Thu, Fri]),
        2 => Just(vec![Mon, Tue, Wed, Thu, Fri, Sat, Sun]),
        1 => Just(vec![]),
        1 => prop::sample::subsequence(vec![Mon, Tue, Wed, Thu, Fri, Sat, Sun], 0..4),
    ];
    let date = move |reach: i64| (-reach..=reach).prop_map(move |n| day + n.days());
    let entry = move || {
        prop_oneof![
            3 => date(reach).prop_map(|date| date.to_string()),
            1 => date(reach).prop_map(|date| date.to_string()[5..].to_owned()),
            1 => (date(reach + 9), 0i64..12).prop_map(|(date, n)| format!("{date}..{}", date + n.days())),
            1 => Just("02-29".to_owned()),
        ]
    };
    let most = 4 + reach as usize / 10;
    let list = move || prop::collection::vec(entry(), 0..most);
    (weekly, list(), list()).prop_map(|(weekly, include, exclude)| CalendarSpec {
        kind: CalendarKind::Calendar,
        name: CalendarName::new("days").unwrap(),
        namespace: NamespaceName::default(),
        description: String::new(),
        weekly,
        include,
        exclude,
    })
}

/// Versions that begin around an instant, the first of them for all times before.
fn versions(
    day: Date,
    reach: i64,
    eras: Range<i64>,
) -> impl Strategy<Value = Vec<(i64, CalendarSpec)>> {
    let later = (eras, calendar(day, reach));
    let later = prop::collection::vec(later, 0..3);
    (calendar(day, reach), later).prop_map(|(first, mut later)| {
        later.sort_by_key(|(from, _)| *from);
        later.dedup_by_key(|(from, _)| *from);
        later.insert(0, (0, first));
        later
    })
}

/// A plan for a line that is looked at for ten hours from `start` on, on and around `day`.
pub(super) fn plan(line: String, day: Date, start: Timestamp) -> impl Strategy<Value = Plan> {
    let start = start.as_millisecond();
    any_plan(line, day, 3, start..start + 36_000_000)
}

/// A plan for a line that is looked at for as many days on either side of `day`.
pub(super) fn plan_over(line: String, day: Date, reach: i64) -> impl Strategy<Value = Plan> {
    let at = |days: i64| {
        let start = (day + days.days()).to_zoned(TimeZone::UTC).unwrap();
        start.timestamp().as_millisecond()
    };
    any_plan(line, day, reach, at(-reach)..at(reach))
}

/// Dates of calendars lie within `reach` of `day`; edits and bounds in `range`.
fn any_plan(line: String, day: Date, reach: i64, range: Range<i64>) -> impl Strategy<Value = Plan> {
    let fixed = Reading::new(&line, false).fixed;
    let gap = prop::sample::select(vec![DstGap::Shift, DstGap::Skip, DstGap::AtTransition]);
    let fold = prop::sample::select(vec![DstFold::First, DstFold::Last, DstFold::Both]);
    let roll = prop::sample::select(vec![Roll::None, Roll::Next, Roll::Previous, Roll::Nearest]);
    let bound = || prop::option::weighted(0.15, range.clone());
    let bounds = (bound(), bound());
    let versions = move || versions(day, reach, range.clone());
    let calendars = prop_oneof![
        2 => Just((vec![], vec![])),
        2 => versions().prop_map(|only| (only, vec![])),
        1 => versions().prop_map(|minus| (vec![], minus)),
        1 => (versions(), versions()),
    ];
    (gap, fold, roll, calendars, any::<bool>(), bounds).prop_map(
        move |(gap, fold, roll, (only, minus), both_days, (start, end))| Plan {
            line: line.clone(),
            both_days,
            gap,
            fold,
            roll: if fixed && !(only.is_empty() && minus.is_empty()) {
                roll
            } else {
                Roll::None
            },
            only,
            minus,
            start,
            end: end.map(|end| end.max(start.unwrap_or(0) + 1)),
        },
    )
}
