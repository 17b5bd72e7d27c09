//! Settings as an engine holds them: written by the owner of the first segment, told to the others when they have changed.

use crate::model::{JobSettings, JobSpec, SettingKey, SettingRow, SpecError};

use super::Engine;

impl Engine {
    /// Settings as another server has written them. What was read before a change of one's own says nothing of it, so the
    /// greater revision counts; a deleted setting stays as a row.
    pub(super) fn take_settings(&mut self, rows: Vec<SettingRow>) {
        for row in rows {
            let held = self.settings.get(&row.key);
            if held.is_none_or(|held| held.revision < row.revision) {
                self.settings.insert(row.key.clone(), row);
            }
        }
    }

    /// Says for a job what it does not say itself, and refuses what the installation does not allow.
    pub(super) fn complete(&self, spec: &mut JobSpec) -> Result<(), SpecError> {
        let row = self.settings.get(&SettingKey::JOBS);
        let Some(value) = row.and_then(|row| row.value.as_ref()) else {
            return Ok(());
        };
        // Only a newer server can have written what this one does not know. To put the job without it would be to say that
        // it does not hold.
        let settings = JobSettings::parse("settings.jobs", value).map_err(|error| {
            let message = format!("{}: upgrade this server, or set it anew", error.message);
            SpecError::new(error.field, message)
        })?;
        settings.complete(spec)
    }
}
