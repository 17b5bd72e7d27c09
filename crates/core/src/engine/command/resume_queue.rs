//! Lets a paused queue give out again. Resuming twice changes nothing.

use crate::model::{Actor, AuditAction, Now, QueueRef, QueueRow};

use super::super::deeds;
use super::super::{Condition, Engine, Refusal};
use super::Answer;
use super::put_queue::queue_reply;

impl Engine {
    pub(super) fn resume_queue(
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
        if current.paused.is_none() {
            return Ok(queue_reply(current, false));
        }
        let row = QueueRow {
            revision: self.next_revision(&queue),
            paused: None,
            updated: now.wall,
            actor: actor.clone(),
            ..current
        };
        self.change_queue(
            now,
            actor,
            row.clone(),
            AuditAction::Resumed,
            deeds::paused(false),
        );
        Ok(queue_reply(row, false))
    }
}
