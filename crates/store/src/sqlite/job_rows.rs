//! The ways to jobs: by id, by name, by due time, by calendar.

use drumtower_core::model::{
    CalendarRef, JobId, JobName, JobRecord, JobVersion, NamespaceName, SegmentSet, Unfired, WallMs,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::job_records::{Records, columns, job_row};
use super::within::{self, within};
use crate::{Error, JobFilter, JobPage, codec};

/// Jobs that one call looks at before it answers with a short page.
const LOOKS: usize = 20_000;

pub fn by_id(conn: &Connection, id: JobId) -> Result<Option<JobRecord>, Error> {
    let Ok(key) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let sql = concat!(
        columns!(),
        "FROM job LEFT JOIN schedule ON schedule.job = job.id WHERE job.id = ?1"
    );
    Records::one(conn, sql, [key])
}

pub fn by_name(
    conn: &Connection,
    namespace: &NamespaceName,
    name: &JobName,
) -> Result<Option<JobRecord>, Error> {
    let sql = concat!(
        columns!(),
        "FROM job LEFT JOIN schedule ON schedule.job = job.id
         WHERE namespace = ?1 AND name = ?2 AND deleted = 0"
    );
    Records::one(conn, sql, [namespace.as_str(), name.as_str()])
}

pub fn version(conn: &Connection, id: JobId, version: u32) -> Result<Option<JobVersion>, Error> {
    let Ok(key) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let mut select =
        conn.prepare_cached("SELECT body FROM job_version WHERE job = ?1 AND version = ?2")?;
    let body: Option<Vec<u8>> = select
        .query_row(params![key, version], |row| row.get(0))
        .optional()?;
    body.map(|body| codec::open_version(id, version, &body))
        .transpose()
}

/// The versions of a job below `before`, newest first.
pub fn versions(
    conn: &Connection,
    id: JobId,
    before: Option<u32>,
    limit: i64,
) -> Result<Vec<JobVersion>, Error> {
    let Ok(key) = i64::try_from(id.0) else {
        return Ok(Vec::new());
    };
    let mut select = conn.prepare_cached(
        "SELECT version, body FROM job_version WHERE job = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3",
    )?;
    let below = before.map_or(i64::from(u32::MAX) + 1, i64::from);
    let mut rows = select.query(params![key, below, limit])?;
    let mut versions = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        versions.push(codec::open_version(id, row.get(0)?, body)?);
    }
    Ok(versions)
}

/// Jobs by (namespace, name) after the given place.
pub fn list(
    conn: &Connection,
    filter: &JobFilter,
    after: Option<&(NamespaceName, JobName)>,
    limit: usize,
) -> Result<JobPage, Error> {
    let place = crate::columns::first_job(filter);
    // What comes right after a name ends with a zero byte, which no name holds.
    let next = after.map(|(namespace, name)| (namespace.as_str(), format!("{name}\0")));
    let (namespace, name) = next.map_or(place.clone(), |next| next.max(place));
    let mut records = Records::new(conn)?;
    let mut select = conn.prepare_cached(concat!(
        columns!(),
        "FROM job LEFT JOIN schedule ON schedule.job = job.id
         WHERE deleted = 0 AND (namespace, name) >= (?1, ?2) ORDER BY namespace, name LIMIT ?3"
    ))?;
    let mut rows = select.query(params![namespace, name, LOOKS as i64])?;
    let mut page = JobPage::default();
    let mut looked = 0;
    while let Some(columns) = rows.next()? {
        let row = job_row(columns)?;
        if crate::columns::is_past(filter, &row) {
            return Ok(page);
        }
        looked += 1;
        let key = (row.namespace.clone(), row.name.clone());
        if filter.takes_row(&row) {
            page.jobs.extend(records.labelled(row, columns, filter)?);
        }
        if page.jobs.len() >= limit || looked == LOOKS {
            page.next = Some(key);
            break;
        }
    }
    Ok(page)
}

/// Jobs by (next_due, id) after the given place. The index alone tells which; the rows are then looked up in order of id,
/// because jobs that are due together lie far apart, and a page of the tables' inner nodes serves neighbours in a row.
pub fn due(
    conn: &Connection,
    within: &SegmentSet,
    before: WallMs,
    after: Option<(WallMs, JobId)>,
    limit: i64,
) -> Result<Vec<JobRecord>, Error> {
    let (at, id) = match after {
        Some((at, id)) => (at.0, i64::try_from(id.0).unwrap_or(i64::MAX)),
        None => (i64::MIN, -1),
    };
    let within = within::parameter(within);
    // Two searches, so that a page among many jobs due at one instant does not pass over those before it.
    let mut same = conn.prepare_cached(concat!(
        "SELECT job FROM schedule INDEXED BY schedule_by_due
         WHERE next_due = ?1 AND next_due < ?2 AND job > ?3 AND ",
        within!("job", "?5"),
        " ORDER BY job LIMIT ?4"
    ))?;
    let mut later = conn.prepare_cached(concat!(
        "SELECT job FROM schedule INDEXED BY schedule_by_due
         WHERE next_due > ?1 AND next_due < ?2 AND ",
        within!("job", "?4"),
        " ORDER BY next_due, job LIMIT ?3"
    ))?;
    let mut ids: Vec<i64> = same
        .query_map(params![at, before.0, id, limit, within], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let rest = limit - i64::try_from(ids.len()).unwrap_or(limit);
    for id in later.query_map(params![at, before.0, rest, within], |row| row.get(0))? {
        ids.push(id?);
    }
    let mut places: Vec<(i64, usize)> = ids.into_iter().zip(0..).collect();
    places.sort_unstable();
    let sql = concat!(
        columns!(),
        "FROM schedule CROSS JOIN job ON job.id = schedule.job WHERE schedule.job = ?1"
    );
    let mut records = Records::new(conn)?;
    let mut look = conn.prepare_cached(sql)?;
    let mut found = Vec::with_capacity(places.len());
    for (id, place) in places {
        let mut rows = look.query([id])?;
        if let Some(columns) = rows.next()? {
            found.push((place, records.record(columns)?));
        }
    }
    found.sort_unstable_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// Jobs that are not deleted, by id above `after`.
pub fn above(
    conn: &Connection,
    within: &SegmentSet,
    after: i64,
    limit: i64,
) -> Result<Vec<JobRecord>, Error> {
    let sql = concat!(
        columns!(),
        "FROM job LEFT JOIN schedule ON schedule.job = job.id
         WHERE job.id > ?1 AND deleted = 0 AND ",
        within!("job.id", "?3"),
        " ORDER BY job.id LIMIT ?2"
    );
    Records::all(conn, sql, params![after, limit, within::parameter(within)])
}

/// Jobs that use a calendar, by id above `after`.
pub fn users(
    conn: &Connection,
    within: &SegmentSet,
    calendar: &CalendarRef,
    after: i64,
    limit: i64,
) -> Result<Vec<JobRecord>, Error> {
    let sql = concat!(
        columns!(),
        "FROM calendar_user CROSS JOIN job ON job.id = calendar_user.job
         LEFT JOIN schedule ON schedule.job = job.id
         WHERE calendar_user.namespace = ?1 AND calendar_user.calendar = ?2 AND calendar_user.job > ?3
         AND ",
        within!("calendar_user.job", "?5"),
        " ORDER BY calendar_user.job LIMIT ?4"
    );
    let (namespace, name) = (calendar.namespace.as_str(), calendar.name.as_str());
    Records::all(
        conn,
        sql,
        params![namespace, name, after, limit, within::parameter(within)],
    )
}

/// Ranges of unfired times of a job that touch `[from, to]`.
pub fn unfired(
    conn: &Connection,
    job: JobId,
    from: WallMs,
    to: WallMs,
    limit: i64,
) -> Result<Vec<Unfired>, Error> {
    let Ok(job) = i64::try_from(job.0) else {
        return Ok(Vec::new());
    };
    let mut select = conn.prepare_cached(
        "SELECT body FROM unfired WHERE job = ?1 AND first <= ?2 AND last >= ?3 ORDER BY first LIMIT ?4",
    )?;
    let mut rows = select.query(params![job, to.0, from.0, limit])?;
    let mut ranges = Vec::new();
    while let Some(row) = rows.next()? {
        ranges.push(codec::open(
            row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
        )?);
    }
    Ok(ranges)
}
