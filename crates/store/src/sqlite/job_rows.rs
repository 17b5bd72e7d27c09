//! Jobs as they are read: the row with its definition, schedule and newest unfired range.

use drumtower_core::model::{
    JobId, JobName, JobRecord, JobRow, JobVersion, NamespaceName, ScheduleRow, Unfired, WallMs,
};
use rusqlite::{Connection, OptionalExtension, params};

use super::codec;
use crate::{Error, JobFilter, JobPage};

/// Jobs that one call looks at before it answers with a short page.
const LOOKS: usize = 20_000;

pub fn by_id(conn: &Connection, id: JobId) -> Result<Option<JobRecord>, Error> {
    let Ok(key) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let mut select = conn.prepare_cached("SELECT body FROM job WHERE id = ?1")?;
    let body: Option<Vec<u8>> = select.query_row([key], |row| row.get(0)).optional()?;
    body.map(|body| record(conn, codec::open(&body)?))
        .transpose()
}

pub fn by_name(
    conn: &Connection,
    namespace: &NamespaceName,
    name: &JobName,
) -> Result<Option<JobRecord>, Error> {
    let sql = "SELECT body FROM job WHERE namespace = ?1 AND name = ?2 AND deleted = 0";
    let mut select = conn.prepare_cached(sql)?;
    let body: Option<Vec<u8>> = select
        .query_row([namespace.as_str(), name.as_str()], |row| row.get(0))
        .optional()?;
    body.map(|body| record(conn, codec::open(&body)?))
        .transpose()
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

/// Jobs by (namespace, name) after the given place.
pub fn list(
    conn: &Connection,
    filter: &JobFilter,
    after: Option<&(NamespaceName, JobName)>,
    limit: usize,
) -> Result<JobPage, Error> {
    // The empty text comes before every name.
    let only = filter.namespace.as_ref().map_or("", NamespaceName::as_str);
    let (namespace, name) = after.map_or((only, ""), |(namespace, name)| {
        (namespace.as_str(), name.as_str())
    });
    let mut select = conn.prepare_cached(
        "SELECT body FROM job WHERE deleted = 0 AND (namespace, name) > (?1, ?2) ORDER BY namespace, name LIMIT ?3",
    )?;
    let mut rows = select.query(params![namespace, name, LOOKS as i64])?;
    let mut page = JobPage::default();
    let mut looked = 0;
    while let Some(body) = rows.next()? {
        let row: JobRow = codec::open(body.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
        if filter
            .namespace
            .as_ref()
            .is_some_and(|only| row.namespace > *only)
        {
            return Ok(page);
        }
        looked += 1;
        let key = (row.namespace.clone(), row.name.clone());
        if filter.takes_row(&row) {
            let record = record(conn, row)?;
            if filter.takes_labels(&record.version.spec.labels) {
                page.jobs.push(record);
            }
        }
        if page.jobs.len() >= limit || looked == LOOKS {
            page.next = Some(key);
            break;
        }
    }
    Ok(page)
}

/// Jobs by (next_due, id) after the given place.
pub fn due(
    conn: &Connection,
    before: WallMs,
    after: Option<(WallMs, JobId)>,
    limit: usize,
) -> Result<Vec<JobRecord>, Error> {
    let (at, id) = match after {
        Some((at, id)) => (at.0, i64::try_from(id.0).unwrap_or(i64::MAX)),
        None => (i64::MIN, -1),
    };
    let mut select = conn.prepare_cached(
        "SELECT job.body FROM schedule INDEXED BY schedule_by_due JOIN job ON job.id = schedule.job
         WHERE next_due IS NOT NULL AND next_due >= ?2 AND next_due < ?1 AND (next_due > ?2 OR schedule.job > ?3)
         ORDER BY next_due, schedule.job LIMIT ?4",
    )?;
    let mut rows = select.query(params![
        before.0,
        at,
        id,
        i64::try_from(limit).unwrap_or(i64::MAX)
    ])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(
            conn,
            codec::open(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?,
        )?);
    }
    Ok(records)
}

/// The jobs with these ids.
pub fn each(conn: &Connection, ids: &[JobId]) -> Result<Vec<JobRecord>, Error> {
    let known =
        |id: &JobId| by_id(conn, *id)?.ok_or_else(|| Error::Invariant(format!("{id} has no row")));
    ids.iter().map(known).collect()
}

/// Jobs that are not deleted, by id above `after`.
pub fn above(conn: &Connection, after: i64, limit: i64) -> Result<Vec<JobRecord>, Error> {
    let mut select = conn.prepare_cached(
        "SELECT body FROM job WHERE id > ?1 AND deleted = 0 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = select.query([after, limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(
            conn,
            codec::open(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?,
        )?);
    }
    Ok(records)
}

/// Ranges of unfired times of a job that touch `[from, to]`.
pub fn unfired(
    conn: &Connection,
    job: JobId,
    from: WallMs,
    to: WallMs,
    limit: usize,
) -> Result<Vec<Unfired>, Error> {
    let Ok(job) = i64::try_from(job.0) else {
        return Ok(Vec::new());
    };
    let mut select = conn.prepare_cached(
        "SELECT body FROM unfired WHERE job = ?1 AND first <= ?2 AND last >= ?3 ORDER BY first LIMIT ?4",
    )?;
    let mut rows = select.query(params![
        job,
        to.0,
        from.0,
        i64::try_from(limit).unwrap_or(i64::MAX)
    ])?;
    let mut ranges = Vec::new();
    while let Some(row) = rows.next()? {
        ranges.push(codec::open(
            row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
        )?);
    }
    Ok(ranges)
}

fn record(conn: &Connection, row: JobRow) -> Result<JobRecord, Error> {
    let missing = |what: &str| Error::Invariant(format!("{} has no {what} row", row.id));
    let key = row.id.0 as i64;
    let version = version(conn, row.id, row.version)?.ok_or_else(|| missing("version"))?;
    let mut select = conn.prepare_cached(
        "SELECT fired_through, next_nominal, next_due, fires, paused_through FROM schedule WHERE job = ?1",
    )?;
    let schedule = select.query_row([key], |columns| {
        Ok(ScheduleRow {
            job: row.id,
            fired_through: WallMs(columns.get(0)?),
            next_nominal: columns.get::<_, Option<i64>>(1)?.map(WallMs),
            next_due: columns.get::<_, Option<i64>>(2)?.map(WallMs),
            fires: columns.get::<_, i64>(3)? as u64,
            paused_through: columns.get::<_, Option<i64>>(4)?.map(WallMs),
        })
    });
    let schedule = schedule.optional()?.ok_or_else(|| missing("schedule"))?;
    let mut count =
        conn.prepare_cached("SELECT count(*) FROM run WHERE job = ?1 AND scheduled = 1")?;
    let live_scheduled = count.query_row([key], |columns| columns.get(0))?;
    let mut select =
        conn.prepare_cached("SELECT body FROM unfired WHERE job = ?1 ORDER BY first DESC LIMIT 1")?;
    let last: Option<Vec<u8>> = select
        .query_row([key], |columns| columns.get(0))
        .optional()?;
    let last_unfired = last.map(|body| codec::open(&body)).transpose()?;
    Ok(JobRecord {
        row,
        version,
        schedule,
        live_scheduled,
        last_unfired,
    })
}
