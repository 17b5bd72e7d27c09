//! Locks that are held.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{LockRef, LockRow, NamespaceName};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{Error, codec};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO lock VALUES(?1, ?2, ?3)")?;
    // One that was taken and given back within the set never had a row.
    let mut delete = conn.prepare_cached("DELETE FROM lock WHERE namespace = ?1 AND name = ?2")?;
    for (lock, row) in &changes.locks {
        let (namespace, name) = (lock.namespace.as_str(), lock.name.as_str());
        match row {
            Some(row) => replace.execute(params![namespace, name, codec::seal(row)?])?,
            None => delete.execute([namespace, name])?,
        };
    }
    Ok(())
}

pub fn one(conn: &Connection, lock: &LockRef) -> Result<Option<LockRow>, Error> {
    let sql = "SELECT body FROM lock WHERE namespace = ?1 AND name = ?2";
    let body: Option<Vec<u8>> = conn
        .prepare_cached(sql)?
        .query_row([lock.namespace.as_str(), lock.name.as_str()], |row| {
            row.get(0)
        })
        .optional()?;
    body.map(|body| codec::open(&body)).transpose()
}

pub fn page(
    conn: &Connection,
    namespace: Option<&NamespaceName>,
    after: Option<&LockRef>,
    limit: usize,
) -> Result<Vec<LockRow>, Error> {
    let sql = "SELECT body FROM lock
               WHERE (?1 IS NULL OR namespace = ?1) AND (namespace, name) > (?2, ?3)
               ORDER BY namespace, name LIMIT ?4";
    let (from, name) = after.map_or(("", ""), |after| {
        (after.namespace.as_str(), after.name.as_str())
    });
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let namespace = namespace.map(NamespaceName::as_str);
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params![namespace, from, name, limit])?;
    let mut locks = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        locks.push(codec::open(body)?);
    }
    Ok(locks)
}
