//! Circuit breakers of jobs that failed; most jobs have no row.

use drumtower_core::change::ChangeSet;
use rusqlite::{Connection, params};

use crate::{Error, codec};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO breaker VALUES(?1, ?2)")?;
    // One that failed and completed within the set never had a row.
    let mut delete = conn.prepare_cached("DELETE FROM breaker WHERE job = ?1")?;
    for (job, row) in &changes.breakers {
        let job = job.0 as i64;
        match row {
            Some(row) => replace.execute(params![job, codec::seal(row)?])?,
            None => delete.execute([job])?,
        };
    }
    Ok(())
}
