//! Every due time of the active jobs against the starts that the workers wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use drumtower_core::model::{JobName, NamespaceName, WallMs};
use drumtower_store::{Read, sqlite};

use super::super::figures::Delays;
use super::super::prepared::{Plan, job_name};
use super::super::samples::Sample;
use crate::failure::{Failure, Result};

/// Ranges of unfired times read of one job.
const RANGES: usize = 1000;

pub struct Fires {
    /// Due times in the measured window.
    pub due: u64,
    /// Those that were started.
    pub started: u64,
    /// Starts beyond the first of a due time.
    pub duplicated: u64,
    /// Starts before the due time.
    pub early: u64,
    /// Starts at times at which nothing was due.
    pub strange: u64,
    /// Due times without a start.
    pub missing: Vec<(u32, WallMs)>,
    pub delays: Delays,
}

impl Fires {
    /// Compares what was due in `[from, to)` with what started, whenever it did.
    pub fn tally(plan: &Plan, samples: &[Sample], from_ms: i64, to_ms: i64) -> Result<Self> {
        let mut fires = Self {
            due: 0,
            started: 0,
            duplicated: 0,
            early: 0,
            strange: 0,
            missing: Vec::new(),
            delays: Delays::new()?,
        };
        let due_ms = |sample: &Sample| i64::try_from(sample.due_us / 1000).unwrap_or(i64::MAX);
        let mut starts: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.job < u64::from(plan.active))
            .filter(|sample| (from_ms..to_ms).contains(&due_ms(sample)))
            .collect();
        starts.sort_unstable_by_key(|sample| (sample.job, sample.due_us, sample.started_us));
        let mut starts = starts.into_iter().peekable();
        for job in 0..plan.active {
            for due in plan.due(job, from_ms, to_ms) {
                fires.due += 1;
                let place = (u64::from(job), due);
                while starts
                    .next_if(|start| (start.job, due_ms(start)) < place)
                    .is_some()
                {
                    fires.strange += 1;
                }
                let here = |start: &&Sample| (start.job, due_ms(start)) == place;
                match starts.next_if(here) {
                    Some(start) => fires.take(start),
                    None => fires.missing.push((job, WallMs(due))),
                }
                while starts.next_if(here).is_some() {
                    fires.duplicated += 1;
                }
            }
        }
        fires.strange += starts.count() as u64;
        Ok(fires)
    }

    fn take(&mut self, start: &Sample) {
        self.started += 1;
        self.early += u64::from(start.started_us < start.due_us);
        self.delays.add(start.due_us, start.started_us);
    }

    /// How many of the missing due times the server recorded as unfired, with a reason: those are not lost.
    pub fn recorded_as_unfired(&self, data: &Path) -> Result<BTreeMap<String, u64>> {
        let mut reasons = BTreeMap::new();
        if self.missing.is_empty() {
            return Ok(reasons);
        }
        let (_writer, reader) = sqlite::open(data, sqlite::Options::default())?;
        let jobs: BTreeSet<u32> = self.missing.iter().map(|(job, _)| *job).collect();
        for job in jobs {
            let name = JobName::new(&job_name(job))
                .map_err(|error| Failure::failed(format!("job {job}: {error}")))?;
            let Some(record) = reader.job_named(&NamespaceName::default(), &name)? else {
                continue;
            };
            let times: Vec<WallMs> = self
                .missing
                .iter()
                .filter(|(missing, _)| *missing == job)
                .map(|(_, due)| *due)
                .collect();
            let (Some(first), Some(last)) = (times.first(), times.last()) else {
                continue;
            };
            let ranges = reader.unfired(record.row.id, *first, *last, RANGES)?;
            for due in &times {
                let inside = |range: &&drumtower_core::model::Unfired| {
                    (range.first..=range.last).contains(due)
                };
                if let Some(range) = ranges.iter().find(inside) {
                    *reasons
                        .entry(format!("{:?}", range.reason).to_lowercase())
                        .or_insert(0) += 1;
                }
            }
        }
        Ok(reasons)
    }
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::RunId;

    use super::*;

    const PLAN: Plan = Plan {
        jobs: 5,
        active: 2,
        shortest_ms: 1000,
        longest_ms: 1000,
    };
    const FROM_MS: i64 = 1_790_000_000_000;

    /// One start for each due time, a millisecond after it.
    fn starts() -> Vec<Sample> {
        let mut samples = Vec::new();
        for job in 0..PLAN.active {
            for due in PLAN.due(job, FROM_MS, FROM_MS + 3000) {
                let due_us = u64::try_from(due).expect("after 1970") * 1000;
                samples.push(Sample {
                    run: RunId(samples.len() as u64),
                    job: job.into(),
                    due_us,
                    started_us: due_us + 1000,
                    ended_us: due_us + 1000,
                });
            }
        }
        samples
    }

    fn tally(samples: &[Sample]) -> Fires {
        Fires::tally(&PLAN, samples, FROM_MS, FROM_MS + 3000).expect("a tally")
    }

    #[test]
    fn one_start_for_each_due_time_is_right() {
        let fires = tally(&starts());
        assert_eq!((fires.due, fires.started), (6, 6));
        assert_eq!((fires.duplicated, fires.early, fires.strange), (0, 0, 0));
        assert!(fires.missing.is_empty());
    }

    #[test]
    fn what_is_missing_doubled_early_or_strange_is_seen() {
        let mut samples = starts();
        let lost = samples.remove(4);
        samples.push(samples[0]);
        samples[1].started_us = samples[1].due_us - 5;
        samples.push(Sample {
            due_us: lost.due_us + 1000,
            ..lost
        });
        let fires = tally(&samples);
        let due = i64::try_from(lost.due_us / 1000).expect("not so late");
        assert_eq!(fires.missing, [(1, WallMs(due))]);
        assert_eq!((fires.duplicated, fires.early, fires.strange), (1, 1, 1));
    }
}
