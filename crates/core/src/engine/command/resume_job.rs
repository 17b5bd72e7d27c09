//! Lets a paused job fire again. The times of the pause obey `on_resume`, which makes no runs of them unless told otherwise.

use crate::model::{Actor, AuditAction, Now};

use super::super::{Condition, Engine, JobRef, deeds};
use super::Answer;

impl Engine {
    pub(super) fn resume_job(
        &mut self,
        now: Now,
        actor: &Actor,
        job: &JobRef,
        condition: Condition,
    ) -> Answer {
        let id = self.find_job(job, condition)?;
        if self.jobs.expect(id).row.paused.is_some() {
            self.refresh_plan(id);
            let job = self.jobs.expect_mut(id);
            job.row.paused = None;
            job.schedule.paused_through = Some(now.wall);
            let after_end = job.after_end_ms().is_some();
            self.touch_job(now, actor, id);
            self.record_job_deed(now, actor, id, AuditAction::Resumed, deeds::paused(false));
            if after_end {
                self.plan_job(now, id);
            } else {
                self.plan_next(id);
                self.fire_job(now, id);
                self.arm_job(id);
            }
        }
        Ok(self.job_reply(id, false))
    }
}
