//! Ends a hold of a lock. Whoever ends another's hold by force is told in the audit log.

use crate::model::{Actor, AuditAction, AuditKind, AuditObject, Fence, LockRef, Now};

use super::super::deeds::Told;
use super::super::{Engine, Reply};
use super::Answer;

impl Engine {
    pub(super) fn give_back_lock(
        &mut self,
        now: Now,
        actor: &Actor,
        lock: &LockRef,
        fence: Option<Fence>,
    ) -> Answer {
        self.release_lock(now, lock, fence)?;
        if fence.is_none() {
            let object = AuditObject {
                kind: AuditKind::Lock,
                namespace: Some(lock.namespace.clone()),
                name: lock.name.to_string(),
            };
            let action = AuditAction::Deleted;
            self.record_deed(now, actor, lock.segment(), action, object, Told::default());
        }
        Ok(Reply::Deleted)
    }
}
