//! Names that people choose: checked once, when they enter, and cheap to clone afterwards.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Limits;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a {kind} name must not be empty: give it 1 to 128 characters of a-z 0-9 . _ -")]
    Empty { kind: &'static str },
    #[error("a {kind} name may have 128 characters, `{start}…` has {length}: shorten it")]
    TooLong {
        kind: &'static str,
        start: String,
        length: usize,
    },
    #[error(
        "`{given}` is not a {kind} name: `{found}` at character {position} is not one of a-z 0-9 . _ -"
    )]
    Character {
        kind: &'static str,
        given: String,
        found: char,
        position: usize,
    },
}

fn check(kind: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { kind });
    }
    let length = text.chars().count();
    if length > Limits::NAME_CHARS {
        return Err(NameError::TooLong {
            kind,
            start: text.chars().take(20).collect(),
            length,
        });
    }
    let allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    match text.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        None => Ok(()),
        Some((index, found)) => Err(NameError::Character {
            kind,
            given: text.to_owned(),
            found,
            position: index + 1,
        }),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: &str) -> Result<Self, NameError> {
                check($kind, text)?;
                Ok(Self(Arc::from(text)))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": "^[a-z0-9._-]{1,128}$"})
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// A tenant; part of every key.
    NamespaceName, "namespace"
);
name!(
    /// The name of a job within its namespace.
    JobName, "job"
);
name!(
    /// The name of a calendar within its namespace.
    CalendarName, "calendar"
);
name!(
    /// The name of a lock within its namespace.
    LockName, "lock"
);
name!(
    /// The name of a queue within its namespace.
    QueueName, "queue"
);
name!(
    /// The name a worker goes by in listings.
    WorkerName, "worker"
);

impl Default for NamespaceName {
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

/// Who did something: a token's name, or a part of the system itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Actor(pub Arc<str>);

impl Actor {
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
