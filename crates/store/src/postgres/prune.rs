//! Retention within a commit: small steps at the old end of each table, and of the runs that lie in no partition.
//!
//! See [`crate::retention`] for the rules. A partition goes whole, in [`super::partitions`].

use drumtower_core::change::Prune;
use drumtower_core::model::{Limits, RunId};

use super::batch::{Batch, values};
use super::connect::Link;
use super::history::Tallies;
use super::partitions::cut;
use crate::columns::{CLASSES, class_of};
use crate::{Error, packed, retention};

/// The statements that need no look at rows.
pub fn small_steps(prune: &Prune, seq: u64, batch: &mut Batch) {
    let limit = rows_of(prune.limit);
    // Of those that came first, those of hours that are over.
    let oldest = retention::oldest_hour(prune.now).saturating_mul(3_600_000);
    batch.trim(
        prune.limit,
        "DELETE FROM idempotency WHERE n IN (SELECT n FROM
           (SELECT n, created FROM idempotency ORDER BY n LIMIT $2) AS first WHERE created < $1)",
        values![oldest, limit],
    );
    batch.trim(
        prune.limit,
        "DELETE FROM unfired WHERE (job, first) IN
           (SELECT job, first FROM unfired WHERE last < $1 ORDER BY last, job, first LIMIT $2)",
        values![retention::oldest_unfired(prune.now).0, limit],
    );
    batch.trim(
        prune.limit,
        "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE id < $1 ORDER BY id LIMIT $2)",
        values![retention::first_audit(prune.now).0 as i64, limit],
    );
    batch.trim(
        prune.limit,
        "DELETE FROM dead_letter WHERE run IN (SELECT run FROM dead_letter WHERE died < $1 ORDER BY died, run LIMIT $2)",
        values![retention::oldest_letter(prune.now).0, limit],
    );
    batch.trim(
        prune.limit,
        "DELETE FROM backfill WHERE id IN
           (SELECT id FROM backfill WHERE NOT open AND ended < $1 ORDER BY ended, id LIMIT $2)",
        values![retention::oldest_backfill(prune.now).0, limit],
    );
    if retention::counts_letters(seq) {
        beyond(limit, batch);
    }
    batch.add(
        "DELETE FROM session WHERE revoked AND expires < CASE WHEN took IS NULL THEN $1::bigint ELSE $2::bigint END",
        values![
            retention::oldest_session(prune.now).0,
            retention::oldest_tenure(prune.now).0
        ],
    );
}

/// What a namespace has beyond its bound goes, oldest first; it is no other's loss.
fn beyond(limit: i64, batch: &mut Batch) {
    batch.add(
        "DELETE FROM dead_letter WHERE run IN (SELECT run FROM
           (SELECT run, died, row_number() OVER (PARTITION BY namespace ORDER BY died DESC, run DESC) AS place
            FROM dead_letter) AS placed WHERE place > $1 ORDER BY died, run LIMIT $2)",
        values![rows_of(Limits::DEAD_LETTERS), limit],
    );
    batch.add(
        "DELETE FROM backfill WHERE id IN (SELECT id FROM
           (SELECT id, ended, row_number() OVER (PARTITION BY namespace ORDER BY ended DESC, id DESC) AS place
            FROM backfill WHERE NOT open) AS placed WHERE place > $1 ORDER BY ended, id LIMIT $2)",
        values![rows_of(Limits::BACKFILLS_KEPT), limit],
    );
}

/// Roll-ups go after those of this commit are written.
pub fn rollups(prune: &Prune, batch: &mut Batch) {
    batch.trim(
        prune.limit,
        "DELETE FROM rollup WHERE (minute, job) IN
           (SELECT DISTINCT minute, job FROM rollup WHERE minute < $1 ORDER BY minute, job LIMIT $2)",
        values![retention::oldest_minute(prune.now), rows_of(prune.limit)],
    );
}

const REST: [&str; CLASSES] = [
    "DELETE FROM history_1d_rest WHERE id IN (SELECT id FROM history_1d_rest WHERE id < $1 ORDER BY id LIMIT $2) RETURNING id, verdict, body",
    "DELETE FROM history_7d_rest WHERE id IN (SELECT id FROM history_7d_rest WHERE id < $1 ORDER BY id LIMIT $2) RETURNING id, verdict, body",
    "DELETE FROM history_30d_rest WHERE id IN (SELECT id FROM history_30d_rest WHERE id < $1 ORDER BY id LIMIT $2) RETURNING id, verdict, body",
    "DELETE FROM history_keep_rest WHERE id IN (SELECT id FROM history_keep_rest WHERE id < $1 ORDER BY id LIMIT $2) RETURNING id, verdict, body",
];

/// Removes old runs that lie in no partition, with what other tables hold of them, in the open transaction.
pub async fn rest(link: &Link, prune: &Prune, seq: u64) -> Result<(), Error> {
    let mut left = prune.limit;
    let (mut gone, mut unfinished) = (Tallies::default(), Vec::new());
    let mut any = false;
    for kept in retention::turn(seq) {
        let class = class_of(kept);
        let Some(cut) = cut(class, prune.now).filter(|_| left > 0) else {
            continue;
        };
        let rows = link.rows(REST[class], &[&cut, &rows_of(left)]).await?;
        left = left.saturating_sub(rows.len());
        for row in rows {
            let (id, verdict): (i64, i16) = (row.try_get(0)?, row.try_get(1)?);
            let run = packed::open_gone(RunId(id as u64), row.try_get(2)?)?;
            let verdict = u8::try_from(verdict).unwrap_or(u8::MAX);
            gone.count(class, id as u64, &run.namespace, verdict, -1);
            any = true;
            if verdict != 0 {
                unfinished.push(id);
            }
        }
    }
    if !any {
        return Ok(());
    }
    let mut batch = Batch::default();
    if !unfinished.is_empty() {
        let sql = "DELETE FROM checkpoint WHERE run = ANY($1)";
        batch.add(sql, values![unfinished]);
    }
    count(&gone, &mut batch);
    // Under no session: the counts of a partition are summed up when it ends.
    gone.add_to(0, &mut batch);
    let none = "DELETE FROM history_tally WHERE (class, lower) IN (SELECT class, lower FROM history_tally
                  GROUP BY class, lower HAVING sum(completed) = 0 AND sum(failed) = 0 AND sum(cancelled) = 0)";
    batch.add(none, values![]);
    batch.run(link).await
}

fn count(gone: &Tallies, batch: &mut Batch) {
    let (mut namespaces, mut counts): (Vec<String>, [Vec<i64>; 3]) = Default::default();
    for (namespace, row) in gone.by_namespace() {
        namespaces.push(namespace.to_owned());
        for (column, count) in counts.iter_mut().zip(row) {
            column.push(-count);
        }
    }
    let [completed, failed, cancelled] = counts;
    let sql = "INSERT INTO pruned SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
               ON CONFLICT (namespace) DO UPDATE SET completed = pruned.completed + excluded.completed,
                 failed = pruned.failed + excluded.failed, cancelled = pruned.cancelled + excluded.cancelled";
    batch.add(sql, values![namespaces, completed, failed, cancelled]);
}

fn rows_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
