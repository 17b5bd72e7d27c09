//! Finished runs: one table for each retention class, keyed by finish number.

use drumtower_core::model::{JobId, Run, RunId};
use rusqlite::{Connection, params};

use super::buckets::Finished;
use crate::Error;
use crate::columns::verdict_of;
pub use crate::columns::{CLASSES, class_of};
use crate::packed::{self, Aside};
use crate::tally::Sample;

/// The statements of one class, so that SQL is never put together at run time.
pub struct Sql {
    pub insert: &'static str,
    pub select: &'static str,
    pub scan: &'static str,
    pub left: &'static str,
    pub delete: &'static str,
    pub least: &'static str,
}

macro_rules! sql {
    ($table:literal) => {
        Sql {
            insert: concat!("INSERT INTO ", $table, " VALUES(?1, ?2, ?3, ?4, ?5)"),
            select: concat!("SELECT id, job, body FROM ", $table, " WHERE fin = ?1"),
            scan: concat!(
                "SELECT fin, id, job, verdict, body FROM ",
                $table,
                " WHERE fin >= ?1 ORDER BY fin"
            ),
            left: concat!(
                "SELECT fin, id, job, verdict, body FROM ",
                $table,
                " ORDER BY fin LIMIT ?1"
            ),
            delete: concat!("DELETE FROM ", $table, " WHERE fin <= ?1"),
            least: concat!("SELECT min(fin) FROM ", $table),
        }
    };
}

pub const SQL: [Sql; CLASSES] = [
    sql!("history_1d"),
    sql!("history_7d"),
    sql!("history_30d"),
    sql!("history_keep"),
];

/// Adds a finished run under `fin`.
pub fn insert(
    conn: &Connection,
    class: usize,
    fin: u64,
    run: &Run,
    body: &[u8],
) -> Result<(), Error> {
    let verdict = verdict_of(run.state);
    let mut insert = conn.prepare_cached(SQL[class].insert)?;
    insert.execute(params![
        fin as i64,
        run.id.0 as i64,
        run.job.0 as i64,
        verdict,
        body
    ])?;
    if verdict != 0 {
        let mut insert = conn.prepare_cached("INSERT INTO failed VALUES(?1, ?2)")?;
        insert.execute(params![run.job.0 as i64, run.id.0 as i64])?;
    }
    Ok(())
}

/// The run under `fin`, unless retention took it.
pub fn get(
    conn: &Connection,
    class: usize,
    fin: u64,
    payloads: &impl Aside,
) -> Result<Option<Run>, Error> {
    let mut select = conn.prepare_cached(SQL[class].select)?;
    let mut rows = select.query([fin as i64])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (id, job) = (
        RunId(row.get::<_, i64>(0)? as u64),
        JobId(row.get::<_, i64>(1)? as u64),
    );
    let body = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
    packed::open(id, job, body, payloads).map(Some)
}

pub fn exists(conn: &Connection, class: usize, fin: u64) -> Result<bool, Error> {
    Ok(conn
        .prepare_cached(SQL[class].select)?
        .exists([fin as i64])?)
}

/// Hands each run from `from` on to `take`, without its packed part.
pub fn scan(
    conn: &Connection,
    class: usize,
    from: u64,
    mut take: impl FnMut(Finished),
) -> Result<(), Error> {
    let mut select = conn.prepare(SQL[class].scan)?;
    let mut rows = select.query([from as i64])?;
    while let Some(row) = rows.next()? {
        take(Finished {
            fin: row.get::<_, i64>(0)? as u64,
            id: row.get::<_, i64>(1)? as u64,
            job: row.get::<_, i64>(2)? as u64,
            verdict: row.get(3)?,
        });
    }
    Ok(())
}

/// Hands what is counted of each run from `from` on to `take`, with its finish number.
pub fn scan_samples(
    conn: &Connection,
    class: usize,
    from: u64,
    mut take: impl FnMut(u64, Sample),
) -> Result<(), Error> {
    let mut select = conn.prepare(SQL[class].scan)?;
    let mut rows = select.query([from as i64])?;
    while let Some(row) = rows.next()? {
        let (id, job) = (
            RunId(row.get::<_, i64>(1)? as u64),
            JobId(row.get::<_, i64>(2)? as u64),
        );
        let body = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
        take(
            row.get::<_, i64>(0)? as u64,
            Sample::of(&packed::open(id, job, body, &packed::NoPayload)?),
        );
    }
    Ok(())
}
