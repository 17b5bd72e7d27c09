//! A commit has become durable: is it one that may be?

use drumtower_core::change::{ChangeSet, JobChange, RunChange};
use drumtower_core::model::{AttemptEnd, AttemptOutcome, Origin, Reason, Run, RunId, RunState};
use drumtower_store::Read;

use super::Checks;
use crate::world::World;

/// What is remembered of a run.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) attempts: usize,
    /// How many of them have ended.
    ended: usize,
    cancelled: bool,
    terminal: bool,
}

impl Row {
    fn of(run: &Run) -> Self {
        Self {
            attempts: run.attempts.len(),
            ended: run.attempts.iter().filter(|it| it.end.is_some()).count(),
            cancelled: run.cancel.is_some(),
            terminal: run.state.is_terminal(),
        }
    }
}

impl World {
    pub(crate) fn check_commit(&mut self, changes: &ChangeSet) {
        self.check_owners(changes);
        for (segment, row) in &changes.segments {
            self.checks.marks.insert(*segment, row.id_mark);
        }
        self.check_limits(changes);
        // What ends in this commit may be used by it; what begins holds from the next one on.
        let ended = changes.drains.iter().filter(|(_, row)| row.is_none());
        for (workers, _) in ended {
            self.checks.drained.remove(&workers.name);
        }
        // Drains are written by one server; the others hear of them a little later.
        let told = self.checks.has_home(changes.session);
        for change in changes.runs.values() {
            self.check_ends(change.run());
            let ended = self.ended_of(change.run());
            self.check_jitter(change.run(), ended);
            self.checks.run_change(change, told);
        }
        let begun = changes.drains.iter().filter(|(_, row)| row.is_some());
        let begun = begun.map(|(workers, _)| workers.name.clone());
        self.checks.drained.extend(begun);
        let made = |change: &&JobChange| matches!(change, JobChange::Insert(_));
        self.checks.jobs_made += changes.jobs.values().filter(made).count() as u64;
        self.check_letters(changes);
        self.check_locks(changes);
        self.check_marks(changes);
        self.check_overlap(changes);
        self.check_breakers(changes);
        self.check_followers(changes);
        self.checks.schedules(changes);
        self.check_backfills(changes);
        self.check_counters();
    }

    /// How many attempts of a run are known to have ended.
    fn ended_of(&self, run: &Run) -> usize {
        self.checks.runs.get(&run.id).map_or(0, |row| row.ended)
    }

    /// Whoever held an attempt that has ended by this commit has let go of it, or its lease is over.
    fn check_ends(&mut self, run: &Run) {
        let known = self.ended_of(run);
        for attempt in run
            .attempts
            .iter()
            .skip(known)
            .filter(|it| it.end.is_some())
        {
            if let Some(worker) = self.authorised(run.id, attempt.number) {
                let promise = if run.cancel.is_some() { "V13" } else { "V5" };
                let words = format!(
                    "{} attempt {} has ended by a commit while worker {worker} runs it with right",
                    run.id, attempt.number
                );
                self.checks.find(promise, words);
            }
        }
    }

    fn check_counters(&mut self) {
        let mut counted = std::collections::BTreeMap::new();
        for ((_, namespace), row) in self.reader.counters().unwrap_or_default() {
            let sum: &mut drumtower_core::model::Counters = counted.entry(namespace).or_default();
            sum.created += row.created;
            sum.completed += row.completed;
            sum.failed += row.failed;
            sum.cancelled += row.cancelled;
        }
        if counted != self.checks.tallies {
            let words = format!("counters {counted:?}, runs {:?}", self.checks.tallies);
            self.checks.find("V8", words);
        }
    }
}

impl Checks {
    fn run_change(&mut self, change: &RunChange, told: bool) {
        let run = change.run();
        let before = self.runs.get(&run.id).cloned();
        if before.as_ref().is_some_and(|row| row.terminal) {
            self.find("V7", format!("{} has ended and is written again", run.id));
        }
        self.new_attempts(run, before.as_ref(), told);
        self.ends_of_drains(run);
        self.start_in_time(run);
        let new = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
        if new {
            self.new_run(run);
        }
        let tally = self.tallies.entry(run.namespace.clone()).or_default();
        tally.created += u64::from(new);
        match run.state {
            RunState::Completed => tally.completed += 1,
            RunState::Failed => tally.failed += 1,
            RunState::Cancelled => tally.cancelled += 1,
            _ => {}
        }
        self.runs.insert(run.id, Row::of(run));
    }

    fn new_attempts(&mut self, run: &Run, before: Option<&Row>, told: bool) {
        let known = before.map_or(0, |row| row.attempts);
        for (index, attempt) in run.attempts.iter().enumerate().skip(known) {
            if before.is_some_and(|row| row.cancelled) {
                let words = format!("{} was to be cancelled and has a new attempt", run.id);
                self.find("V13", words);
            }
            if told && self.drained.contains(&attempt.worker) {
                let words = format!(
                    "{} is given to {}, which is drained",
                    run.id, attempt.worker
                );
                self.find("V13", words);
            }
            let first = run.attempts[..index].iter().all(|older| {
                let end = older.end.as_ref();
                end.is_some_and(|end| end.outcome == AttemptOutcome::Undelivered)
            });
            if first && run.start_by.is_some_and(|by| by <= attempt.assigned) {
                let words = format!("{} is given out after its start_timeout", run.id);
                self.find("V4", words);
            }
            if attempt.number as usize != index + 1 {
                let words = format!("{} has attempt {} in place {index}", run.id, attempt.number);
                self.find("V6", words);
            }
            let segment = run.id.segment();
            let last = self.fences.entry(segment).or_default();
            // Fences of one commit come in the order of its runs, not of its decisions.
            let highest_before = last.0;
            if run.attempts[..index]
                .iter()
                .any(|older| older.fence >= attempt.fence)
            {
                self.find("V6", format!("{}: its fences do not grow", run.id));
            } else {
                last.0 = highest_before.max(attempt.fence.0);
            }
            let mark = self.marks.get(&segment).copied().unwrap_or(0);
            if attempt.fence.0 > mark {
                let words = format!(
                    "{}: fence {} lies above the mark {mark}",
                    run.id, attempt.fence.0
                );
                self.find("V6", words);
            }
        }
    }

    /// What a drain stopped has not failed, whatever the task made of it.
    fn ends_of_drains(&mut self, run: &Run) {
        let ends = run.attempts.iter().filter_map(|it| it.end.as_ref());
        let drained = |end: &AttemptEnd| {
            end.error
                .as_deref()
                .is_some_and(|it| it.contains("drained"))
        };
        if ends
            .clone()
            .any(|end| drained(end) && end.outcome.is_failure())
        {
            let words = format!("{}: what a drain stopped counts as failed", run.id);
            self.find("V12", words);
        }
    }

    /// A run fails for want of a worker only at its time, and only if no worker had it.
    fn start_in_time(&mut self, run: &Run) {
        let Some(last) = run.transitions.last() else {
            return;
        };
        if last.reason != Reason::StartTimedOut {
            return;
        }
        let started = run.attempts.iter().any(|it| it.started.is_some());
        if started || run.start_by.is_none_or(|by| last.at < by) {
            let words = format!(
                "{} failed for want of a start, too early or wrongly",
                run.id
            );
            self.find("V4", words);
        }
    }

    fn new_run(&mut self, run: &Run) {
        self.runs_made += 1;
        self.below_mark(run.id);
        let cursor = self.cursors.get(&run.job).copied();
        if let (Origin::Schedule, Some(nominal), Some(cursor)) = (run.origin, run.nominal, cursor)
            && nominal <= cursor
        {
            let words = format!(
                "{} stands for {}, the cursor of its job stood at {}",
                run.id, nominal.0, cursor.0
            );
            self.find("V2", words);
        }
    }

    fn below_mark(&mut self, run: RunId) {
        let mark = self.marks.get(&run.segment()).copied().unwrap_or(0);
        if run.0 > mark {
            self.find("V6", format!("{run} lies above the mark of its segment"));
        }
    }

    fn schedules(&mut self, changes: &ChangeSet) {
        for (job, change) in &changes.schedules {
            let before = self.cursors.insert(*job, change.row.fired_through);
            if before.is_some_and(|before| before > change.row.fired_through) {
                self.find("V2", format!("the cursor of {job} went back"));
            }
        }
    }
}
