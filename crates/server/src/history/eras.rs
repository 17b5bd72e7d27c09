//! The calendars of a namespace with all their eras, as schedules are compiled with them outside the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use drumtower_core::model::{CalendarName, CalendarRef, CalendarVersion, NamespaceName};
use drumtower_core::schedule::{CalendarEra, CalendarUse, Calendars, DateSet};
use drumtower_store::{Error, Read};

/// Those that were looked up. Others do not exist.
#[derive(Default)]
pub struct Known(BTreeMap<CalendarName, Vec<CalendarEra>>);

impl Known {
    /// Reads the calendars that the uses name. A deleted one has no day from then on.
    pub fn read<'a>(
        store: &dyn Read,
        namespace: &NamespaceName,
        uses: impl Iterator<Item = &'a CalendarUse>,
    ) -> Result<Self, Error> {
        let mut known = Self::default();
        for name in uses.flat_map(|used| used.only.iter().chain(&used.minus)) {
            if known.0.contains_key(name) {
                continue;
            }
            let versions = store.calendar_versions(&CalendarRef {
                namespace: namespace.clone(),
                name: name.clone(),
            })?;
            if !versions.is_empty() {
                let eras = versions.iter().map(era).collect();
                known.0.insert(name.clone(), eras);
            }
        }
        Ok(known)
    }

    /// Without those that are deleted: for a schedule that is yet to be.
    pub fn living(
        store: &dyn Read,
        namespace: &NamespaceName,
        used: Option<&CalendarUse>,
    ) -> Result<Self, Error> {
        let mut known = Self::default();
        for name in used
            .into_iter()
            .flat_map(|used| used.only.iter().chain(&used.minus))
        {
            let calendar = CalendarRef {
                namespace: namespace.clone(),
                name: name.clone(),
            };
            let newest = store.calendar_versions(&calendar)?.pop();
            if let Some(version) = newest.filter(|version| !version.deleted) {
                known.0.insert(name.clone(), vec![era(&version)]);
            }
        }
        Ok(known)
    }
}

fn era(version: &CalendarVersion) -> CalendarEra {
    let days = match version.deleted {
        true => DateSet::no_day(),
        false => DateSet::compile(&version.spec).unwrap_or_else(|_| DateSet::no_day()),
    };
    CalendarEra {
        from: version.created.0,
        days: Arc::new(days),
    }
}

impl Calendars for Known {
    fn eras(&self, name: &CalendarName) -> Option<Vec<CalendarEra>> {
        self.0.get(name).cloned()
    }
}
