//! Jobs put together: the row with its definition, schedule, live runs, breaker and newest unfired range, in one statement.

use drumtower_core::model::{
    Actor, JobName, JobRecord, JobRow, NamespaceName, ScheduleRow, WallMs,
};
use tokio_postgres::Row;

use super::connect::Values;
use super::pool::Pool;
use super::row::rows_of;
use crate::columns as shared;
use crate::{Error, JobFilter, JobPage, codec};

/// Jobs that one call looks at before it answers with a short page.
const LOOKS: usize = 20_000;
/// Jobs that one statement brings.
const PAGE: usize = 1_000;

/// What [`Records`] reads, of the jobs that a subselect `found` names.
macro_rules! records {
    ($found:literal, $order:literal) => {
        concat!(
            "SELECT job.body, schedule.fired_through, schedule.next_nominal, schedule.next_due, schedule.fires,
               schedule.paused_through, job_version.body,
               (SELECT count(*) FROM run WHERE run.job = job.id AND run.scheduled),
               standing.texts, standing.counts, breaker.body,
               (SELECT unfired.body FROM unfired WHERE unfired.job = job.id ORDER BY unfired.first DESC LIMIT 1),
               waits.body,
               EXISTS (SELECT FROM follower WHERE follower.namespace = job.namespace AND follower.name = job.name)
             FROM (",
            $found,
            ") AS found(id)
             JOIN job ON job.id = found.id
             LEFT JOIN schedule ON schedule.job = job.id
             LEFT JOIN job_version ON job_version.job = job.id AND job_version.version = job.version
             LEFT JOIN breaker ON breaker.job = job.id
             LEFT JOIN waits ON waits.job = job.id
             LEFT JOIN LATERAL (SELECT array_agg(kinds.overlap) AS texts, array_agg(kinds.runs) AS counts FROM
               (SELECT run.overlap, count(*) AS runs FROM run WHERE run.job = job.id AND run.overlap IS NOT NULL
                GROUP BY run.overlap) AS kinds) AS standing ON true
             ORDER BY ",
            $order
        )
    };
}
pub(super) use records;

/// Every job of a statement made by [`records`].
pub fn all(pool: &Pool, sql: &'static str, values: Values<'_>) -> Result<Vec<JobRecord>, Error> {
    let mut records = Records::default();
    let rows = pool.rows(sql, values)?;
    rows.iter().map(|row| records.record(row)).collect()
}

/// The only job of a statement made by [`records`].
pub fn one(pool: &Pool, sql: &'static str, values: Values<'_>) -> Result<Option<JobRecord>, Error> {
    Ok(all(pool, sql, values)?.pop())
}

/// Lets neighbours hold the texts that they share once: a window holds many jobs.
#[derive(Default)]
struct Records {
    shared: Option<(NamespaceName, Actor)>,
}

impl Records {
    fn record(&mut self, row: &Row) -> Result<JobRecord, Error> {
        let job: JobRow = codec::open(row.try_get(0)?)?;
        self.complete(job, row)
    }

    fn complete(&mut self, mut job: JobRow, row: &Row) -> Result<JobRecord, Error> {
        if let Some((namespace, actor)) = &self.shared {
            keep(&mut job.namespace, namespace);
            keep(&mut job.actor, actor);
        }
        self.shared = Some((job.namespace.clone(), job.actor.clone()));
        let definition: Option<&[u8]> = row.try_get(6)?;
        let definition = definition.ok_or_else(|| missing(&job, "version"))?;
        let mut version = codec::open_version(job.id, job.version, definition)?;
        keep(&mut version.spec.namespace, &job.namespace);
        keep(&mut version.spec.name, &job.name);
        keep(&mut version.actor, &job.actor);
        let live_scheduled = count(row.try_get(7)?);
        let texts: Option<Vec<Vec<u8>>> = row.try_get(8)?;
        let counts: Option<Vec<i64>> = row.try_get(9)?;
        let texts = texts.unwrap_or_default().into_iter().map(text);
        let standing: Vec<(String, u32)> = texts
            .zip(counts.unwrap_or_default().into_iter().map(count))
            .collect();
        let breaker: Option<&[u8]> = row.try_get(10)?;
        let unfired: Option<&[u8]> = row.try_get(11)?;
        let waits: Option<&[u8]> = row.try_get(12)?;
        Ok(JobRecord {
            waits: waits.map(codec::open).transpose()?,
            followed: row.try_get(13)?,
            schedule: schedule(&job, row)?,
            version,
            live_scheduled,
            tallies: shared::tallies(live_scheduled, &standing)?,
            breaker: breaker.map(codec::open).transpose()?,
            last_unfired: unfired.map(codec::open).transpose()?,
            row: job,
        })
    }
}

fn count(runs: i64) -> u32 {
    u32::try_from(runs).unwrap_or(u32::MAX)
}

/// What is no text is no standing either, and is refused as such.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn keep<T: Clone + PartialEq>(mine: &mut T, other: &T) {
    if mine == other {
        mine.clone_from(other);
    }
}

fn missing(job: &JobRow, what: &str) -> Error {
    Error::Invariant(format!("{} has no {what} row", job.id))
}

fn schedule(job: &JobRow, row: &Row) -> Result<ScheduleRow, Error> {
    let time = |column| -> Result<Option<WallMs>, Error> {
        Ok(row.try_get::<_, Option<i64>>(column)?.map(WallMs))
    };
    Ok(ScheduleRow {
        job: job.id,
        fired_through: time(1)?.ok_or_else(|| missing(job, "schedule"))?,
        next_nominal: time(2)?,
        next_due: time(3)?,
        fires: row.try_get::<_, i64>(4)? as u64,
        paused_through: time(5)?,
    })
}

const LIST: &str = records!(
    "SELECT id FROM job WHERE NOT deleted AND (namespace, name) >= ($1, $2) AND NOT (namespace = $3 AND name = $4)
     ORDER BY namespace, name LIMIT $5",
    "job.namespace, job.name"
);

/// Jobs by (namespace, name) after the given place.
pub fn list(
    pool: &Pool,
    filter: &JobFilter,
    after: Option<&(NamespaceName, JobName)>,
    limit: usize,
) -> Result<JobPage, Error> {
    let first = shared::first_job(filter);
    let mut after: (String, String) = after.map_or_else(Default::default, |(namespace, name)| {
        (namespace.as_str().to_owned(), name.as_str().to_owned())
    });
    let (mut records, mut page, mut looked) = (Records::default(), JobPage::default(), 0);
    loop {
        let from = (first.0.to_owned(), first.1.clone()).max(after.clone());
        let most = PAGE.min(LOOKS - looked).min(limit.max(1).saturating_mul(2));
        let rows = pool.rows(
            LIST,
            &[&from.0, &from.1, &after.0, &after.1, &rows_of(most)],
        )?;
        for row in &rows {
            let job: JobRow = codec::open(row.try_get(0)?)?;
            if shared::is_past(filter, &job) {
                return Ok(page);
            }
            looked += 1;
            let key = (job.namespace.clone(), job.name.clone());
            after = (key.0.as_str().to_owned(), key.1.as_str().to_owned());
            if filter.takes_row(&job) && takes_labels(filter, &job, row)? {
                page.jobs.push(records.complete(job, row)?);
            }
            if page.jobs.len() >= limit || looked >= LOOKS {
                page.next = Some(key);
                return Ok(page);
            }
        }
        if rows.len() < most {
            return Ok(page);
        }
    }
}

fn takes_labels(filter: &JobFilter, job: &JobRow, row: &Row) -> Result<bool, Error> {
    if !filter.asks_labels(job) {
        return Ok(true);
    }
    let definition: Option<&[u8]> = row.try_get(6)?;
    let definition = definition.ok_or_else(|| missing(job, "version"))?;
    Ok(filter.takes_labels(job, &codec::open_labels(definition)?))
}
