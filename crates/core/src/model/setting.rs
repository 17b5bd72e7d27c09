//! Settings that live in the store and change while servers run: of a namespace, or of the whole installation.
//!
//! The names are known; each has a type of its own that checks its value. A deleted setting stays as a row without a value,
//! so that its revision goes on growing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Actor, JsonText, Limits, NamespaceName, SpecError, WallMs};

/// The settings there are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SettingName {
    /// Who is told of failures, recoveries and lateness: of a namespace.
    Notify,
    /// What jobs get that do not say it, and what they may say at most: of the installation.
    Jobs,
}

impl SettingName {
    pub const ALL: [Self; 2] = [Self::Notify, Self::Jobs];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Jobs => "jobs",
        }
    }

    /// Whether it is set for the whole installation; the others are set for each namespace.
    pub fn is_of_installation(self) -> bool {
        match self {
            Self::Notify => false,
            Self::Jobs => true,
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
            Self::Jobs => super::JobSettings::parse("value", value).map(|_| ()),
        }
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SettingKey {
    /// `None` means the whole installation.
    pub namespace: Option<NamespaceName>,
    pub name: SettingName,
}

impl SettingKey {
    /// What `name` means in a namespace, or for the whole installation: neither has the settings of the other.
    pub fn named(namespace: Option<NamespaceName>, name: &str) -> Result<Self, SpecError> {
        let of_installation = namespace.is_none();
        let mut there = SettingName::ALL.into_iter();
        let fits = |it: &SettingName| it.is_of_installation() == of_installation;
        match there.clone().find(|it| fits(it) && it.as_str() == name) {
            Some(name) => Ok(Self { namespace, name }),
            None => {
                let names: Vec<&str> = there
                    .by_ref()
                    .filter(fits)
                    .map(SettingName::as_str)
                    .collect();
                let given: String = name.chars().take(64).collect();
                let scope = match of_installation {
                    true => "the installation",
                    false => "a namespace",
                };
                let message = format!(
                    "`{given}` is no setting of {scope}: there is {}",
                    names.join(", ")
                );
                Err(SpecError::new("name", message))
            }
        }
    }

    /// What holds for jobs everywhere.
    pub const JOBS: Self = Self {
        namespace: None,
        name: SettingName::Jobs,
    };
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
