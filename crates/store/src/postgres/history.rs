//! Finished runs: one table for each retention class, in partitions by creation.

use std::collections::BTreeMap;

use drumtower_core::model::{Run, RunState};

use super::batch::{Batch, values};
use super::schema::{BELOW_MS, PARTITION_BITS};
use crate::columns::{CLASSES, class_of, raw, verdict_of};
use crate::{Error, packed};

/// The first id of the partition that a run of a class belongs into.
pub fn lower(class: usize, id: u64) -> i64 {
    let bits = PARTITION_BITS[class] + BELOW_MS;
    ((id >> bits) << bits) as i64
}

/// How many ids a partition of a class takes.
pub fn length(class: usize) -> i64 {
    1 << (PARTITION_BITS[class] + BELOW_MS)
}

const INSERT: [&str; CLASSES] = [
    "INSERT INTO history_1d SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::bytea[], $6::bytea[])",
    "INSERT INTO history_7d SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::bytea[], $6::bytea[])",
    "INSERT INTO history_30d SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::bytea[], $6::bytea[])",
    "INSERT INTO history_keep SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::bytea[], $6::bytea[])",
];

#[derive(Default)]
struct ClassColumns {
    ids: Vec<i64>,
    jobs: Vec<i64>,
    verdicts: Vec<i16>,
    bodies: Vec<Vec<u8>>,
    params: Vec<Option<Vec<u8>>>,
    results: Vec<Option<Vec<u8>>>,
}

/// What a commit adds to the history.
#[derive(Default)]
pub struct Columns([ClassColumns; CLASSES]);

impl Columns {
    pub fn push(&mut self, run: &Run) -> Result<(), Error> {
        let class = &mut self.0[class_of(run.retention)];
        class.ids.push(run.id.0 as i64);
        class.jobs.push(run.job.0 as i64);
        class.verdicts.push(i16::from(verdict_of(run.state)));
        class.bodies.push(packed::seal(run)?);
        class
            .params
            .push(packed::aside(run.params.as_ref()).map(raw));
        class
            .results
            .push(packed::aside(run.result.as_ref()).map(raw));
        Ok(())
    }

    pub fn add_to(self, batch: &mut Batch) {
        for (class, sql) in self.0.into_iter().zip(INSERT) {
            if !class.ids.is_empty() {
                let rows = class.ids.len();
                let values = values![
                    class.ids,
                    class.jobs,
                    class.verdicts,
                    class.bodies,
                    class.params,
                    class.results
                ];
                batch.expect(rows, "finished runs", sql, values);
            }
        }
    }
}

/// Completed, failed and cancelled runs by class, partition and namespace.
#[derive(Default)]
pub struct Tallies(BTreeMap<(usize, i64, String), [i64; 3]>);

impl Tallies {
    pub fn add(&mut self, run: &Run) {
        let class = class_of(run.retention);
        let namespace = run.namespace.as_str();
        self.count(class, run.id.0, namespace, verdict_of(run.state), 1);
    }

    pub fn count(&mut self, class: usize, id: u64, namespace: &str, verdict: u8, by: i64) {
        let key = (class, lower(class, id), namespace.to_owned());
        self.0.entry(key).or_default()[usize::from(verdict.min(2))] += by;
    }

    /// The sum over all partitions by namespace.
    pub fn by_namespace(&self) -> BTreeMap<&str, [i64; 3]> {
        let mut sums = BTreeMap::<&str, [i64; 3]>::new();
        for ((_, _, namespace), counts) in &self.0 {
            let sum = sums.entry(namespace).or_default();
            for (slot, count) in sum.iter_mut().zip(counts) {
                *slot += count;
            }
        }
        sums
    }

    /// Adds them to the rows of a session.
    pub fn add_to(&self, session: u64, batch: &mut Batch) {
        if self.0.is_empty() {
            return;
        }
        let (mut classes, mut lowers, mut namespaces) = (vec![], vec![], vec![]);
        let mut counts: [Vec<i64>; 3] = Default::default();
        for ((class, lower, namespace), row) in &self.0 {
            classes.push(*class as i16);
            lowers.push(*lower);
            namespaces.push(namespace.clone());
            for (column, count) in counts.iter_mut().zip(row) {
                column.push(*count);
            }
        }
        let sql = "INSERT INTO history_tally SELECT class, lower, $7::bigint, namespace, completed, failed, cancelled
                     FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
                       AS new(class, lower, namespace, completed, failed, cancelled)
                   ON CONFLICT (class, lower, session, namespace) DO UPDATE SET
                     completed = history_tally.completed + excluded.completed,
                     failed = history_tally.failed + excluded.failed,
                     cancelled = history_tally.cancelled + excluded.cancelled";
        let [completed, failed, cancelled] = counts;
        batch.add(
            sql,
            values![
                classes,
                lowers,
                namespaces,
                completed,
                failed,
                cancelled,
                session as i64
            ],
        );
    }
}

/// Which verdicts a listing by states takes.
pub fn verdicts(takes: impl Fn(RunState) -> bool) -> Vec<i16> {
    let states = [RunState::Completed, RunState::Failed, RunState::Cancelled];
    states
        .into_iter()
        .filter(|state| takes(*state))
        .map(|state| i16::from(verdict_of(state)))
        .collect()
}
