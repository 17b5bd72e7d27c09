//! Takes workers out of service: they get nothing new from the moment this is acknowledged, and until they are resumed.
//!
//! Workers that are not connected can be drained too: they get nothing when they dial in. A repetition changes nothing but
//! the deadline, if it brings one.

use serde_json::json;

use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, DrainRow, Limits, Now, WorkerRef,
    check_drain_deadline, diff,
};

use super::super::deeds::Told;
use super::super::{Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn drain_worker(
        &mut self,
        now: Now,
        actor: &Actor,
        workers: WorkerRef,
        deadline_ms: Option<u64>,
    ) -> Answer {
        if let Some(ms) = deadline_ms {
            check_drain_deadline(ms).map_err(Refusal::Invalid)?;
        }
        let deadline = deadline_ms.map(|ms| now.wall.plus(i64::try_from(ms).unwrap_or(i64::MAX)));
        let before = self.drains.row(&workers).cloned();
        let row = match &before {
            Some(row) if deadline.is_none() => {
                return Ok(Reply::Drain(Some(Box::new(row.clone()))));
            }
            Some(row) => DrainRow {
                deadline,
                // What was asked to stop stops: a later deadline is for what is left.
                ..row.clone()
            },
            None if self.drains.len() >= Limits::DRAINS => {
                return Err(Refusal::TooManyDrains(Limits::DRAINS));
            }
            None => DrainRow {
                worker: workers,
                since: now.wall,
                actor: actor.clone(),
                deadline,
                forced: None,
            },
        };
        let told = |row: Option<&DrainRow>| match row.and_then(|row| row.deadline) {
            Some(deadline) => json!({ "deadline_ms": deadline.0 }),
            None => json!({}),
        };
        let changes = diff(&told(before.as_ref()), &told(Some(&row)));
        self.put_drain(row.clone());
        self.record_worker_deed(now, actor, &row.worker, AuditAction::Drained, changes);
        Ok(Reply::Drain(Some(Box::new(row))))
    }

    /// What one server does of its own accord is told under any segment that it has.
    pub(super) fn record_worker_deed(
        &mut self,
        now: Now,
        actor: &Actor,
        workers: &WorkerRef,
        action: AuditAction,
        changes: Vec<crate::model::Change>,
    ) {
        let object = AuditObject {
            kind: AuditKind::Worker,
            namespace: workers.namespace.clone(),
            name: workers.name.to_string(),
        };
        let told = Told {
            version: None,
            changes,
        };
        if let Some(segment) = self.segments.first() {
            self.record_deed(now, actor, segment, action, object, told);
        }
    }
}
