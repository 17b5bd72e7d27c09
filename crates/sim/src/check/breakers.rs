//! Circuit breakers: they open when they should, and what they let through is one probe at a time.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{
    AuditAction, AuditKind, BreakerRow, JobId, JobRow, Reason, Run, RunState,
};
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
            let failed = run.state == RunState::Failed && !untried(run);
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
        for job in changes.breakers.keys() {
            if !changes.jobs.contains_key(job) && self.was_reset(*job, changes) {
                ends.entry(*job).or_default();
            }
        }
        for (job, ends) in ends {
            self.check_opens(job, &ends, changes);
        }
    }

    /// What was made was let through.
    fn check_passed(&mut self, change: &RunChange, changes: &ChangeSet) {
        let run = change.run();
        let new = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
        let key = run.idempotency_key.as_ref();
        let by_force = key.is_some_and(|key| self.checks.breakers.forced.contains(key));
        let backfill = self.backfill_of(run);
        let made = new && !by_force && !backfill.is_some_and(|row| row.force);
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

    fn was_reset(&self, job: JobId, changes: &ChangeSet) -> bool {
        let record = self.reader.job(job).ok().flatten();
        record.is_some_and(|record| was_reset(changes, &record.row))
    }

    /// After as many failures in a row as it says, the breaker is open; after a reset it counts none of those before it.
    fn check_opens(&mut self, job: JobId, ends: &[bool], changes: &ChangeSet) {
        let Ok(Some(record)) = self.reader.job(job) else {
            return;
        };
        let kept = record.breaker.as_ref().map_or(0, |row| row.failures);
        let failed = ends.iter().filter(|failed| **failed).count() as u32;
        let reset = was_reset(changes, &record.row);
        let failures = self.checks.breakers.failures.entry(job).or_default();
        match (
            ends.iter().any(|failed| *failed),
            ends.iter().all(|failed| *failed),
        ) {
            // Which of them failed after the reset nobody can see either: the row says how many.
            _ if reset => *failures = kept,
            (true, true) => *failures += failed,
            // In which order they ended within the commit, nobody can see.
            _ => *failures = 0,
        }
        let failures = *failures;
        if reset && kept > failed {
            let words = format!("{failed} runs of {job} failed around its reset, it counts {kept}");
            self.checks.find("breaker", words);
        }
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

/// Somebody closed the breaker by hand, anywhere within the commit.
fn was_reset(changes: &ChangeSet, job: &JobRow) -> bool {
    changes.audit.values().any(|entry| {
        let object = &entry.object;
        entry.action == AuditAction::Reset
            && object.kind == AuditKind::Job
            && object.namespace.as_ref() == Some(&job.namespace)
            && object.name == job.name.as_str()
    })
}

/// It failed without having been tried.
fn untried(run: &Run) -> bool {
    let last = run.transitions.last();
    failed_for_others(run) || last.is_some_and(|last| last.reason == Reason::StartTimedOut)
}

fn failed_for_others(run: &Run) -> bool {
    let last = run.transitions.last();
    last.is_some_and(|last| last.reason == Reason::Overlap)
}
