//! What people do, told to the audit log in the commit that does it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{
    Actor, AuditAction, AuditEntry, AuditKind, AuditObject, Change, JobId, Now, SegmentId, diff,
};

use super::Engine;

impl Engine {
    /// Records a deed. Its id is drawn from `segment`, the one that the object belongs to.
    pub(super) fn record_deed(
        &mut self,
        now: Now,
        actor: &Actor,
        segment: SegmentId,
        action: AuditAction,
        object: AuditObject,
        told: Told,
    ) {
        let entry = AuditEntry {
            id: self.segments.audit_id(segment, now.wall),
            at: now.wall,
            actor: actor.clone(),
            action,
            object,
            version: told.version,
            changes: AuditEntry::bounded(told.changes),
        };
        self.building.audit(entry);
    }

    /// The same, of a job that is in memory.
    pub(super) fn record_job_deed(
        &mut self,
        now: Now,
        actor: &Actor,
        job: JobId,
        action: AuditAction,
        changes: Vec<Change>,
    ) {
        let row = &self.jobs.expect(job).row;
        let object = AuditObject {
            kind: AuditKind::Job,
            namespace: Some(row.namespace.clone()),
            name: row.name.to_string(),
        };
        let told = Told {
            version: Some(u64::from(row.version)),
            changes,
        };
        self.record_deed(now, actor, row.segment, action, object, told);
    }
}

/// What an entry says beyond who, when and what.
#[derive(Default)]
pub(super) struct Told {
    pub(super) version: Option<u64>,
    pub(super) changes: Vec<Change>,
}

/// The fields in which two definitions differ; a new one differs from nothing.
pub(super) fn changes<T: Serialize>(before: Option<&T>, after: &T) -> Vec<Change> {
    diff(
        &before.map_or_else(|| json!({}), document),
        &document(after),
    )
}

/// What a definition said that is no more.
pub(super) fn gone<T: Serialize>(before: &T) -> Vec<Change> {
    diff(&document(before), &json!({}))
}

/// That a schedule or a queue stopped, or goes on.
pub(super) fn paused(paused: bool) -> Vec<Change> {
    diff(&json!({"paused": !paused}), &json!({"paused": paused}))
}

fn document<T: Serialize>(it: &T) -> Value {
    serde_json::to_value(it).unwrap_or(Value::Null)
}
