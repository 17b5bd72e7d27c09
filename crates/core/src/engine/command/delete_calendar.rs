//! Deletes a calendar that no job uses. Its versions are kept, so that the past can still be explained.

use crate::model::{Actor, AuditAction, CalendarRef, CalendarVersion, JobRecord, JobSpec, Now};
use crate::schedule::DateSet;

use super::super::{Condition, Engine, Refusal, Reply, deeds};
use super::Answer;

impl Engine {
    pub(super) fn delete_calendar(
        &mut self,
        now: Now,
        actor: &Actor,
        calendar: CalendarRef,
        condition: Condition,
    ) -> Answer {
        let users = self.users_asked.remove(&calendar).unwrap_or_default();
        let Some(current) = self.check_calendar(&calendar, condition)? else {
            return Err(Refusal::NoSuchCalendar(calendar));
        };
        if let Some(job) = self.user_of(&calendar, &users) {
            return Err(Refusal::CalendarInUse { calendar, job });
        }
        let version = CalendarVersion {
            version: current.version + 1,
            created: self.after_newest(now, &calendar),
            actor: actor.clone(),
            deleted: true,
            spec: current.spec,
        };
        self.calendars.put(version.clone(), DateSet::no_day());
        let changes = deeds::gone(&version.spec);
        self.record_calendar_deed(now, actor, &version, AuditAction::Deleted, changes);
        self.building.calendar(version);
        Ok(Reply::Deleted)
    }

    /// A job that uses the calendar: by what is in memory, and by what the store says of jobs that are not.
    fn user_of(
        &self,
        calendar: &CalendarRef,
        stored: &[JobRecord],
    ) -> Option<crate::model::JobName> {
        let elsewhere = |record: &&JobRecord| self.jobs.get(record.row.id).is_none();
        let stored = stored.iter().find(elsewhere);
        let resident = self
            .jobs
            .all()
            .find(|job| !job.row.deleted && uses(&job.compiled.version.spec, calendar));
        let resident = resident.map(|job| job.row.name.clone());
        stored.map(|record| record.row.name.clone()).or(resident)
    }
}

fn uses(spec: &JobSpec, calendar: &CalendarRef) -> bool {
    let named = spec
        .calendar
        .iter()
        .flat_map(|used| used.only.iter().chain(&used.minus));
    spec.namespace == calendar.namespace && named.into_iter().any(|name| *name == calendar.name)
}
