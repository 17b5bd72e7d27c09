//! One small step of retention inside a commit, at the left edge of each table.

use std::collections::BTreeMap;

use drumtower_core::change::Prune;
use drumtower_core::model::{Retention, RunId};
use rusqlite::{Connection, params};

use super::backfill_rows;
use super::buckets::Class;
use super::checkpoint_rows;
use super::derived::{Batch, Derived};
use super::history::{self, SQL};
use super::keys;
use super::letter_rows;
use super::record_rows;
use crate::packed::{self, Gone};
use crate::{Error, retention};

pub fn step(
    conn: &Connection,
    prune: &Prune,
    seq: u64,
    derived: &Derived,
    batch: &mut Batch,
) -> Result<(), Error> {
    let mut left = prune.limit;
    let mut counts = Counts::new();
    for kept in retention::turn(seq) {
        let class = &derived.classes[history::class_of(kept)];
        let going = runs(conn, prune, class, kept, left)?;
        left -= going.len();
        for run in &going {
            let verdict = usize::from(run.verdict.min(2));
            counts.entry(run.gone.namespace.clone()).or_insert([0; 3])[verdict] += 1;
            batch.roll_up_everything |= derived.rollups.needs(class.index, run.fin);
        }
        let emptied = blobs(conn, class, prune.limit)?;
        batch
            .emptied
            .extend(emptied.map(|number| (class.index, number)));
    }
    count(conn, &counts)?;
    let limit = i64::try_from(prune.limit).unwrap_or(i64::MAX);
    batch.emptied_keys = keys::prune(
        conn,
        &derived.keys,
        retention::oldest_hour(prune.now),
        prune.limit,
    )?;
    let sql = "DELETE FROM unfired WHERE (job, first) IN
                 (SELECT job, first FROM unfired WHERE last < ?1 ORDER BY last, job, first LIMIT ?2)";
    conn.prepare_cached(sql)?
        .execute([retention::oldest_unfired(prune.now).0, limit])?;
    record_rows::prune_audit(conn, retention::first_audit(prune.now), limit)?;
    letter_rows::prune(conn, prune, seq)?;
    backfill_rows::prune(conn, prune, seq)?;
    conn.prepare_cached("DELETE FROM session WHERE revoked = 1 AND expires < ?1")?
        .execute([retention::oldest_session(prune.now).0])?;
    let oldest = retention::oldest_minute(prune.now);
    batch.roll_up_everything |= derived.rollups.holds_before(oldest);
    batch.roll_up_everything |= batch.samples.iter().any(|sample| sample.key.0 < oldest);
    Ok(())
}

/// Roll-ups go after those of this commit are written.
pub fn rollups(conn: &Connection, prune: &Prune) -> Result<(), Error> {
    let limit = i64::try_from(prune.limit).unwrap_or(i64::MAX);
    let sql = "DELETE FROM rollup WHERE (minute, job) IN
                 (SELECT minute, job FROM rollup WHERE minute < ?1 ORDER BY minute, job LIMIT ?2)";
    conn.prepare_cached(sql)?
        .execute([retention::oldest_minute(prune.now), limit])?;
    Ok(())
}

/// Completed, failed, cancelled by namespace.
type Counts = BTreeMap<String, [u64; 3]>;

struct Going {
    fin: u64,
    id: i64,
    job: i64,
    verdict: u8,
    gone: Gone,
}

/// Removes what namespaces have beyond `most`, oldest first, `limit` in all. `count` counts the rows of each, `drop` removes the
/// first so many of one.
pub fn beyond(
    conn: &Connection,
    count: &str,
    drop: &str,
    most: usize,
    limit: usize,
) -> Result<(), Error> {
    let mut select = conn.prepare_cached(count)?;
    let counts = select.query_map([], |row| {
        let count: i64 = row.get(1)?;
        Ok((
            row.get::<_, String>(0)?,
            usize::try_from(count).unwrap_or(0),
        ))
    })?;
    let counts = counts.collect::<Result<Vec<_>, _>>()?;
    for (namespace, excess) in retention::beyond(counts, most, limit) {
        let excess = i64::try_from(excess).unwrap_or(i64::MAX);
        conn.prepare_cached(drop)?
            .execute(params![namespace, excess])?;
    }
    Ok(())
}

/// Removes the earliest finished runs of a class that are old enough.
fn runs(
    conn: &Connection,
    prune: &Prune,
    class: &Class,
    kept: Retention,
    limit: usize,
) -> Result<Vec<Going>, Error> {
    let mut select = conn.prepare_cached(SQL[class.index].left)?;
    let mut rows = select.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut going = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get::<_, i64>(1)?;
        let body = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
        let gone = packed::open_gone(RunId(id as u64), body)?;
        if !retention::may_go(kept, gone.created, prune.now) {
            break;
        }
        going.push(Going {
            fin: row.get::<_, i64>(0)? as u64,
            id,
            job: row.get(2)?,
            verdict: row.get(3)?,
            gone,
        });
    }
    drop(rows);
    if let Some(last) = going.last() {
        conn.prepare_cached(SQL[class.index].delete)?
            .execute([last.fin as i64])?;
    }
    going.iter().try_for_each(|run| beside(conn, run))?;
    Ok(going)
}

/// Removes what other tables hold of a run.
fn beside(conn: &Connection, run: &Going) -> Result<(), Error> {
    if run.gone.params_aside {
        conn.prepare_cached("DELETE FROM payload_params WHERE run = ?1")?
            .execute([run.id])?;
    }
    if run.gone.result_aside {
        conn.prepare_cached("DELETE FROM payload_result WHERE run = ?1")?
            .execute([run.id])?;
    }
    if run.verdict != 0 {
        checkpoint_rows::remove(conn, run.id)?;
        conn.prepare_cached("DELETE FROM failed WHERE job = ?1 AND id = ?2")?
            .execute([run.job, run.id])?;
    }
    Ok(())
}

fn count(conn: &Connection, counts: &Counts) -> Result<(), Error> {
    let mut add = conn.prepare_cached(
        "INSERT INTO pruned VALUES(?1, ?2, ?3, ?4) ON CONFLICT(namespace) DO UPDATE SET
           completed = completed + excluded.completed, failed = failed + excluded.failed,
           cancelled = cancelled + excluded.cancelled",
    )?;
    for (namespace, [completed, failed, cancelled]) in counts {
        add.execute(params![
            namespace,
            *completed as i64,
            *failed as i64,
            *cancelled as i64
        ])?;
    }
    Ok(())
}

/// Removes blobs of the class's oldest bucket if none of its rows is left. True when it has no more.
fn blobs(conn: &Connection, class: &Class, limit: usize) -> Result<Option<u64>, Error> {
    let Some(oldest) = class.written.first().map(|span| span.bucket.number) else {
        return Ok(None);
    };
    let left: Option<i64> = conn
        .prepare_cached(SQL[class.index].least)?
        .query_row([], |row| row.get(0))?;
    let edge = class.bucket_of(left.map_or(class.next_fin, |left| left as u64));
    let being_written = class.held.front().is_some_and(|held| held.number <= oldest);
    if oldest >= edge || being_written {
        return Ok(None);
    }
    let key = params![
        class.index as i64,
        oldest as i64,
        i64::try_from(limit).unwrap_or(i64::MAX)
    ];
    let sql = "DELETE FROM id_chunk WHERE class = ?1 AND bucket = ?2 AND first IN
                 (SELECT first FROM id_chunk WHERE class = ?1 AND bucket = ?2 ORDER BY first LIMIT ?3)";
    let chunks = conn.prepare_cached(sql)?.execute(key)?;
    let sql = "DELETE FROM posting WHERE class = ?1 AND bucket = ?2 AND job IN
                 (SELECT job FROM posting WHERE class = ?1 AND bucket = ?2 ORDER BY job LIMIT ?3)";
    let postings = conn.prepare_cached(sql)?.execute(key)?;
    if chunks + postings > 0 || limit == 0 {
        return Ok(None);
    }
    conn.prepare_cached("DELETE FROM bucket WHERE class = ?1 AND number = ?2")?
        .execute([class.index as i64, oldest as i64])?;
    Ok(Some(oldest))
}
