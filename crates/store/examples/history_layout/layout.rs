//! What a layout must do, and the part all layouts share: the session row and the active rows.

use rusqlite::{Connection, Result, params};

use crate::by_finish::ByFinish;
use crate::by_id::ById;
use crate::workload::{Batch, Run};

const ACTIVE_BODY: [u8; 92] = [0xA5; 92];
pub const HISTORY_BODY: [u8; 196] = [0x5A; 196];
pub const DONE: i64 = 4;

const SHARED_SCHEMA: &str = "CREATE TABLE session(id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, expires_at INTEGER NOT NULL);
     INSERT INTO session VALUES(1, 0, 0);
     CREATE TABLE active(id INTEGER PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL,
       created INTEGER NOT NULL, body BLOB NOT NULL);";

pub const NAMES: [&str; 7] = ["none", "index", "a", "b", "c", "d", "e"];

/// One way to keep finished runs. `finish` and `retain` run inside the writer's transaction.
pub trait Layout {
    fn schema(&self) -> String;
    fn finish(&mut self, conn: &Connection, runs: &[Run], now_ms: i64) -> Result<()>;
    /// One small step of retention and of whatever else is spread over commits.
    fn retain(&mut self, conn: &Connection, batch: &Batch) -> Result<()>;
    /// The run's row by its id.
    fn find(&self, conn: &Connection, id: i64) -> Result<bool>;
    /// The job's latest runs in the layout's own order; `None` if the layout has no such lookup.
    fn list(&self, conn: &Connection, job: u32, limit: usize) -> Result<Option<Vec<i64>>>;
    /// Reads back what a crash takes from memory at worst, two buckets; the number of rows read.
    fn replay(&self, _conn: &Connection) -> Result<Option<usize>> {
        Ok(None)
    }
    /// What `list` must answer, found by scanning; `None` if its order cannot be told from the rows.
    fn list_slowly(&self) -> Option<&'static str>;
}

pub fn by_name(name: &str, keep_rows: u64) -> Option<Box<dyn Layout>> {
    Some(match name {
        "none" => Box::new(ById::bare()),
        "index" => Box::new(ById::indexed()),
        "a" => Box::new(ById::with_postings()),
        "b" => Box::new(ByFinish::with_map(keep_rows)),
        "c" => Box::new(ByFinish::with_chunks(keep_rows, true)),
        "e" => Box::new(ByFinish::with_chunks(keep_rows, false)),
        "d" => Box::new(ById::late_apart()),
        _ => return None,
    })
}

pub fn create(conn: &Connection, layout: &dyn Layout) -> Result<()> {
    conn.execute_batch(SHARED_SCHEMA)?;
    conn.execute_batch(&layout.schema())
}

/// One commit: fence, new runs, moves to history, retention.
pub fn commit(conn: &mut Connection, layout: &mut dyn Layout, batch: &Batch) -> Result<()> {
    let tx = conn.transaction()?;
    let fenced = tx
        .prepare_cached(
            "UPDATE session SET seq = ?1, expires_at = ?2 WHERE id = 1 AND seq = ?1 - 1",
        )?
        .execute(params![batch.seq, batch.now_ms + 10_000])?;
    assert_eq!(
        fenced,
        1,
        "the session row has another seq than {}",
        batch.seq - 1
    );
    {
        let mut insert = tx.prepare_cached("INSERT INTO active VALUES(?1, ?2, 1, ?3, ?4)")?;
        for run in &batch.created {
            insert.execute(params![run.id, run.job, run.created_ms(), ACTIVE_BODY])?;
        }
        let mut delete = tx.prepare_cached("DELETE FROM active WHERE id = ?1")?;
        for run in &batch.finished {
            let deleted = delete.execute([run.id])?;
            assert_eq!(deleted, 1, "run {} is not active", run.id);
        }
    }
    layout.finish(&tx, &batch.finished, batch.now_ms)?;
    layout.retain(&tx, batch)?;
    tx.commit()
}
