//! Runs that are under way for the overlap of their jobs, by the column that [`columns`] describes.

use drumtower_core::model::{JobId, Run, RunId};
use rusqlite::{Connection, params};

use super::run_rows::Payloads;
use crate::{Error, columns, packed};

/// Runs of a job that count under a key and do not wait for their turn, in order of id.
pub fn live(
    conn: &Connection,
    job: JobId,
    key: Option<&str>,
    limit: i64,
) -> Result<Vec<Run>, Error> {
    let Ok(id) = i64::try_from(job.0) else {
        return Ok(Vec::new());
    };
    let [scheduled, other] = columns::live_texts(key);
    // Those whose column is empty are the usual ones of the schedule, which have no key.
    let usual = key.is_none();
    let sql = "SELECT id, body FROM run WHERE job = ?1 AND overlap IN (?2, ?3)
               UNION ALL
               SELECT id, body FROM run WHERE ?4 AND job = ?1 AND scheduled = 1 AND overlap IS NULL
               ORDER BY id LIMIT ?5";
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params![id, scheduled, other, usual, limit])?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let id = RunId(row.get::<_, i64>(0)? as u64);
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        runs.push(packed::open(id, job, body, &Payloads(conn))?);
    }
    Ok(runs)
}
