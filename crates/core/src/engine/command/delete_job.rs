//! Deletes a job: its schedule and its backfills end, its name is free, its runs go on to their end and keep their history.

use crate::model::{Actor, AuditAction, Now};

use super::super::{Condition, Engine, JobRef, Reply, deeds};
use super::Answer;

impl Engine {
    pub(super) fn delete_job(
        &mut self,
        now: Now,
        actor: &Actor,
        job: &JobRef,
        condition: Condition,
    ) -> Answer {
        let id = self.find_job(job, condition)?;
        self.fire_all(now, id);
        self.end_backfills_of(now, actor, id);
        let seq = self.building_seq();
        let job = self.jobs.expect_mut(id);
        job.row.deleted = true;
        job.schedule.next_nominal = None;
        job.schedule.next_due = None;
        self.building.schedule(id);
        self.arm_job(id);
        self.touch_job(now, actor, id);
        let changes = deeds::gone(&self.jobs.expect(id).compiled.version.spec);
        self.record_job_deed(now, actor, id, AuditAction::Deleted, changes);
        self.close_breaker(id);
        self.follow_anew(id);
        self.tend_queues(id);
        self.jobs.deleted(id, seq);
        Ok(Reply::Deleted)
    }
}
