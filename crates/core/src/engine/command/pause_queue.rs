//! Stops a queue from giving anything out. What runs goes on. Pausing twice changes nothing.

use crate::model::{Actor, AuditAction, Now, Pause, QueueRef, QueueRow};

use super::super::deeds;
use super::super::{Condition, Engine, Refusal};
use super::Answer;
use super::put_queue::queue_reply;

impl Engine {
    pub(super) fn pause_queue(
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
        if current.paused.is_some() {
            return Ok(queue_reply(current, false));
        }
        let row = QueueRow {
            revision: self.next_revision(&queue),
            paused: Some(Pause {
                at: now.wall,
                actor: actor.clone(),
            }),
            updated: now.wall,
            actor: actor.clone(),
            ..current
        };
        self.change_queue(
            now,
            actor,
            row.clone(),
            AuditAction::Paused,
            deeds::paused(true),
        );
        Ok(queue_reply(row, false))
    }
}
