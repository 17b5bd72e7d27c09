//! A calendar's days as a set that can be asked about any date.

use jiff::civil::Date;

use crate::model::{CalendarSpec, SpecError};

#[derive(Debug, Clone)]
pub struct DateSet {}

impl DateSet {
    /// Reads what a manifest says. The first fault is reported with its key.
    pub fn compile(_spec: &CalendarSpec) -> Result<Self, SpecError> {
        Ok(Self {})
    }

    /// The days of a calendar that is deleted or cannot be read.
    pub fn no_day() -> Self {
        Self {}
    }

    pub fn every_day() -> Self {
        Self {}
    }

    pub fn contains(&self, _date: Date) -> bool {
        true
    }
}
