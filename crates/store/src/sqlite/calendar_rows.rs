//! Calendars, the jobs that use them, and the sweeps that plan those jobs anew.
//!
//! Which jobs use a calendar is derived from the definitions as they come in, so that a calendar's edit finds them without
//! looking at every job.

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{
    CalendarName, CalendarRef, CalendarVersion, JobVersion, Limits, NamespaceName, SweepRow,
};
use rusqlite::{CachedStatement, Connection, Row, params};

use super::apply::exactly_one;
use crate::{Error, codec, columns};

/// Adds versions, each one above the newest, and lets go of those that are no longer kept.
pub fn versions(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut newest = conn.prepare_cached(
        "SELECT coalesce(max(version), 0) FROM calendar WHERE namespace = ?1 AND name = ?2",
    )?;
    let mut insert = conn.prepare_cached("INSERT INTO calendar VALUES(?1, ?2, ?3, ?4)")?;
    let mut forget = conn.prepare_cached(
        "DELETE FROM calendar WHERE namespace = ?1 AND name = ?2 AND version <= ?3",
    )?;
    for ((calendar, version), row) in &changes.calendars {
        let (namespace, name) = (calendar.namespace.as_str(), calendar.name.as_str());
        let before: u32 = newest.query_row([namespace, name], |row| row.get(0))?;
        if before.checked_add(1) != Some(*version) {
            return Err(Error::Invariant(format!(
                "version {version} of the calendar {namespace}/{name} does not follow version {before}"
            )));
        }
        let values = params![namespace, name, version, codec::seal_calendar(row)?];
        exactly_one(&mut insert, values, || {
            format!("version {version} of the calendar {namespace}/{name}")
        })?;
        let gone = i64::from(*version) - Limits::CALENDAR_VERSIONS as i64;
        forget.execute(params![namespace, name, gone])?;
    }
    Ok(())
}

/// Brings the uses up to the definitions that the set brings. A job's newest definition is its current one.
pub fn uses(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut forget = conn.prepare_cached("DELETE FROM calendar_user WHERE job = ?1")?;
    let mut insert =
        conn.prepare_cached("INSERT OR IGNORE INTO calendar_user VALUES(?1, ?2, ?3)")?;
    for ((job, _), version) in &changes.versions {
        // One set may make a job and edit it.
        if version.version > 1 {
            forget.execute([job.0 as i64])?;
        }
        use_calendars(&mut insert, version)?;
    }
    for (job, change) in &changes.jobs {
        let (JobChange::Insert(row) | JobChange::Update(row)) = change;
        if row.deleted {
            forget.execute([job.0 as i64])?;
        }
    }
    Ok(())
}

fn use_calendars(insert: &mut CachedStatement<'_>, version: &JobVersion) -> Result<(), Error> {
    let Some(calendars) = &version.spec.calendar else {
        return Ok(());
    };
    let namespace = version.spec.namespace.as_str();
    for name in calendars.only.iter().chain(&calendars.minus) {
        insert.execute(params![namespace, name.as_str(), version.job.0 as i64])?;
    }
    Ok(())
}

pub fn sweeps(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO sweep VALUES(?1, ?2)")?;
    for (cause, row) in &changes.sweeps {
        replace.execute(params![columns::cause_key(cause), codec::seal(row)?])?;
    }
    Ok(())
}

pub fn all_sweeps(conn: &Connection) -> Result<Vec<SweepRow>, Error> {
    let mut select = conn.prepare_cached("SELECT body FROM sweep")?;
    let mut rows = select.query([])?;
    let mut sweeps: Vec<SweepRow> = Vec::new();
    while let Some(row) = rows.next()? {
        sweeps.push(codec::open(
            row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
        )?);
    }
    sweeps.sort_by(|one, other| one.cause.cmp(&other.cause));
    Ok(sweeps)
}

pub fn all_calendars(conn: &Connection) -> Result<Vec<CalendarVersion>, Error> {
    let sql =
        "SELECT namespace, name, version, body FROM calendar ORDER BY namespace, name, version";
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        versions.push(calendar_version(row)?);
    }
    Ok(versions)
}

pub fn versions_of(
    conn: &Connection,
    calendar: &CalendarRef,
) -> Result<Vec<CalendarVersion>, Error> {
    let mut select = conn.prepare_cached(
        "SELECT namespace, name, version, body FROM calendar WHERE namespace = ?1 AND name = ?2 ORDER BY version",
    )?;
    let mut rows = select.query([calendar.namespace.as_str(), calendar.name.as_str()])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        versions.push(calendar_version(row)?);
    }
    Ok(versions)
}

fn calendar_version(row: &Row<'_>) -> Result<CalendarVersion, Error> {
    let text = |column| -> rusqlite::Result<&str> { Ok(row.get_ref(column)?.as_str()?) };
    let broken = |error: drumtower_core::model::NameError| Error::Corrupt(error.to_string());
    let calendar = CalendarRef {
        namespace: NamespaceName::new(text(0)?).map_err(broken)?,
        name: CalendarName::new(text(1)?).map_err(broken)?,
    };
    let body = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
    codec::open_calendar(&calendar, row.get(2)?, body)
}
