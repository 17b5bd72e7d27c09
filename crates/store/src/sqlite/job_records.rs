//! Jobs put together for a page: the row with its definition, schedule, live runs and newest unfired range.
//!
//! A page of the read-ahead has thousands of jobs, so what is the same for all of them is done once: statements are taken
//! once, whole tables that are empty are not asked for each job, and names that jobs share are held once.

use drumtower_core::model::{
    Actor, JobRecord, JobRow, JobVersion, NamespaceName, ScheduleRow, WallMs,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use serde::de::DeserializeOwned;

use crate::{Error, JobFilter, codec};

/// The columns that a statement must begin with to be read here; `schedule` may be missing from a row.
macro_rules! columns {
    () => {
        "SELECT job.body, schedule.fired_through, schedule.next_nominal, schedule.next_due, schedule.fires, schedule.paused_through "
    };
}
pub(super) use columns;

pub struct Records<'c> {
    version: CachedStatement<'c>,
    /// Nothing when no run that has not ended was made by a schedule.
    live: Option<CachedStatement<'c>>,
    /// Nothing when the overlap of every run is what its origin says.
    overlap: Option<CachedStatement<'c>>,
    /// Nothing when no breaker has a row.
    breaker: Option<CachedStatement<'c>>,
    /// Nothing when no job has anything of those that it runs after.
    waits: Option<CachedStatement<'c>>,
    /// Nothing when no job runs after another.
    followed: Option<CachedStatement<'c>>,
    /// Nothing when there is no unfired range at all.
    unfired: Option<CachedStatement<'c>>,
    shared: Option<(NamespaceName, Actor)>,
}

impl<'c> Records<'c> {
    pub fn new(conn: &'c Connection) -> Result<Self, Error> {
        let some = |sql: &str| conn.prepare_cached(sql)?.exists([]);
        let (waits, followed) = (
            some("SELECT 1 FROM waits LIMIT 1")?,
            some("SELECT 1 FROM follower LIMIT 1")?,
        );
        let (live, overlap, breaker, unfired) = (
            some("SELECT 1 FROM run INDEXED BY run_scheduled WHERE scheduled = 1 LIMIT 1")?,
            some("SELECT 1 FROM run INDEXED BY run_by_overlap WHERE overlap IS NOT NULL LIMIT 1")?,
            some("SELECT 1 FROM breaker LIMIT 1")?,
            some("SELECT 1 FROM unfired LIMIT 1")?,
        );
        let count = "SELECT count(*) FROM run WHERE job = ?1 AND scheduled = 1";
        let by_overlap = "SELECT overlap, count(*) FROM run INDEXED BY run_by_overlap
                          WHERE job = ?1 AND overlap IS NOT NULL GROUP BY overlap";
        let of_breaker = "SELECT body FROM breaker WHERE job = ?1";
        let of_waits = "SELECT body FROM waits WHERE job = ?1";
        let by_others = "SELECT 1 FROM follower WHERE namespace = ?1 AND name = ?2 LIMIT 1";
        let newest = "SELECT body FROM unfired WHERE job = ?1 ORDER BY first DESC LIMIT 1";
        Ok(Self {
            version: conn
                .prepare_cached("SELECT body FROM job_version WHERE job = ?1 AND version = ?2")?,
            live: live.then(|| conn.prepare_cached(count)).transpose()?,
            overlap: overlap
                .then(|| conn.prepare_cached(by_overlap))
                .transpose()?,
            breaker: breaker
                .then(|| conn.prepare_cached(of_breaker))
                .transpose()?,
            waits: waits.then(|| conn.prepare_cached(of_waits)).transpose()?,
            followed: followed
                .then(|| conn.prepare_cached(by_others))
                .transpose()?,
            unfired: unfired.then(|| conn.prepare_cached(newest)).transpose()?,
            shared: None,
        })
    }

    /// Every job of a statement that begins with [`columns`].
    pub fn all(
        conn: &'c Connection,
        sql: &str,
        values: impl Params,
    ) -> Result<Vec<JobRecord>, Error> {
        let mut records = Self::new(conn)?;
        let mut select = conn.prepare_cached(sql)?;
        let mut rows = select.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(records.record(row)?);
        }
        Ok(found)
    }

    /// The only job of a statement that begins with [`columns`].
    pub fn one(
        conn: &'c Connection,
        sql: &str,
        values: impl Params,
    ) -> Result<Option<JobRecord>, Error> {
        Ok(Self::all(conn, sql, values)?.pop())
    }

    pub fn record(&mut self, columns: &Row<'_>) -> Result<JobRecord, Error> {
        let row = job_row(columns)?;
        self.complete(row, columns)
    }

    /// The job if its labels are what the filter asks for.
    pub fn labelled(
        &mut self,
        row: JobRow,
        columns: &Row<'_>,
        filter: &JobFilter,
    ) -> Result<Option<JobRecord>, Error> {
        if filter.asks_labels(&row) {
            let key = params![row.id.0 as i64, row.version];
            let mut rows = self.version.query(key)?;
            let labels = match rows.next()? {
                Some(found) => codec::open_labels(blob(found, 0)?)?,
                None => return Err(missing(&row, "version")),
            };
            if !filter.takes_labels(&row, &labels) {
                return Ok(None);
            }
        }
        self.complete(row, columns).map(Some)
    }

    fn complete(&mut self, mut row: JobRow, columns: &Row<'_>) -> Result<JobRecord, Error> {
        self.share(&mut row);
        let version = self.version(&row)?;
        let key = row.id.0 as i64;
        let live_scheduled = match &mut self.live {
            Some(count) => count.query_row([key], |columns| columns.get(0))?,
            None => 0,
        };
        let texts: Vec<(String, u32)> = match &mut self.overlap {
            Some(counts) => counts
                .query_map([key], |columns| Ok((columns.get(0)?, columns.get(1)?)))?
                .collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let tallies = crate::columns::tallies(live_scheduled, &texts)?;
        let breaker = body(&mut self.breaker, key)?;
        let waits = body(&mut self.waits, key)?;
        let followed = match &mut self.followed {
            Some(followed) => followed.exists([row.namespace.as_str(), row.name.as_str()])?,
            None => false,
        };
        let last_unfired = body(&mut self.unfired, key)?;
        Ok(JobRecord {
            schedule: schedule(&row, columns)?,
            version,
            live_scheduled,
            tallies,
            breaker,
            waits,
            followed,
            last_unfired,
            row,
        })
    }

    fn version(&mut self, row: &JobRow) -> Result<JobVersion, Error> {
        let mut rows = self.version.query(params![row.id.0 as i64, row.version])?;
        let found = rows.next()?.ok_or_else(|| missing(row, "version"))?;
        let mut version = codec::open_version(row.id, row.version, blob(found, 0)?)?;
        // The texts are the same nearly always, and a window holds many jobs.
        keep(&mut version.spec.namespace, &row.namespace);
        keep(&mut version.spec.name, &row.name);
        keep(&mut version.actor, &row.actor);
        Ok(version)
    }

    /// Lets the row hold the texts of the one before where they are the same.
    fn share(&mut self, row: &mut JobRow) {
        if let Some((namespace, actor)) = &self.shared {
            keep(&mut row.namespace, namespace);
            keep(&mut row.actor, actor);
        }
        self.shared = Some((row.namespace.clone(), row.actor.clone()));
    }
}

/// What the one row of a job holds, if the statement is asked and there is one.
fn body<T: DeserializeOwned>(
    select: &mut Option<CachedStatement<'_>>,
    key: i64,
) -> Result<Option<T>, Error> {
    let Some(select) = select else {
        return Ok(None);
    };
    let body = select
        .query_row([key], |columns| columns.get(0))
        .optional()?;
    body.map(|body: Vec<u8>| codec::open(&body)).transpose()
}

fn keep<T: Clone + PartialEq>(mine: &mut T, other: &T) {
    if mine == other {
        mine.clone_from(other);
    }
}

pub fn job_row(columns: &Row<'_>) -> Result<JobRow, Error> {
    codec::open(blob(columns, 0)?)
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Error> {
    Ok(row
        .get_ref(column)?
        .as_blob()
        .map_err(rusqlite::Error::from)?)
}

fn missing(row: &JobRow, what: &str) -> Error {
    Error::Invariant(format!("{} has no {what} row", row.id))
}

fn schedule(row: &JobRow, columns: &Row<'_>) -> Result<ScheduleRow, Error> {
    let time = |column| -> Result<Option<WallMs>, Error> {
        Ok(columns.get::<_, Option<i64>>(column)?.map(WallMs))
    };
    Ok(ScheduleRow {
        job: row.id,
        fired_through: time(1)?.ok_or_else(|| missing(row, "schedule"))?,
        next_nominal: time(2)?,
        next_due: time(3)?,
        fires: columns.get::<_, i64>(4)? as u64,
        paused_through: time(5)?,
    })
}
