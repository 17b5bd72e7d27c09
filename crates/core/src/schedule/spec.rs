//! What a manifest says about when a job is due, as it is written. `compile` reads and checks it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::CalendarName;

/// One rule of a job's schedule: exactly one of `cron`, `every`, `at` and `after_end`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleEntry {
    /// A cron line such as `30 2 * * mon-fri`: minute, hour, day of month, month, day of week; six
    /// fields begin with seconds, a seventh adds years. Names, ranges, steps, lists, `?` in the day
    /// fields, and `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`
    /// are understood. Days of month may be `L` (the last), `L-3` (three days before it), `15W` (the
    /// weekday nearest to the 15th, in the same month) and `LW`; days of week `fri#2` (the second
    /// Friday of the month) and `friL` (the last). Sunday is 0 or 7. When both day fields are
    /// restricted (begin with neither `*` nor `?`), `day_rule` decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The IANA time zone of `cron`, or of an `at` without an offset, such as `Europe/Berlin`; UTC for
    /// `cron` unless given. With calendars also the zone that says which date it is, for `every` and
    /// any `at`. A `cron` line whose second, minute and hour hold no `*` names times of day, and
    /// `dst_gap` and `dst_fold` say what becomes of them when clocks change. Any other line follows
    /// the clock on the wall: nothing while it skips, both passes while it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// A fixed interval of elapsed time, such as `250ms`, `5s` or `1h30m`; at least `1ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// An instant on which one of the intervals falls, in RFC 3339; the others follow before and
    /// after it. The Unix epoch, 1970-01-01T00:00:00Z, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// A single instant: in RFC 3339, such as `2026-01-31T08:00:00+01:00`, or a local time without an offset, such as
    /// `2026-01-31T08:00:00`, read in `timezone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// A delay counted from the end of the last run that the schedule made, whatever its outcome; from the job's creation
    /// or resumption before the first. It stands alone: no other entry may be given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_end: Option<String>,
    /// When both day fields of `cron` are restricted: `or` (a day that matches either counts, as in Vixie cron) or `and`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_rule: Option<DayRule>,
    /// What becomes of a local time that clocks skip when they go forward; `shift` unless given. For a `cron` line whose
    /// second, minute and hour hold no `*`, and for an `at` without an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// Which pass counts when clocks go back and show a local time twice; `first` unless given. For the same entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
}

/// How the two day fields of a cron line go together when both are restricted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DayRule {
    /// A day that matches either counts.
    #[default]
    Or,
    /// A day must match both.
    And,
}

/// What becomes of a local time that clocks skip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DstGap {
    /// It is moved by the gap's length: 02:30 becomes 03:30.
    #[default]
    Shift,
    /// It makes no occurrence.
    Skip,
    /// It happens at the instant of the change: 02:30 becomes 03:00.
    AtTransition,
}

/// Which pass of a local time that clocks show twice counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DstFold {
    #[default]
    First,
    Last,
    Both,
}

/// Days on which a job may fire, by named calendars of its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalendarUse {
    /// Fires only on days that are in all of these calendars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub only: Vec<CalendarName>,
    /// Never fires on a day that is in any of these calendars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub minus: Vec<CalendarName>,
    /// Where a time that falls on a day without firing goes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub roll: Roll,
}

/// Where a time on an excluded day goes. Only for entries that name their times of day: `at`, and `cron` lines whose
/// second, minute and hour hold no `*`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Roll {
    /// Nowhere: it makes no occurrence.
    #[default]
    None,
    /// To the same time on the next day that counts.
    Next,
    /// To the same time on the day before that counts.
    Previous,
    /// To whichever of the two is nearer; to the later one when both are as far.
    Nearest,
}

/// The bounds of a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Nothing is due before this instant, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Nothing is due at or after this instant, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The schedule ends when it has made this many runs in the life of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_fires: Option<u64>,
}

/// Everything of a definition that says when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleSpec<'a> {
    pub entries: &'a [ScheduleEntry],
    pub calendar: Option<&'a CalendarUse>,
    /// A duration: each time is put off by a part of it.
    pub jitter: Option<&'a str>,
    pub bounds: Option<&'a Bounds>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
