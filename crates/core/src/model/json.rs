//! JSON kept as the text it came in: parameters and results pass through untouched.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is not JSON: {message}")]
pub struct JsonError {
    field: &'static str,
    message: String,
}

/// Text that is known to be one JSON value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Checks `text`; `field` names it in the error.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, JsonError> {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(Self(Arc::from(text))),
            Err(error) => Err(JsonError {
                field,
                message: error.to_string(),
            }),
        }
    }

    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(Arc::from(value.to_string()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for JsonText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "any JSON value"})
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.to_value().serialize(serializer)
        } else {
            serializer.serialize_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            Ok(Self::from_value(&serde_json::Value::deserialize(
                deserializer,
            )?))
        } else {
            Ok(Self(Arc::from(String::deserialize(deserializer)?)))
        }
    }
}
