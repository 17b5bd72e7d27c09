//! By-job postings: the keys of a job's finished runs, one sorted blob per (bucket, job).
//!
//! A bucket is open (in memory only) until it holds `BUCKET_ROWS` keys; then it is closing, its blobs written
//! in small steps, ordered by job so that they append; then it is closed, and memory forgets it. With
//! `grace` the last full bucket stays open too, so that a key a little behind the edge still finds its place.
//! Rebuilding the open buckets after a crash is left to the store.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, Result, params};

pub const BUCKET_ROWS: usize = 262_144;
const WRITES_A_COMMIT: usize = 64;
const DELETES_A_COMMIT: u32 = 128;

pub const SCHEMA: &str = "CREATE TABLE postings(bucket INTEGER, job INTEGER, keys BLOB NOT NULL,
     PRIMARY KEY(bucket, job)) WITHOUT ROWID;";

#[derive(Default)]
struct Bucket {
    number: i64,
    /// Keys at or below it belong to an earlier bucket.
    floor: i64,
    last: i64,
    len: usize,
    jobs: HashMap<u32, Vec<i64>>,
}

struct Closing {
    bucket: Bucket,
    unwritten: Vec<u32>,
}

pub struct Postings {
    grace: usize,
    /// Oldest first; the last one is the right edge.
    open: VecDeque<Bucket>,
    closing: VecDeque<Closing>,
    /// (number, greatest key), oldest first.
    closed: VecDeque<(i64, i64)>,
}

impl Postings {
    pub fn new(grace: usize) -> Self {
        let first = Bucket::default();
        Self {
            grace,
            open: VecDeque::from([first]),
            closing: VecDeque::new(),
            closed: VecDeque::new(),
        }
    }

    /// The bucket at or below whose floor a key is late.
    pub fn floor(&self) -> i64 {
        self.open[0].floor
    }

    pub fn push(&mut self, job: u32, key: i64) {
        let edge = self.open.len() - 1;
        let at = self
            .open
            .iter()
            .rposition(|bucket| key > bucket.floor)
            .unwrap_or(edge);
        let bucket = &mut self.open[at];
        bucket.jobs.entry(job).or_default().push(key);
        bucket.last = bucket.last.max(key);
        bucket.len += 1;
        if at == edge && bucket.len >= BUCKET_ROWS {
            self.turn();
        }
    }

    fn turn(&mut self) {
        let edge = &self.open[self.open.len() - 1];
        let next = Bucket {
            number: edge.number + 1,
            floor: edge.last,
            ..Bucket::default()
        };
        self.open.push_back(next);
        while self.open.len() > self.grace + 1 {
            let mut bucket = self.open.pop_front().expect("more than one bucket is open");
            bucket
                .jobs
                .values_mut()
                .for_each(|keys| keys.sort_unstable());
            let mut unwritten: Vec<u32> = bucket.jobs.keys().copied().collect();
            unwritten.sort_unstable_by(|a, b| b.cmp(a));
            self.closing.push_back(Closing { bucket, unwritten });
        }
    }

    /// One step of writing closing buckets and of dropping those whose greatest key is below `left`.
    pub fn step(&mut self, conn: &Connection, left: i64) -> Result<()> {
        self.write(conn)?;
        let Some(&(number, last)) = self.closed.front() else {
            return Ok(());
        };
        if last >= left {
            return Ok(());
        }
        let deleted = conn
            .prepare_cached(
                "DELETE FROM postings WHERE bucket = ?1 AND job IN
                   (SELECT job FROM postings WHERE bucket = ?1 ORDER BY job LIMIT ?2)",
            )?
            .execute(params![number, DELETES_A_COMMIT])?;
        if deleted == 0 {
            self.closed.pop_front();
        }
        Ok(())
    }

    fn write(&mut self, conn: &Connection) -> Result<()> {
        let Some(closing) = self.closing.front_mut() else {
            return Ok(());
        };
        let mut insert = conn.prepare_cached("INSERT INTO postings VALUES(?1, ?2, ?3)")?;
        for _ in 0..WRITES_A_COMMIT {
            let Some(job) = closing.unwritten.pop() else {
                break;
            };
            insert.execute(params![
                closing.bucket.number,
                job,
                encode(&closing.bucket.jobs[&job])
            ])?;
        }
        if closing.unwritten.is_empty() {
            self.closed
                .push_back((closing.bucket.number, closing.bucket.last));
            self.closing.pop_front();
        }
        Ok(())
    }

    /// The job's keys, newest bucket first and descending within a bucket, until `visit` returns false.
    pub fn newest(
        &self,
        conn: &Connection,
        job: u32,
        mut visit: impl FnMut(i64) -> Result<bool>,
    ) -> Result<()> {
        let closing = self.closing.iter().map(|closing| &closing.bucket);
        for bucket in closing.chain(&self.open).rev() {
            let mut keys = bucket.jobs.get(&job).cloned().unwrap_or_default();
            keys.sort_unstable();
            for &key in keys.iter().rev() {
                if !visit(key)? {
                    return Ok(());
                }
            }
        }
        let mut select =
            conn.prepare_cached("SELECT keys FROM postings WHERE bucket = ?1 AND job = ?2")?;
        for &(number, _) in self.closed.iter().rev() {
            let mut rows = select.query(params![number, job])?;
            let Some(row) = rows.next()? else { continue };
            for key in decode(row.get_ref(0)?.as_blob()?).into_iter().rev() {
                if !visit(key)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Ascending keys as varints of their differences.
fn encode(keys: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(keys.len() * 3 + 8);
    let mut before = 0;
    for &key in keys {
        put_varint(&mut bytes, (key - before) as u64);
        before = key;
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Vec<i64> {
    let mut keys = Vec::with_capacity(bytes.len() / 2);
    let mut key = 0;
    while !bytes.is_empty() {
        key += take_varint(&mut bytes) as i64;
        keys.push(key);
    }
    keys
}

pub fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

pub fn take_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    value
}
