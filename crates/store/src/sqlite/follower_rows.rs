//! Which job runs after which, what has come of it, and ends that have yet to be told.

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{Ending, JobName, JobRecord, NamespaceName, SegmentSet};
use rusqlite::{Connection, params};

use super::job_records::{Records, columns};
use super::within::{self, within};
use crate::{Error, codec};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    followers(conn, changes)?;
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO waits VALUES(?1, ?2)")?;
    let mut delete = conn.prepare_cached("DELETE FROM waits WHERE job = ?1")?;
    for (job, row) in &changes.waits {
        let job = job.0 as i64;
        match row {
            Some(row) => replace.execute(params![job, codec::seal(row)?])?,
            None => delete.execute([job])?,
        };
    }
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO ending VALUES(?1, ?2)")?;
    let mut delete = conn.prepare_cached("DELETE FROM ending WHERE run = ?1")?;
    for (run, ending) in &changes.endings {
        let run = run.0 as i64;
        match ending {
            Some(ending) => replace.execute(params![run, codec::seal(ending)?])?,
            None => delete.execute([run])?,
        };
    }
    Ok(())
}

/// Brings the followers up to the definitions that the set brings. A job's newest definition is its current one.
fn followers(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut forget = conn.prepare_cached("DELETE FROM follower WHERE job = ?1")?;
    let mut insert = conn.prepare_cached("INSERT OR IGNORE INTO follower VALUES(?1, ?2, ?3)")?;
    for ((job, _), version) in &changes.versions {
        let job_key = job.0 as i64;
        // One set may make a job and edit it.
        if version.version > 1 {
            forget.execute([job_key])?;
        }
        let namespace = version.spec.namespace.as_str();
        let after = version.spec.after.iter();
        for name in after.flat_map(|after| &after.jobs) {
            insert.execute(params![namespace, name.as_str(), job_key])?;
        }
    }
    for (job, change) in &changes.jobs {
        let (JobChange::Insert(row) | JobChange::Update(row)) = change;
        if row.deleted {
            forget.execute([job.0 as i64])?;
        }
    }
    Ok(())
}

/// Jobs that run after another, by id above `after`.
pub fn of(
    conn: &Connection,
    within: &SegmentSet,
    (namespace, name): (&NamespaceName, &JobName),
    after: i64,
    limit: i64,
) -> Result<Vec<JobRecord>, Error> {
    let sql = concat!(
        columns!(),
        "FROM follower CROSS JOIN job ON job.id = follower.job
         LEFT JOIN schedule ON schedule.job = job.id
         WHERE follower.namespace = ?1 AND follower.name = ?2 AND follower.job > ?3 AND ",
        within!("follower.job", "?5"),
        " ORDER BY follower.job LIMIT ?4"
    );
    let within = within::parameter(within);
    let values = params![namespace.as_str(), name.as_str(), after, limit, within];
    Records::all(conn, sql, values)
}

/// Ends that have yet to be told, in order of their runs.
pub fn endings(conn: &Connection, within: &SegmentSet, limit: i64) -> Result<Vec<Ending>, Error> {
    let mut select = conn.prepare_cached(concat!(
        "SELECT body FROM ending WHERE ",
        within!("run", "?2"),
        " ORDER BY run LIMIT ?1"
    ))?;
    let mut rows = select.query(params![limit, within::parameter(within)])?;
    let mut endings = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        endings.push(codec::open(body)?);
    }
    Ok(endings)
}
