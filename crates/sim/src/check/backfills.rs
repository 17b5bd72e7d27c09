//! What backfills have made, counted from the commits alone.

use std::collections::BTreeSet;

use drumtower_core::change::{ChangeSet, RunChange};
use drumtower_core::model::{BackfillId, BackfillRow, Run, RunId, WallMs};
use drumtower_store::Read;

use super::Checks;
use crate::world::World;

/// What is remembered of a backfill.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    times: BTreeSet<WallMs>,
    live: BTreeSet<RunId>,
}

impl World {
    pub(super) fn check_backfills(&mut self, changes: &ChangeSet) {
        let mut touched: BTreeSet<BackfillId> = changes.backfills.keys().copied().collect();
        for change in changes.runs.values() {
            let run = change.run();
            if let Some(mark) = run.backfill {
                touched.insert(mark.backfill);
                let new = matches!(change, RunChange::Insert(_) | RunChange::InsertFinished(_));
                self.checks.backfilled(mark.backfill, run, new);
            }
        }
        for id in touched {
            match self.reader.backfill(id).ok().flatten() {
                Some(row) => self.checks.backfill_row(&row),
                None => self
                    .checks
                    .find("V2", format!("{id} made runs and is not there")),
            }
        }
    }

    /// What made a run, if it was a backfill.
    pub(super) fn backfill_of(&self, run: &Run) -> Option<BackfillRow> {
        let id = run.backfill?.backfill;
        self.reader.backfill(id).ok().flatten()
    }

    /// A caller is told of a backfill: the store has it, not older.
    pub(crate) fn check_backfill_told(&mut self, row: &BackfillRow) {
        let stored = self.reader.backfill(row.id).ok().flatten();
        if stored.is_none_or(|stored| stored.revision < row.revision) {
            let words = format!(
                "a caller is told of revision {} of {}, which is not stored",
                row.revision, row.id
            );
            self.checks.find("V9", words);
        }
    }
}

impl Checks {
    fn backfilled(&mut self, id: BackfillId, run: &Run, new: bool) {
        let made = self.backfills.entry(id).or_default();
        let again = match run.nominal {
            Some(at) if new => !made.times.insert(at),
            nominal => nominal.is_none(),
        };
        if run.state.is_terminal() {
            made.live.remove(&run.id);
        } else {
            made.live.insert(run.id);
        }
        if again {
            let words = format!("{id} made {} of {:?} once more", run.id, run.nominal);
            self.find("V2", words);
        }
    }

    fn backfill_row(&mut self, row: &BackfillRow) {
        let made = self.backfills.get(&row.id).cloned().unwrap_or_default();
        let named: BTreeSet<RunId> = row.live.iter().copied().collect();
        if named != made.live || row.made != made.times.len() as u64 {
            let words = format!(
                "{} names {named:?} and {} made, the commits had {:?} and {}",
                row.id,
                row.made,
                made.live,
                made.times.len()
            );
            self.find("V8", words);
        }
        let outside = |at: &&WallMs| !(row.from..row.to).contains(*at);
        if let Some(at) = made.times.iter().find(outside) {
            let words = format!("{} made a run of {}, outside its interval", row.id, at.0);
            self.find("V2", words);
        }
        if made.live.len() > row.max_active as usize {
            let words = format!("{} runs of {} are live", made.live.len(), row.id);
            self.find("V11", words);
        }
    }
}
