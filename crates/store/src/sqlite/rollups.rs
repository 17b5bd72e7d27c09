//! Roll-ups by minute and job, gathered in memory and written a few rows in each commit.
//!
//! Finish numbers are cut into ranges, as [`crate::gather`] tells. A row in the database says which range is being written
//! and up to which key, so that a restart counts each run exactly once.

use std::collections::BTreeMap;

use drumtower_core::model::JobId;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::Options;
use super::history::{self, CLASSES};
use crate::gather::Gathered;
use crate::tally::{Key, Sample, Tally};
use crate::{Error, codec};

/// What is written: everything before `from`, and of the runs in `from..to` the keys up to `done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    from: [u64; CLASSES],
    to: [u64; CLASSES],
    done: Option<Key>,
}

pub struct Rollups {
    progress: Progress,
    gathered: Gathered,
}

/// What one commit wrote.
pub struct Written {
    progress: Progress,
    rows: usize,
    everything: bool,
}

impl Progress {
    pub fn save(&self, conn: &Connection) -> Result<(), Error> {
        let mut replace =
            conn.prepare_cached("INSERT OR REPLACE INTO rollup_state VALUES(1, ?1)")?;
        replace.execute([codec::seal(self)?])?;
        Ok(())
    }

    fn load(conn: &Connection) -> Result<Self, Error> {
        let blob: Vec<u8> =
            conn.query_row("SELECT body FROM rollup_state WHERE one = 1", [], |row| {
                row.get(0)
            })?;
        codec::open(&blob)
    }
}

impl Rollups {
    /// Counts again the runs that no written row tells of.
    pub fn load(conn: &Connection, options: &Options) -> Result<Self, Error> {
        let progress = Progress::load(conn)?;
        let mut gathered = Gathered::new(options.blobs_a_commit, options.rollup_rows);
        let mut closing = BTreeMap::<Key, Tally>::new();
        for class in 0..CLASSES {
            history::scan_samples(conn, class, progress.from[class], |fin, sample| {
                if fin >= progress.to[class] {
                    gathered.add(&sample);
                } else if progress.done.is_none_or(|done| sample.key > done) {
                    closing.entry(sample.key).or_default().add(&sample);
                }
            })?;
        }
        gathered.go_on(closing);
        Ok(Self { progress, gathered })
    }

    /// Whether runs from `fin` on are told of only by themselves.
    pub fn needs(&self, class: usize, fin: u64) -> bool {
        fin >= self.progress.from[class]
    }

    /// Whether anything gathered is of a minute before `minute`.
    pub fn holds_before(&self, minute: i64) -> bool {
        self.gathered.holds_before(minute)
    }

    /// Writes the next rows of the closed range.
    pub fn write(&self, conn: &Connection) -> Result<Option<Written>, Error> {
        let (due, whole) = self.gathered.due();
        let due: Vec<(&Key, &Tally)> = due.collect();
        let Some(last) = due.last().map(|(key, _)| **key) else {
            return Ok(None);
        };
        let rows = due.len();
        add_rows(conn, due.into_iter())?;
        let progress = if whole {
            Progress {
                from: self.progress.to,
                to: self.progress.to,
                done: None,
            }
        } else {
            Progress {
                done: Some(last),
                ..self.progress.clone()
            }
        };
        progress.save(conn)?;
        Ok(Some(Written {
            progress,
            rows,
            everything: false,
        }))
    }

    /// Writes all there is, with the runs that this commit finishes: their rows are about to go.
    pub fn write_everything(
        &self,
        conn: &Connection,
        samples: &[Sample],
        next: [u64; CLASSES],
    ) -> Result<Written, Error> {
        add_rows(conn, self.gathered.everything(samples).iter())?;
        let progress = Progress {
            from: next,
            to: next,
            done: None,
        };
        progress.save(conn)?;
        Ok(Written {
            progress,
            rows: 0,
            everything: true,
        })
    }

    /// Takes over what a commit did. `next` is the next finish number of each class after it.
    pub fn settle(&mut self, written: Option<Written>, samples: &[Sample], next: [u64; CLASSES]) {
        if let Some(written) = written {
            self.progress = written.progress;
            if written.everything {
                self.gathered.clear();
                return;
            }
            self.gathered.written(written.rows);
        }
        samples.iter().for_each(|sample| self.gathered.add(sample));
        if self.gathered.close() {
            self.progress = Progress {
                from: self.progress.to,
                to: next,
                done: None,
            };
        }
    }

    /// What is not in the table of the minutes in `[from, to)`.
    pub fn gathered(&self, job: Option<JobId>, from: i64, to: i64) -> BTreeMap<Key, Tally> {
        self.gathered.between(job, from, to)
    }
}

fn add_rows<'a>(
    conn: &Connection,
    rows: impl Iterator<Item = (&'a Key, &'a Tally)>,
) -> Result<(), Error> {
    let mut select =
        conn.prepare_cached("SELECT body FROM rollup WHERE minute = ?1 AND job = ?2")?;
    let mut replace = conn.prepare_cached("INSERT OR REPLACE INTO rollup VALUES(?1, ?2, ?3)")?;
    for ((minute, job), tally) in rows {
        let stored: Option<Vec<u8>> = select
            .query_row(params![minute, job.0 as i64], |row| row.get(0))
            .optional()?;
        let mut sum = tally.clone();
        if let Some(stored) = stored {
            sum.merge(&codec::open(&stored)?);
        }
        replace.execute(params![minute, job.0 as i64, codec::seal(&sum)?])?;
    }
    Ok(())
}

/// The rows of the table in `[from, to)`.
pub fn stored(
    conn: &Connection,
    job: Option<JobId>,
    from: i64,
    to: i64,
) -> Result<BTreeMap<Key, Tally>, Error> {
    let mut found = BTreeMap::new();
    let mut read = |minute: i64, job: i64, blob: &[u8]| -> Result<(), Error> {
        found.insert((minute, JobId(job as u64)), codec::open(blob)?);
        Ok(())
    };
    let Some(job) = job else {
        let mut select = conn.prepare_cached(
            "SELECT minute, job, body FROM rollup WHERE minute >= ?1 AND minute < ?2",
        )?;
        let mut rows = select.query([from, to])?;
        while let Some(row) = rows.next()? {
            read(
                row.get(0)?,
                row.get(1)?,
                row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?,
            )?;
        }
        return Ok(found);
    };
    // Rows are by minute first: one look for each minute that has rows at all, never a walk over other jobs.
    let mut select =
        conn.prepare_cached("SELECT body FROM rollup WHERE minute = ?1 AND job = ?2")?;
    let mut next =
        conn.prepare_cached("SELECT minute FROM rollup WHERE minute > ?1 ORDER BY minute LIMIT 1")?;
    let mut minute: Option<i64> = Some(from);
    while let Some(at) = minute.filter(|minute| *minute < to) {
        let mut rows = select.query(params![at, job.0 as i64])?;
        if let Some(row) = rows.next()? {
            read(
                at,
                job.0 as i64,
                row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
            )?;
        }
        minute = next.query_row([at], |row| row.get(0)).optional()?;
    }
    Ok(found)
}
