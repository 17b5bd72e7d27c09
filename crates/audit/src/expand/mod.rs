//! Schedules, expanded for the second time.
//!
//! This is the checker's own reading of everything in a manifest that says when a job is due: `schedule`, `calendar`,
//! `bounds` and `jitter`. It is slow and plain on purpose and takes nothing from the scheduler but the words of the
//! manifests and the time-zone database.

mod cron;
mod days;
mod local;
mod month;
mod rule;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{CalendarName, CalendarVersion, JobVersion, WallMs};
use drumtower_core::schedule::CalendarUse;
use jiff::Timestamp;

use crate::Error;
use days::{Choice, Days};
use rule::Rule;

/// The versions of the calendars of a namespace, oldest first.
pub type Calendars = BTreeMap<CalendarName, Vec<CalendarVersion>>;

/// All nominal times of one version of a job.
#[derive(Clone, Debug)]
pub struct Plan {
    rules: Vec<Rule>,
    eras: Vec<Era>,
    /// Nothing before the first, nothing from the second on.
    bounds: (Option<i64>, Option<i64>),
    jitter_ms: i64,
    max_fires: Option<u64>,
    after_end_ms: Option<i64>,
}

/// Calendars change while schedules use them: each state counts for the times after it began.
#[derive(Clone, Debug)]
struct Era {
    /// `None` for the first one that is known.
    after: Option<i64>,
    choice: Choice,
}

impl Plan {
    /// `calendars` must hold those that the version uses.
    pub fn new(version: &JobVersion, calendars: &Calendars) -> Result<Self, Error> {
        let spec = &version.spec;
        let fault = |field: String| {
            move |message: String| Error::Schedule {
                job: version.job.to_string(),
                version: version.version,
                field,
                message,
            }
        };
        let mut rules = Vec::new();
        let mut after_end_ms = None;
        for (index, entry) in spec.schedule.iter().enumerate() {
            let entry_fault = fault(format!("schedule entry {}", index + 1));
            match &entry.after_end {
                Some(delay) => after_end_ms = Some(duration(delay).map_err(entry_fault)?),
                None => rules.push(Rule::read(entry).map_err(entry_fault)?),
            }
        }
        let bounds = spec.bounds.clone().unwrap_or_default();
        let bound = |text: &Option<String>| text.as_deref().map(instant).transpose();
        let bounds_read = bound(&bounds.start)
            .and_then(|start| Ok((start, bound(&bounds.end)?)))
            .map_err(fault("bounds".to_owned()))?;
        let jitter = spec.jitter.as_deref().map(duration).transpose();
        Ok(Self {
            rules,
            eras: match &spec.calendar {
                Some(used) => eras(used, calendars).map_err(fault("calendar".to_owned()))?,
                None => vec![Era {
                    after: None,
                    choice: Choice::default(),
                }],
            },
            bounds: bounds_read,
            jitter_ms: jitter.map_err(fault("jitter".to_owned()))?.unwrap_or(0),
            max_fires: bounds.max_fires,
            after_end_ms,
        })
    }

    /// How late after its nominal time a run may be due, at most.
    pub fn jitter_ms(&self) -> i64 {
        self.jitter_ms
    }

    pub fn max_fires(&self) -> Option<u64> {
        self.max_fires
    }

    /// The delay of a schedule that counts from the end of the last run: it has no times of its own.
    pub fn after_end_ms(&self) -> Option<i64> {
        self.after_end_ms
    }

    /// Whether calendars were edited in `[from, through]`.
    pub fn changes_within(&self, from: WallMs, through: WallMs) -> bool {
        let mut changes = self.eras.iter().filter_map(|era| era.after);
        changes.any(|change| (from.0..=through.0).contains(&change))
    }

    /// A span in which there is a bounded number of times, however dense they are.
    pub fn window_ms(&self, times: i64) -> i64 {
        const DAY_MS: i64 = 86_400_000;
        let spacing = self.rules.iter().map(Rule::spacing_ms).min();
        spacing.map_or(DAY_MS, |spacing| spacing.saturating_mul(times).max(1))
    }

    /// Every time in `[from, through]`, in order, each once. Both must be finite when the plan holds anything that
    /// repeats: the answer is a list.
    pub fn times(&self, from: WallMs, through: WallMs) -> Vec<WallMs> {
        let mut times = Vec::new();
        for (index, era) in self.eras.iter().enumerate() {
            let (first, last) = self.counts_for(index);
            times.extend(self.times_in(era, first.max(from.0), last.min(through.0)));
        }
        times
    }

    /// The same where clocks were set by up to `step_ms`. An edit of a calendar by a clock that was set back counts for
    /// times that had been decided before, by what the calendar was then. With each time whether it is one by either.
    pub fn times_decided(
        &self,
        from: WallMs,
        through: WallMs,
        step_ms: i64,
    ) -> Vec<(WallMs, bool)> {
        if step_ms == 0 || self.eras.len() == 1 {
            let times = self.times(from, through).into_iter();
            return times.map(|time| (time, true)).collect();
        }
        let decided_in = |index| {
            let (first, last) = self.counts_for(index);
            first..=last.saturating_add(step_ms)
        };
        let mut found: BTreeMap<WallMs, usize> = BTreeMap::new();
        for (index, era) in self.eras.iter().enumerate() {
            let span = decided_in(index);
            let (first, last) = ((*span.start()).max(from.0), (*span.end()).min(through.0));
            for time in self.times_in(era, first, last) {
                *found.entry(time).or_default() += 1;
            }
        }
        let asked = |time: WallMs| {
            let eras = 0..self.eras.len();
            eras.filter(|index| decided_in(*index).contains(&time.0))
                .count()
        };
        let found = found.into_iter();
        found
            .map(|(time, eras)| (time, eras == asked(time)))
            .collect()
    }

    /// The first and the last instant of an era.
    fn counts_for(&self, index: usize) -> (i64, i64) {
        let first = self.eras[index].after.map_or(i64::MIN, |after| after + 1);
        let next = self.eras.get(index + 1).and_then(|next| next.after);
        (first, next.unwrap_or(i64::MAX))
    }

    /// Every time in `[first, last]` by what calendars were in one era.
    fn times_in(&self, era: &Era, first: i64, last: i64) -> Vec<WallMs> {
        let (start, end) = self.bounds;
        let first = first.max(start.unwrap_or(i64::MIN));
        let last = last.min(end.map_or(i64::MAX, |end| end - 1));
        if first > last {
            return Vec::new();
        }
        let rules = self.rules.iter();
        let mut times: Vec<i64> = rules
            .flat_map(|rule| rule.times(first, last, &era.choice))
            .collect();
        times.sort_unstable();
        times.dedup();
        times.into_iter().map(WallMs).collect()
    }
}

/// Every state that the used calendars were in together.
fn eras(used: &CalendarUse, calendars: &Calendars) -> Result<Vec<Era>, String> {
    let versions = |name: &CalendarName| match calendars.get(name) {
        Some(versions) if !versions.is_empty() => Ok(versions),
        _ => Err(format!("there is no calendar `{name}`")),
    };
    let mut changes = BTreeSet::new();
    for name in used.only.iter().chain(&used.minus) {
        changes.extend(versions(name)?[1..].iter().map(|later| later.created.0));
    }
    let changes = changes.into_iter().map(Some);
    let in_force = |name: &CalendarName, after: Option<i64>| -> Result<Days, String> {
        let versions = versions(name)?;
        // A calendar goes only when nobody uses it; until it is there again it may as well be what it was.
        let made = versions.iter().enumerate().filter(|(index, version)| {
            *index == 0 || after.is_some_and(|after| version.created.0 <= after)
        });
        let last = made.map(|(_, version)| version).rfind(|v| !v.deleted);
        Days::read(&last.unwrap_or(&versions[0]).spec)
    };
    let era = |after: Option<i64>| {
        let read = |names: &[CalendarName]| -> Result<Vec<Days>, String> {
            names.iter().map(|name| in_force(name, after)).collect()
        };
        Ok(Era {
            after,
            choice: Choice {
                only: read(&used.only)?,
                minus: read(&used.minus)?,
                roll: used.roll,
            },
        })
    };
    std::iter::once(None).chain(changes).map(era).collect()
}

fn instant(text: &str) -> Result<i64, String> {
    text.trim()
        .parse::<Timestamp>()
        .map(Timestamp::as_millisecond)
        .map_err(|error| format!("`{text}`: {error}"))
}

fn duration(text: &str) -> Result<i64, String> {
    milliseconds(text).ok_or_else(|| format!("`{text}` is not a duration"))
}

/// Reads `1h30m` from the right: each unit takes the digits before it.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    let mut total = 0_i64;
    while !rest.is_empty() {
        let letters = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let digits = letters.trim_end_matches(|c: char| c.is_ascii_digit());
        let unit = match &rest[letters.len()..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let number: i64 = letters[digits.len()..].parse().ok()?;
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = digits;
    }
    Some(total)
}
