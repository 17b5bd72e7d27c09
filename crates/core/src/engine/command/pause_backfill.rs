//! Stops a backfill from making runs: RUNNING to PAUSED. Runs under way go on. Pausing twice changes nothing; one that is
//! over is refused.

use crate::model::{Actor, AuditAction, BackfillId, BackfillState, NamespaceName, Now};

use super::super::{Condition, Engine, Refusal};
use super::Answer;

impl Engine {
    pub(super) fn pause_backfill(
        &mut self,
        now: Now,
        actor: &Actor,
        id: BackfillId,
        scope: Option<&NamespaceName>,
        condition: Condition,
    ) -> Answer {
        match self.find_backfill(id, scope, condition)?.state {
            BackfillState::Running => {
                self.touch_backfill(now, actor, id, AuditAction::Paused);
                self.set_backfill_state(now, id, BackfillState::Paused);
            }
            BackfillState::Paused => {}
            state => return Err(Refusal::BackfillOver { id, state }),
        }
        self.backfill_reply(id, false)
    }
}
