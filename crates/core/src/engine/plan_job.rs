//! When a job is due next: the part of its schedule row that is computed, and computed anew when its definition, its
//! pause, a calendar or the time-zone data changed.

use crate::model::{JobId, Now, WallMs};

use super::Engine;
use super::jobs::{Job, Planned};

impl Engine {
    /// Plans a job's schedule from `now` on, after its definition or pause changed: nothing fires in the past.
    pub(super) fn plan_job(&mut self, now: Now, id: JobId) {
        let row = &mut self.jobs.expect_mut(id).schedule;
        row.fired_through = row.fired_through.max(now.wall);
        row.paused_through = None;
        let after_end = self.jobs.expect(id).after_end_ms().is_some();
        if after_end {
            self.plan_after_end(now, id);
        } else {
            self.plan_next(id);
        }
        self.arm_job(id);
    }

    /// Plans the first time above the cursor.
    pub(super) fn plan_next(&mut self, id: JobId) {
        let job = self.jobs.expect_mut(id);
        let planned = job.planned();
        job.take_plan(planned);
        self.building.schedule(id);
        self.mark_job(id);
    }

    /// Plans a schedule that counts from the end of the last run: nothing while a run is live.
    pub(super) fn plan_after_end(&mut self, now: Now, id: JobId) {
        let job = self.jobs.expect_mut(id);
        let idle = job.is_active() && !job.is_used_up() && job.live_scheduled == 0;
        let planned = job.compiled.schedule.as_ref().filter(|_| idle);
        let planned = planned.and_then(|schedule| {
            let after = job.schedule.fired_through.plus(1);
            let earliest = now.wall.plus(schedule.after_end_ms()?).max(after);
            let nominal = schedule.within_bounds(earliest.0)?;
            let due = schedule.due_of(id.0, nominal);
            Some((WallMs(nominal), WallMs(due)))
        });
        job.take_plan(planned);
        self.building.schedule(id);
        self.mark_job(id);
    }

    /// Compiles the schedule of a job again if a calendar that it uses was edited since, and plans it anew.
    pub(super) fn refresh_plan(&mut self, id: JobId) {
        let edition = self.calendars.edition();
        let job = self.jobs.expect(id);
        if job.edition < edition && job.compiled.version.spec.calendar.is_some() {
            self.replan_job(id);
        }
    }

    /// Computes a job's next time anew. True when it changed.
    pub(super) fn replan_job(&mut self, id: JobId) -> bool {
        let (edition, now) = (self.calendars.edition(), self.now.wall);
        let job = self.jobs.expect(id);
        let version = job.compiled.version.clone();
        let since = job.schedule.fired_through;
        let compiled = self.compile_stored(version, since);
        let job = self.jobs.expect_mut(id);
        job.edition = edition;
        job.compiled = compiled;
        if job.after_end_ms().is_some() {
            return false;
        }
        let planned = job.planned();
        let nominal = planned.map(|(nominal, _)| nominal);
        // Only a time that is pending may be put off; any other is due when the schedule says.
        let stands = |(_, due): Planned| due <= now || Some(due) == job.schedule.next_due;
        if nominal == job.schedule.next_nominal && planned.is_none_or(stands) {
            return false;
        }
        job.take_plan(planned);
        self.building.schedule(id);
        self.mark_job(id);
        self.arm_job(id);
        true
    }
}

impl Job {
    pub(super) fn is_active(&self) -> bool {
        self.row.paused.is_none() && !self.row.deleted
    }

    pub(super) fn after_end_ms(&self) -> Option<i64> {
        self.compiled.schedule.as_ref()?.after_end_ms()
    }

    /// Whether the schedule has made all the runs it may.
    pub(super) fn is_used_up(&self) -> bool {
        let most = self.compiled.schedule.as_ref().and_then(|s| s.max_fires());
        most.is_some_and(|most| self.schedule.fires >= most)
    }

    /// The first nominal time above the cursor, and when it is due.
    fn planned(&self) -> Option<Planned> {
        let may_fire = self.is_active() && !self.is_used_up();
        let schedule = self.compiled.schedule.as_ref().filter(|_| may_fire)?;
        let nominal = schedule.next_after(self.schedule.fired_through.0)?;
        let due = schedule.due_of(self.row.id.0, nominal);
        Some((WallMs(nominal), WallMs(due)))
    }

    fn take_plan(&mut self, planned: Option<Planned>) {
        self.schedule.next_nominal = planned.map(|(nominal, _)| nominal);
        self.schedule.next_due = planned.map(|(_, due)| due);
    }
}
