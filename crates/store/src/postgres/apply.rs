//! A change set as statements: one for each kind of row and change, whatever the number of rows.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, JobChange, RunChange};
use drumtower_core::model::{JobRow, Limits, Origin, Run};

use super::batch::{Batch, values};
use super::{follower_rows, history, small_rows};
use crate::packed;
use crate::{Error, check, codec, columns};

/// Moves the session row on; its end is counted from the database's clock. Gives nothing when the row is not at `seq - 1`,
/// is revoked, or is not there. `$4` says that the set holds segments, which then are the session's.
pub const FENCE: &str = "UPDATE session SET seq = $2::bigint,
       expires = greatest(expires, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $3::bigint),
       took = coalesce(took, CASE WHEN $4::boolean THEN (extract(epoch FROM clock_timestamp()) * 1000)::bigint END)
     WHERE id = $1 AND seq = $2::bigint - 1 AND NOT revoked RETURNING expires";

/// What the set finishes, beside its statements.
#[derive(Default)]
pub struct Finished {
    pub samples: Vec<crate::tally::Sample>,
    pub tallies: history::Tallies,
}

/// Everything that the set holds, but for retention and roll-ups.
pub fn everything(
    changes: &ChangeSet,
    is_new: impl Fn(u64) -> bool,
    batch: &mut Batch,
) -> Result<Finished, Error> {
    sessions(changes, batch);
    segments(changes, batch);
    jobs(changes, batch)?;
    versions(changes, batch)?;
    schedules(changes, batch);
    calendar_uses(changes, batch);
    follower_rows::apply(changes, batch)?;
    small_rows::calendars(changes, batch)?;
    let finished = runs(changes, is_new, batch)?;
    small_rows::checkpoints(changes, batch);
    small_rows::ties(changes, batch);
    small_rows::unfired(changes, batch)?;
    small_rows::counters(changes, batch)?;
    small_rows::keys(changes, batch);
    small_rows::bodies(changes, batch)?;
    small_rows::audit(changes, batch)?;
    small_rows::letters(changes, batch)?;
    small_rows::backfills(changes, batch)?;
    if check::defines(changes) {
        batch.expect(
            1,
            "the meta row",
            "UPDATE meta SET definitions = definitions + 1",
            values![],
        );
    }
    Ok(finished)
}

fn sessions(changes: &ChangeSet, batch: &mut Batch) {
    if changes.revoke.is_empty() {
        return;
    }
    let ids: BTreeSet<i64> = changes.revoke.iter().map(|id| id.0 as i64).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let sql = "UPDATE session SET revoked = true WHERE id = ANY($1)";
    batch.expect(ids.len(), "sessions to revoke", sql, values![ids]);
}

/// The rule is [`check::segment`](crate::check::segment).
fn segments(changes: &ChangeSet, batch: &mut Batch) {
    if changes.segments.is_empty() {
        return;
    }
    let rows = changes.segments.values();
    let (mut ids, mut owners, mut epochs, mut marks) = (vec![], vec![], vec![], vec![]);
    for row in rows {
        ids.push(row.id.0 as i16);
        owners.push(row.owner.0 as i64);
        epochs.push(row.epoch.0 as i64);
        marks.push(row.id_mark as i64);
    }
    let sql = "UPDATE segment SET owner = new.owner, epoch = new.epoch, id_mark = new.id_mark
               FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS new(id, owner, epoch, id_mark)
               WHERE segment.id = new.id AND segment.id_mark <= new.id_mark AND (
                 (segment.owner = $5 AND segment.epoch = new.epoch AND new.owner IN ($5, 0)) OR
                 (new.owner = $5 AND segment.epoch + 1 = new.epoch AND NOT EXISTS (
                   SELECT FROM session WHERE session.id = segment.owner AND NOT session.revoked AND session.id <> $5)))";
    let what = "segments that no other has and whose epochs and marks are as expected";
    let me = changes.session.0 as i64;
    batch.expect(
        ids.len(),
        what,
        sql,
        values![ids, owners, epochs, marks, me],
    );
}

#[derive(Default)]
struct JobColumns {
    ids: Vec<i64>,
    segments: Vec<i16>,
    namespaces: Vec<String>,
    names: Vec<String>,
    deleted: Vec<bool>,
    versions: Vec<i32>,
    bodies: Vec<Vec<u8>>,
}

impl JobColumns {
    fn push(&mut self, row: &JobRow) -> Result<(), Error> {
        self.ids.push(row.id.0 as i64);
        self.segments.push(row.id.segment().0 as i16);
        self.namespaces.push(row.namespace.as_str().to_owned());
        self.names.push(row.name.as_str().to_owned());
        self.deleted.push(row.deleted);
        self.versions
            .push(i32::try_from(row.version).unwrap_or(i32::MAX));
        self.bodies.push(codec::seal(row)?);
        Ok(())
    }

    fn add_to(self, batch: &mut Batch, sql: &'static str, what: &'static str) {
        if !self.ids.is_empty() {
            let rows = self.ids.len();
            let values = values![
                self.ids,
                self.segments,
                self.namespaces,
                self.names,
                self.deleted,
                self.versions,
                self.bodies
            ];
            batch.expect(rows, what, sql, values);
        }
    }
}

const UPDATE_JOBS: &str = "UPDATE job SET namespace = new.namespace, name = new.name, deleted = new.deleted,
       version = new.version, body = new.body
     FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::boolean[], $6::integer[], $7::bytea[])
       AS new(id, segment, namespace, name, deleted, version, body)
     WHERE job.id = new.id";

/// Deletions first: a name may pass from one job to another within a set.
fn jobs(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    let (mut deletes, mut updates, mut inserts) = (
        JobColumns::default(),
        JobColumns::default(),
        JobColumns::default(),
    );
    for change in changes.jobs.values() {
        match change {
            JobChange::Update(row) if row.deleted => deletes.push(row)?,
            JobChange::Update(row) => updates.push(row)?,
            JobChange::Insert(row) => inserts.push(row)?,
        }
    }
    deletes.add_to(batch, UPDATE_JOBS, "jobs to delete");
    updates.add_to(batch, UPDATE_JOBS, "jobs to change");
    let insert = "INSERT INTO job SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::boolean[], $6::integer[], $7::bytea[])";
    inserts.add_to(batch, insert, "new jobs");
    Ok(())
}

fn versions(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    if changes.versions.is_empty() {
        return Ok(());
    }
    let (mut jobs, mut numbers, mut bodies) = (vec![], vec![], vec![]);
    for version in changes.versions.values() {
        jobs.push(version.job.0 as i64);
        numbers.push(i32::try_from(version.version).unwrap_or(i32::MAX));
        bodies.push(codec::seal_version(version)?);
    }
    let sql =
        "INSERT INTO job_version SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bytea[])";
    batch.expect(
        jobs.len(),
        "new versions of jobs",
        sql,
        values![jobs, numbers, bodies],
    );
    Ok(())
}

fn schedules(changes: &ChangeSet, batch: &mut Batch) {
    for new in [true, false] {
        let rows = changes.schedules.values();
        let rows: Vec<_> = rows
            .filter(|change| change.expected.is_none() == new)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let jobs: Vec<i64> = rows.iter().map(|it| it.row.job.0 as i64).collect();
        let segments: Vec<i16> = rows
            .iter()
            .map(|it| it.row.job.segment().0 as i16)
            .collect();
        let through: Vec<i64> = rows.iter().map(|it| it.row.fired_through.0).collect();
        let nominal: Vec<Option<i64>> = rows
            .iter()
            .map(|it| it.row.next_nominal.map(|at| at.0))
            .collect();
        let due: Vec<Option<i64>> = rows
            .iter()
            .map(|it| it.row.next_due.map(|at| at.0))
            .collect();
        let fires: Vec<i64> = rows.iter().map(|it| it.row.fires as i64).collect();
        let paused: Vec<Option<i64>> = rows
            .iter()
            .map(|it| it.row.paused_through.map(|at| at.0))
            .collect();
        if new {
            let sql = "INSERT INTO schedule SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])";
            let values = values![jobs, segments, through, nominal, due, fires, paused];
            batch.expect(rows.len(), "new schedules", sql, values);
        } else {
            let expected: Vec<Option<i64>> =
                rows.iter().map(|it| it.expected.map(|at| at.0)).collect();
            let sql = "UPDATE schedule SET fired_through = new.fired_through, next_nominal = new.next_nominal,
                         next_due = new.next_due, fires = new.fires, paused_through = new.paused_through
                       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
                         AS new(job, fired_through, next_nominal, next_due, fires, paused_through, expected)
                       WHERE schedule.job = new.job AND schedule.fired_through = new.expected";
            let what = "schedules that stand where they should";
            let values = values![jobs, through, nominal, due, fires, paused, expected];
            batch.expect(rows.len(), what, sql, values);
        }
    }
}

/// Brings the uses up to the definitions that the set brings. A job's newest definition is its current one.
fn calendar_uses(changes: &ChangeSet, batch: &mut Batch) {
    let mut forget = BTreeSet::new();
    let mut uses = BTreeMap::new();
    for ((job, _), version) in &changes.versions {
        if !matches!(changes.jobs.get(job), Some(JobChange::Insert(_))) {
            forget.insert(job.0 as i64);
        }
        uses.insert(*job, version);
    }
    for (job, change) in &changes.jobs {
        let (JobChange::Insert(row) | JobChange::Update(row)) = change;
        if row.deleted {
            forget.insert(job.0 as i64);
            uses.remove(job);
        }
    }
    if !forget.is_empty() {
        let jobs: Vec<i64> = forget.into_iter().collect();
        batch.add(
            "DELETE FROM calendar_user WHERE job = ANY($1)",
            values![jobs],
        );
    }
    let mut rows = BTreeSet::new();
    for version in uses.values() {
        let calendars = version.spec.calendar.iter();
        for name in calendars.flat_map(|uses| uses.only.iter().chain(&uses.minus)) {
            let namespace = version.spec.namespace.as_str().to_owned();
            rows.insert((namespace, name.as_str().to_owned(), version.job.0 as i64));
        }
    }
    if !rows.is_empty() {
        let (mut namespaces, mut names, mut jobs) = (vec![], vec![], vec![]);
        for (namespace, name, job) in rows {
            namespaces.push(namespace);
            names.push(name);
            jobs.push(job);
        }
        let sql =
            "INSERT INTO calendar_user SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])";
        batch.expect(
            jobs.len(),
            "uses of calendars",
            sql,
            values![namespaces, names, jobs],
        );
    }
}

#[derive(Default)]
struct RunColumns {
    ids: Vec<i64>,
    jobs: Vec<i64>,
    start_by: Vec<Option<i64>>,
    segments: Vec<i16>,
    scheduled: Vec<bool>,
    parked: Vec<Option<Vec<u8>>>,
    overlap: Vec<Option<Vec<u8>>>,
    bodies: Vec<Vec<u8>>,
    params: Vec<Option<Vec<u8>>>,
    results: Vec<Option<Vec<u8>>>,
}

impl RunColumns {
    fn push(&mut self, run: &Run) -> Result<(), Error> {
        self.ids.push(run.id.0 as i64);
        self.jobs.push(run.job.0 as i64);
        let parked_start = run.must_start_by().filter(|_| run.parked.is_some());
        self.start_by.push(parked_start.map(|by| by.0));
        self.segments.push(run.id.segment().0 as i16);
        self.scheduled.push(run.origin == Origin::Schedule);
        self.parked
            .push(run.parked.as_ref().map(|key| key.clone().into_bytes()));
        self.overlap
            .push(columns::standing(run).map(String::into_bytes));
        self.bodies.push(packed::seal(run)?);
        self.params
            .push(packed::aside(run.params.as_ref()).map(columns::raw));
        self.results
            .push(packed::aside(run.result.as_ref()).map(columns::raw));
        Ok(())
    }

    fn add_to(self, batch: &mut Batch, sql: &'static str, what: &'static str) {
        if !self.ids.is_empty() {
            let rows = self.ids.len();
            let values = values![
                self.ids,
                self.jobs,
                self.start_by,
                self.segments,
                self.scheduled,
                self.parked,
                self.overlap,
                self.bodies,
                self.params,
                self.results
            ];
            batch.expect(rows, what, sql, values);
        }
    }
}

fn runs(
    changes: &ChangeSet,
    is_new: impl Fn(u64) -> bool,
    batch: &mut Batch,
) -> Result<Finished, Error> {
    let (mut inserts, mut updates) = (RunColumns::default(), RunColumns::default());
    let (mut ends, mut histories) = (Vec::new(), history::Columns::default());
    // Ids that could be there already: an id above all that were ever seen of its segment needs no look.
    let (mut doubted, mut unstarted) = (Vec::new(), Vec::new());
    let mut finished = Finished::default();
    for change in changes.runs.values() {
        let run = change.run();
        let doubt = !is_new(run.id.0);
        match change {
            RunChange::Insert(_) => inserts.push(run)?,
            RunChange::Update(_) => updates.push(run)?,
            RunChange::Finish(_) => ends.push(run.id.0 as i64),
            RunChange::InsertFinished(_) if doubt => unstarted.push(run.id.0 as i64),
            RunChange::InsertFinished(_) => {}
        }
        match change {
            RunChange::Insert(_) | RunChange::InsertFinished(_) if doubt => {
                doubted.push(run.id.0 as i64);
            }
            _ => {}
        }
        if run.state.is_terminal() {
            histories.push(run)?;
            finished.samples.push(crate::tally::Sample::of(run));
            finished.tallies.add(run);
        }
    }
    if !doubted.is_empty() {
        let sql = "SELECT 1 FROM history_1d WHERE id = ANY($1) UNION ALL SELECT 1 FROM history_7d WHERE id = ANY($1)
                   UNION ALL SELECT 1 FROM history_30d WHERE id = ANY($1) UNION ALL SELECT 1 FROM history_keep WHERE id = ANY($1)";
        batch.expect(0, "new runs that have ended", sql, values![doubted]);
    }
    if !unstarted.is_empty() {
        let sql = "SELECT 1 FROM run WHERE id = ANY($1)";
        batch.expect(
            0,
            "finished runs that have not ended",
            sql,
            values![unstarted],
        );
    }
    inserts.add_to(
        batch,
        "INSERT INTO run SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::boolean[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[])",
        "new runs",
    );
    updates.add_to(
        batch,
        "UPDATE run SET job = new.job, start_by = new.start_by, scheduled = new.scheduled, parked = new.parked,
           overlap = new.overlap, body = new.body, params = new.params, result = new.result
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::boolean[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[], $10::bytea[])
           AS new(id, job, start_by, segment, scheduled, parked, overlap, body, params, result)
         WHERE run.id = new.id",
        "runs to change",
    );
    if !ends.is_empty() {
        let sql = "DELETE FROM run WHERE id = ANY($1)";
        batch.expect(ends.len(), "runs to finish", sql, values![ends]);
    }
    histories.add_to(batch);
    Ok(finished)
}

/// The greatest version of a calendar that goes when `version` comes.
pub fn outlived(version: u32) -> i64 {
    i64::from(version) - Limits::CALENDAR_VERSIONS as i64
}
