//! Lets a paused job fire again, from now on. The times of the pause make no runs; they are recorded as one range.

use crate::model::{Actor, JobId, Now, UnfiredReason, WallMs};

use super::super::fire_job::COUNT_CAP;
use super::super::{Condition, Engine, JobRef};
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
            self.record_pause(now, id);
            self.jobs.expect_mut(id).row.paused = None;
            self.touch_job(now, actor, id);
            self.plan_job(now, id);
        }
        Ok(self.job_reply(id, false))
    }

    /// Gives the times of a pause so far their fate.
    pub(super) fn record_pause(&mut self, now: Now, id: JobId) {
        let job = self.jobs.expect(id);
        let Some(schedule) = &job.compiled.schedule else {
            return;
        };
        let after = job.schedule.fired_through;
        let (Some(first), Some(last)) = (
            schedule.next_after(after.0),
            schedule.prev_at_or_before(now.wall.0),
        ) else {
            return;
        };
        if first <= last {
            let count = schedule.count_between(after.0, last, COUNT_CAP);
            self.record_unfired(
                id,
                (WallMs(first), WallMs(last)),
                count,
                UnfiredReason::Paused,
            );
        }
    }
}
