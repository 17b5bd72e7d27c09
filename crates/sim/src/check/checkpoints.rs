//! Checkpoints: what a task was told to be kept is handed to whoever goes on, and never something older.

use std::collections::BTreeMap;

use drumtower_core::change::ChangeSet;
use drumtower_core::model::RunId;
use drumtower_store::Read;

use crate::worker::steps_in;
use crate::world::World;

#[derive(Default)]
pub(crate) struct Saved {
    /// The highest number that a task was told to be kept, and how far it had come.
    told: BTreeMap<RunId, (u64, u64)>,
    /// The number that stands in the row of the run.
    stands: BTreeMap<RunId, u64>,
}

const PROMISE: &str = "checkpoints";

impl World {
    pub(super) fn check_marks(&mut self, changes: &ChangeSet) {
        for change in changes.runs.values() {
            let run = change.run();
            let Some(mark) = run.checkpoint else {
                continue;
            };
            let before = self.checks.saved.stands.insert(run.id, mark.number);
            if before.is_some_and(|before| before > mark.number) {
                let words = format!("the checkpoint of {} goes back to {}", run.id, mark.number);
                self.checks.find(PROMISE, words);
            }
        }
    }

    /// A task is told that what it saved under this number is kept.
    pub(crate) fn check_saved(&mut self, run: RunId, number: u64) {
        let stored = self.reader.checkpoint(run).ok().flatten();
        let ended = self.reader.run(run).ok().flatten();
        let ended = ended.is_some_and(|run| run.state.is_terminal());
        match stored {
            Some(stored) if stored.number >= number => {
                let steps = steps_in(&stored.body).unwrap_or_default();
                if stored.number == number {
                    self.checks.saved.told.insert(run, (number, steps));
                }
            }
            // A run that has come to its end needs none.
            _ if ended => {}
            _ => {
                let words = format!("{run} is told that {number} is kept, which is not stored");
                self.checks.find(PROMISE, words);
            }
        }
    }

    /// An attempt starts with what its assignment named. Returns how far that had come.
    pub(crate) fn check_resumed(&mut self, run: RunId, attempt: u32, mark: Option<u64>) -> u64 {
        let told = self.checks.saved.told.get(&run).copied();
        if let Some((number, _)) = told
            && mark.is_none_or(|mark| mark < number)
        {
            let words = format!(
                "{run} attempt {attempt} begins with {mark:?}, {number} was told to be kept"
            );
            self.checks.find(PROMISE, words);
        }
        let Some(mark) = mark else { return 0 };
        let stored = self.reader.checkpoint(run).ok().flatten();
        let Some(stored) = stored.filter(|stored| stored.number >= mark) else {
            let ended = self.reader.run(run).ok().flatten();
            if ended.is_none_or(|run| !run.state.is_terminal()) {
                let words =
                    format!("{run} attempt {attempt} is to begin with {mark}, which is gone");
                self.checks.find(PROMISE, words);
            }
            return 0;
        };
        let steps = steps_in(&stored.body).unwrap_or_default();
        if told.is_some_and(|(_, before)| before > steps) {
            let words = format!("{run} attempt {attempt} begins at {steps}, it had come further");
            self.checks.find(PROMISE, words);
        }
        steps
    }
}
