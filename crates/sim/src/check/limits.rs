//! Limits, swept over the leases that the store knows: by code of its own, from the definitions as they stand.
//!
//! A commit that gives something out must not leave more leased than a limit says; a lowered limit may be exceeded by what
//! ran before. Starts under a rate are remembered by the time of their assignment: no span may hold more than a burst and
//! its share. Where clocks stepped, or another server took over, that time is off by as much.

use std::collections::BTreeMap;

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{JobLimits, JobSpec, JsonText, QueueSpec, Run, SegmentSet, WallMs};
use drumtower_core::schedule::parse_duration;
use drumtower_store::Read;

use crate::world::World;

/// What is limited, in words.
type Gate = String;

/// Starts under a rate, as long as it is the same.
#[derive(Default)]
pub(super) struct Starts {
    rate: Option<(String, u32)>,
    at: Vec<WallMs>,
}

/// One limit of a run.
struct Limit {
    gate: Gate,
    most: Option<u32>,
    rate: Option<(String, u32)>,
}

const REMEMBERED: usize = 400;

impl World {
    pub(super) fn check_limits(&mut self, changes: &ChangeSet) {
        let mut given: Vec<(WallMs, Vec<Limit>)> = Vec::new();
        for change in changes.runs.values() {
            let run = change.run();
            let known = self.checks.runs.get(&run.id).map_or(0, |row| row.attempts);
            for attempt in run.attempts.iter().skip(known) {
                given.push((attempt.assigned, self.limits_of(run)));
            }
        }
        given.retain(|(_, limits)| !limits.is_empty());
        if given.is_empty() {
            return;
        }
        given.sort_by_key(|(at, _)| *at);
        let leased = self.leased();
        for (at, limits) in given {
            for limit in limits {
                let held = leased.get(&limit.gate).copied().unwrap_or(0);
                if limit.most.is_some_and(|most| held > most) {
                    let words = format!("{held} of {:?} are leased: {}", limit.most, limit.gate);
                    self.checks.find("V11", words);
                }
                self.check_rate(at, limit);
            }
        }
    }

    fn check_rate(&mut self, at: WallMs, limit: Limit) {
        self.look_at_clocks();
        // Each of the clocks shows whole milliseconds.
        let apart = match self.servers.len() {
            1 => 0,
            _ => self.checks.spread_ms() + 2,
        };
        let slack = apart + self.checks.stepped_ms;
        let starts = self.checks.starts.entry(limit.gate.clone()).or_default();
        if starts.rate != limit.rate {
            starts.at.clear();
            starts.rate = limit.rate;
        }
        let Some((rate, burst)) = &starts.rate else {
            return;
        };
        starts.at.push(at);
        let Some((count, period)) = rate.split_once('/') else {
            return;
        };
        let count: f64 = count.parse().unwrap_or(1.0);
        let interval = parse_duration(period).unwrap_or(1) as f64 / count;
        let mut wrong = None;
        for (index, from) in starts.at.iter().enumerate() {
            let many = starts.at.len() - index;
            let span = (at.since(*from) + slack).max(0) as f64;
            if many as f64 > f64::from(*burst) + span / interval + 1e-6 {
                wrong = Some(format!(
                    "{many} starts within {} ms under {rate} and a burst of {burst}: {}",
                    at.since(*from),
                    limit.gate
                ));
            }
        }
        let gone = starts.at.len().saturating_sub(REMEMBERED);
        starts.at.drain(..gone);
        if let Some(words) = wrong {
            self.checks.find("V11", words);
        }
    }

    /// How many attempts are leased under each limit.
    fn leased(&self) -> BTreeMap<Gate, u32> {
        let mut leased = BTreeMap::new();
        let active = self.reader.active_runs(&SegmentSet::ALL, None, usize::MAX);
        for run in active.unwrap_or_default() {
            if run.current_attempt().is_some() {
                for limit in self.limits_of(&run) {
                    *leased.entry(limit.gate).or_default() += 1;
                }
            }
        }
        leased
    }

    fn limits_of(&self, run: &Run) -> Vec<Limit> {
        let Ok(Some(job)) = self.reader.job(run.job) else {
            return Vec::new();
        };
        let current = &job.version.spec;
        if current.limits.is_none() && current.queue.is_none() {
            return Vec::new();
        }
        let pinned = self.reader.job_version(run.job, run.job_version);
        let pinned = pinned.ok().flatten().map(|version| version.spec);
        let params = run.params.clone();
        let params = params.or_else(|| pinned.and_then(|spec: JobSpec| spec.params));
        let mut limits = Vec::new();
        if let Some(said) = &current.limits {
            add(&mut limits, &format!("{}", run.job), said, params.as_ref());
        }
        let queue = current.queue.as_ref();
        if let Some(queue) =
            queue.and_then(|name| self.queue(run.namespace.as_str(), name.as_str()))
        {
            let said = JobLimits {
                concurrency: queue.concurrency,
                key: queue.key.clone(),
                per_key: queue.per_key,
                rate: queue.rate.clone(),
                burst: queue.burst,
            };
            let name = format!("queue {}/{}", queue.namespace, queue.name);
            add(&mut limits, &name, &said, params.as_ref());
        }
        limits
    }

    fn queue(&self, namespace: &str, name: &str) -> Option<QueueSpec> {
        let rows = self.reader.queues().unwrap_or_default();
        let mut defined = rows.into_iter().filter(|row| !row.deleted);
        let found = defined
            .find(|row| row.spec.namespace.as_str() == namespace && row.spec.name.as_str() == name);
        found.map(|row| row.spec)
    }
}

fn add(limits: &mut Vec<Limit>, of: &str, said: &JobLimits, params: Option<&JsonText>) {
    limits.push(Limit {
        gate: of.to_owned(),
        most: said.concurrency,
        rate: said
            .rate
            .clone()
            .map(|rate| (rate, said.burst.unwrap_or(1))),
    });
    if let (Some(pointer), Some(most)) = (&said.key, said.per_key) {
        let document: serde_json::Value = params
            .and_then(|params| serde_json::from_str(params.as_str()).ok())
            .unwrap_or_default();
        let value = document.pointer(pointer).cloned().unwrap_or_default();
        limits.push(Limit {
            gate: format!("{of} with {value}"),
            most: Some(most),
            rate: None,
        });
    }
}
