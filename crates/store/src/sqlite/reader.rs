//! The reading side: each verb in one snapshot of its own.

use std::sync::{Arc, PoisonError, RwLock};

use drumtower_core::model::{
    AuditId, BackfillId, BackfillRow, CalendarRef, CalendarVersion, Checkpoint, DrainRow, Ending,
    GateKey, IdempotencyEntry, IdempotencyHash, JobId, JobName, JobRecord, JobVersion, LockRef,
    LockRow, Meta, NamespaceName, QueueRow, RateRow, Run, RunId, SegmentId, SegmentRow, SegmentSet,
    SessionId, SessionRow, SettingRow, SweepRow, TokenRow, Unfired, WallMs,
};
use rusqlite::{Connection, Row, params};

use super::derived::Derived;
use super::list_runs::{self, View};
use super::pool::Pool;
use super::run_rows::Payloads;
use super::standing_rows;
use super::within::{self, within};
use super::writer::{Writer, live_sessions};
use super::{
    backfill_rows, calendar_rows, checkpoint_rows, chunk, drain_rows, follower_rows, history,
    job_rows, letter_rows, lock_rows, migrate, queue_rows, record_rows, rollups,
};
use crate::tally::merge_all;
use crate::{
    AuditFilter, AuditPage, BackfillFilter, CounterRow, Error, JobFilter, JobPage, LetterFilter,
    ParkedKey, PrunedRow, Read, Rollup, RunFilter, RunPage, StartPage,
};
use crate::{codec, packed};

/// Reads the store beside its writer, from any thread.
#[derive(Clone)]
pub struct Reader {
    pool: Pool,
    derived: Arc<RwLock<Derived>>,
}

impl Reader {
    pub(super) fn new(pool: Pool, derived: Arc<RwLock<Derived>>) -> Self {
        Self { pool, derived }
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        self.pool.snapshot(|_| Ok(()), |conn, ()| read(conn))
    }

    fn look<P>(&self, look: impl FnOnce(&Derived) -> P) -> P {
        look(&self.derived.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A snapshot, and what `look` takes of the derived data at the same commit.
    fn read_with<P, T>(
        &self,
        look: impl FnOnce(&Derived) -> P,
        read: impl FnOnce(&Connection, P) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let pin = |conn: &Connection| {
            let derived = self.derived.read().unwrap_or_else(PoisonError::into_inner);
            conn.prepare_cached("SELECT one FROM meta")?.exists([])?;
            Ok(look(&derived))
        };
        self.pool.snapshot(pin, read)
    }
}

/// Reads all rows of a statement.
fn all<T>(
    conn: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Error> {
    Ok(row
        .get_ref(column)?
        .as_blob()
        .map_err(rusqlite::Error::from)?)
}

fn namespace(row: &Row<'_>, column: usize) -> Result<NamespaceName, Error> {
    let text = row
        .get_ref(column)?
        .as_str()
        .map_err(rusqlite::Error::from)?;
    NamespaceName::new(text).map_err(|error| Error::Corrupt(error.to_string()))
}

fn run_row(conn: &Connection, row: &Row<'_>) -> Result<Run, Error> {
    let (id, job) = (
        RunId(row.get::<_, i64>(0)? as u64),
        JobId(row.get::<_, i64>(1)? as u64),
    );
    packed::open(id, job, blob(row, 2)?, &Payloads(conn))
}

/// The smallest key above `after`; every id is at least zero.
fn above(after: Option<u64>) -> i64 {
    after.map_or(-1, |id| i64::try_from(id).unwrap_or(i64::MAX))
}

fn rows_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Read for Reader {
    fn meta(&self) -> Result<Meta, Error> {
        self.read(migrate::meta)
    }

    fn sessions(&self) -> Result<(WallMs, Vec<SessionRow>), Error> {
        let live = self.read(live_sessions)?;
        Ok((Writer::now(), live))
    }

    fn longest_lease(&self, since: WallMs) -> Result<u64, Error> {
        let sql = "SELECT coalesce(max(lease), 0) FROM session WHERE expires >= ?1";
        let longest = |row: &Row<'_>| Ok(row.get::<_, i64>(0)? as u64);
        self.read(|conn| Ok(conn.prepare_cached(sql)?.query_row([since.0], longest)?))
    }

    fn segments(&self) -> Result<Vec<SegmentRow>, Error> {
        let sql = "SELECT id, owner, epoch, id_mark FROM segment ORDER BY id";
        let segment = |row: &Row<'_>| {
            Ok(SegmentRow {
                id: SegmentId(row.get(0)?),
                owner: SessionId(row.get::<_, i64>(1)? as u64),
                epoch: drumtower_core::model::Epoch(row.get::<_, i64>(2)? as u64),
                id_mark: row.get::<_, i64>(3)? as u64,
            })
        };
        self.read(|conn| all(conn, sql, [], segment))
    }

    fn is_revoked(&self, session: SessionId) -> Result<bool, Error> {
        let sql = "SELECT revoked FROM session WHERE id = ?1";
        let id = [session.0 as i64];
        let found: Vec<bool> = self.read(|conn| all(conn, sql, id, |row| Ok(row.get(0)?)))?;
        Ok(found != [false])
    }

    fn counters(&self) -> Result<Vec<CounterRow>, Error> {
        let sql = "SELECT segment, namespace, body FROM counter ORDER BY segment, namespace";
        let counter = |row: &Row<'_>| {
            Ok((
                (SegmentId(row.get(0)?), namespace(row, 1)?),
                codec::open(blob(row, 2)?)?,
            ))
        };
        self.read(|conn| all(conn, sql, [], counter))
    }

    fn pruned(&self) -> Result<Vec<PrunedRow>, Error> {
        let sql = "SELECT namespace, completed, failed, cancelled FROM pruned ORDER BY namespace";
        let pruned = |row: &Row<'_>| {
            Ok(PrunedRow {
                namespace: namespace(row, 0)?,
                completed: row.get::<_, i64>(1)? as u64,
                failed: row.get::<_, i64>(2)? as u64,
                cancelled: row.get::<_, i64>(3)? as u64,
            })
        };
        self.read(|conn| all(conn, sql, [], pruned))
    }

    fn job_named(
        &self,
        namespace: &NamespaceName,
        name: &JobName,
    ) -> Result<Option<JobRecord>, Error> {
        self.read(|conn| job_rows::by_name(conn, namespace, name))
    }

    fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error> {
        self.read(|conn| job_rows::by_id(conn, id))
    }

    fn job_version(&self, id: JobId, version: u32) -> Result<Option<JobVersion>, Error> {
        self.read(|conn| job_rows::version(conn, id, version))
    }

    fn job_versions(
        &self,
        id: JobId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<JobVersion>, Error> {
        self.read(|conn| job_rows::versions(conn, id, before, rows_of(limit)))
    }

    fn jobs(
        &self,
        filter: &JobFilter,
        after: Option<&(NamespaceName, JobName)>,
        limit: usize,
    ) -> Result<JobPage, Error> {
        self.read(|conn| job_rows::list(conn, filter, after, limit))
    }

    fn jobs_due(
        &self,
        within: &SegmentSet,
        before: WallMs,
        after: Option<(WallMs, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        self.read(|conn| job_rows::due(conn, within, before, after, rows_of(limit)))
    }

    fn unfired(
        &self,
        job: JobId,
        from: WallMs,
        to: WallMs,
        limit: usize,
    ) -> Result<Vec<Unfired>, Error> {
        self.read(|conn| job_rows::unfired(conn, job, from, to, rows_of(limit)))
    }

    fn calendars(&self) -> Result<Vec<CalendarVersion>, Error> {
        self.read(calendar_rows::all_calendars)
    }

    fn calendar_versions(&self, calendar: &CalendarRef) -> Result<Vec<CalendarVersion>, Error> {
        self.read(|conn| calendar_rows::versions_of(conn, calendar))
    }

    fn calendar_users(
        &self,
        within: &SegmentSet,
        calendar: &CalendarRef,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let after = above(after.map(|id| id.0));
        self.read(|conn| job_rows::users(conn, within, calendar, after, rows_of(limit)))
    }

    fn jobs_by_id(
        &self,
        within: &SegmentSet,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let after = above(after.map(|id| id.0));
        self.read(|conn| job_rows::above(conn, within, after, rows_of(limit)))
    }

    fn followers(
        &self,
        within: &SegmentSet,
        namespace: &NamespaceName,
        name: &JobName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let (of, after) = ((namespace, name), above(after.map(|id| id.0)));
        self.read(|conn| follower_rows::of(conn, within, of, after, rows_of(limit)))
    }

    fn endings(&self, within: &SegmentSet, limit: usize) -> Result<Vec<Ending>, Error> {
        self.read(|conn| follower_rows::endings(conn, within, rows_of(limit)))
    }

    fn sweeps(&self) -> Result<Vec<SweepRow>, Error> {
        self.read(calendar_rows::all_sweeps)
    }

    fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        if let Some(run) = self.read(|conn| list_runs::active(conn, id))? {
            return Ok(Some(run));
        }
        let look = |derived: &Derived| {
            let classes = derived.classes.iter();
            let held = classes
                .clone()
                .filter_map(|class| Some((class.index, class.spot(id.0)?)));
            let buckets = classes.flat_map(|class| class.may_hold(id.0));
            (held.collect::<Vec<_>>(), buckets.collect::<Vec<_>>())
        };
        // A blob may outlive the row it tells of, so a miss is no answer yet.
        self.read_with(look, |conn, (held, buckets)| {
            for (class, spot) in held {
                if let Some(run) = history::get(conn, class, spot.fin, &Payloads(conn))? {
                    return Ok(Some(run));
                }
            }
            for bucket in buckets {
                if let Some(spot) = chunk::find(conn, bucket, id.0)?
                    && let Some(run) = history::get(conn, bucket.class, spot.fin, &Payloads(conn))?
                {
                    return Ok(Some(run));
                }
            }
            Ok(None)
        })
    }

    fn checkpoint(&self, run: RunId) -> Result<Option<Checkpoint>, Error> {
        self.read(|conn| checkpoint_rows::of(conn, run))
    }

    fn runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        let below = before.map_or(u64::MAX, |id| id.0);
        let look = |derived: &Derived| View::of(derived, filter, below);
        self.read_with(look, |conn, view| {
            list_runs::page(conn, filter, below, limit, &view)
        })
    }

    fn active_runs(
        &self,
        within: &SegmentSet,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let sql = concat!(
            "SELECT id, job, body FROM run WHERE id > ?1 AND parked IS NULL AND ",
            within!("id", "?3"),
            " ORDER BY id LIMIT ?2"
        );
        self.read(|conn| {
            all(
                conn,
                sql,
                params![
                    above(after.map(|id| id.0)),
                    rows_of(limit),
                    within::parameter(within)
                ],
                |row| run_row(conn, row),
            )
        })
    }

    fn parked_runs(
        &self,
        within: &SegmentSet,
        key: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let sql = concat!(
            "SELECT id, job, body FROM run WHERE parked = ?1 AND id > ?2 AND ",
            within!("id", "?4"),
            " ORDER BY id LIMIT ?3"
        );
        self.read(|conn| {
            all(
                conn,
                sql,
                params![
                    key,
                    above(after.map(|id| id.0)),
                    rows_of(limit),
                    within::parameter(within)
                ],
                |row| run_row(conn, row),
            )
        })
    }

    fn live_runs(&self, job: JobId, key: Option<&str>, limit: usize) -> Result<Vec<Run>, Error> {
        self.read(|conn| standing_rows::live(conn, job, key, rows_of(limit)))
    }

    fn parked_keys(&self, within: &SegmentSet) -> Result<Vec<ParkedKey>, Error> {
        let sql = concat!(
            "SELECT parked, count(*) FROM run WHERE parked IS NOT NULL AND ",
            within!("id", "?1"),
            " GROUP BY parked ORDER BY parked"
        );
        let key = |row: &Row<'_>| {
            Ok(ParkedKey {
                key: row.get(0)?,
                runs: row.get::<_, i64>(1)? as u64,
            })
        };
        self.read(|conn| all(conn, sql, [within::parameter(within)], key))
    }

    fn parked_starts(
        &self,
        within: &SegmentSet,
        by: WallMs,
        after: Option<(WallMs, RunId)>,
        limit: usize,
    ) -> Result<StartPage, Error> {
        let page = concat!(
            "SELECT id, job, body FROM run
             WHERE start_by IS NOT NULL AND start_by <= ?1 AND (start_by, id) > (?2, ?3) AND ",
            within!("id", "?5"),
            " ORDER BY start_by, id LIMIT ?4"
        );
        let beyond = concat!(
            "SELECT start_by FROM run
             WHERE start_by IS NOT NULL AND (start_by, id) > (?1, ?2) AND ",
            within!("id", "?3"),
            " ORDER BY start_by, id LIMIT 1"
        );
        let within = within::parameter(within);
        let place = after.map_or((i64::MIN, -1), |(by, run)| (by.0, run.0 as i64));
        self.read(|conn| {
            let values = params![by.0, place.0, place.1, rows_of(limit), within];
            let runs = all(conn, page, values, |row| run_row(conn, row))?;
            let last = runs
                .last()
                .and_then(|run| Some((run.start_by?.0, run.id.0 as i64)));
            let (by, id) = last.unwrap_or(place);
            let next = all(conn, beyond, params![by, id, within], |row| {
                Ok(WallMs(row.get(0)?))
            })?;
            Ok(StartPage {
                runs,
                next: next.first().copied(),
            })
        })
    }

    fn letter(&self, id: RunId) -> Result<Option<Run>, Error> {
        self.read(|conn| letter_rows::one(conn, id))
    }

    fn letters(
        &self,
        filter: &LetterFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        self.read(|conn| letter_rows::page(conn, filter, before, limit))
    }

    fn backfill(&self, id: BackfillId) -> Result<Option<BackfillRow>, Error> {
        self.read(|conn| backfill_rows::one(conn, id))
    }

    fn backfills(
        &self,
        filter: &BackfillFilter,
        before: Option<BackfillId>,
        limit: usize,
    ) -> Result<Vec<BackfillRow>, Error> {
        self.read(|conn| backfill_rows::page(conn, filter, before, limit))
    }

    fn idempotency(
        &self,
        hash: &IdempotencyHash,
        now: WallMs,
    ) -> Result<Option<IdempotencyEntry>, Error> {
        // The answer to an unknown key is known without a snapshot.
        if self
            .look(|derived| derived.keys.candidates(hash))
            .is_empty()
        {
            return Ok(None);
        }
        let valid = |entry: &IdempotencyEntry| now.since(entry.created) < IdempotencyEntry::KEPT_MS;
        let look = |derived: &Derived| derived.keys.candidates(hash);
        self.read_with(look, |conn, candidates| candidates.find(conn, hash, valid))
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        let mut tokens = self.read(|conn| {
            all(conn, "SELECT body FROM token", [], |row| {
                codec::open(blob(row, 0)?)
            })
        })?;
        tokens.sort_by_key(|token: &TokenRow| token.id);
        Ok(tokens)
    }

    fn lock(&self, lock: &LockRef) -> Result<Option<LockRow>, Error> {
        self.read(|conn| lock_rows::one(conn, lock))
    }

    fn locks(
        &self,
        namespace: Option<&NamespaceName>,
        after: Option<&LockRef>,
        limit: usize,
    ) -> Result<Vec<LockRow>, Error> {
        self.read(|conn| lock_rows::page(conn, namespace, after, limit))
    }

    fn queues(&self) -> Result<Vec<QueueRow>, Error> {
        self.read(queue_rows::all_queues)
    }

    fn rates(&self) -> Result<Vec<(GateKey, RateRow)>, Error> {
        self.read(queue_rows::all_rates)
    }

    fn drains(&self) -> Result<Vec<DrainRow>, Error> {
        self.read(drain_rows::all)
    }

    fn settings(&self) -> Result<Vec<SettingRow>, Error> {
        self.read(record_rows::all_settings)
    }

    fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        self.read(|conn| record_rows::audit_page(conn, filter, before, limit))
    }

    fn rollups(&self, job: Option<JobId>, from: i64, to: i64) -> Result<Vec<Rollup>, Error> {
        if from >= to {
            return Ok(Vec::new());
        }
        let look = |derived: &Derived| derived.rollups.gathered(job, from, to);
        self.read_with(look, |conn, gathered| {
            let mut rows = rollups::stored(conn, job, from, to)?;
            merge_all(&mut rows, gathered);
            Ok(rows
                .into_iter()
                .map(|(key, tally)| tally.into_rollup(key))
                .collect())
        })
    }
}
