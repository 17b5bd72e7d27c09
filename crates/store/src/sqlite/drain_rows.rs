//! Drains that are in force.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::DrainRow;
use rusqlite::{Connection, params};

use crate::{Error, codec, columns};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO drain VALUES(?1, ?2, ?3)")?;
    // One that was begun and ended within the set never had a row.
    let mut delete = conn.prepare_cached("DELETE FROM drain WHERE name = ?1 AND namespace = ?2")?;
    for (workers, row) in &changes.drains {
        let (name, namespace) = columns::drain_key(workers);
        match row {
            Some(row) => replace.execute(params![name, namespace, codec::seal(row)?])?,
            None => delete.execute([name, namespace])?,
        };
    }
    Ok(())
}

pub fn all(conn: &Connection) -> Result<Vec<DrainRow>, Error> {
    let mut select = conn.prepare_cached("SELECT body FROM drain ORDER BY name, namespace")?;
    let mut rows = select.query([])?;
    let mut drains = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        drains.push(codec::open(body)?);
    }
    Ok(drains)
}
