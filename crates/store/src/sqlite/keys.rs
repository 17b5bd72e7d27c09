//! Idempotency keys: rows in the order they came, and the way from a hash to its row.
//!
//! Hashes are random, so an index on them would dirty a page for each key. Instead rows are numbered and appended, and the
//! hashes of the newest bucket live in memory. A full bucket is written as sorted chunks, a few in each commit; what stays
//! in memory of it is a filter of two bytes a key, which answers nearly every question about an unknown key without a look
//! at the disk. As in [`super::buckets`], nothing changes before the commit is known.

use std::collections::{BTreeSet, VecDeque};

use drumtower_core::model::{IdempotencyEntry, IdempotencyHash, RunId, WallMs};
use rusqlite::{Connection, OptionalExtension, params};

use super::chunk::{self, Spot};
use super::filter::Filter;
use crate::Error;

/// A bucket of which something is not written.
struct Held {
    number: u64,
    /// The beginnings of hashes that have no chunk, with the number of the row.
    places: BTreeSet<(u64, u64)>,
    filter: Filter,
    done: i64,
}

pub struct Keys {
    bucket_rows: u64,
    blobs_a_commit: usize,
    pub next: u64,
    /// In order; all but the last are full.
    held: VecDeque<Held>,
    /// Buckets of which something is written, in order.
    written: Vec<(u64, Filter)>,
}

/// What one commit wrote of one held bucket.
pub struct Progress {
    places: usize,
    whole: bool,
    done: i64,
}

/// Where the row of a hash may be.
#[derive(Default)]
pub struct Candidates {
    rows: Vec<u64>,
    /// Written buckets, with their first row.
    buckets: Vec<(u64, u64)>,
}

/// The part of a hash that chunks are sorted by; it fits a signed integer.
fn beginning(hash: &IdempotencyHash) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.0[..8]);
    u64::from_le_bytes(bytes) >> 1
}

impl Keys {
    pub fn load(conn: &Connection, blobs_a_commit: usize) -> Result<Self, Error> {
        let sql = "SELECT bucket_rows, next, bucket, done FROM key_state WHERE one = 1";
        let row = conn.query_row(sql, [], |row| {
            Ok((
                row.get::<_, i64>(0)? as u64,
                row.get::<_, i64>(1)? as u64,
                row.get::<_, i64>(2)? as u64,
                row.get(3)?,
            ))
        })?;
        let (bucket_rows, next, bucket, done): (u64, u64, u64, i64) = row;
        if bucket_rows == 0 {
            return Err(Error::Corrupt(
                "idempotency keys have buckets of no rows".to_owned(),
            ));
        }
        let mut keys = Self {
            bucket_rows,
            blobs_a_commit: blobs_a_commit.max(1),
            next,
            held: VecDeque::new(),
            written: Vec::new(),
        };
        let mut select = conn.prepare("SELECT number, filter FROM key_bucket ORDER BY number")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let blob = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            keys.written
                .push((row.get::<_, i64>(0)? as u64, Filter::open(blob)?));
        }
        let first = keys.held_bucket(bucket);
        keys.held.push_back(Held { done, ..first });
        let mut select =
            conn.prepare("SELECT n, hash FROM idempotency WHERE n >= ?1 ORDER BY n")?;
        let mut rows = select.query([bucket.saturating_mul(bucket_rows) as i64])?;
        while let Some(row) = rows.next()? {
            keys.push(row.get::<_, i64>(0)? as u64, &IdempotencyHash(row.get(1)?));
        }
        Ok(keys)
    }

    fn held_bucket(&self, number: u64) -> Held {
        Held {
            number,
            places: BTreeSet::new(),
            filter: Filter::for_keys(self.bucket_rows),
            done: -1,
        }
    }

    fn push(&mut self, n: u64, hash: &IdempotencyHash) {
        let number = n / self.bucket_rows;
        if self.held.back().is_none_or(|held| held.number != number) {
            let bucket = self.held_bucket(number);
            self.held.push_back(bucket);
        }
        let Some(held) = self.held.back_mut() else {
            return;
        };
        held.filter.put(hash);
        let place = beginning(hash);
        if i64::try_from(place).unwrap_or(i64::MAX) > held.done {
            held.places.insert((place, n));
        }
        self.next = self.next.max(n + 1);
    }

    /// Where to look for a hash. Usually nowhere, unless it is known.
    pub fn candidates(&self, hash: &IdempotencyHash) -> Candidates {
        let place = beginning(hash);
        let mut found = Candidates::default();
        for held in &self.held {
            found.rows.extend(
                held.places
                    .range((place, 0)..=(place, u64::MAX))
                    .map(|(_, n)| *n),
            );
        }
        let buckets = self
            .written
            .iter()
            .filter(|(_, filter)| filter.may_hold(hash));
        found
            .buckets
            .extend(buckets.map(|(number, _)| (*number, number * self.bucket_rows)));
        found
    }

    fn full(&self) -> impl Iterator<Item = &Held> {
        let open = self.next / self.bucket_rows;
        self.held.iter().take_while(move |held| held.number < open)
    }

    /// Writes chunks of full buckets, in a commit that adds `added` keys.
    pub fn write(&self, conn: &Connection, added: usize) -> Result<Vec<Progress>, Error> {
        let waiting: usize = self
            .full()
            .map(|held| held.places.len().div_ceil(chunk::PAIRS))
            .sum();
        let room = (self.bucket_rows - self.next % self.bucket_rows) as usize;
        let mut quota = waiting
            .saturating_mul(added)
            .div_ceil(room.max(1))
            .max(self.blobs_a_commit);
        let mut progress = Vec::new();
        for held in self.full() {
            if quota == 0 {
                break;
            }
            progress.push(self.write_bucket(conn, held, &mut quota)?);
        }
        if added > 0 || !progress.is_empty() {
            self.save(conn, self.next + added as u64, &progress)?;
        }
        Ok(progress)
    }

    fn write_bucket(
        &self,
        conn: &Connection,
        held: &Held,
        quota: &mut usize,
    ) -> Result<Progress, Error> {
        let mut step = Progress {
            places: 0,
            whole: false,
            done: held.done,
        };
        if held.done < 0 && !held.places.is_empty() {
            let mut insert = conn.prepare_cached("INSERT INTO key_bucket VALUES(?1, ?2)")?;
            insert.execute(params![held.number as i64, held.filter.seal()])?;
        }
        let mut insert = conn.prepare_cached("INSERT INTO key_chunk VALUES(?1, ?2, ?3)")?;
        let mut places = held.places.iter().copied().peekable();
        while *quota > 0 {
            let mut pairs: Vec<(u64, Spot)> = Vec::with_capacity(chunk::PAIRS);
            // Hashes that begin alike stay in one chunk.
            while let Some((place, n)) = places.next_if(|next| {
                pairs.len() < chunk::PAIRS || pairs.last().is_some_and(|last| last.0 == next.0)
            }) {
                pairs.push((place, Spot { fin: n, verdict: 0 }));
            }
            let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else {
                break;
            };
            let blob = chunk::pack_pairs(&pairs, held.number * self.bucket_rows);
            insert.execute(params![held.number as i64, first.0 as i64, blob])?;
            step.places += pairs.len();
            step.done = last.0 as i64;
            *quota -= 1;
        }
        step.whole = step.places == held.places.len();
        Ok(step)
    }

    fn save(&self, conn: &Connection, next: u64, progress: &[Progress]) -> Result<(), Error> {
        let whole = progress.iter().take_while(|step| step.whole).count();
        let (bucket, done) = match (progress.get(whole), self.held.get(whole)) {
            (Some(step), Some(held)) => (held.number, step.done),
            (None, Some(held)) => (held.number, held.done),
            (_, None) => (self.next / self.bucket_rows, -1),
        };
        let sql = "UPDATE key_state SET next = ?1, bucket = ?2, done = ?3 WHERE one = 1";
        conn.prepare_cached(sql)?
            .execute(params![next as i64, bucket as i64, done])?;
        Ok(())
    }

    /// Takes over what a commit did.
    pub fn settle(
        &mut self,
        progress: Vec<Progress>,
        added: &[IdempotencyHash],
        emptied: Option<u64>,
    ) {
        self.written.retain(|(number, _)| Some(*number) != emptied);
        for (held, step) in self.held.iter_mut().zip(&progress) {
            if held.done < 0 && step.places > 0 {
                self.written.push((held.number, held.filter.clone()));
            }
            held.done = step.done;
            for _ in 0..step.places {
                held.places.pop_first();
            }
        }
        let whole = progress.iter().take_while(|step| step.whole).count();
        self.held.drain(..whole);
        for hash in added {
            self.push(self.next, hash);
        }
    }

    /// The oldest bucket, if it is written whole and all its rows are below `left`.
    fn outlived(&self, left: u64) -> Option<u64> {
        let oldest = self.written.first()?.0;
        let being_written = self.held.front().is_some_and(|held| held.number <= oldest);
        (!being_written && oldest < left / self.bucket_rows).then_some(oldest)
    }
}

impl Candidates {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.buckets.is_empty()
    }

    /// The newest entry of `hash` that `takes` accepts.
    pub fn find(
        mut self,
        conn: &Connection,
        hash: &IdempotencyHash,
        takes: impl Fn(&IdempotencyEntry) -> bool,
    ) -> Result<Option<IdempotencyEntry>, Error> {
        let sql = "SELECT first, body FROM key_chunk WHERE bucket = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
        let place = beginning(hash);
        for (number, floor) in self.buckets {
            let mut select = conn.prepare_cached(sql)?;
            let mut rows = select.query(params![number as i64, place as i64])?;
            let Some(row) = rows.next()? else { continue };
            let blob = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let pairs = chunk::open_pairs(row.get::<_, i64>(0)? as u64, floor, blob)?;
            self.rows.extend(
                pairs
                    .iter()
                    .filter(|pair| pair.0 == place)
                    .map(|pair| pair.1.fin),
            );
        }
        self.rows.sort_unstable();
        for n in self.rows.iter().rev() {
            let entry = row(conn, *n)?.filter(|entry| entry.hash == *hash);
            if let Some(entry) = entry.filter(&takes) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

fn row(conn: &Connection, n: u64) -> Result<Option<IdempotencyEntry>, Error> {
    let sql = "SELECT hash, fingerprint, run, created FROM idempotency WHERE n = ?1";
    let entry = conn.prepare_cached(sql)?.query_row([n as i64], |row| {
        Ok(IdempotencyEntry {
            hash: IdempotencyHash(row.get(0)?),
            fingerprint: IdempotencyHash(row.get(1)?),
            run: RunId(row.get::<_, i64>(2)? as u64),
            created: WallMs(row.get(3)?),
        })
    });
    Ok(entry.optional()?)
}

/// Adds an entry under `n`, unless its key is taken.
pub fn insert(
    conn: &Connection,
    keys: &Keys,
    n: u64,
    entry: &IdempotencyEntry,
) -> Result<(), Error> {
    let candidates = keys.candidates(&entry.hash);
    if !candidates.is_empty() {
        let valid =
            |old: &IdempotencyEntry| entry.created.since(old.created) < IdempotencyEntry::KEPT_MS;
        if let Some(old) = candidates.find(conn, &entry.hash, valid)? {
            return Err(Error::Invariant(format!(
                "the idempotency key of {} is taken by {}",
                entry.run, old.run
            )));
        }
    }
    let mut insert = conn.prepare_cached("INSERT INTO idempotency VALUES(?1, ?2, ?3, ?4, ?5)")?;
    insert.execute(params![
        n as i64,
        entry.hash.0,
        entry.fingerprint.0,
        entry.run.0 as i64,
        entry.created.0
    ])?;
    Ok(())
}

/// Removes the first entries whose hour is before `oldest_hour`, and blobs that have outlived theirs. Says which bucket
/// has no more.
pub fn prune(
    conn: &Connection,
    keys: &Keys,
    oldest_hour: i64,
    limit: usize,
) -> Result<Option<u64>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut select =
        conn.prepare_cached("SELECT n, created FROM idempotency ORDER BY n LIMIT ?1")?;
    let mut rows = select.query([limit])?;
    let mut last = None;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(1)?.div_euclid(3_600_000) >= oldest_hour {
            break;
        }
        last = Some(row.get::<_, i64>(0)?);
    }
    drop(rows);
    if let Some(last) = last {
        conn.prepare_cached("DELETE FROM idempotency WHERE n <= ?1")?
            .execute([last])?;
    }
    let left: Option<i64> = conn
        .prepare_cached("SELECT min(n) FROM idempotency")?
        .query_row([], |row| row.get(0))?;
    let Some(bucket) = keys
        .outlived(left.map_or(keys.next, |left| left as u64))
        .filter(|_| limit > 0)
    else {
        return Ok(None);
    };
    let sql = "DELETE FROM key_chunk WHERE bucket = ?1 AND first IN
                 (SELECT first FROM key_chunk WHERE bucket = ?1 ORDER BY first LIMIT ?2)";
    if conn.prepare_cached(sql)?.execute([bucket as i64, limit])? > 0 {
        return Ok(None);
    }
    conn.prepare_cached("DELETE FROM key_bucket WHERE number = ?1")?
        .execute([bucket as i64])?;
    Ok(Some(bucket))
}
