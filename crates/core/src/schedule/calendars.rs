//! The calendars that a schedule names, as whoever compiles it has them.
//!
//! A calendar is edited while schedules that use it are in force. So it is given as eras: each is in force for the nominal
//! times after it began, until the next begins. A schedule compiled with all of them is the same set of times whenever it
//! is compiled, as far as the eras go back.

use std::sync::Arc;

use crate::model::CalendarName;

use super::DateSet;

/// The days of a calendar over a stretch of time.
#[derive(Debug, Clone)]
pub struct CalendarEra {
    /// In force for nominal times after this, until the next era begins. What it says of the first era counts for all
    /// times before, too.
    pub from: i64,
    pub days: Arc<DateSet>,
}

pub trait Calendars {
    /// The eras of a calendar, oldest first and at least one; `None` when there is no such calendar.
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>>;
}

/// Every calendar exists and holds every day: for checking what can be checked without knowing any.
pub struct AnyDay;

impl Calendars for AnyDay {
    fn eras(&self, _name: &CalendarName) -> Option<Vec<CalendarEra>> {
        Some(vec![CalendarEra {
            from: i64::MIN,
            days: Arc::new(DateSet::every_day()),
        }])
    }
}
