//! The schemas of requests and answers, from their types.
//!
//! The two are read differently: a key with a default may be left out of a request, and is there in an answer. Manifests are
//! the same in both, so an answer refers to the manifest's own schema.

use std::borrow::Cow;

use drumtower_core::model::{CalendarSpec, JobSpec, QueueSpec};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

const COMPONENTS: &str = "#/components/schemas/";

pub struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    /// Schemas that are made of others.
    made: Map<String, Value>,
}

/// Stands for a job's manifest in an answer.
pub struct JobManifest;

/// Stands for a calendar's manifest in an answer.
pub struct CalendarManifest;

/// Stands for a queue's manifest in an answer.
pub struct QueueManifest;

impl JsonSchema for JobManifest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "JobManifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"$ref": format!("{COMPONENTS}JobSpec")})
    }
}

impl JsonSchema for CalendarManifest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CalendarManifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"$ref": format!("{COMPONENTS}CalendarSpec")})
    }
}

impl JsonSchema for QueueManifest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "QueueManifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"$ref": format!("{COMPONENTS}QueueSpec")})
    }
}

impl Schemas {
    pub fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let mut requests = settings().for_deserialize().into_generator();
        requests.subschema_for::<JobSpec>();
        requests.subschema_for::<CalendarSpec>();
        requests.subschema_for::<QueueSpec>();
        Self {
            requests,
            answers: settings().for_serialize().into_generator(),
            made: Map::new(),
        }
    }

    pub fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    pub fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// A manifest whose path names it already: `name` may be left out.
    pub fn named_by_path(&mut self, manifest: &str) -> Value {
        let mut schema = self.definition(manifest);
        if let Some(required) = schema["required"].as_array_mut() {
            required.retain(|key| key != "name");
        }
        self.add(format!("{manifest}ByPath"), schema)
    }

    /// A merge patch of a manifest: any of its keys, or `null` to take one away.
    pub fn patch_of(&mut self, manifest: &str) -> Value {
        let mut schema = self.definition(manifest);
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("required");
            schema.remove("title");
        }
        if let Some(keys) = schema["properties"].as_object_mut() {
            for value in keys.values_mut() {
                *value = json!({"anyOf": [value.take(), {"type": "null"}]});
            }
        }
        self.add(format!("{manifest}Patch"), schema)
    }

    fn definition(&self, name: &str) -> Value {
        let known = self.requests.definitions().get(name);
        known.cloned().unwrap_or_else(|| json!({}))
    }

    fn add(&mut self, name: String, schema: Value) -> Value {
        let reference = json!({"$ref": format!("{COMPONENTS}{name}")});
        self.made.insert(name, schema);
        reference
    }

    pub fn components(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        all.extend(self.answers.take_definitions(true));
        all.extend(self.made);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::DOORS;

    #[test]
    fn a_type_that_is_asked_and_answered_has_one_schema() {
        let mut schemas = Schemas::new();
        for door in DOORS {
            super::super::describe(door.operation, &mut schemas);
        }
        let requests = schemas.requests.take_definitions(true);
        let answers = schemas.answers.take_definitions(true);
        for (name, schema) in &answers {
            if let Some(other) = requests.get(name) {
                assert_eq!(other, schema, "{name}");
            }
        }
    }
}
