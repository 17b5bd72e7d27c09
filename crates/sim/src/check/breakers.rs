//! Circuit breakers: they open when they should, and what they let through is one probe at a time.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{BreakerRow, JobId, Origin, Reason, Run, RunState};
use drumtower_store::Read;

use super::Checks;
use crate::world::World;

#[derive(Default)]
pub(crate) struct Breakers {
    /// As the store has them.
    rows: BTreeMap<JobId, BreakerRow>,
    /// Runs of a job that failed one after another, counted here.
    failures: BTreeMap<JobId, u32>,
    /// Keys of triggers that were to pass whatever the breaker says.
    forced: BTreeSet<String>,
}

impl Checks {
    pub(crate) fn forced(&mut self, key: Option<&String>) {
        self.breakers.forced.extend(key.cloned());
    }
}

impl World {
    pub(super) fn check_breakers(&mut self, changes: &ChangeSet) {
        for change in changes.runs.values() {
            self.check_passed(change, changes);
        }
        let mut ends: BTreeMap<JobId, Vec<bool>> = BTreeMap::new();
        for change in changes.runs.values() {
            let run = change.run();
            let failed = run.state == RunState::Failed && !failed_for_others(run);
            if failed || run.state == RunState::Completed {
                ends.entry(run.job).or_default().push(failed);
            }
        }
        for (job, row) in &changes.breakers {
            match row {
                Some(row) => drop(self.checks.breakers.rows.insert(*job, row.clone())),
                None => {
                    self.checks.breakers.rows.remove(job);
                    self.checks.breakers.failures.remove(job);
                }
            }
        }
        // An edit may have brought the breaker, or taken it away, anywhere within the commit.
        for job in changes.jobs.keys() {
            self.checks.breakers.failures.remove(job);
            ends.remove(job);
        }
        for (job, ends) in ends {
            self.check_opens(job, &ends);
        }
    }

    /// What was made was let through.
    fn check_passed(&mut self, change: &RunChange, changes: &ChangeSet) {
        let run = change.run();
        let new = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
        let key = run.idempotency_key.as_ref();
        let forced = key.is_some_and(|key| self.checks.breakers.forced.contains(key));
        // What somebody makes up for on purpose is not held back.
        let made = new && !forced && run.origin != Origin::Backfill;
        let open = self.checks.breakers.rows.get(&run.job);
        let Some(open) = open.and_then(|row| row.open.clone()) else {
            return;
        };
        if !made || run.standing.queued || failed_for_others(run) {
            return;
        }
        let told = changes.breakers.contains_key(&run.job) || changes.jobs.contains_key(&run.job);
        if run.created >= open.at && run.created < open.until() && !told {
            let (until, created) = (open.until().0, run.created.0);
            let words = format!(
                "{} was made at {created}, its breaker is open until {until}",
                run.id
            );
            self.checks.find("breaker", words);
        }
        if let Some(probe) = open.probe.filter(|_| !told) {
            let words = format!("{} was let through while {probe} is the probe", run.id);
            self.checks.find("breaker", words);
        }
    }

    /// After as many failures in a row as it says, the breaker is open.
    fn check_opens(&mut self, job: JobId, ends: &[bool]) {
        let Ok(Some(record)) = self.reader.job(job) else {
            return;
        };
        let failures = self.checks.breakers.failures.entry(job).or_default();
        match (
            ends.iter().any(|failed| *failed),
            ends.iter().all(|failed| *failed),
        ) {
            (true, true) => *failures += ends.len() as u32,
            // In which order they ended within the commit, nobody can see.
            _ => *failures = 0,
        }
        let failures = *failures;
        let breaker = record.version.spec.breaker.as_ref();
        let Some(most) = breaker.and_then(|it| it.failures) else {
            return;
        };
        let is_open = record.breaker.is_some_and(|row| row.open.is_some());
        if failures >= most && !is_open && !record.row.deleted {
            let words = format!("{failures} runs of {job} failed in a row, its breaker is closed");
            self.checks.find("breaker", words);
        }
    }
}

fn failed_for_others(run: &Run) -> bool {
    let last = run.transitions.last();
    last.is_some_and(|last| last.reason == Reason::Overlap)
}
