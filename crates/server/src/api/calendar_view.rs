//! A calendar as callers see it.

use drumtower_core::model::{
    Actor, CalendarName, CalendarSpec, CalendarVersion, NamespaceName, SweepRow, WallMs,
};
use drumtower_core::schedule::DateSet;
use jiff::civil::Date;
use jiff::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::CalendarManifest;
use super::time::Time;

/// How many of its coming days are shown, and how far they are looked for.
const DAYS_SHOWN: usize = 10;
const DAYS_LOOKED_AT: usize = 800;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CalendarSummary")]
pub struct Calendar<'a> {
    namespace: &'a NamespaceName,
    name: &'a CalendarName,
    version: u32,
    created: Time,
    actor: &'a Actor,
    /// The jobs that were planned anew because of it; `None` before there were any.
    replan: Option<Replan<'a>>,
    #[schemars(with = "CalendarManifest")]
    spec: &'a CalendarSpec,
}

/// A calendar by itself: with what a listing would have to look up for each.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Calendar")]
pub struct Full<'a> {
    #[serde(flatten)]
    calendar: Calendar<'a>,
    /// How many jobs use it; when it is the most that is counted, there may be more.
    jobs: usize,
    /// The next days that are in it, from today in UTC on.
    days_ahead: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Replan<'a> {
    version: &'a str,
    looked: u64,
    changed: u64,
    started: Time,
    finished: Option<Time>,
}

/// One version, as it was.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CalendarVersion")]
pub struct Version<'a> {
    version: u32,
    created: Time,
    actor: &'a Actor,
    deleted: bool,
    #[schemars(with = "CalendarManifest")]
    spec: &'a CalendarSpec,
}

impl<'a> Calendar<'a> {
    pub fn new(version: &'a CalendarVersion, sweep: Option<&'a SweepRow>) -> Self {
        Self {
            namespace: &version.spec.namespace,
            name: &version.spec.name,
            version: version.version,
            created: version.created.into(),
            actor: &version.actor,
            replan: sweep.map(Replan::from),
            spec: &version.spec,
        }
    }
}

impl<'a> Full<'a> {
    pub fn new(
        version: &'a CalendarVersion,
        sweep: Option<&'a SweepRow>,
        jobs: usize,
        now: WallMs,
    ) -> Self {
        Self {
            calendar: Calendar::new(version, sweep),
            jobs,
            days_ahead: days_ahead(&version.spec, now),
        }
    }
}

impl<'a> From<&'a SweepRow> for Replan<'a> {
    fn from(row: &'a SweepRow) -> Self {
        Self {
            version: &row.version,
            looked: row.looked,
            changed: row.changed,
            started: row.started.into(),
            finished: row.finished.map(Time),
        }
    }
}

impl<'a> From<&'a CalendarVersion> for Version<'a> {
    fn from(version: &'a CalendarVersion) -> Self {
        Self {
            version: version.version,
            created: version.created.into(),
            actor: &version.actor,
            deleted: version.deleted,
            spec: &version.spec,
        }
    }
}

fn days_ahead(spec: &CalendarSpec, now: WallMs) -> Vec<String> {
    let Ok(days) = DateSet::compile(spec) else {
        return Vec::new();
    };
    let Ok(now) = Timestamp::from_millisecond(now.0) else {
        return Vec::new();
    };
    let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
    let ahead = today.series(Span::new().days(1)).take(DAYS_LOOKED_AT);
    ahead
        .filter(|day| days.contains(*day))
        .take(DAYS_SHOWN)
        .map(|day: Date| day.to_string())
        .collect()
}
