//! The calendars of every namespace, all of them, with the versions that are kept.
//!
//! A schedule is compiled with the eras that can still matter to it: those in force from its cursor on. Each edit raises
//! the edition; a job compiled under an older one compiles itself again before it decides anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{
    CalendarName, CalendarRef, CalendarVersion, Limits, NamespaceName, SpecError, WallMs,
};
use crate::schedule::{self, CalendarEra, DateSet};

#[derive(Debug, Default)]
pub(super) struct Calendars {
    known: BTreeMap<CalendarRef, Calendar>,
    edition: u64,
}

#[derive(Debug)]
struct Calendar {
    /// Oldest first.
    eras: Vec<CalendarEra>,
    newest: CalendarVersion,
}

impl Calendars {
    /// Those that the store holds, in order of version. One that cannot be read any more is returned with its fault and
    /// holds no day.
    pub(super) fn load(&mut self, versions: Vec<CalendarVersion>) -> Vec<(CalendarRef, SpecError)> {
        let mut faults = Vec::new();
        for version in versions {
            let days = DateSet::compile(&version.spec).unwrap_or_else(|fault| {
                faults.push((version.calendar(), fault));
                DateSet::no_day()
            });
            self.put(version, days);
        }
        faults
    }

    /// Adds the next version of a calendar.
    pub(super) fn put(&mut self, version: CalendarVersion, days: DateSet) {
        self.edition += 1;
        let era = CalendarEra {
            from: version.created.0,
            days: Arc::new(days),
        };
        match self.known.get_mut(&version.calendar()) {
            Some(calendar) => {
                if calendar.eras.len() >= Limits::CALENDAR_VERSIONS {
                    calendar.eras.remove(0);
                }
                calendar.eras.push(era);
                calendar.newest = version;
            }
            None => {
                let calendar = Calendar {
                    eras: vec![era],
                    newest: version.clone(),
                };
                self.known.insert(version.calendar(), calendar);
            }
        }
    }

    /// The newest version, also of a deleted calendar.
    pub(super) fn newest(&self, calendar: &CalendarRef) -> Option<&CalendarVersion> {
        self.known.get(calendar).map(|calendar| &calendar.newest)
    }

    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Raised by every edit.
    pub(super) fn edition(&self) -> u64 {
        self.edition
    }

    /// As schedules of a namespace see them from `since` on.
    pub(super) fn of<'a>(&'a self, namespace: &'a NamespaceName, since: WallMs) -> View<'a> {
        View {
            calendars: self,
            namespace,
            since,
        }
    }
}

pub(super) struct View<'a> {
    calendars: &'a Calendars,
    namespace: &'a NamespaceName,
    since: WallMs,
}

impl schedule::Calendars for View<'_> {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        let key = CalendarRef {
            namespace: self.namespace.clone(),
            name: name.clone(),
        };
        let calendar = self.calendars.known.get(&key)?;
        if calendar.newest.deleted {
            return None;
        }
        let later = calendar
            .eras
            .partition_point(|era| era.from <= self.since.0);
        Some(calendar.eras[later.saturating_sub(1)..].to_vec())
    }
}
