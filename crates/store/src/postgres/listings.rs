//! Listings in pages: dead letters, backfills, the audit log, and runs that must start by a time.

use drumtower_core::model::{
    AuditEntry, AuditId, BackfillId, BackfillRow, NamespaceName, RunId, SegmentSet, WallMs,
};
use tokio_postgres::Row;

use super::connect::Values;
use super::pool::Pool;
use super::row::{self, below, body, key, rows_of};
use crate::read::{AUDIT_SCAN, LETTER_SCAN};
use crate::{
    AuditFilter, AuditPage, BackfillFilter, Error, LetterFilter, RunPage, StartPage, backfill_body,
    columns,
};

/// Rows that a listing which filters by itself brings with one statement.
const CHUNK: usize = 1_000;

const DAY_MS: i64 = 86_400_000;

pub fn parked_starts(
    pool: &Pool,
    within: &SegmentSet,
    by: WallMs,
    after: Option<(WallMs, RunId)>,
    limit: usize,
) -> Result<StartPage, Error> {
    // One more than the page, which may be of a later time: it says when the next must start.
    let sql = "SELECT id, job, body, params, result, start_by FROM run
               WHERE start_by IS NOT NULL AND (start_by, id) > ($1, $2)
                 AND ($4::smallint[] IS NULL OR segment = ANY($4)) ORDER BY start_by, id LIMIT $3";
    let (at, id) = after.map_or((i64::MIN, -1), |(by, run)| (by.0, key(run.0)));
    let one_more = rows_of(limit.saturating_add(1));
    let rows = pool.rows(sql, &[&at, &id, &one_more, &row::within(within)])?;
    let mut page = StartPage::default();
    for row in &rows {
        let start_by: i64 = row.try_get(5)?;
        if start_by > by.0 || page.runs.len() >= limit {
            page.next = Some(WallMs(start_by));
            break;
        }
        page.runs.push(row::run(row)?);
    }
    Ok(page)
}

pub fn letters(
    pool: &Pool,
    filter: &LetterFilter,
    before: Option<RunId>,
    limit: usize,
) -> Result<RunPage, Error> {
    let sql = "SELECT run, job, body, params, result FROM dead_letter WHERE run < $1
                 AND ($3::text IS NULL OR namespace = $3) AND ($4::bigint IS NULL OR job = $4)
                 AND ($5::text IS NULL OR reason = $5) AND died >= $6 AND died < $7 AND run >= coalesce(
                   (SELECT run FROM dead_letter WHERE run < $1 ORDER BY run DESC OFFSET $8 LIMIT 1), 0)
               ORDER BY run DESC LIMIT $2";
    let floor = "SELECT run FROM dead_letter WHERE run < $1 ORDER BY run DESC OFFSET $2 LIMIT 1";
    let below = below(before.map(|id| id.0));
    let namespace = filter.namespace.as_ref().map(NamespaceName::as_str);
    let job = filter.job.map(|job| key(job.0));
    let reason = filter.reason.map(|reason| reason.as_str());
    let since = filter.since.map_or(i64::MIN, |at| at.0);
    let until = filter.until.map_or(i64::MAX, |at| at.0);
    let (most, scan) = (rows_of(limit.saturating_add(1)), rows_of(LETTER_SCAN - 1));
    let values: Values<'_> = &[
        &below, &most, &namespace, &job, &reason, &since, &until, &scan,
    ];
    let rows = pool.rows(sql, values)?;
    let runs = rows.iter().map(row::run);
    let mut page = RunPage {
        runs: runs.collect::<Result<_, _>>()?,
        next: None,
    };
    if page.runs.len() > limit {
        page.runs.truncate(limit);
        let last = page.runs.last().map(|run| run.id);
        page.next = last.or(before).or(Some(RunId(i64::MAX as u64)));
        return Ok(page);
    }
    let looked = pool.rows(floor, &[&below, &scan])?;
    let looked = looked.first().map(|row| row.try_get::<_, i64>(0));
    page.next = looked.transpose()?.map(|id| RunId(id as u64));
    Ok(page)
}

pub fn backfill_row(row: &Row) -> Result<BackfillRow, Error> {
    backfill_body::open(row.try_get(0)?)
}

pub fn backfills(
    pool: &Pool,
    filter: &BackfillFilter,
    before: Option<BackfillId>,
    limit: usize,
) -> Result<Vec<BackfillRow>, Error> {
    let sql = "SELECT body FROM backfill
               WHERE id < $1 AND ($2::text IS NULL OR namespace = $2) AND ($3::bigint IS NULL OR job = $3)
                 AND ($4::integer >> state::integer) & 1 = 1 AND (open OR NOT $5) AND ($7::smallint[] IS NULL OR segment = ANY($7))
               ORDER BY id DESC LIMIT $6";
    let namespace = filter.namespace.as_ref().map(NamespaceName::as_str);
    let job = filter.job.map(|job| key(job.0));
    let states = columns::backfill_states(filter) as i32;
    let within = filter.within.as_ref().and_then(row::within);
    let (below, limit) = (below(before.map(|id| id.0)), rows_of(limit));
    let values: Values<'_> = &[
        &below,
        &namespace,
        &job,
        &states,
        &filter.open,
        &limit,
        &within,
    ];
    pool.rows(sql, values)?.iter().map(backfill_row).collect()
}

pub fn audit(
    pool: &Pool,
    filter: &AuditFilter,
    before: Option<AuditId>,
    limit: usize,
) -> Result<AuditPage, Error> {
    let all = "SELECT id, body FROM audit_log WHERE id < $1 ORDER BY id DESC LIMIT $2";
    let named =
        "SELECT id, body FROM audit_log WHERE id < $1 AND name = $3 ORDER BY id DESC LIMIT $2";
    let name = filter.name.as_ref().map(String::as_bytes);
    let (mut page, mut seen) = (AuditPage::default(), 0);
    let mut below = below(before.map(|id| id.0));
    loop {
        let most = CHUNK.min(limit.saturating_mul(2).saturating_add(1));
        let rows = match &name {
            Some(name) => pool.rows(named, &[&below, &rows_of(most), name])?,
            None => pool.rows(all, &[&below, &rows_of(most)])?,
        };
        for row in &rows {
            if page.entries.len() >= limit || seen >= AUDIT_SCAN {
                page.next = Some(AuditId(below as u64));
                return Ok(page);
            }
            seen += 1;
            below = row.try_get(0)?;
            let entry: AuditEntry = body(row, 1)?;
            // Ids grow with time, but for what a step of the clock may do.
            let is_old = |since| entry.at.since(since) < -DAY_MS;
            if filter.since.is_some_and(is_old) {
                return Ok(page);
            }
            if filter.takes(&entry) {
                page.entries.push(entry);
            }
        }
        if rows.len() < most {
            return Ok(page);
        }
    }
}
