//! The `schedule:` list as written in a manifest, and its checks.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Entry;
use super::cron::Cron;
use super::duration::parse_duration;
use super::error::Error;
use super::interval::Interval;
use super::zone::Zone;

/// One rule of a job's schedule: exactly one of `cron`, `every` and `at`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEntry {
    /// A cron line such as `30 2 * * mon-fri`: minute, hour, day of month, month, day of week; six
    /// fields begin with seconds, a seventh adds years. Names, ranges, steps, lists, `?` in the day
    /// fields, and `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`
    /// are understood. When both day fields are restricted (begin with neither `*` nor `?`), a day
    /// that matches either counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The IANA time zone of `cron`, such as `Europe/Berlin`; UTC unless given. A line whose second,
    /// minute and hour hold no `*` fires once on each of its days: moved by the gap's length when
    /// clocks skip it, at the first pass when they repeat it. Any other line follows the clock on
    /// the wall through both changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// A fixed interval of elapsed time, such as `250ms`, `5s` or `1h30m`; at least `1ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// An instant on which one of the intervals falls, in RFC 3339; the others follow before and
    /// after it. The Unix epoch, 1970-01-01T00:00:00Z, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// A single instant in RFC 3339, such as `2026-01-31T08:00:00+01:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

pub(super) fn compile(entry: &ScheduleEntry) -> Result<Entry, Error> {
    refuse_strays(entry)?;
    match (&entry.cron, &entry.every, &entry.at) {
        (Some(line), None, None) => {
            let zone = match &entry.timezone {
                Some(name) => Zone::named(name)?,
                None => Zone::utc(),
            };
            Ok(Entry::Cron(Cron::parse(line, zone)?))
        }
        (None, Some(every), None) => {
            let anchor = match &entry.anchor {
                Some(anchor) => instant("anchor", anchor)?,
                None => 0,
            };
            match Interval::new(parse_duration(every)?, anchor) {
                Some(interval) => Ok(Entry::Every(interval)),
                None => Err(Error::ZeroInterval),
            }
        }
        (None, None, Some(at)) => Ok(Entry::At(instant("at", at)?)),
        _ => Err(Error::Form {
            found: forms(entry),
        }),
    }
}

/// A field that would have no effect is refused, since its author expected one.
fn refuse_strays(entry: &ScheduleEntry) -> Result<(), Error> {
    let stray = |field, owner| Err(Error::Stray { field, owner });
    if entry.timezone.is_some() && entry.cron.is_none() {
        return stray("timezone", "cron");
    }
    if entry.anchor.is_some() && entry.every.is_none() {
        return stray("anchor", "every");
    }
    Ok(())
}

fn forms(entry: &ScheduleEntry) -> String {
    let given = [
        ("cron", entry.cron.is_some()),
        ("every", entry.every.is_some()),
        ("at", entry.at.is_some()),
    ];
    let given = given.iter().filter(|(_, given)| *given);
    let names: Vec<String> = given.map(|(name, _)| format!("`{name}`")).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(" and "),
    }
}

/// Finer instants are refused rather than cut: a cut one would fire early.
fn instant(field: &'static str, value: &str) -> Result<i64, Error> {
    let value = value.trim();
    match value.parse::<Timestamp>() {
        Ok(at) if at.as_nanosecond() % 1_000_000 == 0 => Ok(at.as_millisecond()),
        _ => Err(Error::Instant {
            field,
            value: value.to_owned(),
        }),
    }
}
