//! Backfills: few rows, each written whole by every commit that moves it, and compared with the step it was at.

use drumtower_core::change::{BackfillChange, ChangeSet, Prune};
use drumtower_core::model::{BackfillId, BackfillRow, Limits, NamespaceName};
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::exactly_one;
use super::within::{self, within};
use crate::backfill_body::{open, seal};
use crate::columns::backfill_state as number;
use crate::{BackfillFilter, Error, columns, retention};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    if changes.backfills.is_empty() {
        return Ok(());
    }
    let mut insert =
        conn.prepare_cached("INSERT INTO backfill VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    let mut update = conn.prepare_cached(
        "UPDATE backfill SET namespace = ?2, job = ?3, state = ?4, open = ?5, ended = ?6, step = ?7, body = ?8
         WHERE id = ?1 AND step = ?9",
    )?;
    for BackfillChange { expected, row } in changes.backfills.values() {
        let what = || format!("{} does not stand where it should", row.id);
        let (id, job, body) = (row.id.0 as i64, row.job.0 as i64, seal(row)?);
        let (namespace, state) = (row.namespace.as_str(), number(row.state));
        let (open, ended, step) = (row.is_open(), row.ended.map(|at| at.0), row.step as i64);
        match expected {
            None => exactly_one(
                &mut insert,
                params![id, namespace, job, state, open, ended, step, body],
                what,
            )?,
            Some(expected) => {
                let before = *expected as i64;
                let values = params![id, namespace, job, state, open, ended, step, body, before];
                exactly_one(&mut update, values, what)?;
            }
        }
    }
    Ok(())
}

pub fn one(conn: &Connection, id: BackfillId) -> Result<Option<BackfillRow>, Error> {
    let Ok(id) = i64::try_from(id.0) else {
        return Ok(None);
    };
    let body: Option<Vec<u8>> = conn
        .prepare_cached("SELECT body FROM backfill WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    body.map(|body| open(&body)).transpose()
}

pub fn page(
    conn: &Connection,
    filter: &BackfillFilter,
    before: Option<BackfillId>,
    limit: usize,
) -> Result<Vec<BackfillRow>, Error> {
    let sql = concat!(
        "SELECT body FROM backfill
               WHERE id < ?1 AND (?2 IS NULL OR namespace = ?2) AND (?3 IS NULL OR job = ?3)
                 AND (?4 >> state) & 1 AND open >= ?5 AND ",
        within!("job", "?7"),
        " ORDER BY id DESC LIMIT ?6"
    );
    let below = before.map_or(i64::MAX, |id| i64::try_from(id.0).unwrap_or(i64::MAX));
    let namespace = filter.namespace.as_ref().map(NamespaceName::as_str);
    let job = filter.job.map(|job| i64::try_from(job.0).unwrap_or(-1));
    let states = columns::backfill_states(filter);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let within = filter.within.as_ref().and_then(within::parameter);
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params![
        below,
        namespace,
        job,
        states,
        filter.open,
        limit,
        within
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        found.push(open(body)?);
    }
    Ok(found)
}

/// Those that ended first go first.
pub fn prune(conn: &Connection, prune: &Prune, seq: u64) -> Result<(), Error> {
    let limit = i64::try_from(prune.limit).unwrap_or(i64::MAX);
    let oldest = retention::oldest_backfill(prune.now).0;
    let old = "DELETE FROM backfill WHERE id IN
                 (SELECT id FROM backfill WHERE open = 0 AND ended < ?1 ORDER BY ended, id LIMIT ?2)";
    let old = conn.prepare_cached(old)?.execute([oldest, limit])?;
    if !retention::counts_letters(seq) {
        return Ok(());
    }
    let count = "SELECT namespace, count(*) FROM backfill WHERE open = 0 GROUP BY namespace";
    let drop = "DELETE FROM backfill WHERE id IN
                 (SELECT id FROM backfill WHERE open = 0 AND namespace = ?1 ORDER BY ended, id LIMIT ?2)";
    super::prune::beyond(conn, count, drop, Limits::BACKFILLS_KEPT, prune.limit - old)
}
