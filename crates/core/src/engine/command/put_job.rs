//! Creates a job, or changes its definition. Repeating a definition changes nothing.
//!
//! What it does not say is filled in from the settings in force, so the version says all that its runs go by.
//!
//! Times up to the edit belong to the old version, so they are decided first; those it had not decided are recorded. Only a
//! changed schedule is planned anew, from now on: nothing fires in the past.

use std::sync::Arc;

use crate::model::{
    Actor, AuditAction, GateKey, JobId, JobRow, JobSpec, JobVersion, Now, ScheduleRow, SegmentId,
    UnfiredReason, WallMs,
};

use super::super::deeds;
use super::super::jobs::Job;
use super::super::{Condition, Engine, JobRef, Refusal};
use super::Answer;

impl Engine {
    pub(super) fn put_job(
        &mut self,
        now: Now,
        actor: &Actor,
        mut spec: JobSpec,
        condition: Condition,
    ) -> Answer {
        spec.check().map_err(Refusal::Invalid)?;
        self.complete(&mut spec).map_err(Refusal::Invalid)?;
        let name = JobRef {
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
        };
        self.check_before(&name, &spec)?;
        let ties = spec.ties();
        let reply = match (self.jobs.named(&name), condition) {
            (None, Condition::Revision(_)) => Err(Refusal::NoSuchJob(name)),
            (None, Condition::Any | Condition::Absent) => self.create_job(now, actor, spec),
            (Some(_), condition) => self.edit_job(now, actor, spec, &name, condition),
        }?;
        self.tie(&ties);
        Ok(reply)
    }

    /// Ties what a definition needs together, so that the next look brings it to one server. Left to the owner of the first
    /// segment, for whom what is tied is meant, and for a definition only that is not refused whoever puts it: a tie is never
    /// undone.
    pub(super) fn bring_together(&mut self, spec: &JobSpec) {
        let may_be_put = || {
            let mut spec = spec.clone();
            spec.check().is_ok() && self.complete(&mut spec).is_ok()
        };
        if self.owns(SegmentId::HOME) && may_be_put() {
            self.tie(&spec.ties());
        }
    }

    fn create_job(&mut self, now: Now, actor: &Actor, spec: JobSpec) -> Answer {
        let segment = SegmentId::of(spec.namespace.as_str(), spec.name.as_str());
        let id = self.segments.job_id(segment, now.wall);
        let row = JobRow {
            id,
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
            segment,
            version: 1,
            revision: 1,
            paused: None,
            deleted: false,
            created: now.wall,
            updated: now.wall,
            actor: actor.clone(),
        };
        let version = JobVersion {
            job: id,
            version: 1,
            spec,
            created: now.wall,
            actor: actor.clone(),
        };
        let compiled = Arc::new(self.compile_given(version.clone(), now.wall)?);
        let schedule = ScheduleRow {
            job: id,
            fired_through: WallMs(now.wall.0),
            next_nominal: None,
            next_due: None,
            fires: 0,
            paused_through: None,
        };
        let edition = self.calendars.edition();
        let followed = self.jobs.take_awaited(&JobRef {
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        });
        self.jobs.insert(Job {
            followed,
            followed_in: self.building_seq(),
            ..Job::new(row, compiled, schedule, None, edition)
        });
        self.follow_anew(id);
        self.building.job_inserted(id);
        self.building.version(version);
        let spec = &self.jobs.expect(id).compiled.version.spec;
        let changes = deeds::changes(None, spec);
        self.record_job_deed(now, actor, id, AuditAction::Created, changes);
        self.plan_job(now, id);
        Ok(self.job_reply(id, true))
    }

    fn edit_job(
        &mut self,
        now: Now,
        actor: &Actor,
        spec: JobSpec,
        name: &JobRef,
        condition: Condition,
    ) -> Answer {
        let id = self.find_job(name, condition)?;
        let old = Arc::clone(&self.jobs.expect(id).compiled);
        if old.version.spec == spec {
            return Ok(self.job_reply(id, false));
        }
        let replan = old.version.spec.schedule_spec() != spec.schedule_spec();
        let number = old.version.version + 1;
        let version = JobVersion {
            job: id,
            version: number,
            spec,
            created: now.wall,
            actor: actor.clone(),
        };
        // The times above the cursor may reach back to calendars as they were.
        let since = self.jobs.expect(id).schedule.fired_through;
        let compiled = Arc::new(self.compile_given(version.clone(), since)?);
        self.fire_job(now, id);
        if replan {
            self.record_overtaken(now, id);
        }
        let (regated, relimited) = (
            old.gating() != compiled.gating(),
            old.limits != compiled.limits,
        );
        let job = self.jobs.expect_mut(id);
        job.compiled = compiled;
        job.row.version = number;
        self.follow_anew(id);
        if regated {
            self.regate(|run, _| run.job == id);
            if let Some(queue) = old.queue()
                && self.jobs.expect(id).compiled.queue().as_ref() != Some(&queue)
            {
                self.sort_queue(queue);
            }
        }
        if regated || relimited {
            self.limits_changed(
                |gate| matches!(gate, GateKey::Job(job) | GateKey::JobKey(job, _) if *job == id),
            );
        }
        let changes = deeds::changes(Some(&old.version.spec), &version.spec);
        self.building.version(version);
        self.touch_job(now, actor, id);
        self.record_job_deed(now, actor, id, AuditAction::Changed, changes);
        if replan {
            self.plan_job(now, id);
        } else {
            self.arm_job(id);
        }
        if self.jobs.expect(id).compiled.breaker.is_none() {
            self.close_breaker(id);
        }
        self.tend_queues(id);
        Ok(self.job_reply(id, false))
    }

    /// Times that passed and that the old schedule had not decided: those of a pause, or those it had put off.
    fn record_overtaken(&mut self, now: Now, id: JobId) {
        let job = self.jobs.expect(id);
        let reason = match job.row.paused {
            Some(_) => UnfiredReason::Paused,
            None => UnfiredReason::Edited,
        };
        if job.row.paused.is_some() || job.schedule.next_nominal.is_some() {
            self.record_passed(now, id, reason);
        }
    }
}
