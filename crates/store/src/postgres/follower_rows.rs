//! Which job runs after which, what has come of it, and ends that have yet to be told.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{Ending, JobId, JobName, JobRecord, NamespaceName, SegmentSet};
use serde::Serialize;

use super::batch::{Batch, values};
use super::connect::Values;
use super::job_rows::{self, records};
use super::pool::Pool;
use super::row::{self, above, rows_of};
use crate::{Error, codec};

pub fn apply(changes: &ChangeSet, batch: &mut Batch) -> Result<(), Error> {
    followers(changes, batch);
    let waits = changes.waits.iter().map(|(job, row)| (job.0, row));
    put(
        waits,
        batch,
        "INSERT INTO waits SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT (job) DO UPDATE SET body = excluded.body",
        "DELETE FROM waits WHERE job = ANY($1)",
    )?;
    let endings = changes.endings.iter().map(|(run, row)| (run.0, row));
    put(
        endings,
        batch,
        "INSERT INTO ending SELECT * FROM unnest($1::bigint[], $2::bytea[]) ON CONFLICT (run) DO UPDATE SET body = excluded.body",
        "DELETE FROM ending WHERE run = ANY($1)",
    )
}

/// Rows under an id that are inserted, replaced, or deleted where there are none.
fn put<'a, T: Serialize + 'a>(
    rows: impl Iterator<Item = (u64, &'a Option<T>)>,
    batch: &mut Batch,
    replace: &'static str,
    delete: &'static str,
) -> Result<(), Error> {
    let (mut keys, mut bodies, mut gone) = (vec![], vec![], vec![]);
    for (key, row) in rows {
        match row {
            Some(row) => {
                keys.push(key as i64);
                bodies.push(codec::seal(row)?);
            }
            None => gone.push(key as i64),
        }
    }
    if !keys.is_empty() {
        batch.add(replace, values![keys, bodies]);
    }
    if !gone.is_empty() {
        batch.add(delete, values![gone]);
    }
    Ok(())
}

/// Brings the followers up to the definitions that the set brings. A job's newest definition is its current one.
fn followers(changes: &ChangeSet, batch: &mut Batch) {
    let mut forget = BTreeSet::new();
    let mut newest = BTreeMap::new();
    for ((job, _), version) in &changes.versions {
        if !matches!(changes.jobs.get(job), Some(JobChange::Insert(_))) {
            forget.insert(job.0 as i64);
        }
        newest.insert(*job, version);
    }
    for (job, change) in &changes.jobs {
        let (JobChange::Insert(row) | JobChange::Update(row)) = change;
        if row.deleted {
            forget.insert(job.0 as i64);
            newest.remove(job);
        }
    }
    if !forget.is_empty() {
        let jobs: Vec<i64> = forget.into_iter().collect();
        batch.add("DELETE FROM follower WHERE job = ANY($1)", values![jobs]);
    }
    let (mut namespaces, mut names, mut jobs) = (vec![], vec![], vec![]);
    for version in newest.values() {
        let after = version.spec.after.iter();
        for name in after.flat_map(|after| &after.jobs) {
            namespaces.push(version.spec.namespace.as_str().to_owned());
            names.push(name.as_str().to_owned());
            jobs.push(version.job.0 as i64);
        }
    }
    if !jobs.is_empty() {
        let sql = "INSERT INTO follower SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])";
        let values = values![namespaces, names, jobs.clone()];
        batch.expect(jobs.len(), "followers", sql, values);
    }
}

/// Jobs that run after another, by id above `after`.
pub fn of(
    pool: &Pool,
    within: &SegmentSet,
    (namespace, name): (&NamespaceName, &JobName),
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<JobRecord>, Error> {
    let sql = records!(
        "SELECT job FROM follower WHERE namespace = $1 AND name = $2 AND job > $3
           AND ($5::smallint[] IS NULL OR ((job >> 12) & 1023)::smallint = ANY($5)) ORDER BY job LIMIT $4",
        "job.id"
    );
    let (after, within) = (above(after.map(|id| id.0)), row::within(within));
    let (namespace, name) = (namespace.as_str(), name.as_str());
    let values: Values<'_> = &[&namespace, &name, &after, &rows_of(limit), &within];
    job_rows::all(pool, sql, values)
}

/// Ends that have yet to be told, in order of their runs.
pub fn endings(pool: &Pool, within: &SegmentSet, limit: usize) -> Result<Vec<Ending>, Error> {
    let sql = "SELECT body FROM ending
               WHERE $2::smallint[] IS NULL OR ((run >> 12) & 1023)::smallint = ANY($2) ORDER BY run LIMIT $1";
    let within = row::within(within);
    let rows = pool.rows(sql, &[&rows_of(limit), &within])?;
    rows.iter()
        .map(|row| codec::open(row.try_get(0)?))
        .collect()
}
