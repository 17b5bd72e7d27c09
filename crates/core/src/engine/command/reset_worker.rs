//! Forgets what is held against workers: one that is isolated or on probation is trusted at once. Repeating it changes
//! nothing.

use crate::model::{Actor, AuditAction, Now, WorkerRef};

use super::super::{Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn reset_worker(&mut self, now: Now, actor: &Actor, workers: &WorkerRef) -> Answer {
        if !self.knows_worker(workers) {
            return Err(Refusal::NoSuchWorker(workers.name.clone()));
        }
        let changed = self.forgive(now, workers);
        if changed {
            self.record_worker_deed(now, actor, workers, AuditAction::Reset, Vec::new());
        }
        Ok(Reply::Reset { changed })
    }
}
