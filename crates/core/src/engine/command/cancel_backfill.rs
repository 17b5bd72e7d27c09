//! Ends a backfill: RUNNING or PAUSED to CANCELLED. It makes no more runs, and those that wait are cancelled. Those that a
//! worker has go on, or are asked to stop when the caller says so. One that is over is answered as it stands; its runs
//! under way can still be asked to stop.

use crate::model::{
    Actor, AuditAction, BackfillId, BackfillRow, BackfillState, NamespaceName, Now, RunId,
};

use super::super::{Condition, Engine};
use super::Answer;

impl Engine {
    pub(super) fn cancel_backfill(
        &mut self,
        now: Now,
        actor: &Actor,
        id: BackfillId,
        scope: Option<&NamespaceName>,
        condition: Condition,
        runs: bool,
    ) -> Answer {
        if !self.find_backfill(id, scope, condition)?.state.is_over() {
            self.touch_backfill(now, actor, id, AuditAction::Cancelled);
            self.end_backfill(now, id, BackfillState::Cancelled);
        }
        for run in self.live_runs_of(id) {
            let waits = self
                .runs
                .get(run)
                .is_some_and(|it| it.run.current_attempt().is_none());
            if waits || runs {
                self.cancel_run(now, actor, run, None)?;
            }
        }
        self.backfill_reply(id, false)
    }

    /// All of them are in memory: they were loaded for the command.
    fn live_runs_of(&self, id: BackfillId) -> Vec<RunId> {
        let row: Option<&BackfillRow> = self.backfills.get(id);
        row.map_or_else(Vec::new, |row| row.live.clone())
    }
}
