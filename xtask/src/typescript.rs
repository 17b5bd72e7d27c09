//! The types of the API for the console, made from its OpenAPI document: one line a schema, one line an operation.
//!
//! Only what the document of this server uses is understood; an unknown construct becomes `unknown`, never a wrong type.

use std::fmt::Write;

use serde_json::{Map, Value};

/// What is read, and what is written.
pub const DOCUMENT: &str = "docs/reference/openapi.json";
pub const TYPES: &str = "console/src/api/schema.ts";

const HEAD: &str = "// The API in types. Written by `cargo xtask codegen` from docs/reference/openapi.json: do not edit.\n\n";

/// The types of everything in the document.
pub fn types(document: &Value) -> String {
    let mut text = String::from(HEAD);
    let schemas = document["components"]["schemas"].as_object();
    for (name, schema) in schemas.into_iter().flatten() {
        let _ = writeln!(text, "export type {name} = {};", type_of(schema));
    }
    let operations = operations(document);
    text.push_str("\nexport interface Operations {\n");
    for operation in &operations {
        let _ = writeln!(text, "  {};", operation.signature());
    }
    text.push_str("}\n\n/** How each operation is called. */\nexport const CALLS = {\n");
    for operation in &operations {
        let (id, method, path) = (&operation.id, &operation.method, &operation.path);
        let _ = writeln!(text, "  {id}: ['{method}', '{path}'],");
    }
    text.push_str("} as const satisfies Record<keyof Operations, readonly [string, string]>;\n");
    text
}

struct Operation<'a> {
    id: String,
    method: String,
    path: &'a str,
    value: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, value) in item.as_object().into_iter().flatten() {
            all.push(Operation {
                id: value["operationId"].as_str().unwrap_or_default().to_owned(),
                method: method.to_uppercase(),
                path,
                value,
            });
        }
    }
    all
}

impl Operation<'_> {
    fn signature(&self) -> String {
        let (path, query) = (self.parameters("path"), self.parameters("query"));
        let body = match &self.value["requestBody"]["content"]["application/json"]["schema"] {
            Value::Null => "undefined".to_owned(),
            schema => type_of(schema),
        };
        let id = &self.id;
        let answer = self.answer();
        format!("{id}: {{ path: {path}; query: {query}; body: {body}; answer: {answer} }}")
    }

    fn parameters(&self, place: &str) -> String {
        let all = self.value["parameters"].as_array().into_iter().flatten();
        let fields: Vec<String> = all
            .filter(|parameter| parameter["in"] == place)
            .map(|parameter| {
                let name = parameter["name"].as_str().unwrap_or_default();
                let mark = if parameter["required"] == true {
                    ""
                } else {
                    "?"
                };
                format!("{name}{mark}: {}", type_of(&parameter["schema"]))
            })
            .collect();
        match fields.is_empty() {
            true => "object".to_owned(),
            false => format!("{{ {} }}", fields.join("; ")),
        }
    }

    /// What its successes answer in JSON.
    fn answer(&self) -> String {
        let responses = self.value["responses"].as_object().into_iter().flatten();
        let mut answers: Vec<String> = responses
            .filter(|(status, _)| status.starts_with('2'))
            .map(|(_, answer)| match &answer["content"]["application/json"] {
                Value::Null => "undefined".to_owned(),
                content => type_of(&content["schema"]),
            })
            .collect();
        answers.dedup();
        answers.join(" | ")
    }
}

fn type_of(schema: &Value) -> String {
    let Value::Object(schema) = schema else {
        return "unknown".to_owned();
    };
    if let Some(Value::String(target)) = schema.get("$ref") {
        return target.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return union(values.iter().map(Value::to_string));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = schema.get(key) {
            return union(choices.iter().map(type_of));
        }
    }
    match schema.get("type") {
        Some(Value::Array(kinds)) => union(kinds.iter().map(|kind| of_kind(kind, schema))),
        Some(kind) => of_kind(kind, schema),
        None => "unknown".to_owned(),
    }
}

fn union(choices: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for choice in choices {
        if !seen.contains(&choice) {
            seen.push(choice);
        }
    }
    seen.join(" | ")
}

fn of_kind(kind: &Value, schema: &Map<String, Value>) -> String {
    match kind.as_str() {
        Some("string") => "string".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("null") => "null".to_owned(),
        Some("array") => match schema.get("items").map(type_of) {
            Some(item) if item.contains(' ') => format!("({item})[]"),
            Some(item) => format!("{item}[]"),
            None => "unknown[]".to_owned(),
        },
        Some("object") => object(schema),
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Map<String, Value>) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let mark = if required.contains(&name.as_str()) {
                ""
            } else {
                "?"
            };
            format!("{name}{mark}: {}", type_of(field))
        })
        .collect();
    if !fields.is_empty() {
        return format!("{{ {} }}", fields.join("; "));
    }
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.and_then(|patterns| patterns.values().next());
    let values = named.or(schema.get("additionalProperties"));
    let values = values.filter(|values| values.is_object());
    let values = values.map_or_else(|| "unknown".to_owned(), type_of);
    format!("Record<string, {values}>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_types() {
        for (schema, expected) in [
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"enum": ["a", "b"]}), r#""a" | "b""#),
            (json!({"$ref": "#/components/schemas/Job"}), "Job"),
            (
                json!({"type": "array", "items": {"type": ["integer", "null"]}}),
                "(number | null)[]",
            ),
            (
                json!({"type": "object", "required": ["a"], "properties": {"a": {"const": 1}, "b": true}}),
                "{ a: 1; b?: unknown }",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                "Record<string, string>",
            ),
            (
                json!({"type": "object", "additionalProperties": false, "patternProperties": {"^a": {"type": "string"}}}),
                "Record<string, string>",
            ),
            (json!({"not": {}}), "unknown"),
        ] {
            assert_eq!(type_of(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn an_operation_has_its_parameters_and_answers() {
        let document = json!({"paths": {"/a/{id}": {"get": {
            "operationId": "showA",
            "parameters": [
                {"in": "path", "name": "id", "required": true, "schema": {"type": "string"}},
                {"in": "query", "name": "limit", "schema": {"type": "integer"}},
                {"in": "header", "name": "If-Match", "schema": {"type": "string"}},
            ],
            "responses": {
                "200": {"content": {"application/json": {"schema": {"$ref": "#/x/A"}}}},
                "404": {},
            },
        }}}});
        let text = types(&document);
        let expected = "showA: { path: { id: string }; query: { limit?: number }; body: undefined; answer: A };";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("showA: ['GET', '/a/{id}'],"), "{text}");
    }
}
