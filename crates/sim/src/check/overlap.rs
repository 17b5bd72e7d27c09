//! V11: how many runs of a job, or of one key of it, are under way. What counts and under which key is worked out here from
//! the definitions and from what users asked for. And that nobody had to stop, or to leave the queue, for a run that could
//! not have started yet.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, JobChange};
use drumtower_core::engine::Trigger;
use drumtower_core::model::{
    JobId, JobSpec, Obedience, OnFull, Origin, Reason, Run, RunId, WallMs,
};
use drumtower_store::Read;

use super::Checks;
use crate::world::World;

type Key = (JobId, String);
/// The first and the last version that jobs stood at during a commit.
type Ranges = BTreeMap<JobId, (u32, u32)>;

#[derive(Default)]
pub(crate) struct Overlaps {
    /// Runs that count and do not wait for their turn.
    live: BTreeMap<RunId, Key>,
    /// Runs that wait for their turn, each with when it is ready.
    waiting: BTreeMap<RunId, (Key, WallMs)>,
    /// Runs that were asked to stop for others and have not ended.
    stopping: BTreeMap<RunId, Key>,
    /// Keys of requests for runs that were to count.
    obeying: BTreeSet<String>,
    /// The version that each job stands at.
    versions: BTreeMap<JobId, u32>,
}

impl Overlaps {
    /// Those that wait under a key, before or after the commit, and are ready then.
    fn ready(&self, key: &Key, at: WallMs) -> impl Iterator<Item = &RunId> {
        let waiting = self.waiting.iter();
        let ready = waiting.filter(move |(_, (other, ready))| other == key && *ready <= at);
        ready.map(|(id, _)| id)
    }
}

impl Checks {
    /// A user asks for a run that is to count.
    pub(crate) fn obeys(&mut self, trigger: &Trigger) {
        let key = trigger.idempotency_key.as_ref();
        let obeys = key.filter(|_| trigger.overlap == Obedience::Obey);
        self.overlaps.obeying.extend(obeys.cloned());
    }
}

impl World {
    /// Whether a run was made to count.
    fn counts(&self, run: &Run) -> bool {
        let asked = |key: &String| self.checks.overlaps.obeying.contains(key);
        let backfill = || self.backfill_of(run);
        run.origin == Origin::Schedule
            || run.standing.counts
            || run.idempotency_key.as_ref().is_some_and(asked)
            || backfill().is_some_and(|row| row.overlap == Obedience::Obey)
    }

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
        self.check_superseded(changes, &ranges);
        let mut taken: BTreeSet<Key> = BTreeSet::new();
        for change in changes.runs.values() {
            let run = change.run();
            if run.standing.queued && !run.attempts.is_empty() {
                let words = format!("{} waits for its turn and has an attempt", run.id);
                self.checks.find("V11", words);
            }
            if run.state.is_terminal() || run.standing.queued || !self.counts(run) {
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

    /// Whoever is asked to stop was asked for one that waited and was ready, by the clock of the server that asked, and for
    /// each of those one at most. Who waited and had to go had to for newer ones that were ready.
    fn check_superseded(&mut self, changes: &ChangeSet, ranges: &Ranges) {
        let runs = || changes.runs.values().map(|change| change.run());
        let key_of = |run: &Run| {
            self.overlap_key(run)
                .map(|key| (run.id, (key, run.ready())))
        };
        let queued = runs().filter(|run| run.standing.queued);
        let queued: Vec<_> = queued.filter_map(key_of).collect();
        self.checks.overlaps.waiting.extend(queued);
        let mut asked: BTreeMap<Key, (usize, WallMs)> = BTreeMap::new();
        for run in runs().filter(|run| run.standing.superseded) {
            let known = self.checks.overlaps.stopping.contains_key(&run.id);
            if let (Some(request), Some(key)) = (run.cancel.as_ref(), self.overlap_key(run))
                && !known
            {
                self.checks.overlaps.stopping.insert(run.id, key.clone());
                let (stopped, at) = asked.entry(key).or_default();
                *stopped += 1;
                *at = request.at.max(*at);
            }
        }
        for (key, (stopped, at)) in asked {
            let stopping = self.checks.overlaps.stopping.values();
            let stopping = stopping.filter(|other| **other == key).count();
            let ready = self.checks.overlaps.ready(&key, at).count();
            if stopping > ready {
                let words = format!(
                    "{stopped} runs of {} were to stop, {stopping} in all, for {ready} that are ready",
                    key.0
                );
                self.checks.find("V11", words);
            }
        }
        for run in runs().filter(|run| left_queue(run)) {
            self.check_left(run, ranges);
        }
        for run in runs().filter(|run| !run.standing.queued || run.state.is_terminal()) {
            self.checks.overlaps.waiting.remove(&run.id);
        }
        for run in runs().filter(|run| run.state.is_terminal()) {
            self.checks.overlaps.stopping.remove(&run.id);
        }
    }

    /// One that waited had to go: under `cancel_old`, because as many newer ones are ready as there are places.
    fn check_left(&mut self, run: &Run, ranges: &Ranges) {
        let (Some(key), Some(at)) = (self.overlap_key(run), run.transitions.last()) else {
            return;
        };
        let stands = self.checks.overlaps.versions.get(&run.job).copied();
        let stands = stands.unwrap_or(1);
        let (first, last) = ranges.get(&run.job).copied().unwrap_or((stands, stands));
        let specs: Vec<JobSpec> = (first..=last)
            .filter_map(|version| self.spec(run.job, version))
            .collect();
        if specs
            .iter()
            .any(|spec| spec.overlap.on_full != OnFull::CancelOld)
        {
            return;
        }
        let places = specs.iter().map(limit).min().unwrap_or(0);
        let ready = self.checks.overlaps.ready(&key, at.at);
        let newer = ready.filter(|id| **id > run.id).count();
        if newer < places {
            let words = format!("{} had to go, and {newer} newer ones are ready", run.id);
            self.checks.find("V11", words);
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

/// A newer one took its place in the queue.
fn left_queue(run: &Run) -> bool {
    let last = run.transitions.last();
    run.standing.queued && last.is_some_and(|last| last.reason == Reason::Superseded)
}

fn limit(spec: &JobSpec) -> usize {
    match spec.overlap.on_full {
        OnFull::Allow => usize::MAX,
        _ => spec.overlap.limit.unwrap_or(1) as usize,
    }
}
