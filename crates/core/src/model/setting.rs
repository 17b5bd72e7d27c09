//! Settings that live in the store and change while servers run: of a namespace, or of the whole installation.
//!
//! The names are known; each has a type of its own that checks its value. A deleted setting stays as a row without a value,
//! so that its revision goes on growing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Actor, JsonText, Limits, NamespaceName, SpecError, WallMs};

/// The settings there are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SettingName {
    /// Who is told of failures, recoveries and lateness.
    Notify,
}

impl SettingName {
    pub const ALL: [Self; 1] = [Self::Notify];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Notify => "notify",
        }
    }

    /// Checks a value for this setting.
    pub fn check(self, value: &JsonText) -> Result<(), SpecError> {
        let bytes = value.as_str().len();
        if bytes > Limits::SETTING_BYTES {
            let message = format!("may have {} bytes, has {bytes}", Limits::SETTING_BYTES);
            return Err(SpecError::new("value", message));
        }
        match self {
            Self::Notify => super::Notify::parse("value", value).map(|_| ()),
        }
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SettingName {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let known = Self::ALL.into_iter().find(|name| name.as_str() == text);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|name| name.as_str()).collect();
            let given: String = text.chars().take(64).collect();
            let message = format!("`{given}` is no setting: there is {}", names.join(", "));
            SpecError::new("name", message)
        })
    }
}

/// Names a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SettingKey {
    /// `None` means the whole installation.
    pub namespace: Option<NamespaceName>,
    pub name: SettingName,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRow {
    pub key: SettingKey,
    /// From 1, raised by every change: the ETag.
    pub revision: u64,
    /// `None` when it was deleted.
    pub value: Option<JsonText>,
    pub updated: WallMs,
    pub actor: Actor,
}
