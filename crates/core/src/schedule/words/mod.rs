//! A schedule in words, in English and in Chinese.
//!
//! Owns the sentences; what a cron line amounts to is found in `shape`, each language has its own file. Invariants:
//! - words are exact: two schedules that are told alike have the same times, clock changes aside;
//! - a line that no usual phrase fits is told field by field;
//! - a zone is always named, except in UTC when the times are the same everywhere, as with "every 5 minutes".
//!
//! What becomes of times that a clock change touches is told only when it was chosen; `preview` warns of the rest.

mod chinese;
mod english;
mod shape;
#[cfg(test)]
mod tests;

use crate::model::CalendarName;

use self::chinese::Chinese;
use self::english::English;
use self::shape::Shape;
use super::Schedule;
use super::calendars::AnyDay;
use super::cron::Line;
use super::duration::parse_duration;
use super::error::Error;
use super::spec::{Bounds, CalendarUse, DstFold, DstGap, Roll, ScheduleEntry, ScheduleSpec};
use super::zone::Zone;

/// A language that schedules are told in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The language of a tag such as `en`, `zh` or `zh-CN`; `None` when there are no words in it.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let main = tag.trim().split(['-', '_']).next()?;
        match main.to_ascii_lowercase().as_str() {
            "en" => Some(Self::English),
            "zh" => Some(Self::Chinese),
            _ => None,
        }
    }
}

/// Says when a schedule is due. What it says of calendars is their names; they need not exist.
pub fn describe(spec: &ScheduleSpec<'_>, language: Language) -> Result<String, Error> {
    Schedule::compile(spec, &AnyDay)?;
    let tongue: &dyn Tongue = match language {
        Language::English => &English,
        Language::Chinese => &Chinese,
    };
    if spec.entries.is_empty() {
        return Ok(tongue.nothing());
    }
    let mut entries = Vec::with_capacity(spec.entries.len());
    for (index, entry) in spec.entries.iter().enumerate() {
        let told = entry_words(tongue, entry, spec.calendar.is_some());
        entries.push(told.map_err(|error| error.in_entry(index + 1))?);
    }
    let union = entries.len() > 1;
    let mut clauses = Vec::new();
    if let Some(calendar) = spec.calendar {
        clauses.extend(calendar_words(tongue, calendar));
    }
    if let Some(jitter) = spec.jitter {
        clauses.push(tongue.jitter(parse_duration(jitter)?));
    }
    if let Some(bounds) = spec.bounds {
        clauses.extend(bounds_words(tongue, bounds));
    }
    Ok(tongue.sentence(tongue.union(entries), clauses, union))
}

/// The phrases of a language. Those that follow another begin with their own separator.
trait Tongue {
    fn nothing(&self) -> String;
    fn cron(&self, shape: &Shape) -> String;
    fn in_zone(&self, zone: &str) -> String;
    fn dates_in_zone(&self, zone: &str) -> String;
    fn every(&self, ms: u64) -> String;
    fn anchor(&self, anchor: &str) -> String;
    fn at(&self, at: &str) -> String;
    fn after_end(&self, ms: u64) -> String;
    fn gap(&self, gap: DstGap) -> Option<String>;
    fn fold(&self, fold: DstFold) -> Option<String>;
    fn union(&self, entries: Vec<String>) -> String;
    fn only(&self, names: Vec<String>) -> String;
    fn minus(&self, names: Vec<String>) -> String;
    fn roll(&self, roll: Roll) -> Option<String>;
    fn jitter(&self, ms: u64) -> String;
    fn start(&self, start: &str) -> String;
    fn end(&self, end: &str) -> String;
    fn max_fires(&self, most: u64) -> String;
    fn sentence(&self, when: String, clauses: Vec<String>, union: bool) -> String;
}

fn entry_words(
    tongue: &dyn Tongue,
    entry: &ScheduleEntry,
    has_calendar: bool,
) -> Result<String, Error> {
    if let Some(line) = &entry.cron {
        return cron_words(tongue, entry, line);
    }
    let mut text = String::new();
    if let Some(every) = &entry.every {
        text += &tongue.every(parse_duration(every)?);
        if let Some(anchor) = &entry.anchor {
            text += &tongue.anchor(anchor.trim());
        }
    } else if let Some(at) = &entry.at {
        text += &tongue.at(at.trim());
    } else if let Some(delay) = &entry.after_end {
        return Ok(tongue.after_end(parse_duration(delay)?));
    }
    let local = entry.at.as_deref().is_some_and(is_local);
    if local {
        text += &tongue.in_zone(zone_of(entry)?.name());
    } else if has_calendar {
        text += &tongue.dates_in_zone(zone_of(entry)?.name());
    }
    Ok(text + &clock_changes(tongue, entry))
}

fn cron_words(tongue: &dyn Tongue, entry: &ScheduleEntry, text: &str) -> Result<String, Error> {
    let line = Line::parse(text).map_err(|fault| Error::Cron {
        line: text.to_owned(),
        fault,
    })?;
    let shape = Shape::of(&line, entry.day_rule.unwrap_or_default());
    let zone = zone_of(entry)?;
    let mut words = tongue.cron(&shape);
    if zone.name() != "UTC" || !shape.is_same_everywhere() {
        words += &tongue.in_zone(zone.name());
    }
    Ok(words + &clock_changes(tongue, entry))
}

fn clock_changes(tongue: &dyn Tongue, entry: &ScheduleEntry) -> String {
    let gap = tongue.gap(entry.dst_gap.unwrap_or_default());
    let fold = tongue.fold(entry.dst_fold.unwrap_or_default());
    gap.unwrap_or_default() + &fold.unwrap_or_default()
}

fn calendar_words(tongue: &dyn Tongue, calendar: &CalendarUse) -> Vec<String> {
    let names = |names: &[CalendarName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut parts = Vec::new();
    if !calendar.only.is_empty() {
        parts.push(tongue.only(names(&calendar.only)));
    }
    if !calendar.minus.is_empty() {
        parts.push(tongue.minus(names(&calendar.minus)));
    }
    parts.extend(tongue.roll(calendar.roll));
    parts
}

fn bounds_words(tongue: &dyn Tongue, bounds: &Bounds) -> Vec<String> {
    let start = bounds
        .start
        .as_deref()
        .map(|start| tongue.start(start.trim()));
    let end = bounds.end.as_deref().map(|end| tongue.end(end.trim()));
    let most = bounds.max_fires.map(|most| tongue.max_fires(most));
    [start, end, most].into_iter().flatten().collect()
}

/// Whether a checked instant was written without an offset.
fn is_local(at: &str) -> bool {
    at.trim().parse::<jiff::Timestamp>().is_err()
}

fn zone_of(entry: &ScheduleEntry) -> Result<Zone, Error> {
    match &entry.timezone {
        Some(name) => Zone::named(name),
        None => Ok(Zone::utc()),
    }
}
