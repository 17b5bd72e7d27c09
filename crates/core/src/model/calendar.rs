//! Named sets of days that schedules of a namespace share, and the sweep that plans their users anew.
//!
//! A calendar is a row of immutable versions; the newest counts. Deleting one adds a version that says so, and applying it
//! again goes on counting, so that what was in force at any time in the past can still be told. A version is in force for
//! the nominal times after it was made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::DateSet;

use super::job::check_description;
use super::{Actor, CalendarName, JobId, NamespaceName, SpecError, WallMs};

/// A calendar as written in a manifest: a set of days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Drumtower calendar manifest")]
pub struct CalendarSpec {
    /// What this document describes: `Calendar`.
    pub kind: CalendarKind,
    /// The calendar's name, unique in its namespace; it cannot be changed later.
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub name: CalendarName,
    /// The tenant the calendar belongs to; jobs of the same namespace may use it.
    #[serde(default)]
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub namespace: NamespaceName,
    /// What the calendar is for, shown wherever the calendar is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The days of the week that are in the calendar, such as `[mon, tue, wed, thu, fri]`; none unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekly: Vec<Weekday>,
    /// Days that are in the calendar whatever the other keys say: `2026-10-10`, a range `2026-10-01..2026-10-07` with both
    /// ends, or a day of every year, `12-25`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Days that `weekly` would include and that are not in the calendar, written likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

impl CalendarSpec {
    /// Checks everything that types alone do not, and reads the days. The first fault is reported.
    pub fn days(&self) -> Result<DateSet, SpecError> {
        check_description(&self.description)?;
        DateSet::compile(self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CalendarKind {
    Calendar,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// Names a calendar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CalendarRef {
    pub namespace: NamespaceName,
    pub name: CalendarName,
}

/// One version of a calendar. The number is also its revision: the ETag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarVersion {
    /// From 1, without gaps, also over deletions.
    pub version: u32,
    pub spec: CalendarSpec,
    pub created: WallMs,
    pub actor: Actor,
    /// From this version on there is no such calendar.
    pub deleted: bool,
}

impl CalendarVersion {
    pub fn calendar(&self) -> CalendarRef {
        CalendarRef {
            namespace: self.spec.namespace.clone(),
            name: self.spec.name.clone(),
        }
    }
}

/// Why jobs are planned anew in the background.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepCause {
    /// The jobs that use this calendar.
    Calendar(CalendarRef),
    /// Every job: the time-zone data changed.
    TimeZones,
}

/// Planning jobs anew, page by page in the order of their ids. One row for each cause; it stays after the end, until the
/// next sweep of the same cause takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRow {
    pub cause: SweepCause,
    /// The calendar's version, or the version of the time-zone data.
    pub version: String,
    /// Jobs up to this one are done.
    pub after: Option<JobId>,
    /// Jobs looked at, and those among them whose next time changed.
    pub looked: u64,
    pub changed: u64,
    pub started: WallMs,
    pub finished: Option<WallMs>,
}
