//! Parameters that several operations have, and those of paths.

use drumtower_core::model::{BackfillId, JobName, Limits, RunId, SettingName, TokenId};
use serde_json::{Value, json};

use super::schemas::Schemas;
use crate::api::Kind;

/// A query parameter that may be left out.
pub fn query(name: &str, text: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": text, "schema": schema})
}

/// A query parameter that may be given several times.
pub fn repeated(name: &str, text: &str, items: Value) -> Value {
    let schema = json!({"type": "array", "items": items, "maxItems": 16});
    json!({"name": name, "in": "query", "description": text, "schema": schema, "explode": true})
}

pub fn header(name: &str, text: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "description": text, "schema": schema})
}

pub fn instant(name: &str, text: &str) -> Value {
    let schema = json!({"type": "string", "format": "date-time"});
    query(name, text, schema)
}

pub fn namespace() -> Value {
    query(
        "namespace",
        "Only in this namespace.",
        json!({"type": "string", "pattern": "^[a-z0-9._-]{1,128}$", "example": "default"}),
    )
}

pub fn limit() -> Value {
    let schema =
        json!({"type": "integer", "minimum": 1, "maximum": Limits::PAGE_ROWS, "default": 100});
    query("limit", "How many rows a page has at most.", schema)
}

pub fn cursor() -> Value {
    query(
        "cursor",
        "`next` of the page before, with the same filter.",
        json!({"type": "string", "pattern": "^([0-9a-f]{2})+$", "maxLength": 1024}),
    )
}

/// The two that every listing has.
pub fn paging() -> [Value; 2] {
    [limit(), cursor()]
}

pub fn if_match(prefix: &str) -> Value {
    let pattern = format!("^\"{prefix}[0-9]{{1,19}}(\\.[0-9a-f]{{1,16}})?\"$");
    header(
        "If-Match",
        "The ETag that was read: refused with 412 when it has changed since.",
        json!({"type": "string", "pattern": pattern, "example": format!("\"{prefix}1\"")}),
    )
}

pub fn if_absent() -> Value {
    header(
        "If-None-Match",
        "`*`: refused with 412 when there is one already.",
        json!({"type": "string", "const": "*"}),
    )
}

pub fn if_none_match() -> Value {
    header(
        "If-None-Match",
        "The ETag that was read: answered with 304 when nothing has changed since.",
        json!({"type": "string", "pattern": "^\"[0-9a-z.]{1,64}\"$"}),
    )
}

pub fn idempotency_key() -> Value {
    let schema = json!({
        "type": "string",
        "pattern": "^[!-~]{1,256}$",
        "example": "order-7",
    });
    header(
        "Idempotency-Key",
        "Repeated within 24 hours, the request makes nothing and is answered as the first time.",
        schema,
    )
}

/// The parameters that a path names.
pub fn of_path(path: &str, schemas: &mut Schemas) -> Vec<Value> {
    let names = path.split('{').skip(1);
    let names = names.filter_map(|rest| rest.split('}').next());
    names
        .map(|name| {
            let (text, schema) = path_parameter(path, name, schemas);
            json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema})
        })
        .collect()
}

fn path_parameter(path: &str, name: &str, schemas: &mut Schemas) -> (&'static str, Value) {
    let named = |text: &'static str, example: &str, mut schema: Value| {
        schema["example"] = json!(example);
        (text, schema)
    };
    match name {
        "namespace" => named("The tenant.", "default", schemas.request::<JobName>()),
        "name" if path.contains("/calendars/") => {
            named("The calendar.", "holidays", schemas.request::<JobName>())
        }
        "name" if path.contains("/jobs/") => {
            named("The job.", "greet", schemas.request::<JobName>())
        }
        "name" if path.contains("/queues/") => {
            named("The queue.", "mail", schemas.request::<JobName>())
        }
        "name" if path.contains("/locks/") => {
            named("The lock.", "import", schemas.request::<JobName>())
        }
        "name" if path.contains("/settings/") => {
            let of_installation = !path.contains("{namespace}");
            let there = SettingName::ALL.into_iter();
            let names = there.filter(|it| it.is_of_installation() == of_installation);
            let names: Vec<&str> = names.map(SettingName::as_str).collect();
            ("The setting.", json!({"type": "string", "enum": names}))
        }
        "name" => named("Its name.", "main", schemas.request::<JobName>()),
        "id" if path.contains("/tokens/") => ("The token.", schemas.request::<TokenId>()),
        "id" if path.contains("/backfills/") => ("The backfill.", schemas.request::<BackfillId>()),
        "id" => ("The run.", schemas.request::<RunId>()),
        "code" => {
            let codes: Vec<&str> = Kind::ALL.iter().map(|kind| kind.code()).collect();
            let schema = json!({"type": "string", "enum": codes});
            ("The `code` of a problem.", schema)
        }
        "version" => {
            let schema = json!({"type": "integer", "minimum": 1, "maximum": u32::MAX});
            ("The number of a version, from 1.", schema)
        }
        _ => ("A part of the path.", json!({"type": "string"})),
    }
}
