//! A change set as SQL. Every statement says how many rows it expects; anything else breaks the commit off.

use drumtower_core::change::{ChangeSet, JobChange, ScheduleChange};
use drumtower_core::model::{JobRow, WallMs};
use rusqlite::{CachedStatement, Connection, Params, params};

use super::derived::{Batch, Derived};
use super::{
    backfill_rows, breaker_rows, calendar_rows, checkpoint_rows, drain_rows, follower_rows, keys,
    letter_rows, lock_rows, prune, queue_rows, record_rows, run_rows,
};
use crate::{Error, codec};

/// Moves the session row on. False when it is not at `seq - 1`, is revoked, or is not there.
pub fn fence(conn: &Connection, changes: &ChangeSet, clock: WallMs) -> Result<bool, Error> {
    let sql =
        "UPDATE session SET seq = ?2, expires = ?3 WHERE id = ?1 AND seq = ?2 - 1 AND revoked = 0";
    let expires = clock.plus(changes.extend_ms).0;
    let rows = conn.prepare_cached(sql)?.execute(params![
        changes.session.0 as i64,
        changes.seq as i64,
        expires
    ])?;
    Ok(rows == 1)
}

/// Applies all that the set holds and says what it finished.
pub fn everything(
    conn: &Connection,
    changes: &ChangeSet,
    derived: &Derived,
) -> Result<Batch, Error> {
    sessions(conn, changes)?;
    segments(conn, changes)?;
    jobs(conn, changes)?;
    versions(conn, changes)?;
    schedules(conn, changes)?;
    calendar_rows::uses(conn, changes)?;
    calendar_rows::versions(conn, changes)?;
    calendar_rows::sweeps(conn, changes)?;
    tz_version(conn, changes)?;
    let mut batch = Batch::default();
    run_rows::apply(conn, changes, derived, &mut batch)?;
    checkpoint_rows::apply(conn, changes)?;
    unfired(conn, changes)?;
    breaker_rows::apply(conn, changes)?;
    follower_rows::apply(conn, changes)?;
    counters(conn, changes)?;
    keys(conn, changes, derived, &mut batch)?;
    tokens(conn, changes)?;
    record_rows::settings(conn, changes)?;
    lock_rows::apply(conn, changes)?;
    queue_rows::apply(conn, changes)?;
    drain_rows::apply(conn, changes)?;
    record_rows::audit(conn, changes)?;
    letter_rows::apply(conn, changes)?;
    backfill_rows::apply(conn, changes)?;
    if let Some(prune) = &changes.prune {
        prune::step(conn, prune, changes.seq, derived, &mut batch)?;
    }
    Ok(batch)
}

/// Runs a statement that must touch exactly one row.
pub fn exactly_one(
    statement: &mut CachedStatement<'_>,
    values: impl Params,
    what: impl Fn() -> String,
) -> Result<(), Error> {
    match statement.execute(values) {
        Ok(1) => Ok(()),
        Ok(rows) => Err(Error::Invariant(format!(
            "{}: {rows} rows instead of one",
            what()
        ))),
        Err(error) => Err(match Error::from(error) {
            Error::Invariant(text) => Error::Invariant(format!("{}: {text}", what())),
            other => other,
        }),
    }
}

fn sessions(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut update = conn.prepare_cached("UPDATE session SET revoked = 1 WHERE id = ?1")?;
    for id in &changes.revoke {
        exactly_one(&mut update, [id.0 as i64], || {
            format!("revoke session {}", id.0)
        })?;
    }
    Ok(())
}

/// The rule is [`check::segment`](crate::check::segment).
fn segments(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut update = conn.prepare_cached(
        "UPDATE segment SET owner = ?2, epoch = ?3, id_mark = ?4
         WHERE id = ?1 AND id_mark <= ?4 AND (
           (owner = ?5 AND epoch = ?3 AND ?2 IN (?5, 0)) OR
           (?2 = ?5 AND epoch + 1 = ?3 AND NOT EXISTS (
             SELECT 1 FROM session WHERE session.id = segment.owner AND revoked = 0 AND session.id <> ?5)))",
    )?;
    for row in changes.segments.values() {
        let values = params![
            row.id.0,
            row.owner.0 as i64,
            row.epoch.0 as i64,
            row.id_mark as i64,
            changes.session.0 as i64
        ];
        exactly_one(&mut update, values, || {
            format!(
                "segment {}: another has it, or its epoch or mark is not as expected",
                row.id.0
            )
        })?;
    }
    Ok(())
}

/// Deletions first: a name may pass from one job to another within a set.
fn jobs(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let deletes = |change: &&JobChange| matches!(change, JobChange::Update(row) if row.deleted);
    for change in changes.jobs.values().filter(deletes) {
        job(conn, change)?;
    }
    for change in changes.jobs.values().filter(|change| !deletes(change)) {
        job(conn, change)?;
    }
    Ok(())
}

fn job(conn: &Connection, change: &JobChange) -> Result<(), Error> {
    let (sql, row): (_, &JobRow) = match change {
        JobChange::Insert(row) => ("INSERT INTO job VALUES(?1, ?2, ?3, ?4, ?5)", row),
        JobChange::Update(row) => (
            "UPDATE job SET namespace = ?2, name = ?3, deleted = ?4, body = ?5 WHERE id = ?1",
            row,
        ),
    };
    let body = codec::seal(row)?;
    let values = params![
        row.id.0 as i64,
        row.namespace.as_str(),
        row.name.as_str(),
        row.deleted,
        body
    ];
    exactly_one(&mut conn.prepare_cached(sql)?, values, || {
        format!("{} {}/{}", row.id, row.namespace, row.name)
    })
}

fn versions(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut insert = conn.prepare_cached("INSERT INTO job_version VALUES(?1, ?2, ?3)")?;
    for version in changes.versions.values() {
        let values = params![
            version.job.0 as i64,
            version.version,
            codec::seal_version(version)?
        ];
        exactly_one(&mut insert, values, || {
            format!("version {} of {}", version.version, version.job)
        })?;
    }
    Ok(())
}

fn schedules(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut insert = conn.prepare_cached("INSERT INTO schedule VALUES(?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut update = conn.prepare_cached(
        "UPDATE schedule SET fired_through = ?2, next_nominal = ?3, next_due = ?4, fires = ?5, paused_through = ?6
         WHERE job = ?1 AND fired_through = ?7",
    )?;
    for ScheduleChange { expected, row } in changes.schedules.values() {
        let (job, fires) = (row.job.0 as i64, row.fires as i64);
        let (nominal, due) = (row.next_nominal.map(|at| at.0), row.next_due.map(|at| at.0));
        let paused = row.paused_through.map(|at| at.0);
        let what = || format!("the schedule of {} does not stand where it should", row.job);
        match expected {
            None => exactly_one(
                &mut insert,
                params![job, row.fired_through.0, nominal, due, fires, paused],
                what,
            )?,
            Some(expected) => {
                let through = row.fired_through.0;
                let values = params![job, through, nominal, due, fires, paused, expected.0];
                exactly_one(&mut update, values, what)?;
            }
        }
    }
    Ok(())
}

fn tz_version(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let Some(version) = &changes.tz_version else {
        return Ok(());
    };
    let mut update = conn.prepare_cached("UPDATE meta SET tz_version = ?1")?;
    exactly_one(&mut update, [version], || "the meta row".to_owned())
}

fn unfired(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace =
        conn.prepare_cached("INSERT OR REPLACE INTO unfired VALUES(?1, ?2, ?3, ?4)")?;
    for range in changes.unfired.values() {
        replace.execute(params![
            range.job.0 as i64,
            range.first.0,
            range.last.0,
            codec::seal(range)?
        ])?;
    }
    Ok(())
}

fn counters(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached(
        "INSERT INTO counter VALUES(?1, ?2, ?3)
         ON CONFLICT(segment, namespace) DO UPDATE SET body = excluded.body",
    )?;
    for ((segment, namespace), counters) in &changes.counters {
        replace.execute(params![
            segment.0,
            namespace.as_str(),
            codec::seal(counters)?
        ])?;
    }
    Ok(())
}

fn keys(
    conn: &Connection,
    changes: &ChangeSet,
    derived: &Derived,
    batch: &mut Batch,
) -> Result<(), Error> {
    for entry in changes.keys.values() {
        keys::insert(
            conn,
            &derived.keys,
            derived.keys.next + batch.keys.len() as u64,
            entry,
        )?;
        batch.keys.push(entry.hash);
    }
    Ok(())
}

fn tokens(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO token VALUES(?1, ?2)")?;
    for token in changes.tokens.values() {
        replace.execute(params![token.id.0 as i64, codec::seal(token)?])?;
    }
    Ok(())
}
