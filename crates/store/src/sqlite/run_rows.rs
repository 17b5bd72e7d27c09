//! Runs on their way: into the active table, within it, out of it into the history.

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{Origin, Run, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::exactly_one;
use super::buckets::Finished;
use super::derived::{Batch, Derived};
use super::history;
use crate::Error;
use crate::columns::{self, raw};
use crate::packed::{self, Aside};
use crate::tally::Sample;

pub fn apply(
    conn: &Connection,
    changes: &ChangeSet,
    derived: &Derived,
    batch: &mut Batch,
) -> Result<(), Error> {
    let mut insert = conn.prepare_cached(
        "INSERT INTO run(id, job, scheduled, parked, body, start_by, overlap) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut update = conn.prepare_cached(
        "UPDATE run SET job = ?2, scheduled = ?3, parked = ?4, body = ?5, start_by = ?6, overlap = ?7 WHERE id = ?1",
    )?;
    let mut delete = conn.prepare_cached("DELETE FROM run WHERE id = ?1")?;
    for change in changes.runs.values() {
        let run = change.run();
        let body = packed::seal(run)?;
        let id = run.id.0 as i64;
        let scheduled = run.origin == Origin::Schedule;
        let parked_start = run.must_start_by().filter(|_| run.parked.is_some());
        let start_by = parked_start.map(|by| by.0);
        let overlap = columns::standing(run);
        let row = params![
            id,
            run.job.0 as i64,
            scheduled,
            run.parked,
            body,
            start_by,
            overlap
        ];
        match change {
            RunChange::Insert(_) => {
                refuse_finished(conn, derived, run.id)?;
                exactly_one(&mut insert, row, || format!("insert {}", run.id))?;
            }
            RunChange::Update(_) => exactly_one(&mut update, row, || format!("update {}", run.id))?,
            RunChange::Finish(_) => {
                exactly_one(&mut delete, [id], || format!("finish {}", run.id))?;
                finish(conn, derived, run, &body, batch)?;
            }
            RunChange::InsertFinished(_) => {
                refuse_finished(conn, derived, run.id)?;
                if conn
                    .prepare_cached("SELECT 1 FROM run WHERE id = ?1")?
                    .exists([id])?
                {
                    return Err(Error::Invariant(format!("{} has not ended", run.id)));
                }
                finish(conn, derived, run, &body, batch)?;
            }
        }
        payloads(conn, run)?;
    }
    Ok(())
}

fn refuse_finished(conn: &Connection, derived: &Derived, id: RunId) -> Result<(), Error> {
    match derived.find(conn, id)? {
        None => Ok(()),
        Some(_) => Err(Error::Invariant(format!("{id} has ended"))),
    }
}

fn finish(
    conn: &Connection,
    derived: &Derived,
    run: &Run,
    body: &[u8],
    batch: &mut Batch,
) -> Result<(), Error> {
    let class = history::class_of(run.retention);
    let fin = derived.classes[class].next_fin + batch.runs[class].len() as u64;
    history::insert(conn, class, fin, run, body)?;
    let verdict = columns::verdict_of(run.state);
    batch.runs[class].push(Finished {
        fin,
        id: run.id.0,
        job: run.job.0,
        verdict,
    });
    batch.samples.push(Sample::of(run));
    Ok(())
}

/// Long payloads lie beside the rows. A run's parameters never change, so the row is written once.
fn payloads(conn: &Connection, run: &Run) -> Result<(), Error> {
    let id = run.id.0 as i64;
    if let Some(text) = packed::aside(run.params.as_ref()) {
        let sql = "INSERT INTO payload_params VALUES(?1, ?2)
                   ON CONFLICT(run) DO UPDATE SET body = excluded.body WHERE body IS NOT excluded.body";
        conn.prepare_cached(sql)?.execute(params![id, raw(text)])?;
    }
    if let Some(text) = packed::aside(run.result.as_ref()) {
        let sql = "INSERT INTO payload_result VALUES(?1, ?2)
                   ON CONFLICT(run) DO UPDATE SET body = excluded.body WHERE body IS NOT excluded.body";
        conn.prepare_cached(sql)?.execute(params![id, raw(text)])?;
    }
    Ok(())
}

/// Long payloads as a snapshot has them.
pub struct Payloads<'a>(pub &'a Connection);

impl Payloads<'_> {
    fn get(&self, sql: &str, run: RunId) -> Result<String, Error> {
        let blob: Option<Vec<u8>> = self
            .0
            .prepare_cached(sql)?
            .query_row([run.0 as i64], |row| row.get(0))
            .optional()?;
        columns::open_raw(blob.as_deref(), run)
    }
}

impl Aside for Payloads<'_> {
    fn params(&self, run: RunId) -> Result<String, Error> {
        self.get("SELECT body FROM payload_params WHERE run = ?1", run)
    }

    fn result(&self, run: RunId) -> Result<String, Error> {
        self.get("SELECT body FROM payload_result WHERE run = ?1", run)
    }
}
