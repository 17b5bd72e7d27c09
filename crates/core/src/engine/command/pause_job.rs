//! Stops a job's schedule. Times already due are decided first; runs under way go on. Pausing twice changes nothing.

use crate::model::{Actor, AuditAction, Now, Pause};

use super::super::{Condition, Engine, JobRef, deeds};
use super::Answer;

impl Engine {
    pub(super) fn pause_job(
        &mut self,
        now: Now,
        actor: &Actor,
        job: &JobRef,
        condition: Condition,
    ) -> Answer {
        let id = self.find_job(job, condition)?;
        if self.jobs.expect(id).row.paused.is_none() {
            self.fire_all(now, id);
            let job = self.jobs.expect_mut(id);
            job.row.paused = Some(Pause {
                at: now.wall,
                actor: actor.clone(),
            });
            job.schedule.next_nominal = None;
            job.schedule.next_due = None;
            self.building.schedule(id);
            self.arm_job(id);
            self.touch_job(now, actor, id);
            self.record_job_deed(now, actor, id, AuditAction::Paused, deeds::paused(true));
        }
        Ok(self.job_reply(id, false))
    }
}
