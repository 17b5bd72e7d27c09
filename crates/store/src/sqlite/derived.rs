//! What the store knows beside its rows, shared by the writer and the readers under one lock.
//!
//! The writer holds the lock from before COMMIT until it has taken the commit over, and a reader that needs any of this
//! begins its snapshot under the lock: so rows and derived data are always of the same commit.

use drumtower_core::model::{IdempotencyHash, RunId};
use rusqlite::Connection;

use super::Options;
use super::buckets::{Class, Finished, Progress};
use super::chunk::{self, Spot};
use super::history::{self, CLASSES};
use super::keys::{self, Keys};
use super::rollups::{self, Rollups};
use crate::Error;
use crate::tally::Sample;

pub struct Derived {
    pub classes: [Class; CLASSES],
    pub rollups: Rollups,
    pub keys: Keys,
}

/// What a commit finishes.
#[derive(Default)]
pub struct Batch {
    pub runs: [Vec<Finished>; CLASSES],
    pub samples: Vec<Sample>,
    /// Retention removes rows that the roll-ups are not written of.
    pub roll_up_everything: bool,
    /// Buckets, by class and number, that retention has emptied.
    pub emptied: Vec<(usize, u64)>,
    pub keys: Vec<IdempotencyHash>,
    /// The bucket of keys that retention has emptied.
    pub emptied_keys: Option<u64>,
}

/// What a commit wrote of the derived data; taken over once the commit is known.
pub struct Step {
    buckets: [Vec<Progress>; CLASSES],
    rollups: Option<rollups::Written>,
    keys: Vec<keys::Progress>,
}

impl Derived {
    pub fn load(conn: &Connection, options: &Options) -> Result<Self, Error> {
        let class = |index| Class::load(conn, index, options.blobs_a_commit);
        let classes = [class(0)?, class(1)?, class(2)?, class(3)?];
        Ok(Self {
            classes,
            rollups: Rollups::load(conn, options)?,
            keys: Keys::load(conn, options.blobs_a_commit)?,
        })
    }

    /// Writes the next blobs and roll-ups into the open transaction.
    pub fn write(&self, conn: &Connection, batch: &Batch) -> Result<Step, Error> {
        let mut buckets = [const { Vec::new() }; CLASSES];
        for (class, slot) in self.classes.iter().zip(&mut buckets) {
            *slot = class.write(conn, batch.runs[class.index].len())?;
        }
        let rollups = if batch.roll_up_everything {
            Some(
                self.rollups
                    .write_everything(conn, &batch.samples, self.next(batch))?,
            )
        } else {
            self.rollups.write(conn)?
        };
        let keys = self.keys.write(conn, batch.keys.len())?;
        Ok(Step {
            buckets,
            rollups,
            keys,
        })
    }

    fn next(&self, batch: &Batch) -> [u64; CLASSES] {
        std::array::from_fn(|class| self.classes[class].next_fin + batch.runs[class].len() as u64)
    }

    pub fn settle(&mut self, step: Step, batch: Batch) {
        let next = self.next(&batch);
        self.keys.settle(step.keys, &batch.keys, batch.emptied_keys);
        for (class, number) in &batch.emptied {
            self.classes[*class]
                .written
                .retain(|span| span.bucket.number != *number);
        }
        self.rollups.settle(step.rollups, &batch.samples, next);
        for ((class, progress), runs) in self.classes.iter_mut().zip(&step.buckets).zip(batch.runs)
        {
            class.settle(progress, runs);
        }
    }

    /// Where the finished run `id` lies, if it does.
    pub fn find(&self, conn: &Connection, id: RunId) -> Result<Option<(usize, Spot)>, Error> {
        for class in &self.classes {
            if let Some(spot) = class.spot(id.0)
                && history::exists(conn, class.index, spot.fin)?
            {
                return Ok(Some((class.index, spot)));
            }
            for bucket in class.may_hold(id.0) {
                if let Some(spot) = chunk::find(conn, bucket, id.0)?
                    && history::exists(conn, class.index, spot.fin)?
                {
                    return Ok(Some((class.index, spot)));
                }
            }
        }
        Ok(None)
    }
}
