//! Listings of runs, newest id first.
//!
//! A page is put together of chunks: each is the next few runs below the last one, of the active table and of the history,
//! merged by the database. A job's runs are looked for in the parts of the index by job, newest first, each some minutes of
//! creation, and in ever more of them at once while nothing is found.

use std::collections::BTreeMap;

use drumtower_core::model::{JobId, Run, RunId, RunState};
use tokio_postgres::Row;

use super::history::verdicts;
use super::pool::Pool;
use super::row::{self, key, rows_of};
use super::schema::BUCKET_BITS;
use crate::{Error, RunFilter, RunPage};

/// Rows and parts of the index that one call looks at before it answers with a short page.
const LOOKS: usize = 20_000;
/// Rows that one statement brings at most.
const CHUNK: usize = 1_000;
/// Parts of the index that one statement looks into at most.
const PARTS: i64 = 1_024;

/// The columns of a run, empty where its verdict alone says that it is not wanted.
macro_rules! finished {
    ($table:literal) => {
        concat!(
            "(SELECT id, job, CASE WHEN verdict = ANY($4) THEN body END AS body, CASE WHEN verdict = ANY($4) THEN params END AS params,
                CASE WHEN verdict = ANY($4) THEN result END AS result
              FROM ", $table, " WHERE cardinality($4::smallint[]) > 0 AND id < $1 AND id >= $2 ORDER BY id DESC LIMIT $3)"
        )
    };
}

const ALL: &str = concat!(
    "SELECT id, job, body, params, result FROM (",
    "(SELECT id, job, body, params, result FROM run WHERE $5 AND id < $1 AND id >= $2 ORDER BY id DESC LIMIT $3) UNION ALL ",
    finished!("history_1d"),
    " UNION ALL ",
    finished!("history_7d"),
    " UNION ALL ",
    finished!("history_30d"),
    " UNION ALL ",
    finished!("history_keep"),
    ") AS listed ORDER BY id DESC LIMIT $3"
);

macro_rules! failed {
    ($table:literal) => {
        concat!(
            "(SELECT id, job, body, params, result FROM ", $table,
            " WHERE verdict <> 0 AND verdict = ANY($5) AND job = $4 AND id < $1 AND id >= $2 ORDER BY id DESC LIMIT $3)"
        )
    };
}

const FAILED: &str = concat!(
    "SELECT id, job, body, params, result FROM (",
    failed!("history_1d"),
    " UNION ALL ",
    failed!("history_7d"),
    " UNION ALL ",
    failed!("history_30d"),
    " UNION ALL ",
    failed!("history_keep"),
    ") AS listed ORDER BY id DESC LIMIT $3"
);

macro_rules! of_job {
    ($table:literal) => {
        concat!(
            "SELECT found.* FROM unnest($6::bigint[]) AS parts(part) CROSS JOIN LATERAL
               (SELECT id, job, body, params, result FROM ", $table, "
                WHERE (id >> 40) = part AND job = $4 AND id >= (part << 40) AND id <= (part << 40) + 1099511627775
                  AND id < $1 AND id >= $2 AND verdict = ANY($5)
                ORDER BY ((id >> 33)::integer) DESC, id DESC LIMIT $3) AS found"
        )
    };
}

const OF_JOB: &str = concat!(
    "SELECT id, job, body, params, result FROM (",
    of_job!("history_1d"),
    " UNION ALL ",
    of_job!("history_7d"),
    " UNION ALL ",
    of_job!("history_30d"),
    " UNION ALL ",
    of_job!("history_keep"),
    ") AS listed ORDER BY id DESC LIMIT $3"
);

/// Active runs of a job among the next few below an id; the last row that was looked at comes in any case.
const ACTIVE_OF_JOB: &str = "SELECT id, job, CASE WHEN job = $3 THEN body END, CASE WHEN job = $3 THEN params END, CASE WHEN job = $3 THEN result END
     FROM (SELECT id, job, body, params, result, row_number() OVER (ORDER BY id DESC) AS place, count(*) OVER () AS last
           FROM (SELECT id, job, body, params, result FROM run WHERE id < $1 AND id >= $2 ORDER BY id DESC LIMIT 20000) AS below) AS placed
     WHERE job = $3 OR place = last ORDER BY id DESC";

const SPAN: &str = "SELECT min(least), max(greatest) FROM (
     SELECT min(id) AS least, max(id) AS greatest FROM history_1d UNION ALL SELECT min(id), max(id) FROM history_7d
     UNION ALL SELECT min(id), max(id) FROM history_30d UNION ALL SELECT min(id), max(id) FROM history_keep) AS spans";

/// One page of runs below `below`.
pub fn page(pool: &Pool, filter: &RunFilter, below: u64, limit: usize) -> Result<RunPage, Error> {
    match filter.job {
        Some(job) => of_job(pool, filter, job, below, limit),
        None => of_all(pool, filter, below, limit),
    }
}

/// Whether a filter asks for runs that have not ended.
fn wants_active(filter: &RunFilter) -> bool {
    let mut states = RunState::ALL.iter();
    states.any(|state| !state.is_terminal() && filter.takes_state(*state))
}

fn since(filter: &RunFilter) -> i64 {
    filter.since.map_or(0, |since| key(since.0))
}

/// A run, unless its verdict alone says that the filter does not take it.
fn wanted(filter: &RunFilter, row: &Row) -> Result<Option<Run>, Error> {
    if row.try_get::<_, Option<&[u8]>>(2)?.is_none() {
        return Ok(None);
    }
    Ok(Some(row::run(row)?).filter(|run| filter.takes(run)))
}

fn id_of(row: &Row) -> Result<i64, Error> {
    Ok(row.try_get(0)?)
}

fn of_all(pool: &Pool, filter: &RunFilter, below: u64, limit: usize) -> Result<RunPage, Error> {
    let (since, active) = (since(filter), wants_active(filter));
    let verdicts = verdicts(|state| filter.takes_state(state));
    let (mut page, mut below, mut looked) = (RunPage::default(), key(below), 0);
    loop {
        let most = CHUNK.min(limit.saturating_mul(2).saturating_add(1));
        let rows = pool.rows(ALL, &[&below, &since, &rows_of(most), &verdicts, &active])?;
        for row in &rows {
            below = id_of(row)?;
            looked += 1;
            page.runs.extend(wanted(filter, row)?);
            if page.runs.len() >= limit || looked >= LOOKS {
                page.next = next(below, since);
                return Ok(page);
            }
        }
        if rows.len() < most {
            return Ok(page);
        }
    }
}

/// Where the next page begins, unless nothing can be below.
fn next(below: i64, since: i64) -> Option<RunId> {
    (below > since).then_some(RunId(below as u64))
}

/// Runs of one job: the active ones are looked up first, as far down as one call may, then the history down to there.
fn of_job(
    pool: &Pool,
    filter: &RunFilter,
    job: JobId,
    below: u64,
    limit: usize,
) -> Result<RunPage, Error> {
    let Ok(job) = i64::try_from(job.0) else {
        return Ok(RunPage::default());
    };
    let (mut since, below) = (since(filter), key(below));
    let mut found = BTreeMap::new();
    let mut more = false;
    if wants_active(filter) {
        let rows = pool.rows(ACTIVE_OF_JOB, &[&below, &since, &job])?;
        for row in &rows {
            if let Some(run) = wanted(filter, row)? {
                found.insert(run.id, run);
            }
        }
        // Below the last row that was looked at there may be others.
        if let Some(last) = rows.last() {
            let last = id_of(last)?;
            let next = "SELECT id FROM run WHERE id < $1 AND id >= $2 ORDER BY id DESC LIMIT 1";
            if !pool.rows(next, &[&last, &since])?.is_empty() {
                (since, more) = (last, true);
            }
        }
    }
    let finished = Finished {
        pool,
        filter,
        job,
        since,
        limit,
    };
    let end = finished.collect(below, &mut found)?;
    let mut runs: Vec<Run> = found.into_values().rev().collect();
    // What is below the place where the search in the history ended belongs to the next page.
    let floor = end.unwrap_or(since);
    runs.retain(|run| key(run.id.0) >= floor);
    more |= end.is_some() || runs.len() > limit;
    let full = runs.len() >= limit;
    runs.truncate(limit);
    let place = match runs.last() {
        Some(last) if full => key(last.id.0),
        _ => floor,
    };
    Ok(RunPage {
        runs,
        next: next(place, self::since(filter)).filter(|_| more || full),
    })
}

struct Finished<'a> {
    pool: &'a Pool,
    filter: &'a RunFilter,
    job: i64,
    since: i64,
    limit: usize,
}

impl Finished<'_> {
    /// Adds finished runs below an id until there are enough. Says down to which id it looked, if not to the end.
    fn collect(&self, below: i64, found: &mut BTreeMap<RunId, Run>) -> Result<Option<i64>, Error> {
        let verdicts = verdicts(|state| self.filter.takes_state(state));
        if verdicts.is_empty() {
            return Ok(None);
        }
        match verdicts.contains(&0) {
            true => self.by_parts(below, &verdicts, found),
            false => self.failed(below, &verdicts, found),
        }
    }

    fn take(&self, rows: &[Row], found: &mut BTreeMap<RunId, Run>) -> Result<(), Error> {
        for row in rows {
            if let Some(run) = wanted(self.filter, row)? {
                found.insert(run.id, run);
            }
        }
        Ok(())
    }

    fn failed(
        &self,
        mut below: i64,
        verdicts: &Vec<i16>,
        found: &mut BTreeMap<RunId, Run>,
    ) -> Result<Option<i64>, Error> {
        let most = CHUNK.min(self.limit.saturating_add(1));
        let mut looked = 0;
        let already = found.len();
        loop {
            let values = (rows_of(most), self.since);
            let rows = self
                .pool
                .rows(FAILED, &[&below, &values.1, &values.0, &self.job, verdicts])?;
            self.take(&rows, found)?;
            looked += rows.len();
            let Some(last) = rows.last().filter(|_| rows.len() >= most) else {
                return Ok(None);
            };
            below = id_of(last)?;
            if found.len() - already >= self.limit || looked >= LOOKS {
                return Ok(Some(below));
            }
        }
    }

    fn by_parts(
        &self,
        below: i64,
        verdicts: &Vec<i16>,
        found: &mut BTreeMap<RunId, Run>,
    ) -> Result<Option<i64>, Error> {
        let span = self.pool.rows(SPAN, &[])?;
        let (least, greatest): (Option<i64>, Option<i64>) = match span.first() {
            Some(row) => (row.try_get(0)?, row.try_get(1)?),
            None => (None, None),
        };
        let (Some(least), Some(greatest)) = (least, greatest) else {
            return Ok(None);
        };
        let last = least.max(self.since) >> BUCKET_BITS;
        let mut part = greatest.min(below.saturating_sub(1)) >> BUCKET_BITS;
        let (mut at_once, mut looked, mut below) = (1, 0, below);
        let already = found.len();
        let most = CHUNK.min(self.limit.saturating_add(1));
        while part >= last {
            let parts: Vec<i64> = (last.max(part - at_once + 1)..=part).collect();
            let floor = parts.first().copied().unwrap_or(part) << BUCKET_BITS;
            let values: (i64, i64) = (rows_of(most), self.since);
            let rows = self.pool.rows(
                OF_JOB,
                &[&below, &values.1, &values.0, &self.job, verdicts, &parts],
            )?;
            self.take(&rows, found)?;
            looked += rows.len() + parts.len();
            let enough = found.len() - already >= self.limit;
            match rows.last().filter(|_| rows.len() >= most) {
                // The same parts again, below the last of them.
                Some(row) => {
                    below = id_of(row)?;
                    part = below.saturating_sub(1) >> BUCKET_BITS;
                    if enough || looked >= LOOKS {
                        return Ok(Some(below));
                    }
                }
                None => {
                    part = (floor >> BUCKET_BITS) - 1;
                    below = below.min(floor);
                    at_once = (at_once * 4).min(PARTS);
                    if (enough || looked >= LOOKS) && part >= last {
                        return Ok(Some(floor));
                    }
                }
            }
        }
        Ok(None)
    }
}
