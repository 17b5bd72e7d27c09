//! Closes a job's circuit breaker and forgets its failures. On one that is closed and has none, nothing changes.

use crate::model::{Actor, AuditAction, Now};

use super::super::{Engine, JobRef};
use super::{Answer, Condition};

impl Engine {
    pub(super) fn reset_breaker(&mut self, now: Now, actor: &Actor, job: &JobRef) -> Answer {
        let id = self.find_job(job, Condition::Any)?;
        self.keep_job(id);
        if self.close_breaker(id) {
            self.record_job_deed(now, actor, id, AuditAction::Reset, Vec::new());
        }
        Ok(self.job_reply(id, false))
    }
}
