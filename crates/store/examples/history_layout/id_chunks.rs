//! Run id to finish number without a row per run: sorted chunks of pairs, one blob each.
//!
//! The pairs of the open bucket are in memory. A full bucket is sorted and written in steps, then known only by
//! its id range. A lookup probes the buckets whose range holds the id, oldest first: the first or second for a
//! run that ended soon, later ones the longer it ran. It relies on no clock, only on the ids themselves.
//! With `late_apart` ids far behind go to `late_fin`, a row each, and ranges stay tight.
//!
//! Chunks are small because a `WITHOUT ROWID` tree keeps whole rows in its inner pages: 256 pairs overflow a
//! page and make the tree deep.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, OptionalExtension, Result, params};

use crate::postings::{BUCKET_ROWS, put_varint, take_varint};

const CHUNK_PAIRS: usize = 64;
const WRITES_A_COMMIT: usize = 128;
const DELETES_A_COMMIT: u32 = 128;

pub const SCHEMA: &str =
    "CREATE TABLE id_chunk(bucket INTEGER, first_id INTEGER, pairs BLOB NOT NULL,
       PRIMARY KEY(bucket, first_id)) WITHOUT ROWID;
     CREATE TABLE late_fin(id INTEGER PRIMARY KEY, fin INTEGER NOT NULL);";

struct Range {
    number: i64,
    first_id: i64,
    last_id: i64,
    last_fin: i64,
}

#[derive(Default)]
pub struct IdChunks {
    late_apart: bool,
    number: i64,
    floor: i64,
    next_floor: i64,
    greatest: i64,
    open: HashMap<i64, i64>,
    closing: Vec<(i64, i64)>,
    written: usize,
    closed: VecDeque<Range>,
}

impl IdChunks {
    pub fn new(late_apart: bool) -> Self {
        Self {
            late_apart,
            ..Self::default()
        }
    }

    pub fn is_late(&self, id: i64) -> bool {
        self.late_apart && id <= self.floor
    }

    pub fn push(&mut self, conn: &Connection, id: i64, fin: i64) -> Result<()> {
        if self.is_late(id) {
            conn.prepare_cached("INSERT INTO late_fin VALUES(?1, ?2)")?
                .execute(params![id, fin])?;
            return Ok(());
        }
        self.greatest = self.greatest.max(id);
        self.open.insert(id, fin);
        if self.open.len() >= BUCKET_ROWS {
            self.write(conn, usize::MAX)?;
            self.turn();
        }
        Ok(())
    }

    fn turn(&mut self) {
        self.closing = self.open.drain().collect();
        self.closing.sort_unstable();
        self.written = 0;
        self.number += 1;
        let last_fin = self
            .closing
            .iter()
            .map(|pair| pair.1)
            .max()
            .unwrap_or_default();
        let (first_id, last_id) = (self.closing[0].0, self.closing[self.closing.len() - 1].0);
        self.closed.push_back(Range {
            number: self.number,
            first_id,
            last_id,
            last_fin,
        });
        self.floor = self.next_floor;
        self.next_floor = self.greatest;
    }

    /// One step of writing the closing bucket and of dropping what only holds numbers below `left`.
    pub fn step(&mut self, conn: &Connection, left: i64) -> Result<()> {
        self.write(conn, WRITES_A_COMMIT)?;
        let Some(range) = self.closed.front().filter(|range| range.last_fin < left) else {
            return Ok(());
        };
        let deleted = conn
            .prepare_cached(
                "DELETE FROM id_chunk WHERE bucket = ?1 AND first_id IN
                   (SELECT first_id FROM id_chunk WHERE bucket = ?1 ORDER BY first_id LIMIT ?2)",
            )?
            .execute(params![range.number, DELETES_A_COMMIT])?;
        if deleted == 0 {
            self.closed.pop_front();
        }
        Ok(())
    }

    fn write(&mut self, conn: &Connection, chunks: usize) -> Result<()> {
        let mut insert = conn.prepare_cached("INSERT INTO id_chunk VALUES(?1, ?2, ?3)")?;
        for pairs in self.closing[self.written..]
            .chunks(CHUNK_PAIRS)
            .take(chunks)
        {
            insert.execute(params![self.number, pairs[0].0, encode(pairs)])?;
            self.written += pairs.len();
        }
        Ok(())
    }

    pub fn find(&self, conn: &Connection, id: i64) -> Result<Option<i64>> {
        if let Some(&fin) = self.open.get(&id) {
            return Ok(Some(fin));
        }
        if let Ok(at) = self.closing.binary_search_by_key(&id, |pair| pair.0) {
            return Ok(Some(self.closing[at].1));
        }
        let mut chunk = conn.prepare_cached(
            "SELECT pairs FROM id_chunk WHERE bucket = ?1 AND first_id <= ?2 ORDER BY first_id DESC LIMIT 1",
        )?;
        let covers = |range: &&Range| range.first_id <= id && id <= range.last_id;
        for range in self.closed.iter().filter(covers) {
            let mut rows = chunk.query(params![range.number, id])?;
            let Some(row) = rows.next()? else { continue };
            if let Some(fin) = search(row.get_ref(0)?.as_blob()?, id) {
                return Ok(Some(fin));
            }
        }
        if !self.late_apart {
            return Ok(None);
        }
        let mut late = conn.prepare_cached("SELECT fin FROM late_fin WHERE id = ?1")?;
        late.query_row([id], |row| row.get(0)).optional()
    }
}

/// Each pair as varints: the id's difference to the one before, and the zigzag of the number's.
fn encode(pairs: &[(i64, i64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pairs.len() * 8);
    let mut before = (0, 0);
    for &(id, fin) in pairs {
        let step: i64 = fin - before.1;
        put_varint(&mut bytes, (id - before.0) as u64);
        put_varint(&mut bytes, (step << 1 ^ step >> 63) as u64);
        before = (id, fin);
    }
    bytes
}

fn search(mut bytes: &[u8], wanted: i64) -> Option<i64> {
    let (mut id, mut fin) = (0, 0);
    while !bytes.is_empty() && id < wanted {
        id += take_varint(&mut bytes) as i64;
        let step = take_varint(&mut bytes);
        fin += (step >> 1) as i64 ^ -((step & 1) as i64);
    }
    (id == wanted).then_some(fin)
}
