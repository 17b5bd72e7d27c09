//! Creates a calendar, or changes it for the times after now. Repeating it changes nothing.
//!
//! Jobs that use it are planned anew in steps.

use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, CalendarRef, CalendarSpec, CalendarVersion, Change,
    Limits, Now, SegmentId,
};

use super::super::deeds::{self, Told};
use super::super::{Condition, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn put_calendar(
        &mut self,
        now: Now,
        actor: &Actor,
        spec: CalendarSpec,
        condition: Condition,
    ) -> Answer {
        let days = spec.days().map_err(Refusal::Invalid)?;
        let calendar = CalendarRef {
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
        };
        let current = self.check_calendar(&calendar, condition)?;
        if let Some(current) = &current
            && current.spec == spec
        {
            return Ok(reply(current.clone(), false));
        }
        let newest = self.calendars.newest(&calendar);
        if newest.is_none() && self.calendars.count() >= Limits::CALENDARS {
            return Err(Refusal::TooManyCalendars(Limits::CALENDARS));
        }
        let version = CalendarVersion {
            version: newest.map_or(1, |newest| newest.version + 1),
            spec,
            created: self.after_newest(now, &calendar),
            actor: actor.clone(),
            deleted: false,
        };
        self.calendars.put(version.clone(), days);
        self.building.calendar(version.clone());
        let (action, before) = match &current {
            Some(current) => (AuditAction::Changed, Some(&current.spec)),
            None => (AuditAction::Created, None),
        };
        let changes = deeds::changes(before, &version.spec);
        self.record_calendar_deed(now, actor, &version, action, changes);
        self.sweep_calendar(now, calendar, version.version);
        Ok(reply(version, current.is_none()))
    }

    pub(super) fn record_calendar_deed(
        &mut self,
        now: Now,
        actor: &Actor,
        version: &CalendarVersion,
        action: AuditAction,
        changes: Vec<Change>,
    ) {
        let object = AuditObject {
            kind: AuditKind::Calendar,
            namespace: Some(version.spec.namespace.clone()),
            name: version.spec.name.to_string(),
        };
        let told = Told {
            version: Some(u64::from(version.version)),
            changes,
        };
        self.record_deed(now, actor, SegmentId(0), action, object, told);
    }

    /// The calendar as it stands, at the version that the caller expects; `None` when there is none.
    pub(super) fn check_calendar(
        &self,
        calendar: &CalendarRef,
        condition: Condition,
    ) -> Result<Option<CalendarVersion>, Refusal> {
        let newest = self.calendars.newest(calendar);
        let current = newest.filter(|newest| !newest.deleted);
        match (current, condition) {
            (Some(_), Condition::Absent) => Err(Refusal::CalendarThere(calendar.clone())),
            (None, Condition::Revision(_)) => Err(Refusal::NoSuchCalendar(calendar.clone())),
            (Some(current), Condition::Revision(given)) if given != u64::from(current.version) => {
                Err(Refusal::StaleCalendar {
                    calendar: calendar.clone(),
                    given,
                    current: current.version,
                })
            }
            (current, _) => Ok(current.cloned()),
        }
    }

    /// Now, or just after the newest version when the wall clock went back: eras never cross.
    pub(super) fn after_newest(&self, now: Now, calendar: &CalendarRef) -> crate::model::WallMs {
        let newest = self.calendars.newest(calendar);
        newest.map_or(now.wall, |newest| now.wall.max(newest.created.plus(1)))
    }
}

fn reply(version: CalendarVersion, created: bool) -> Reply {
    Reply::Calendar {
        version: Box::new(version),
        created,
    }
}
