//! Checkpoints: one row a run, which only a greater number replaces.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Checkpoint, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use super::apply::exactly_one;
use crate::Error;

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    if changes.checkpoints.is_empty() {
        return Ok(());
    }
    let mut put = conn.prepare_cached(
        "INSERT INTO checkpoint VALUES(?1, ?2, ?3) ON CONFLICT(run) DO UPDATE SET
           number = excluded.number, body = excluded.body WHERE number < excluded.number",
    )?;
    for (run, checkpoint) in &changes.checkpoints {
        match checkpoint {
            Some(Checkpoint { number, body }) => {
                let values = params![run.0 as i64, *number as i64, &body[..]];
                exactly_one(&mut put, values, || {
                    format!("the checkpoint of {run} would go back")
                })?;
            }
            None => remove(conn, run.0 as i64)?,
        }
    }
    Ok(())
}

pub fn remove(conn: &Connection, run: i64) -> Result<(), Error> {
    conn.prepare_cached("DELETE FROM checkpoint WHERE run = ?1")?
        .execute([run])?;
    Ok(())
}

pub fn of(conn: &Connection, run: RunId) -> Result<Option<Checkpoint>, Error> {
    let Ok(id) = i64::try_from(run.0) else {
        return Ok(None);
    };
    let mut select = conn.prepare_cached("SELECT number, body FROM checkpoint WHERE run = ?1")?;
    let found = select.query_row([id], |row| {
        let body = row.get_ref(1)?.as_blob()?;
        Ok(Checkpoint {
            number: row.get::<_, i64>(0)? as u64,
            body: body.into(),
        })
    });
    Ok(found.optional()?)
}
