//! Puts workers back into service. Repeating it changes nothing.
//!
//! Named without a namespace, every drain of that name ends; with one, that of the namespace, and one of all namespaces
//! stays in force.

use crate::model::{Actor, AuditAction, Now, WorkerRef};

use super::super::{Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn resume_worker(&mut self, now: Now, actor: &Actor, workers: &WorkerRef) -> Answer {
        let ended = self.drains.ended_by(workers);
        if ended.is_empty() && !self.knows_worker(workers) {
            return Err(Refusal::NoSuchWorker(workers.name.clone()));
        }
        for drained in &ended {
            self.end_drain(drained);
            self.record_worker_deed(now, actor, drained, AuditAction::Resumed, Vec::new());
        }
        let left = self.drains.of(&workers.name, workers.namespace.as_ref());
        Ok(Reply::Drain(left.cloned().map(Box::new)))
    }

    /// Whether there is such a worker: connected or within its lease, lost lately, or drained.
    pub(super) fn knows_worker(&self, workers: &WorkerRef) -> bool {
        let lost = || {
            let mut records = self.health.all();
            records.any(|(kin, _)| workers.names(&kin.name, kin.namespace.as_ref()))
        };
        let drained = || self.drains.of(&workers.name, workers.namespace.as_ref());
        !self.fleet.named(workers).is_empty() || drained().is_some() || lost()
    }
}
