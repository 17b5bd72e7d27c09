//! Every key of a manifest does something that can be seen.
//!
//! The keys are those of the published JSON schema. A key without a check in [`CHECKS`] fails the test, and so does a
//! check of a key that the schema does not have.

mod keys;

use std::collections::BTreeSet;

use drumtower_e2e::{Cli, Server, Site};
use serde_json::{Value, json};
use ureq::http::Method;

use keys::CHECKS;

#[test]
fn every_key_has_an_effect() {
    let site = Site::new();
    let schema: Value =
        serde_json::from_str(&Cli::new(site.dir("home")).ok(&["schema", "job"])).expect("JSON");
    let mut found = BTreeSet::new();
    walk(&schema, &schema, "", &mut |path, _| {
        found.insert(path.to_owned());
    });
    let checked: BTreeSet<String> = CHECKS.iter().map(|(key, _)| (*key).to_owned()).collect();
    let unchecked: Vec<_> = found.difference(&checked).collect();
    assert!(
        unchecked.is_empty(),
        "these keys have no check: {unchecked:?}"
    );
    let unknown: Vec<_> = checked.difference(&found).collect();
    assert!(
        unknown.is_empty(),
        "these checks are of no key: {unknown:?}"
    );
    // Keys that are seen together have one check, which is made once.
    let mut made = Vec::new();
    for (key, check) in CHECKS {
        if !made.contains(&(*check as usize)) {
            println!("{key}");
            check();
            made.push(*check as usize);
        }
    }
}

#[test]
fn every_value_that_the_schema_lists_is_accepted() {
    let site = Site::new();
    let server = Server::start(&site);
    let api = server.api();
    let schema = api.get("/api/v1/schema/job");
    let mut values = Vec::new();
    walk(&schema, &schema, "", &mut |path, node| {
        let all = listed(&schema, node).into_iter();
        values.extend(all.map(|value| (path.to_owned(), value)));
    });
    assert!(values.len() >= 25, "{values:?}");
    let days = json!({"kind": "Calendar", "weekly": ["mon"]});
    api.send(
        Method::PUT,
        "/api/v1/namespaces/default/calendars/days",
        Some(&days),
    );
    for (path, value) in values {
        let mut spec = surroundings(&path);
        let pointer = format!("/{}", path.replace("[]", "/0").replace('.', "/"));
        place(&mut spec, &pointer, &value);
        let job = api.put_job(&spec);
        // What equals the default may be left out of what is shown.
        let shown = job["spec"].pointer(&pointer).unwrap_or(&Value::Null);
        assert!(
            *shown == value || shown.is_null(),
            "{path}: {value} is shown as {shown}"
        );
    }
}

/// The values that a schema lists, also behind a choice between it and nothing.
fn listed(root: &Value, node: &Value) -> Vec<Value> {
    let node = resolve(root, node);
    let mut values: Vec<Value> = node["enum"].as_array().cloned().unwrap_or_default();
    values.push(node["const"].clone());
    for union in ["oneOf", "anyOf"] {
        for one in node[union].as_array().into_iter().flatten() {
            values.extend(listed(root, one));
        }
    }
    values.retain(|value| !value.is_null());
    values
}

/// A manifest in which the key makes sense.
fn surroundings(path: &str) -> Value {
    let mut spec = json!({"kind": "Job", "name": "listed", "task": {"exec": {"argv": ["true"]}}});
    if path.starts_with("task.http") {
        spec["task"] = json!({"http": {"url": "http://example.org/"}});
    }
    if path.starts_with("schedule") || path.starts_with("calendar") {
        spec["schedule"] = json!([{"cron": "30 2 13 * fri"}]);
    }
    if path.starts_with("retry.on") {
        spec["retry"] = json!({"on": [{"timeout": true, "action": "retry"}]});
    }
    if path.starts_with("calendar") {
        spec["calendar"] = json!({"only": ["days"]});
    }
    if path.starts_with("after") {
        spec["after"] = json!({"jobs": ["before"]});
    }
    if path.starts_with("overlap.") {
        spec["overlap"] = json!({"on_full": "queue"});
    }
    spec
}

/// Sets what a pointer leads to, and makes the objects on the way.
fn place(spec: &mut Value, pointer: &str, value: &Value) {
    let (above, key) = pointer.rsplit_once('/').expect("a pointer");
    if spec.pointer(above).is_none() {
        place(spec, above, &json!({}));
    }
    spec.pointer_mut(above).expect("it is made")[key] = value.clone();
}

/// Visits every key with its path and its schema, references followed. Items of lists are written `[]`.
fn walk(root: &Value, node: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    let node = resolve(root, node);
    for (key, child) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        visit(&path, resolve(root, child));
        walk(root, child, &path, visit);
    }
    if node["items"].is_object() {
        walk(root, &node["items"], &format!("{path}[]"), visit);
    }
    for union in ["oneOf", "anyOf", "allOf"] {
        for one in node[union].as_array().into_iter().flatten() {
            walk(root, one, path, visit);
        }
    }
}

fn resolve<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    match node["$ref"].as_str() {
        Some(reference) => root
            .pointer(reference.trim_start_matches('#'))
            .expect("a reference that leads somewhere"),
        None => node,
    }
}
