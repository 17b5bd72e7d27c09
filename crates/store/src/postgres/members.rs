//! Who shares the store: sessions, and what they own.

use drumtower_core::model::{SegmentId, SessionId, SessionRow, WallMs};

use super::pool::Pool;
use super::writer::session_row;
use crate::{Error, Owner};

pub fn owners(pool: &Pool) -> Result<Vec<Owner>, Error> {
    let sql = "SELECT owner, min(id), count(*) FROM segment GROUP BY owner ORDER BY owner";
    let rows = pool.rows(sql, &[])?;
    let owners = rows.iter().map(|row| {
        Ok(Owner {
            session: SessionId(row.try_get::<_, i64>(0)? as u64),
            first: SegmentId(row.try_get::<_, i16>(1)? as u16),
            segments: row.try_get::<_, i64>(2)? as usize,
        })
    });
    owners.collect()
}

pub fn tenures(pool: &Pool, since: WallMs) -> Result<Vec<SessionRow>, Error> {
    let sql = "SELECT id, server, address, version, seq, expires, revoked, home, took FROM session
               WHERE took IS NOT NULL AND expires >= $1 ORDER BY id";
    pool.rows(sql, &[&since.0])?
        .iter()
        .map(session_row)
        .collect()
}

pub fn live(pool: &Pool) -> Result<(WallMs, Vec<SessionRow>), Error> {
    let sql =
        "SELECT session.id, server, address, version, seq, expires, revoked, home, took, now.ms
               FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now
               LEFT JOIN session ON NOT session.revoked ORDER BY session.id";
    let (mut clock, mut live) = (WallMs(0), Vec::new());
    for row in &pool.rows(sql, &[])? {
        clock = WallMs(row.try_get(9)?);
        if row.try_get::<_, Option<i64>>(0)?.is_some() {
            live.push(session_row(row)?);
        }
    }
    Ok((clock, live))
}
