//! V11: how many runs of a job, or of one key of it, are under way. What counts and under which key is worked out here from
//! the definitions; of a triggered run only its own word tells whether it was to obey.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::model::{JobId, JobSpec, OnFull, Origin, Run, RunId};
use drumtower_store::Read;

use crate::world::World;

type Key = (JobId, String);

#[derive(Default)]
pub(crate) struct Overlaps {
    /// Runs that count and do not wait for their turn.
    live: BTreeMap<RunId, Key>,
    /// The version that each job stands at.
    versions: BTreeMap<JobId, u32>,
}

impl World {
    /// A run gets a place only if there is one, by the strictest reading that any definition in force allows. A limit that
    /// was lowered stops nobody.
    pub(super) fn check_overlap(&mut self, changes: &ChangeSet) {
        let mut ranges = BTreeMap::new();
        for (job, change) in &changes.jobs {
            let (JobChange::Insert(row) | JobChange::Update(row)) = change;
            let before = self.checks.overlaps.versions.insert(*job, row.version);
            // One commit may make a job and edit it.
            ranges.insert(*job, (before.unwrap_or(1), row.version));
        }
        let mut taken: BTreeSet<Key> = BTreeSet::new();
        for change in changes.runs.values() {
            let run = change.run();
            if run.standing.queued && !run.attempts.is_empty() {
                let words = format!("{} waits for its turn and has an attempt", run.id);
                self.checks.find("V11", words);
            }
            let counts = run.origin == Origin::Schedule || run.standing.counts;
            if run.state.is_terminal() || run.standing.queued || !counts {
                self.checks.overlaps.live.remove(&run.id);
            } else if !self.checks.overlaps.live.contains_key(&run.id)
                && let Some(key) = self.overlap_key(run)
            {
                taken.insert(key.clone());
                self.checks.overlaps.live.insert(run.id, key);
            }
        }
        for key in taken {
            let job = key.0;
            let stands = self.checks.overlaps.versions.get(&job).copied();
            let stands = stands.unwrap_or(1);
            let (first, last) = ranges.get(&job).copied().unwrap_or((stands, stands));
            let most = (first..=last).filter_map(|version| {
                let spec = self.spec(job, version)?;
                Some(limit(&spec))
            });
            let most = most.max().unwrap_or(usize::MAX);
            let live = self.checks.overlaps.live.values();
            let live = live.filter(|other| **other == key).count();
            if live > most {
                let words = format!(
                    "{live} runs of {job} with key {} are live, {most} may",
                    key.1
                );
                self.checks.find("V11", words);
            }
        }
    }

    pub(super) fn spec(&self, job: JobId, version: u32) -> Option<JobSpec> {
        let version = self.reader.job_version(job, version).ok()??;
        Some(version.spec)
    }

    fn overlap_key(&self, run: &Run) -> Option<Key> {
        let spec = self.spec(run.job, run.job_version)?;
        let key = spec.overlap.key.as_ref().map(|pointer| {
            let params = run.params.clone().or_else(|| spec.params.clone());
            let params = params.map(|params| params.to_value()).unwrap_or_default();
            let value = params.pointer(pointer).cloned().unwrap_or_default();
            format!("{pointer}={value}")
        });
        Some((run.job, key.unwrap_or_default()))
    }
}

fn limit(spec: &JobSpec) -> usize {
    match spec.overlap.on_full {
        OnFull::Allow => usize::MAX,
        _ => spec.overlap.limit.unwrap_or(1) as usize,
    }
}
