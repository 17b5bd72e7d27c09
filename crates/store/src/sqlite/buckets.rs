//! The ways to finished runs, by id and by job, of one retention class.
//!
//! Finish numbers are cut into buckets of equal size. The open bucket lives in memory. A full one waits there until its
//! blobs are written, a few in each commit, quickly enough to be done before the next is full; what is written leaves
//! memory. The class's row in the database says how far the writing is, so that a restart rebuilds the rest, and only the
//! rest, from the rows.
//!
//! Nothing here changes before the commit that wrote it is known: [`Class::write`] says what was written, and
//! [`Class::settle`] takes it over.

use std::collections::{BTreeMap, VecDeque};

use rusqlite::{Connection, params};

use super::chunk::{self, Bucket, Spot};
use super::history;
use crate::Error;

/// The ids that a written bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub bucket: Bucket,
    pub least: u64,
    pub greatest: u64,
}

/// A bucket of which something is not written.
pub struct Held {
    pub number: u64,
    /// Runs without a chunk.
    pub ids: BTreeMap<u64, Spot>,
    /// Runs of jobs without a posting.
    pub jobs: BTreeMap<u64, Vec<u64>>,
    least: u64,
    greatest: u64,
    id_done: i64,
    job_done: i64,
}

pub struct Class {
    pub index: usize,
    bucket_rows: u64,
    blobs_a_commit: usize,
    pub next_fin: u64,
    /// In order; all but the last are full.
    pub held: VecDeque<Held>,
    /// Buckets of which something is written, in order.
    pub written: Vec<Span>,
}

/// A run that this commit finishes.
pub struct Finished {
    pub fin: u64,
    pub id: u64,
    pub job: u64,
    pub verdict: u8,
}

/// What one commit wrote of one held bucket.
pub struct Progress {
    ids: usize,
    jobs: usize,
    whole: bool,
    id_done: i64,
    job_done: i64,
}

impl Held {
    fn new(number: u64) -> Self {
        let (ids, jobs) = (BTreeMap::new(), BTreeMap::new());
        Self {
            number,
            ids,
            jobs,
            least: u64::MAX,
            greatest: 0,
            id_done: -1,
            job_done: -1,
        }
    }

    fn blobs(&self) -> usize {
        self.ids.len().div_ceil(chunk::PAIRS) + self.jobs.len()
    }

    fn begun(&self) -> bool {
        self.id_done >= 0 || self.job_done >= 0
    }
}

impl Class {
    /// Rebuilds what is held from the rows that no blob tells of.
    pub fn load(conn: &Connection, index: usize, blobs_a_commit: usize) -> Result<Self, Error> {
        let sql =
            "SELECT bucket_rows, next_fin, bucket, id_done, job_done FROM class WHERE id = ?1";
        let row = conn.query_row(sql, [index as i64], |row| {
            Ok((
                row.get::<_, i64>(0)? as u64,
                row.get::<_, i64>(1)? as u64,
                row.get::<_, i64>(2)? as u64,
                row.get(3)?,
                row.get(4)?,
            ))
        })?;
        let (bucket_rows, next_fin, bucket, id_done, job_done): (u64, u64, u64, i64, i64) = row;
        if bucket_rows == 0 {
            return Err(Error::Corrupt(format!(
                "class {index} has buckets of no rows"
            )));
        }
        let mut class = Self {
            index,
            bucket_rows,
            blobs_a_commit: blobs_a_commit.max(1),
            next_fin,
            held: VecDeque::new(),
            written: Vec::new(),
        };
        class.load_spans(conn)?;
        let mut held = Held {
            id_done,
            job_done,
            ..Held::new(bucket)
        };
        if let Some(span) = class
            .written
            .iter()
            .find(|span| span.bucket.number == bucket)
        {
            (held.least, held.greatest) = (span.least, span.greatest);
        }
        class.held.push_back(held);
        history::scan(conn, index, bucket.saturating_mul(bucket_rows), |run| {
            class.push(&run)
        })?;
        Ok(class)
    }

    fn load_spans(&mut self, conn: &Connection) -> Result<(), Error> {
        let mut select = conn.prepare(
            "SELECT number, least, greatest FROM bucket WHERE class = ?1 ORDER BY number",
        )?;
        let mut rows = select.query([self.index as i64])?;
        while let Some(row) = rows.next()? {
            let bucket = self.bucket(row.get::<_, i64>(0)? as u64);
            self.written.push(Span {
                bucket,
                least: row.get::<_, i64>(1)? as u64,
                greatest: row.get::<_, i64>(2)? as u64,
            });
        }
        Ok(())
    }

    pub fn bucket(&self, number: u64) -> Bucket {
        Bucket {
            class: self.index,
            number,
            floor: number.saturating_mul(self.bucket_rows),
        }
    }

    pub fn bucket_of(&self, fin: u64) -> u64 {
        fin / self.bucket_rows
    }

    fn push(&mut self, run: &Finished) {
        let number = self.bucket_of(run.fin);
        if self.held.back().is_none_or(|held| held.number != number) {
            self.held.push_back(Held::new(number));
        }
        let Some(held) = self.held.back_mut() else {
            return;
        };
        if i64::try_from(run.id).unwrap_or(i64::MAX) > held.id_done {
            held.ids.insert(
                run.id,
                Spot {
                    fin: run.fin,
                    verdict: run.verdict,
                },
            );
        }
        if i64::try_from(run.job).unwrap_or(i64::MAX) > held.job_done {
            held.jobs.entry(run.job).or_default().push(run.id);
        }
        if !held.begun() {
            held.least = held.least.min(run.id);
            held.greatest = held.greatest.max(run.id);
        }
        self.next_fin = self.next_fin.max(run.fin + 1);
    }

    /// Buckets that no further run will enter, once the numbers up to `next_fin` are given.
    fn full(&self) -> impl Iterator<Item = &Held> {
        let open = self.bucket_of(self.next_fin);
        self.held.iter().take_while(move |held| held.number < open)
    }

    /// Writes blobs of full buckets and the class's row, in a commit that finishes `finished` runs of the class.
    pub fn write(&self, conn: &Connection, finished: usize) -> Result<Vec<Progress>, Error> {
        let waiting: usize = self.full().map(Held::blobs).sum();
        let room = (self.bucket_rows - self.next_fin % self.bucket_rows) as usize;
        let mut quota = waiting
            .saturating_mul(finished)
            .div_ceil(room.max(1))
            .max(self.blobs_a_commit);
        let mut progress = Vec::new();
        for held in self.full() {
            if quota == 0 {
                break;
            }
            let (step, blobs) = self.write_bucket(conn, held, quota)?;
            quota -= blobs;
            progress.push(step);
        }
        if finished > 0 || !progress.is_empty() {
            self.save(conn, self.next_fin + finished as u64, &progress)?;
        }
        Ok(progress)
    }

    fn write_bucket(
        &self,
        conn: &Connection,
        held: &Held,
        quota: usize,
    ) -> Result<(Progress, usize), Error> {
        let bucket = self.bucket(held.number);
        let (class, number) = (self.index as i64, held.number as i64);
        let mut step = Progress {
            ids: 0,
            jobs: 0,
            whole: false,
            id_done: held.id_done,
            job_done: held.job_done,
        };
        if !held.begun() && held.blobs() > 0 {
            let mut insert = conn.prepare_cached("INSERT INTO bucket VALUES(?1, ?2, ?3, ?4)")?;
            insert.execute(params![
                class,
                number,
                held.least as i64,
                held.greatest as i64
            ])?;
        }
        let mut blobs = 0;
        let mut insert = conn.prepare_cached("INSERT INTO id_chunk VALUES(?1, ?2, ?3, ?4)")?;
        let mut ids = held.ids.iter().map(|(id, spot)| (*id, *spot));
        while blobs < quota && step.ids < held.ids.len() {
            let pairs: Vec<_> = ids.by_ref().take(chunk::PAIRS).collect();
            let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else {
                break;
            };
            insert.execute(params![
                class,
                number,
                first.0 as i64,
                chunk::pack_pairs(&pairs, bucket.floor)
            ])?;
            step.ids += pairs.len();
            step.id_done = last.0 as i64;
            blobs += 1;
        }
        let mut insert = conn.prepare_cached("INSERT INTO posting VALUES(?1, ?2, ?3, ?4)")?;
        for (job, ids) in held.jobs.iter().take(quota - blobs) {
            let mut ids = ids.clone();
            ids.sort_unstable();
            insert.execute(params![class, number, *job as i64, chunk::pack_ids(&ids)])?;
            step.jobs += 1;
            step.job_done = *job as i64;
            blobs += 1;
        }
        step.whole = step.ids == held.ids.len() && step.jobs == held.jobs.len();
        Ok((step, blobs))
    }

    fn save(&self, conn: &Connection, next_fin: u64, progress: &[Progress]) -> Result<(), Error> {
        let whole = progress.iter().take_while(|step| step.whole).count();
        let (bucket, id_done, job_done) = match (progress.get(whole), self.held.get(whole)) {
            (Some(step), Some(held)) => (held.number, step.id_done, step.job_done),
            (None, Some(held)) => (held.number, held.id_done, held.job_done),
            (_, None) => (self.bucket_of(self.next_fin), -1, -1),
        };
        let sql = "UPDATE class SET next_fin = ?2, bucket = ?3, id_done = ?4, job_done = ?5 WHERE id = ?1";
        let mut update = conn.prepare_cached(sql)?;
        update.execute(params![
            self.index as i64,
            next_fin as i64,
            bucket as i64,
            id_done,
            job_done
        ])?;
        Ok(())
    }

    /// Takes over what a commit did.
    pub fn settle(&mut self, progress: &[Progress], finished: impl IntoIterator<Item = Finished>) {
        for (at, step) in progress.iter().enumerate() {
            let held = &mut self.held[at];
            let begins = !held.begun() && held.blobs() > 0;
            (held.id_done, held.job_done) = (step.id_done, step.job_done);
            drop_first(&mut held.ids, step.ids);
            drop_first(&mut held.jobs, step.jobs);
            if begins {
                let (number, least, greatest) = (held.number, held.least, held.greatest);
                self.written.push(Span {
                    bucket: self.bucket(number),
                    least,
                    greatest,
                });
            }
        }
        let whole = progress.iter().take_while(|step| step.whole).count();
        self.held.drain(..whole);
        finished.into_iter().for_each(|run| self.push(&run));
    }

    /// Written buckets that may hold `id`, the likeliest first: a run rarely ends long after it was made.
    pub fn may_hold(&self, id: u64) -> impl Iterator<Item = Bucket> {
        let holds = move |span: &&Span| span.least <= id && id <= span.greatest;
        self.written.iter().filter(holds).map(|span| span.bucket)
    }

    pub fn spot(&self, id: u64) -> Option<Spot> {
        self.held.iter().find_map(|held| held.ids.get(&id).copied())
    }
}

fn drop_first<K: Ord, V>(map: &mut BTreeMap<K, V>, count: usize) {
    for _ in 0..count {
        map.pop_first();
    }
}
