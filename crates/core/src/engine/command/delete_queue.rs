//! Deletes a queue: jobs that name it go on without its limits, and one that was paused gives out again.

use crate::model::{Actor, AuditAction, Now, QueueRef, QueueRow};

use super::super::deeds;
use super::super::{Condition, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn delete_queue(
        &mut self,
        now: Now,
        actor: &Actor,
        queue: QueueRef,
        condition: Condition,
    ) -> Answer {
        let current = self.check_queue(&queue, condition)?;
        let Some(current) = current else {
            return Err(Refusal::NoSuchQueue(queue));
        };
        let row = QueueRow {
            revision: self.next_revision(&queue),
            paused: None,
            deleted: true,
            updated: now.wall,
            actor: actor.clone(),
            ..current
        };
        let changes = deeds::gone(&row.spec);
        self.change_queue(now, actor, row, AuditAction::Deleted, changes);
        Ok(Reply::Deleted)
    }
}
