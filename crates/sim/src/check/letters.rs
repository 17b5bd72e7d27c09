//! Dead letters: whoever failed for good and is to be kept is one, once, until somebody requeues or discards it.

use std::collections::BTreeSet;

use drumtower_core::change::{ChangeSet, LetterChange, RunChange};
use drumtower_core::engine::Trigger;
use drumtower_core::model::{DeadLetter, Run, RunId, RunState};
use drumtower_store::{LetterFilter, Read};

use super::Checks;
use crate::client::REQUEUED;
use crate::world::World;

#[derive(Default)]
pub(crate) struct Letters {
    there: BTreeSet<RunId>,
    discard_asked: BTreeSet<RunId>,
    /// Letters that a run has taken the place of.
    requeued: BTreeSet<RunId>,
}

const PROMISE: &str = "letters";

impl World {
    pub(super) fn check_letters(&mut self, changes: &ChangeSet) {
        let mut requeued = BTreeSet::new();
        for change in changes.runs.values() {
            let run = change.run();
            let made = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
            if let Some(letter) = run.rerun_of.filter(|_| made && is_requeue(run)) {
                requeued.insert(letter);
                if !self.checks.letters.requeued.insert(letter) {
                    let words = format!("{} requeues {letter}, which was requeued before", run.id);
                    self.checks.find(PROMISE, words);
                }
            }
            let kept = matches!(changes.letters.get(&run.id), Some(LetterChange::Insert(_)));
            if kept != (run.state == RunState::Failed && self.keeps_letters(run)) {
                let words = format!(
                    "{} is {} and {} a letter",
                    run.id,
                    run.state.as_str(),
                    if kept { "becomes" } else { "does not become" }
                );
                self.checks.find(PROMISE, words);
            }
        }
        for (run, change) in &changes.letters {
            match change {
                LetterChange::Insert(_) => self.checks.letter_kept(*run),
                LetterChange::Remove => self.checks.letter_gone(*run, requeued.contains(run)),
            }
        }
    }

    fn keeps_letters(&self, run: &Run) -> bool {
        let version = self.reader.job_version(run.job, run.job_version);
        let spec = version.ok().flatten().map(|version| version.spec);
        spec.is_some_and(|spec| spec.retry.dead_letter != Some(DeadLetter::Drop))
    }

    /// A caller is told that a letter was requeued.
    pub(crate) fn check_requeued(&mut self, trigger: &Trigger) {
        let letter = trigger.rerun.as_ref().filter(|rerun| rerun.letter);
        if let Some(letter) = letter.map(|rerun| rerun.of)
            && self.reader.letter(letter).ok().flatten().is_some()
        {
            let words = format!("{letter} was requeued and is still a letter");
            self.checks.find(PROMISE, words);
        }
    }

    pub(crate) fn check_discarded(&mut self, runs: &[RunId]) {
        for run in runs {
            if self.reader.letter(*run).ok().flatten().is_some() {
                let words = format!("{run} was thrown away and is still a letter");
                self.checks.find(PROMISE, words);
            }
        }
    }

    /// At the end there are those that should be, and no others.
    pub(super) fn check_letters_left(&mut self) {
        let filter = LetterFilter::default();
        let page = self.reader.letters(&filter, None, usize::MAX);
        let left: BTreeSet<RunId> = page
            .unwrap_or_default()
            .runs
            .iter()
            .map(|run| run.id)
            .collect();
        if left != self.checks.letters.there {
            let words = format!(
                "there are {} letters and should be {}",
                left.len(),
                self.checks.letters.there.len()
            );
            self.checks.find(PROMISE, words);
        }
    }
}

fn is_requeue(run: &Run) -> bool {
    let key = run.idempotency_key.as_deref();
    key.is_some_and(|key| key.starts_with(REQUEUED))
}

impl Checks {
    pub(crate) fn discard_asked(&mut self, runs: &[RunId]) {
        self.letters.discard_asked.extend(runs);
    }

    fn letter_kept(&mut self, run: RunId) {
        if !self.letters.there.insert(run) {
            self.find(PROMISE, format!("{run} becomes a letter twice"));
        }
    }

    fn letter_gone(&mut self, run: RunId, requeued: bool) {
        let asked = requeued || self.letters.discard_asked.contains(&run);
        if !self.letters.there.remove(&run) || !asked {
            self.find(PROMISE, format!("{run} is no letter any more, unasked"));
        }
    }
}
