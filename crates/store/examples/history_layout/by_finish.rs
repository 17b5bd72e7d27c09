//! History keyed by a number that grows with each finished run: layouts `b`, `c` and `e`.
//!
//! Rows only append, however late a run ends, and the postings of the open bucket are exactly the rows above
//! a remembered number. What is left is the way from a run id to its number: a narrow row each (`b`),
//! sorted chunks with late runs apart (`c`), or sorted chunks alone (`e`).

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::id_chunks::{self, IdChunks};
use crate::layout::{DONE, HISTORY_BODY, Layout};
use crate::postings::{self, BUCKET_ROWS, Postings};
use crate::workload::{Batch, Run};

enum IdMap {
    Rows,
    Chunks(IdChunks),
}

pub struct ByFinish {
    keep_rows: i64,
    last_fin: i64,
    ids: IdMap,
    postings: Postings,
}

impl ByFinish {
    pub fn with_map(keep_rows: u64) -> Self {
        Self::new(keep_rows, IdMap::Rows)
    }

    pub fn with_chunks(keep_rows: u64, late_apart: bool) -> Self {
        Self::new(keep_rows, IdMap::Chunks(IdChunks::new(late_apart)))
    }

    fn new(keep_rows: u64, ids: IdMap) -> Self {
        Self {
            keep_rows: keep_rows as i64,
            last_fin: 0,
            ids,
            postings: Postings::new(0),
        }
    }

    fn row(conn: &Connection, fin: i64) -> Result<Option<i64>> {
        let mut select = conn.prepare_cached("SELECT id, body FROM history WHERE fin = ?1")?;
        let mut rows = select.query([fin])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        assert_eq!(
            row.get_ref(1)?.as_blob()?.len(),
            HISTORY_BODY.len(),
            "the row of {fin} is cut"
        );
        row.get(0).map(Some)
    }
}

impl Layout for ByFinish {
    fn schema(&self) -> String {
        let history = "CREATE TABLE history(fin INTEGER PRIMARY KEY, id INTEGER NOT NULL, job INTEGER NOT NULL,
             state INTEGER NOT NULL, late INTEGER NOT NULL, created INTEGER NOT NULL, finished INTEGER NOT NULL,
             body BLOB NOT NULL);";
        let ids = match self.ids {
            IdMap::Rows => "CREATE TABLE fin_of(id INTEGER PRIMARY KEY, fin INTEGER NOT NULL);",
            IdMap::Chunks(_) => id_chunks::SCHEMA,
        };
        format!("{history}{ids}{}", postings::SCHEMA)
    }

    fn finish(&mut self, conn: &Connection, runs: &[Run], now_ms: i64) -> Result<()> {
        let mut insert =
            conn.prepare_cached("INSERT INTO history VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        for run in runs {
            self.last_fin += 1;
            let late = matches!(&self.ids, IdMap::Chunks(chunks) if chunks.is_late(run.id));
            let (fin, created_ms) = (self.last_fin, run.created_ms());
            insert.execute(params![
                fin,
                run.id,
                run.job,
                DONE,
                late,
                created_ms,
                now_ms,
                HISTORY_BODY
            ])?;
            self.postings.push(run.job, fin);
            if let IdMap::Chunks(chunks) = &mut self.ids {
                chunks.push(conn, run.id, fin)?;
            }
        }
        if let IdMap::Rows = self.ids {
            let mut insert = conn.prepare_cached("INSERT INTO fin_of VALUES(?1, ?2)")?;
            for (run, fin) in runs.iter().zip(self.last_fin - runs.len() as i64 + 1..) {
                insert.execute([run.id, fin])?;
            }
        }
        Ok(())
    }

    fn retain(&mut self, conn: &Connection, _batch: &Batch) -> Result<()> {
        let left = self.last_fin - self.keep_rows;
        let (select, delete) = match &mut self.ids {
            IdMap::Rows => (
                "SELECT id FROM history WHERE fin < ?1",
                "DELETE FROM fin_of WHERE id = ?1",
            ),
            IdMap::Chunks(chunks) => {
                chunks.step(conn, left)?;
                (
                    "SELECT id FROM history WHERE fin < ?1 AND late",
                    "DELETE FROM late_fin WHERE id = ?1",
                )
            }
        };
        let mut ids: Vec<i64> = conn
            .prepare_cached(select)?
            .query_map([left], |row| row.get(0))?
            .collect::<Result<_>>()?;
        ids.sort_unstable();
        let mut delete = conn.prepare_cached(delete)?;
        for id in ids {
            delete.execute([id])?;
        }
        conn.prepare_cached("DELETE FROM history WHERE fin < ?1")?
            .execute([left])?;
        self.postings.step(conn, left)
    }

    fn find(&self, conn: &Connection, id: i64) -> Result<bool> {
        let fin = match &self.ids {
            IdMap::Rows => {
                let mut select = conn.prepare_cached("SELECT fin FROM fin_of WHERE id = ?1")?;
                select.query_row([id], |row| row.get(0)).optional()?
            }
            IdMap::Chunks(chunks) => chunks.find(conn, id)?,
        };
        let Some(fin) = fin else { return Ok(false) };
        Ok(Self::row(conn, fin)? == Some(id))
    }

    fn list(&self, conn: &Connection, job: u32, limit: usize) -> Result<Option<Vec<i64>>> {
        let mut ids = Vec::with_capacity(limit);
        self.postings.newest(conn, job, |fin| {
            ids.extend(Self::row(conn, fin)?);
            Ok(ids.len() < limit)
        })?;
        Ok(Some(ids))
    }

    fn replay(&self, conn: &Connection) -> Result<Option<usize>> {
        let from = self.last_fin - 2 * BUCKET_ROWS as i64;
        let mut postings = Postings::new(0);
        let mut ids = HashMap::new();
        let mut select =
            conn.prepare("SELECT fin, id, job FROM history WHERE fin > ?1 ORDER BY fin")?;
        let mut rows = select.query([from])?;
        while let Some(row) = rows.next()? {
            let fin: i64 = row.get(0)?;
            ids.insert(row.get::<_, i64>(1)?, fin);
            postings.push(row.get(2)?, fin);
        }
        Ok(Some(ids.len()))
    }

    fn list_slowly(&self) -> Option<&'static str> {
        Some("SELECT id FROM history WHERE job = ?1 ORDER BY fin DESC LIMIT ?2")
    }
}
