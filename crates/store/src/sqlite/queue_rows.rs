//! Queues, and how far rates have been used.

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{GateKey, QueueRow, RateRow};
use rusqlite::{Connection, params};

use crate::{Error, codec};

pub fn apply(conn: &Connection, changes: &ChangeSet) -> Result<(), Error> {
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO queue VALUES(?1, ?2, ?3)")?;
    for (queue, row) in &changes.queues {
        let (namespace, name) = (queue.namespace.as_str(), queue.name.as_str());
        replace.execute(params![namespace, name, codec::seal_queue(row)?])?;
    }
    if changes.rates.is_empty() {
        return Ok(());
    }
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO rate VALUES(?1, ?2)")?;
    // One that was used and is over within the set never had a row.
    let mut delete = conn.prepare_cached("DELETE FROM rate WHERE gate = ?1")?;
    for (gate, row) in &changes.rates {
        match row {
            Some(row) => replace.execute(params![gate.to_string(), codec::seal(row)?])?,
            None => delete.execute([gate.to_string()])?,
        };
    }
    Ok(())
}

pub fn all_queues(conn: &Connection) -> Result<Vec<QueueRow>, Error> {
    let mut select = conn.prepare_cached("SELECT body FROM queue ORDER BY namespace, name")?;
    let mut rows = select.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let body = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        queues.push(codec::open_queue(body)?);
    }
    Ok(queues)
}

pub fn all_rates(conn: &Connection) -> Result<Vec<(GateKey, RateRow)>, Error> {
    let mut select = conn.prepare_cached("SELECT gate, body FROM rate")?;
    let mut rows = select.query([])?;
    let mut rates = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let gate = GateKey::parse(&text)
            .ok_or_else(|| Error::Corrupt(format!("`{text}` is not a gate with a rate")))?;
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        rates.push((gate, codec::open(body)?));
    }
    rates.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(rates)
}
