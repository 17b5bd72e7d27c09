//! Sets a setting. Repeating it changes nothing.

use crate::model::{
    Actor, AuditAction, AuditKind, AuditObject, JsonText, Limits, Now, SegmentId, SettingKey,
    SettingRow, SpecError, diff,
};
use serde_json::Value;

use super::super::deeds::Told;
use super::super::{Condition, Effect, Engine, Refusal, Reply};
use super::Answer;

impl Engine {
    pub(super) fn put_setting(
        &mut self,
        now: Now,
        actor: &Actor,
        key: SettingKey,
        value: JsonText,
        condition: Condition,
    ) -> Answer {
        key.name.check(&value).map_err(Refusal::Invalid)?;
        let current = self.check_setting(&key, condition)?;
        if let Some(row) = &current
            && row.value.as_ref().map(JsonText::to_value) == Some(value.to_value())
        {
            return Ok(reply(row.clone(), false));
        }
        if current.is_none() && self.is_out_of_settings() {
            let message = format!("there are {} already: delete one", Limits::SETTINGS);
            return Err(Refusal::Invalid(SpecError::new("settings", message)));
        }
        let row = self.change_setting(now, actor, key, Some(value));
        Ok(reply(row, current.is_none()))
    }

    /// Rows of deleted settings stay, so that no revision comes twice; they take nobody's place.
    fn is_out_of_settings(&self) -> bool {
        let with_value = || self.settings.values().filter(|row| row.value.is_some());
        self.settings.len() >= Limits::SETTINGS && with_value().count() >= Limits::SETTINGS
    }

    /// The setting as it stands, at the revision that the caller expects; `None` when it is not set.
    pub(super) fn check_setting(
        &self,
        key: &SettingKey,
        condition: Condition,
    ) -> Result<Option<SettingRow>, Refusal> {
        let row = self.settings.get(key).filter(|row| row.value.is_some());
        match (row, condition) {
            (Some(_), Condition::Absent) => Err(Refusal::SettingThere(key.name)),
            (None, Condition::Revision(_)) => Err(Refusal::NoSuchSetting(key.name)),
            (Some(row), Condition::Revision(given)) if given != row.revision => {
                Err(Refusal::StaleSetting {
                    name: key.name,
                    given,
                    current: row.revision,
                })
            }
            (row, _) => Ok(row.cloned()),
        }
    }

    /// Gives the setting another value, or none.
    pub(super) fn change_setting(
        &mut self,
        now: Now,
        actor: &Actor,
        key: SettingKey,
        value: Option<JsonText>,
    ) -> SettingRow {
        let old = self.settings.get(&key);
        let before = old.and_then(|row| row.value.clone());
        let row = SettingRow {
            key: key.clone(),
            revision: old.map_or(1, |row| row.revision + 1),
            value,
            updated: now.wall,
            actor: actor.clone(),
        };
        let action = match (&before, &row.value) {
            (_, None) => AuditAction::Deleted,
            (None, Some(_)) => AuditAction::Created,
            (Some(_), Some(_)) => AuditAction::Changed,
        };
        let document = |value: &Option<JsonText>| {
            let empty = || Value::Object(serde_json::Map::new());
            value.as_ref().map_or_else(empty, JsonText::to_value)
        };
        let told = Told {
            version: Some(row.revision),
            changes: diff(&document(&before), &document(&row.value)),
        };
        let object = AuditObject {
            kind: AuditKind::Setting,
            namespace: key.namespace.clone(),
            name: key.name.to_string(),
        };
        self.record_deed(now, actor, SegmentId(0), action, object, told);
        self.building.setting(&row);
        self.settings.insert(key, row.clone());
        self.effect(Effect::SettingsChanged);
        row
    }
}

fn reply(row: SettingRow, created: bool) -> Reply {
    Reply::Setting {
        row: Box::new(row),
        created,
    }
}
