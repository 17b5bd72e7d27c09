//! Defines a queue, or changes its limits. They hold at once for what is not leased; what is runs on. Repeating it changes
//! nothing, and a queue that is paused stays so.

use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, Change, GateKey, Limits, Now, QueueRef, QueueRow,
    QueueSpec, SegmentId, SpecError,
};

use super::super::deeds::{self, Told};
use super::super::{Condition, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn put_queue(
        &mut self,
        now: Now,
        actor: &Actor,
        spec: QueueSpec,
        condition: Condition,
    ) -> Answer {
        spec.limits().map_err(Refusal::Invalid)?;
        let queue = spec.queue();
        let current = self.check_queue(&queue, condition)?;
        if let Some(current) = &current
            && current.spec == spec
        {
            return Ok(queue_reply(current.clone(), false));
        }
        if current.is_none() && self.queues.defined().count() >= Limits::QUEUES {
            let message = format!("there are {} already: delete one", Limits::QUEUES);
            return Err(Refusal::Invalid(SpecError::new("queues", message)));
        }
        let row = QueueRow {
            revision: self.next_revision(&queue),
            paused: current.as_ref().and_then(|current| current.paused.clone()),
            deleted: false,
            created: current.as_ref().map_or(now.wall, |current| current.created),
            updated: now.wall,
            actor: actor.clone(),
            spec,
        };
        let (action, before) = match &current {
            Some(current) => (AuditAction::Changed, Some(&current.spec)),
            None => (AuditAction::Created, None),
        };
        let changes = deeds::changes(before, &row.spec);
        self.change_queue(now, actor, row.clone(), action, changes);
        Ok(queue_reply(row, current.is_none()))
    }

    /// The queue as it stands, at the revision that the caller expects; `None` when it is not defined.
    pub(super) fn check_queue(
        &self,
        queue: &QueueRef,
        condition: Condition,
    ) -> Result<Option<QueueRow>, Refusal> {
        let current = self.queues.row(queue).filter(|row| !row.deleted);
        match (current, condition) {
            (Some(_), Condition::Absent) => Err(Refusal::QueueThere(queue.clone())),
            (None, Condition::Revision(_)) => Err(Refusal::NoSuchQueue(queue.clone())),
            (Some(current), Condition::Revision(given)) if given != current.revision => {
                Err(Refusal::StaleQueue {
                    queue: queue.clone(),
                    given,
                    current: current.revision,
                })
            }
            (current, _) => Ok(current.cloned()),
        }
    }

    /// One more than that of any row there ever was.
    pub(super) fn next_revision(&self, queue: &QueueRef) -> u64 {
        self.queues.row(queue).map_or(1, |row| row.revision + 1)
    }

    /// Takes a queue in its next form, records the deed, and lets those go on who may.
    pub(super) fn change_queue(
        &mut self,
        now: Now,
        actor: &Actor,
        row: QueueRow,
        action: AuditAction,
        changes: Vec<Change>,
    ) {
        let queue = row.queue();
        let object = AuditObject {
            kind: AuditKind::Queue,
            namespace: Some(queue.namespace.clone()),
            name: queue.name.to_string(),
        };
        let told = Told {
            version: Some(row.revision),
            changes,
        };
        self.record_deed(now, actor, SegmentId(0), action, object, told);
        let pointer = |engine: &Self| {
            let limits = engine.queues.limits(&queue)?;
            Some(limits.per_key.as_ref()?.pointer.clone())
        };
        let before = pointer(self);
        self.queues.put(row.clone());
        if pointer(self) != before {
            self.regate(|_, of| of == Some(&queue));
        }
        self.limits_changed(|gate: &GateKey| gate.queue() == Some(&queue));
        self.building.queue(row);
    }
}

pub(super) fn queue_reply(row: QueueRow, created: bool) -> Reply {
    Reply::Queue {
        row: Box::new(row),
        created,
    }
}
