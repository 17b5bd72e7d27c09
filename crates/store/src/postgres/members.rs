//! Who shares the store: sessions, and what they own.

use drumtower_core::model::{SegmentId, SegmentSet, SessionRow, WallMs};

use super::pool::Pool;
use super::writer::session_row;
use crate::Error;

pub fn tenures(pool: &Pool, since: WallMs) -> Result<Vec<SessionRow>, Error> {
    let sql =
        "SELECT id, server, address, version, seq, expires, revoked, home, took, lease FROM session
               WHERE took IS NOT NULL AND expires >= $1 ORDER BY id";
    pool.rows(sql, &[&since.0])?
        .iter()
        .map(session_row)
        .collect()
}

pub fn longest_lease(pool: &Pool, since: WallMs) -> Result<u64, Error> {
    let sql = "SELECT coalesce(max(lease), 0) FROM session WHERE expires >= $1";
    let rows = pool.rows(sql, &[&since.0])?;
    let longest = rows.first().map(|row| row.try_get::<_, i64>(0));
    Ok(longest.transpose()?.unwrap_or(0) as u64)
}

pub fn live(pool: &Pool) -> Result<(WallMs, Vec<SessionRow>), Error> {
    let sql =
        "SELECT session.id, server, address, version, seq, expires, revoked, home, took, lease, now.ms
               FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now
               LEFT JOIN session ON NOT session.revoked ORDER BY session.id";
    let (mut clock, mut live) = (WallMs(0), Vec::new());
    for row in &pool.rows(sql, &[])? {
        clock = WallMs(row.try_get(10)?);
        if row.try_get::<_, Option<i64>>(0)?.is_some() {
            live.push(session_row(row)?);
        }
    }
    Ok((clock, live))
}

pub fn ties(pool: &Pool) -> Result<SegmentSet, Error> {
    let rows = pool.rows("SELECT segment FROM tie", &[])?;
    let tied = rows.iter().map(|row| {
        let segment: i16 = row.try_get(0)?;
        Ok(SegmentId(segment as u16))
    });
    tied.collect()
}
