//! Run ids of many sorted sources, newest first.
//!
//! Sources are the active table, what the open buckets hold in memory, and the written buckets. Each tells an upper bound
//! of its ids and is opened only when that bound comes up, so a page near the newest end looks at few of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use drumtower_core::model::JobId;
use rusqlite::{Connection, params};

use super::chunk::{self, Bucket, Spot};
use crate::Error;

/// Active rows that are looked at in one go.
const ACTIVE_ROWS: usize = 1_000;

/// Where a run is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Active,
    Finished(usize, Spot),
    /// In a written bucket, at a finish number that its chunk tells.
    Bucket(Bucket),
    /// Somewhere in the history.
    Unknown,
}

pub enum Source {
    /// Active runs.
    Active,
    /// A written bucket.
    Bucket(Bucket),
    /// Ids in order, and the source that goes on below them.
    List(Vec<(u64, Place)>, Option<Box<Source>>),
}

struct Entry {
    /// No id of the source is above this.
    bound: u64,
    source: Source,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.bound == other.bound
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.cmp(&other.bound)
    }
}

/// A step of a merge.
pub enum Next {
    Run(u64, Place),
    /// Enough was looked at; what is left is below this id.
    Pause(u64),
    End,
}

pub struct Merge<'a> {
    conn: &'a Connection,
    job: Option<JobId>,
    heap: BinaryHeap<Entry>,
    /// All ids are below this.
    below: u64,
    /// Rows and blobs that may still be looked at.
    looks: usize,
}

impl<'a> Merge<'a> {
    pub fn new(conn: &'a Connection, job: Option<JobId>, below: u64, looks: usize) -> Self {
        Self {
            conn,
            job,
            heap: BinaryHeap::new(),
            below,
            looks,
        }
    }

    /// Adds a source whose ids are at most `bound`.
    pub fn add(&mut self, bound: u64, source: Source) {
        self.heap.push(Entry { bound, source });
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next id downwards. It pauses only below where it began, so that whoever goes on from there gets to the end.
    pub fn next(&mut self) -> Result<Next, Error> {
        while let Some(Entry { bound, source }) = self.heap.pop() {
            if self.looks == 0 && bound.saturating_add(1) < self.below {
                self.add(bound, source);
                return Ok(Next::Pause(bound + 1));
            }
            match source {
                Source::Active => self.open_active(bound)?,
                Source::Bucket(bucket) => self.open_bucket(bucket, bound)?,
                Source::List(mut items, rest) => {
                    let Some(top) = items.pop() else { continue };
                    self.looks = self.looks.saturating_sub(1);
                    self.put_back(items, rest, top.0);
                    return Ok(Next::Run(top.0, top.1));
                }
            }
        }
        Ok(Next::End)
    }

    /// `below` is the last id that was taken; everything that is left is less.
    fn put_back(&mut self, items: Vec<(u64, Place)>, rest: Option<Box<Source>>, below: u64) {
        match (items.last(), rest, below.checked_sub(1)) {
            (Some(top), rest, _) => self.add(top.0, Source::List(items, rest)),
            (None, Some(rest), Some(bound)) => self.add(bound, *rest),
            _ => {}
        }
    }

    fn open_active(&mut self, bound: u64) -> Result<(), Error> {
        let mut select = self
            .conn
            .prepare_cached("SELECT id, job FROM run WHERE id <= ?1 ORDER BY id DESC LIMIT ?2")?;
        let bound = i64::try_from(bound).unwrap_or(i64::MAX);
        let mut rows = select.query(params![bound, ACTIVE_ROWS as i64])?;
        let (mut items, mut looked, mut least) = (Vec::new(), 0, 0);
        while let Some(row) = rows.next()? {
            looked += 1;
            least = row.get::<_, i64>(0)? as u64;
            if self.job.is_none_or(|job| {
                row.get::<_, i64>(1)
                    .is_ok_and(|found| found as u64 == job.0)
            }) {
                items.push((least, Place::Active));
            }
        }
        items.reverse();
        self.looks = self.looks.saturating_sub(looked);
        let more = (looked == ACTIVE_ROWS).then_some(Box::new(Source::Active));
        match items.last() {
            // Below the last row looked at, which may be lower than the last one taken.
            Some(top) => self.add(top.0, Source::List(items, more)),
            None => self.put_back(items, more, least),
        }
        Ok(())
    }

    fn open_bucket(&mut self, bucket: Bucket, bound: u64) -> Result<(), Error> {
        self.looks = self.looks.saturating_sub(1);
        let (items, rest) = match self.job {
            Some(job) => {
                let ids = chunk::posting(self.conn, bucket, job.0)?;
                (
                    ids.into_iter()
                        .map(|id| (id, Place::Bucket(bucket)))
                        .collect(),
                    None,
                )
            }
            None => {
                let pairs = chunk::chunk_below(self.conn, bucket, bound.saturating_add(1))?;
                let rest = (!pairs.is_empty()).then_some(Box::new(Source::Bucket(bucket)));
                let place = |(id, spot)| (id, Place::Finished(bucket.class, spot));
                (pairs.into_iter().map(place).collect::<Vec<_>>(), rest)
            }
        };
        let items: Vec<_> = items
            .into_iter()
            .take_while(|item| item.0 <= bound)
            .collect();
        if let Some(top) = items.last() {
            self.add(top.0, Source::List(items, rest));
        }
        Ok(())
    }
}
