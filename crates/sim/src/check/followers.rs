//! Jobs that run after others: of each end that counts every follower is told, once.
//!
//! Who followed a job when a run of it ended is read from the store at the commit of that end. Each of them owes a run that
//! names the end, or a change of what is kept of it, unless somebody changed the follower itself in between.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{JobId, Origin, Run, RunId, SegmentSet};
use drumtower_store::Read;

use crate::world::World;

#[derive(Default)]
pub(crate) struct Followers {
    /// Those who have yet to be told of the end of a run.
    owed: BTreeMap<RunId, BTreeSet<JobId>>,
    /// Runs that were made after an end.
    made: BTreeSet<(JobId, RunId)>,
}

impl World {
    pub(super) fn check_followers(&mut self, changes: &ChangeSet) {
        for change in changes.runs.values() {
            let run = change.run();
            let new = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
            if new && run.origin == Origin::After {
                self.check_made(run);
            }
        }
        let excused: BTreeSet<JobId> = changes
            .waits
            .keys()
            .chain(changes.jobs.keys())
            .copied()
            .collect();
        for owed in self.checks.followers.owed.values_mut() {
            owed.retain(|job| !excused.contains(job));
        }
        for change in changes.runs.values() {
            let run = change.run();
            if run.state.is_terminal() && run.backfill.is_none() {
                self.note_owed(run, changes, &excused);
            }
        }
        let told = changes.endings.iter().filter(|(_, row)| row.is_none());
        for (run, _) in told {
            self.check_told(*run);
        }
    }

    fn check_made(&mut self, run: &Run) {
        let Some(parent) = run.parent_run else {
            let words = format!("{} was made after an end and names none", run.id);
            self.checks.find("V15", words);
            return;
        };
        let ended = self.reader.run(parent).ok().flatten();
        if !ended.is_some_and(|parent| parent.state.is_terminal()) {
            let words = format!("{} was made after {parent}, which has not ended", run.id);
            self.checks.find("V15", words);
        }
        let followers = &mut self.checks.followers;
        if let Some(owed) = followers.owed.get_mut(&parent) {
            owed.remove(&run.job);
        }
        if !followers.made.insert((run.job, parent)) {
            let words = format!("{} was told of the end of {parent} twice", run.job);
            self.checks.find("V15", words);
        }
    }

    /// Those that follow the job of a run that has just ended. Who came or changed within the same commit may have been
    /// before the end or after it.
    fn note_owed(&mut self, run: &Run, changes: &ChangeSet, unclear: &BTreeSet<JobId>) {
        let Ok(Some(job)) = self.reader.job(run.job) else {
            return;
        };
        if job.row.deleted || unclear.contains(&run.job) && !job.followed {
            return;
        }
        let (namespace, name) = (&job.row.namespace, &job.row.name);
        let followers = self
            .reader
            .followers(&SegmentSet::ALL, namespace, name, None, usize::MAX)
            .unwrap_or_default();
        let owed: BTreeSet<JobId> = followers
            .into_iter()
            .filter(|follower| !unclear.contains(&follower.row.id))
            .filter(|follower| {
                let after = follower.version.spec.after.as_ref();
                after.is_some_and(|after| after.on.takes(run.state))
            })
            .map(|follower| follower.row.id)
            .collect();
        if owed.is_empty() {
            return;
        }
        if !changes.endings.contains_key(&run.id) {
            let words = format!(
                "{} has ended, followed, and its commit does not say so",
                run.id
            );
            self.checks.find("V15", words);
        }
        self.checks.followers.owed.insert(run.id, owed);
    }

    /// The end of a run is done with.
    fn check_told(&mut self, run: RunId) {
        let owed = self.checks.followers.owed.remove(&run).unwrap_or_default();
        if let Some(job) = owed.first() {
            let words = format!("{job} was not told of the end of {run}");
            self.checks.find("V15", words);
        }
    }

    /// Nothing is left to be told.
    pub(super) fn check_all_told(&mut self) {
        let left: Vec<RunId> = self.checks.followers.owed.keys().copied().collect();
        for run in left {
            self.check_told(run);
        }
    }
}
