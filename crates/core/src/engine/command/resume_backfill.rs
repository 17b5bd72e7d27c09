//! Lets a paused backfill go on: PAUSED to RUNNING. What became of the times meanwhile is read anew. One that runs is left
//! as it is; one that is over is refused.

use crate::model::{Actor, AuditAction, BackfillId, BackfillState, NamespaceName, Now};

use super::super::{Condition, Engine, Refusal};
use super::Answer;

impl Engine {
    pub(super) fn resume_backfill(
        &mut self,
        now: Now,
        actor: &Actor,
        id: BackfillId,
        scope: Option<&NamespaceName>,
        condition: Condition,
    ) -> Answer {
        match self.find_backfill(id, scope, condition)?.state {
            BackfillState::Paused => {
                self.touch_backfill(now, actor, id, AuditAction::Resumed);
                self.set_backfill_state(now, id, BackfillState::Running);
            }
            BackfillState::Running => {}
            state => return Err(Refusal::BackfillOver { id, state }),
        }
        self.backfill_reply(id, false)
    }
}
