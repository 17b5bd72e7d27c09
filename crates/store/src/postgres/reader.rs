//! The reading side: each verb one statement, or pages of one.

use std::sync::Arc;

use drumtower_core::model::{
    AuditId, BackfillId, BackfillRow, CalendarName, CalendarRef, CalendarVersion, Checkpoint,
    DrainRow, Ending, Epoch, GateKey, IdempotencyEntry, IdempotencyHash, JobId, JobName, JobRecord,
    JobVersion, LockRef, LockRow, Meta, NamespaceName, QueueRow, RateRow, Run, RunId, SegmentId,
    SegmentRow, SegmentSet, SessionId, SessionRow, SettingRow, SweepRow, TokenRow, Unfired, WallMs,
};
use tokio_postgres::Row;

use super::connect::{Runtime, Values};
use super::job_rows::{self, records};
use super::pool::Pool;
use super::row::{self, above, body, key, namespace, rows_of};
use super::small_rows::parts;
use super::target::Target;
use super::{Options, follower_rows, list_runs, listings, members, migrate, rollup_rows};
use crate::{
    AuditFilter, AuditPage, BackfillFilter, CounterRow, Error, JobFilter, JobPage, LetterFilter,
    ParkedKey, PrunedRow, Read, Rollup, RunFilter, RunPage, StartPage, codec, columns,
};

/// Reads the store from any thread.
#[derive(Clone)]
pub struct Reader {
    pool: Pool,
}

impl Reader {
    pub(super) fn new(runtime: Arc<Runtime>, target: Target, options: &Options) -> Self {
        Self {
            pool: Pool::new(runtime, target, options.patience, options.readers),
        }
    }

    fn all<T>(
        &self,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.pool.rows(sql, values)?.iter().map(read).collect()
    }

    fn one<T>(
        &self,
        sql: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.pool.rows(sql, values)?.first().map(read).transpose()
    }

    fn runs_of(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<Run>, Error> {
        self.all(sql, values, row::run)
    }
}

fn first_body<T: serde::de::DeserializeOwned>(row: &Row) -> Result<T, Error> {
    body(row, 0)
}

fn count(row: &Row, column: usize) -> Result<u64, Error> {
    Ok(row.try_get::<_, i64>(column)? as u64)
}

fn segment_row(row: &Row) -> Result<SegmentRow, Error> {
    Ok(SegmentRow {
        id: SegmentId(row.try_get::<_, i16>(0)? as u16),
        owner: SessionId(count(row, 1)?),
        epoch: Epoch(count(row, 2)?),
        id_mark: count(row, 3)?,
    })
}

fn calendar_version(row: &Row) -> Result<CalendarVersion, Error> {
    let name = CalendarName::new(row.try_get::<_, &str>(1)?);
    let calendar = CalendarRef {
        namespace: namespace(row, 0)?,
        name: name.map_err(|error| Error::Corrupt(error.to_string()))?,
    };
    let version = u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or(u32::MAX);
    codec::open_calendar(&calendar, version, row.try_get(3)?)
}

fn hash(row: &Row, column: usize) -> Result<IdempotencyHash, Error> {
    let bytes: &[u8] = row.try_get(column)?;
    let bytes = bytes.try_into();
    bytes
        .map(IdempotencyHash)
        .map_err(|_| Error::Corrupt("an idempotency key is not sixteen bytes".to_owned()))
}

impl Read for Reader {
    fn of_the_loop(&self) -> Option<Arc<dyn Read>> {
        let pool = self.pool.of_the_loop();
        Some(Arc::new(Self { pool }))
    }

    fn meta(&self) -> Result<Meta, Error> {
        let meta = self.one(migrate::META, &[], migrate::meta)?;
        meta.ok_or_else(|| Error::Corrupt("there is no meta row".to_owned()))
    }

    fn segments(&self) -> Result<Vec<SegmentRow>, Error> {
        let sql = "SELECT id, owner, epoch, id_mark FROM segment ORDER BY id";
        self.all(sql, &[], segment_row)
    }

    fn ties(&self) -> Result<SegmentSet, Error> {
        members::ties(&self.pool)
    }

    fn tenures(&self, since: WallMs) -> Result<Vec<SessionRow>, Error> {
        members::tenures(&self.pool, since)
    }

    fn definitions(&self) -> Result<u64, Error> {
        let found = self.one("SELECT definitions FROM meta", &[], |row| count(row, 0))?;
        found.ok_or_else(|| Error::Corrupt("there is no meta row".to_owned()))
    }

    fn check_version(&self) -> Result<(), Error> {
        migrate::check_version(&self.meta()?)
    }

    fn longest_lease(&self, since: WallMs) -> Result<u64, Error> {
        members::longest_lease(&self.pool, since)
    }

    fn sessions(&self) -> Result<(WallMs, Vec<SessionRow>), Error> {
        members::live(&self.pool)
    }

    fn peer_key(&self) -> Result<Option<[u8; 32]>, Error> {
        self.one("SELECT peer_key FROM meta", &[], |row| {
            let bytes: &[u8] = row.try_get(0)?;
            let key = bytes.try_into();
            key.map_err(|_| Error::Corrupt("the peers' key is not 32 bytes".to_owned()))
        })
    }

    fn is_revoked(&self, session: SessionId) -> Result<bool, Error> {
        let sql = "SELECT revoked FROM session WHERE id = $1";
        let found = self.one(sql, &[&key(session.0)], |row| Ok(row.try_get(0)?))?;
        Ok(found != Some(false))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, Error> {
        let sql = "SELECT segment, namespace, body FROM counter ORDER BY segment, namespace";
        self.all(sql, &[], |row| {
            let segment = SegmentId(row.try_get::<_, i16>(0)? as u16);
            Ok(((segment, namespace(row, 1)?), body(row, 2)?))
        })
    }

    fn pruned(&self) -> Result<Vec<PrunedRow>, Error> {
        let sql = "SELECT namespace, completed, failed, cancelled FROM pruned ORDER BY namespace";
        self.all(sql, &[], |row| {
            Ok(PrunedRow {
                namespace: namespace(row, 0)?,
                completed: count(row, 1)?,
                failed: count(row, 2)?,
                cancelled: count(row, 3)?,
            })
        })
    }

    fn job_named(
        &self,
        namespace: &NamespaceName,
        name: &JobName,
    ) -> Result<Option<JobRecord>, Error> {
        let sql = records!(
            "SELECT id FROM job WHERE namespace = $1 AND name = $2 AND NOT deleted",
            "job.id"
        );
        job_rows::one(&self.pool, sql, &[&namespace.as_str(), &name.as_str()])
    }

    fn job(&self, id: JobId) -> Result<Option<JobRecord>, Error> {
        let sql = records!("SELECT $1::bigint", "job.id");
        job_rows::one(&self.pool, sql, &[&key(id.0)])
    }

    fn job_version(&self, id: JobId, version: u32) -> Result<Option<JobVersion>, Error> {
        let sql = "SELECT body FROM job_version WHERE job = $1 AND version = $2";
        let number = i32::try_from(version).unwrap_or(i32::MAX);
        self.one(sql, &[&key(id.0), &number], |row| {
            codec::open_version(id, version, row.try_get(0)?)
        })
    }

    fn job_versions(
        &self,
        id: JobId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<JobVersion>, Error> {
        let sql = "SELECT version, body FROM job_version WHERE job = $1 AND version < $2 ORDER BY version DESC LIMIT $3";
        let below = before.map_or(i32::MAX, |before| i32::try_from(before).unwrap_or(i32::MAX));
        self.all(sql, &[&key(id.0), &below, &rows_of(limit)], |row| {
            let version = u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0);
            codec::open_version(id, version, row.try_get(1)?)
        })
    }

    fn jobs(
        &self,
        filter: &JobFilter,
        after: Option<&(NamespaceName, JobName)>,
        limit: usize,
    ) -> Result<JobPage, Error> {
        job_rows::list(&self.pool, filter, after, limit)
    }

    fn jobs_due(
        &self,
        within: &SegmentSet,
        before: WallMs,
        after: Option<(WallMs, JobId)>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let sql = records!(
            "SELECT job FROM schedule WHERE next_due IS NOT NULL AND next_due < $1 AND (next_due, job) > ($2, $3)
               AND ($5::smallint[] IS NULL OR segment = ANY($5)) ORDER BY next_due, job LIMIT $4",
            "schedule.next_due, job.id"
        );
        let (at, id) = after.map_or((i64::MIN, -1), |(at, id)| (at.0, key(id.0)));
        let within = row::within(within);
        let values: Values<'_> = &[&before.0, &at, &id, &rows_of(limit), &within];
        job_rows::all(&self.pool, sql, values)
    }

    fn unfired(
        &self,
        job: JobId,
        from: WallMs,
        to: WallMs,
        limit: usize,
    ) -> Result<Vec<Unfired>, Error> {
        let sql = "SELECT body FROM unfired WHERE job = $1 AND first <= $2 AND last >= $3 ORDER BY first LIMIT $4";
        let values: Values<'_> = &[&key(job.0), &to.0, &from.0, &rows_of(limit)];
        self.all(sql, values, first_body)
    }

    fn calendars(&self) -> Result<Vec<CalendarVersion>, Error> {
        let sql =
            "SELECT namespace, name, version, body FROM calendar ORDER BY namespace, name, version";
        self.all(sql, &[], calendar_version)
    }

    fn calendar_versions(&self, calendar: &CalendarRef) -> Result<Vec<CalendarVersion>, Error> {
        let sql = "SELECT namespace, name, version, body FROM calendar WHERE namespace = $1 AND name = $2 ORDER BY version";
        let values: Values<'_> = &[&calendar.namespace.as_str(), &calendar.name.as_str()];
        self.all(sql, values, calendar_version)
    }

    fn calendar_users(
        &self,
        within: &SegmentSet,
        calendar: &CalendarRef,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let sql = records!(
            "SELECT job FROM calendar_user WHERE namespace = $1 AND calendar = $2 AND job > $3
               AND ($5::smallint[] IS NULL OR ((job >> 12) & 1023)::smallint = ANY($5)) ORDER BY job LIMIT $4",
            "job.id"
        );
        let (after, within) = (above(after.map(|id| id.0)), row::within(within));
        let (namespace, name) = (calendar.namespace.as_str(), calendar.name.as_str());
        let values: Values<'_> = &[&namespace, &name, &after, &rows_of(limit), &within];
        job_rows::all(&self.pool, sql, values)
    }

    fn jobs_by_id(
        &self,
        within: &SegmentSet,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        let sql = records!(
            "SELECT id FROM job WHERE id > $1 AND NOT deleted AND ($3::smallint[] IS NULL OR segment = ANY($3)) ORDER BY id LIMIT $2",
            "job.id"
        );
        let (after, within) = (above(after.map(|id| id.0)), row::within(within));
        job_rows::all(&self.pool, sql, &[&after, &rows_of(limit), &within])
    }

    fn followers(
        &self,
        within: &SegmentSet,
        namespace: &NamespaceName,
        name: &JobName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<JobRecord>, Error> {
        follower_rows::of(&self.pool, within, (namespace, name), after, limit)
    }

    fn endings(&self, within: &SegmentSet, limit: usize) -> Result<Vec<Ending>, Error> {
        follower_rows::endings(&self.pool, within, limit)
    }

    fn sweeps(&self) -> Result<Vec<SweepRow>, Error> {
        let mut sweeps: Vec<SweepRow> = self.all("SELECT body FROM sweep", &[], first_body)?;
        sweeps.sort_by(|one, other| one.cause.cmp(&other.cause));
        Ok(sweeps)
    }

    fn run(&self, id: RunId) -> Result<Option<Run>, Error> {
        let sql = "SELECT id, job, body, params, result FROM run WHERE id = $1
                   UNION ALL SELECT id, job, body, params, result FROM history_1d WHERE id = $1
                   UNION ALL SELECT id, job, body, params, result FROM history_7d WHERE id = $1
                   UNION ALL SELECT id, job, body, params, result FROM history_30d WHERE id = $1
                   UNION ALL SELECT id, job, body, params, result FROM history_keep WHERE id = $1 LIMIT 1";
        self.one(sql, &[&key(id.0)], row::run)
    }

    fn checkpoint(&self, run: RunId) -> Result<Option<Checkpoint>, Error> {
        let sql = "SELECT number, body FROM checkpoint WHERE run = $1";
        self.one(sql, &[&key(run.0)], |row| {
            Ok(Checkpoint {
                number: count(row, 0)?,
                body: row.try_get::<_, &[u8]>(1)?.into(),
            })
        })
    }

    fn runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        let below = before.map_or(u64::MAX, |id| id.0);
        list_runs::page(&self.pool, filter, below, limit)
    }

    fn active_runs(
        &self,
        within: &SegmentSet,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let sql = "SELECT id, job, body, params, result FROM run WHERE id > $1 AND parked IS NULL
                     AND ($3::smallint[] IS NULL OR segment = ANY($3)) ORDER BY id LIMIT $2";
        let (after, within) = (above(after.map(|id| id.0)), row::within(within));
        self.runs_of(sql, &[&after, &rows_of(limit), &within])
    }

    fn parked_runs(
        &self,
        within: &SegmentSet,
        key: &str,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        let sql = "SELECT id, job, body, params, result FROM run WHERE parked = $1 AND id > $2
                     AND ($4::smallint[] IS NULL OR segment = ANY($4)) ORDER BY id LIMIT $3";
        let (after, within) = (above(after.map(|id| id.0)), row::within(within));
        self.runs_of(sql, &[&key.as_bytes(), &after, &rows_of(limit), &within])
    }

    fn live_runs(&self, job: JobId, key: Option<&str>, limit: usize) -> Result<Vec<Run>, Error> {
        // Those whose column is empty are the usual ones of the schedule, which have no key.
        let sql = "SELECT id, job, body, params, result FROM run WHERE job = $1 AND overlap = ANY($2)
                   UNION ALL
                   SELECT id, job, body, params, result FROM run WHERE $3 AND job = $1 AND scheduled AND overlap IS NULL
                   ORDER BY id LIMIT $4";
        let texts = columns::live_texts(key).map(String::into_bytes).to_vec();
        let usual = key.is_none();
        let values: Values<'_> = &[&row::key(job.0), &texts, &usual, &rows_of(limit)];
        self.runs_of(sql, values)
    }

    fn parked_keys(&self, within: &SegmentSet) -> Result<Vec<ParkedKey>, Error> {
        let sql = "SELECT parked, count(*) FROM run WHERE parked IS NOT NULL AND ($1::smallint[] IS NULL OR segment = ANY($1))
                   GROUP BY parked ORDER BY parked";
        self.all(sql, &[&row::within(within)], |row| {
            let key = String::from_utf8(row.try_get::<_, &[u8]>(0)?.to_vec());
            Ok(ParkedKey {
                key: key.map_err(|error| Error::Corrupt(format!("a parked key: {error}")))?,
                runs: count(row, 1)?,
            })
        })
    }

    fn parked_starts(
        &self,
        within: &SegmentSet,
        by: WallMs,
        after: Option<(WallMs, RunId)>,
        limit: usize,
    ) -> Result<StartPage, Error> {
        listings::parked_starts(&self.pool, within, by, after, limit)
    }

    fn letter(&self, id: RunId) -> Result<Option<Run>, Error> {
        let sql = "SELECT run, job, body, params, result FROM dead_letter WHERE run = $1";
        self.one(sql, &[&key(id.0)], row::run)
    }

    fn letters(
        &self,
        filter: &LetterFilter,
        before: Option<RunId>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        listings::letters(&self.pool, filter, before, limit)
    }

    fn backfill(&self, id: BackfillId) -> Result<Option<BackfillRow>, Error> {
        let sql = "SELECT body FROM backfill WHERE id = $1";
        self.one(sql, &[&key(id.0)], listings::backfill_row)
    }

    fn backfills(
        &self,
        filter: &BackfillFilter,
        before: Option<BackfillId>,
        limit: usize,
    ) -> Result<Vec<BackfillRow>, Error> {
        listings::backfills(&self.pool, filter, before, limit)
    }

    fn idempotency(
        &self,
        wanted: &IdempotencyHash,
        now: WallMs,
    ) -> Result<Option<IdempotencyEntry>, Error> {
        // One made a little later than `now` counts, as its maker's clock may be ahead.
        let sql = "SELECT hash, fingerprint, run, created FROM idempotency WHERE part = ANY($1) AND hash = $2 AND $3 - created < $4
                   ORDER BY n DESC LIMIT 1";
        let mut parts = parts(now.0).to_vec();
        parts.extend(parts.first().map(|newest| newest + 1));
        let hash_bytes = &wanted.0[..];
        let values: Values<'_> = &[&parts, &hash_bytes, &now.0, &IdempotencyEntry::KEPT_MS];
        self.one(sql, values, |row| {
            Ok(IdempotencyEntry {
                hash: hash(row, 0)?,
                fingerprint: hash(row, 1)?,
                run: RunId(count(row, 2)?),
                created: WallMs(row.try_get(3)?),
            })
        })
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        let mut tokens: Vec<TokenRow> = self.all("SELECT body FROM token", &[], first_body)?;
        tokens.sort_by_key(|token| token.id);
        Ok(tokens)
    }

    fn lock(&self, lock: &LockRef) -> Result<Option<LockRow>, Error> {
        let sql = "SELECT body FROM lock WHERE namespace = $1 AND name = $2";
        let values: Values<'_> = &[&lock.namespace.as_str(), &lock.name.as_str()];
        self.one(sql, values, first_body)
    }

    fn locks(
        &self,
        namespace: Option<&NamespaceName>,
        after: Option<&LockRef>,
        limit: usize,
    ) -> Result<Vec<LockRow>, Error> {
        let sql = "SELECT body FROM lock WHERE ($1::text IS NULL OR namespace = $1) AND (namespace, name) > ($2, $3)
                   ORDER BY namespace, name LIMIT $4";
        let (from, name) = after.map_or(("", ""), |after| {
            (after.namespace.as_str(), after.name.as_str())
        });
        let namespace = namespace.map(NamespaceName::as_str);
        self.all(
            sql,
            &[&namespace, &from, &name, &rows_of(limit)],
            first_body,
        )
    }

    fn queues(&self) -> Result<Vec<QueueRow>, Error> {
        let sql = "SELECT body FROM queue ORDER BY namespace, name";
        self.all(sql, &[], |row| codec::open_queue(row.try_get(0)?))
    }

    fn rates(&self) -> Result<Vec<(GateKey, RateRow)>, Error> {
        let mut rates = self.all("SELECT gate, body FROM rate", &[], |row| {
            let text = String::from_utf8_lossy(row.try_get(0)?).into_owned();
            let gate = GateKey::parse(&text)
                .ok_or_else(|| Error::Corrupt(format!("`{text}` is not a gate with a rate")))?;
            Ok((gate, body(row, 1)?))
        })?;
        rates.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(rates)
    }

    fn drains(&self) -> Result<Vec<DrainRow>, Error> {
        let sql = "SELECT body FROM drain ORDER BY name, namespace";
        self.all(sql, &[], first_body)
    }

    fn settings(&self) -> Result<Vec<SettingRow>, Error> {
        let mut settings: Vec<SettingRow> =
            self.all("SELECT body FROM setting", &[], first_body)?;
        settings.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(settings)
    }

    fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<AuditId>,
        limit: usize,
    ) -> Result<AuditPage, Error> {
        listings::audit(&self.pool, filter, before, limit)
    }

    fn rollups(&self, job: Option<JobId>, from: i64, to: i64) -> Result<Vec<Rollup>, Error> {
        rollup_rows::read(&self.pool, job, from, to)
    }
}
