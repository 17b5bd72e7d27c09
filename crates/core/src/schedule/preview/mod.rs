//! The coming or past times of a schedule, with what a person should know before trusting it.
//!
//! Owns the list of times as people read it and the warnings, whose codes are stable. Computes and records nothing:
//! everything follows from the schedule. Warnings look ahead from the asked instant, also when the times go back.
//!
//! `notes` says why a single time is where it is, `clock_changes` what the coming changes do to an entry, `warnings` the
//! rest.

mod clock_changes;
mod notes;
#[cfg(test)]
mod tests;
mod warnings;

use serde::Serialize;

use super::civil::text;
use super::spec::ScheduleSpec;
use super::zone::Zone;
use super::{Entry, Filter, Schedule};

/// The most times of one answer.
pub const MOST_TIMES: usize = 1000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// Times after an instant, the earliest first.
    #[default]
    Forwards,
    /// Times at or before an instant, the latest first.
    Backwards,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    pub times: Vec<PreviewTime>,
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewTime {
    pub nominal: i64,
    /// When the job starts then: later by its part of the jitter, the same when no job was named.
    pub due: i64,
    /// What clocks show at the nominal time, with offset and zone, such as `2026-03-29T03:30:00+02:00[Europe/Berlin]`.
    pub local: String,
    /// Why the time is not the one written: moved by a clock change or a calendar, or shown twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Something that its author may not expect of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub code: WarningCode,
    /// Which entry of the list it is about, from 1; `None` when it is about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<usize>,
    pub text: String,
}

/// The kinds of warnings. Their names are part of the interface and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// Nothing is ever due.
    NeverFires,
    /// Nothing is due any more.
    NoMoreTimes,
    /// Clocks go forward over a time.
    DstGap,
    /// Clocks go back, and a time happens twice.
    DstFold,
    SubSecond,
    /// Both day fields are restricted, and either is enough.
    DayRuleOr,
    /// A day field that begins with `*` does not count as restricted, so both must match.
    DayRuleAnd,
    /// Some months lack the day.
    ShortMonths,
    CalendarExcludesAll,
    /// Some times fall on days that do not count.
    CalendarExcludesSome,
    /// The jitter is longer than the distance between times, which limits it.
    JitterCut,
    /// The zone's name is an abbreviation that does not say which rules it has.
    ZoneAbbreviation,
    /// The sign in the zone's name is the reverse of the usual one.
    ZoneSign,
}

impl WarningCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverFires => "never_fires",
            Self::NoMoreTimes => "no_more_times",
            Self::DstGap => "dst_gap",
            Self::DstFold => "dst_fold",
            Self::SubSecond => "sub_second",
            Self::DayRuleOr => "day_rule_or",
            Self::DayRuleAnd => "day_rule_and",
            Self::ShortMonths => "short_months",
            Self::CalendarExcludesAll => "calendar_excludes_all",
            Self::CalendarExcludesSome => "calendar_excludes_some",
            Self::JitterCut => "jitter_cut",
            Self::ZoneAbbreviation => "zone_abbreviation",
            Self::ZoneSign => "zone_sign",
        }
    }
}

/// Up to `count` times, at most [`MOST_TIMES`], of a schedule that was compiled from `spec`. Without a job, jitter is not
/// applied.
pub fn preview(
    schedule: &Schedule,
    spec: &ScheduleSpec<'_>,
    job: Option<u64>,
    from: i64,
    count: usize,
    direction: Direction,
) -> Preview {
    let step = |at: &i64| match direction {
        Direction::Forwards => schedule.next_after(*at),
        Direction::Backwards => schedule.prev_at_or_before(at.checked_sub(1)?),
    };
    let first = match direction {
        Direction::Forwards => schedule.next_after(from),
        Direction::Backwards => schedule.prev_at_or_before(from),
    };
    let nominal = std::iter::successors(first, step).take(count.min(MOST_TIMES));
    let times = nominal.map(|nominal| {
        let source = Source::of(schedule, nominal);
        PreviewTime {
            nominal,
            due: job.map_or(nominal, |job| schedule.due_of(job, nominal)),
            local: local_text(nominal, source.as_ref()),
            note: source.and_then(|source| notes::note(&source, spec, nominal)),
        }
    });
    Preview {
        times: times.collect(),
        warnings: warnings::warnings(schedule, spec, from),
    }
}

/// The first entry that has a time.
struct Source<'a> {
    entry: &'a Entry,
    /// From 0.
    index: usize,
    filter: Option<Filter<'a>>,
}

impl<'a> Source<'a> {
    fn of(schedule: &'a Schedule, nominal: i64) -> Option<Self> {
        let rest = schedule.rest.as_ref();
        let filter = rest.and_then(|rest| rest.filter(nominal, nominal));
        let has = |entry: &Entry| entry.prev_from(nominal, filter.as_ref()) == Some(nominal);
        let index = schedule.entries.iter().position(has)?;
        Some(Self {
            entry: &schedule.entries[index],
            index,
            filter,
        })
    }
}

impl Entry {
    /// Where it is read; `None` for an instant, which is the same everywhere.
    fn zone(&self) -> Option<&Zone> {
        match self {
            Entry::Cron(cron) => Some(cron.zone()),
            Entry::Every(interval) => Some(interval.zone()),
            Entry::Local(at) => Some(at.zone()),
            Entry::At(_) => None,
        }
    }
}

fn local_text(t: i64, source: Option<&Source<'_>>) -> String {
    let utc = Zone::utc();
    let zone = source
        .and_then(|source| source.entry.zone())
        .unwrap_or(&utc);
    let second = t.div_euclid(1000);
    let offset = zone.offset(second);
    let mut local = text(second.saturating_add(offset));
    let ms = t.rem_euclid(1000);
    if ms > 0 {
        local += &format!(".{ms:03}");
    }
    format!("{local}{}[{}]", offset_text(offset), zone.name())
}

fn offset_text(offset: i64) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (
        offset.abs() / 3600,
        offset.abs() / 60 % 60,
        offset.abs() % 60,
    );
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// A civil time as people say it, such as `02:30 on 2026-03-29`. In civil seconds.
fn spoken(civil: i64) -> String {
    let text = text(civil);
    let (date, time) = text.split_once('T').unwrap_or((text.as_str(), ""));
    format!("{} on {date}", short(time))
}

/// A time of day without seconds when there are none.
fn short(time: &str) -> &str {
    time.strip_suffix(":00")
        .filter(|time| time.len() == 5)
        .unwrap_or(time)
}

/// The time of day at a civil second.
fn clock(civil: i64) -> String {
    let text = text(civil);
    let time = text.split_once('T').map_or("", |(_, time)| time);
    short(time).to_owned()
}
