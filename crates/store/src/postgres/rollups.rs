//! Roll-ups: gathered in memory, written a few rows in each commit, and safe in a journal meanwhile.
//!
//! Each commit that finishes runs puts one row into the journal: what it adds. A range of them closes as [`crate::gather`]
//! tells; its rows are written under the session and the range's last commit, and are added up when they are read, so
//! nothing is read to be written. When the last row is written, the journal of the range goes. A state row says up to which
//! key a range is written. Whoever reads roll-ups reads the journal too, so every server sees every run.
//!
//! What a session leaves when it ends is taken into the journal of another, in one commit of that one.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{JobId, SessionId};
use tokio_postgres::Row;

use super::Options;
use super::batch::{Batch, values};
use super::connect::Link;
use crate::gather::Gathered;
use crate::tally::{Key, Sample, Tally, merge_all};
use crate::{Error, codec};

/// What one row of the journal holds: runs one by one, and sums that another session left.
type Entry = (Vec<Sample>, Vec<(Key, Tally)>);

pub struct Rollups {
    session: SessionId,
    gathered: Gathered,
    /// The last commit of the range that is being written.
    through: u64,
}

/// What a commit does to them; taken over once it is known to be durable.
pub struct Step {
    seq: u64,
    rows: usize,
    everything: bool,
    samples: Vec<Sample>,
    adopted: Vec<(Key, Tally)>,
}

/// What sessions that are over have left.
#[derive(Default)]
pub struct Left {
    sums: BTreeMap<Key, Tally>,
    sessions: Vec<i64>,
    rows: usize,
}

/// How far a range of a session is written.
#[derive(Clone, Copy)]
struct Written {
    seq: i64,
    done: Option<Key>,
}

impl Written {
    fn has(&self, seq: i64, key: Key) -> bool {
        seq <= self.seq && self.done.is_some_and(|done| key <= done)
    }
}

fn written(row: &Row, first: usize) -> Result<Written, Error> {
    let (minute, job): (Option<i64>, Option<i64>) =
        (row.try_get(first + 1)?, row.try_get(first + 2)?);
    Ok(Written {
        seq: row.try_get(first)?,
        done: minute
            .zip(job)
            .map(|(minute, job)| (minute, JobId(job as u64))),
    })
}

fn tallies((samples, sums): Entry) -> BTreeMap<Key, Tally> {
    let mut rows = BTreeMap::<Key, Tally>::new();
    for sample in &samples {
        rows.entry(sample.key).or_default().add(sample);
    }
    merge_all(&mut rows, sums);
    rows
}

impl Rollups {
    /// Gathers again what the journal of a session holds.
    pub async fn load(link: &Link, session: SessionId, options: &Options) -> Result<Self, Error> {
        let id = session.0 as i64;
        let state = "SELECT seq, minute, job FROM rollup_state WHERE session = $1";
        let state = link.rows(state, &[&id]).await?;
        let state = state.first().map(|row| written(row, 0)).transpose()?;
        let journal = "SELECT seq, body FROM rollup_journal WHERE session = $1 ORDER BY seq";
        let mut gathered = Gathered::new(options.rollups_a_commit, options.rollup_rows);
        let mut closing = BTreeMap::new();
        for row in link.rows(journal, &[&id]).await? {
            let (seq, entry): (i64, Entry) = (row.try_get(0)?, codec::open(row.try_get(1)?)?);
            match state {
                Some(state) if seq <= state.seq => {
                    let rest = tallies(entry).into_iter();
                    merge_all(&mut closing, rest.filter(|(key, _)| !state.has(seq, *key)));
                }
                _ => {
                    entry.0.iter().for_each(|sample| gathered.add(sample));
                    gathered.merge(entry.1);
                }
            }
        }
        gathered.go_on(closing);
        Ok(Self {
            session,
            gathered,
            through: state.map_or(0, |state| state.seq as u64),
        })
    }

    pub fn is_of(&self, session: SessionId) -> bool {
        self.session == session
    }

    /// Adds to a commit what it writes of roll-ups. With `all_before`, rows of minutes before it are about to go, so nothing
    /// of them may be left in memory.
    pub fn write(
        &self,
        batch: &mut Batch,
        seq: u64,
        samples: Vec<Sample>,
        left: Left,
        all_before: Option<i64>,
    ) -> Result<Step, Error> {
        let adopted: Vec<(Key, Tally)> = left.sums.into_iter().collect();
        if !left.sessions.is_empty() {
            let journal = "DELETE FROM rollup_journal WHERE session = ANY($1)";
            batch.race(left.rows, journal, values![left.sessions.clone()]);
            let state = "DELETE FROM rollup_state WHERE session = ANY($1)";
            batch.add(state, values![left.sessions]);
        }
        let old = |minute| {
            let keys = samples.iter().map(|sample| sample.key);
            let mut keys = keys.chain(adopted.iter().map(|(key, _)| *key));
            self.gathered.holds_before(minute) || keys.any(|key| key.0 < minute)
        };
        if all_before.is_some_and(old) {
            let mut rows = self.gathered.everything(&samples);
            merge_all(&mut rows, adopted.iter().cloned());
            self.insert(batch, seq, rows.iter())?;
            self.forget(batch, i64::MAX);
            return Ok(Step {
                seq,
                rows: 0,
                everything: true,
                samples,
                adopted,
            });
        }
        if !samples.is_empty() || !adopted.is_empty() {
            let body = codec::seal(&(&samples, &adopted))?;
            let sql = "INSERT INTO rollup_journal VALUES($1, $2, $3)";
            let values = values![self.session.0 as i64, seq as i64, body];
            batch.expect(1, "the journal of roll-ups", sql, values);
        }
        let (due, whole) = self.gathered.due();
        let due: Vec<(&Key, &Tally)> = due.collect();
        let rows = due.len();
        if let Some((last, _)) = due.last() {
            let (minute, job) = **last;
            self.insert(batch, self.through, due.into_iter())?;
            if whole {
                self.forget(batch, self.through as i64);
            } else {
                let sql = "INSERT INTO rollup_state VALUES($1, $2, $3, $4) ON CONFLICT (session) DO UPDATE SET
                             seq = excluded.seq, minute = excluded.minute, job = excluded.job";
                let session = self.session.0 as i64;
                batch.add(
                    sql,
                    values![session, self.through as i64, minute, job.0 as i64],
                );
            }
        }
        Ok(Step {
            seq,
            rows,
            everything: false,
            samples,
            adopted,
        })
    }

    fn insert<'a>(
        &self,
        batch: &mut Batch,
        seq: u64,
        rows: impl Iterator<Item = (&'a Key, &'a Tally)>,
    ) -> Result<(), Error> {
        let (mut minutes, mut jobs, mut bodies) = (vec![], vec![], vec![]);
        for ((minute, job), tally) in rows {
            minutes.push(*minute);
            jobs.push(job.0 as i64);
            bodies.push(codec::seal(tally)?);
        }
        let sql = "INSERT INTO rollup SELECT minute, job, $4::bigint, $5::bigint, body FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS new(minute, job, body)";
        let rows = jobs.len();
        let values = values![minutes, jobs, bodies, self.session.0 as i64, seq as i64];
        batch.expect(rows, "roll-ups", sql, values);
        Ok(())
    }

    /// The journal up to a commit is told by rows.
    fn forget(&self, batch: &mut Batch, through: i64) {
        let session = self.session.0 as i64;
        let journal = "DELETE FROM rollup_journal WHERE session = $1 AND seq <= $2";
        batch.add(journal, values![session, through]);
        let state = "DELETE FROM rollup_state WHERE session = $1";
        batch.add(state, values![session]);
    }

    /// Takes over what a commit did.
    pub fn settle(&mut self, step: Step) {
        if step.everything {
            self.gathered.clear();
            return;
        }
        self.gathered.written(step.rows);
        step.samples.iter().for_each(|it| self.gathered.add(it));
        self.gathered.merge(step.adopted);
        if self.gathered.close() {
            self.through = step.seq;
        }
    }
}

/// Looks for what sessions that are over have left. They write no more, so it stays as it is unless another takes it.
pub async fn left(link: &Link, me: SessionId) -> Result<Left, Error> {
    let sql = "SELECT journal.session, journal.seq, journal.body, state.seq, state.minute, state.job
               FROM rollup_journal AS journal LEFT JOIN rollup_state AS state ON state.session = journal.session
               WHERE journal.session <> $1
                 AND NOT EXISTS (SELECT FROM session WHERE session.id = journal.session AND NOT session.revoked)";
    let mut left = Left::default();
    let mut sessions = BTreeSet::new();
    for row in link.rows(sql, &[&(me.0 as i64)]).await? {
        let (session, seq): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        merge_all(&mut left.sums, rest(&row, seq, 2, 3)?);
        sessions.insert(session);
        left.rows += 1;
    }
    left.sessions = sessions.into_iter().collect();
    Ok(left)
}

/// What of a row of the journal no roll-up tells, with the state in the columns from `state` on.
pub fn rest(row: &Row, seq: i64, body: usize, state: usize) -> Result<BTreeMap<Key, Tally>, Error> {
    let mut sums = tallies(codec::open(row.try_get(body)?)?);
    if row.try_get::<_, Option<i64>>(state)?.is_some() {
        let state = written(row, state)?;
        sums.retain(|key, _| !state.has(seq, *key));
    }
    Ok(sums)
}
