//! What differs between two documents, field by field.
//!
//! Objects are compared key by key, lists of the same length item by item; anything else that differs is one change of the
//! whole value. Paths read as people write them: `task.exec.argv[0]`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonText;

/// One field that differs. `None` means that the field was not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// The path of the field; empty when the whole documents differ.
    pub field: String,
    #[schemars(with = "Option<serde_json::Value>")]
    pub before: Option<JsonText>,
    #[schemars(with = "Option<serde_json::Value>")]
    pub after: Option<JsonText>,
}

/// The changes that turn `before` into `after`, in the order of their paths.
pub fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (one, other) if one == other => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            let mut keys: Vec<&String> = one.keys().chain(added).collect();
            keys.sort_unstable();
            for key in keys {
                compare(&below(path, key), one.get(key), other.get(key), changes);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), Some(one), Some(other), changes);
            }
        }
        (one, other) => changes.push(Change {
            field: path.to_owned(),
            before: one.map(JsonText::from_value),
            after: other.map(JsonText::from_value),
        }),
    }
}

fn below(path: &str, key: &str) -> String {
    // A key with a dot of its own, such as a label's, is set apart.
    let key = if key.contains(['.', '[']) {
        format!("[{key:?}]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!(".{key}")
    };
    format!("{path}{key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(before: Value, after: Value) -> Vec<String> {
        let text = |value: Option<JsonText>| value.map_or("-".to_owned(), |it| it.as_str().into());
        diff(&before, &after)
            .into_iter()
            .map(|change| {
                let (before, after) = (text(change.before), text(change.after));
                format!("{}: {before} -> {after}", change.field)
            })
            .collect()
    }

    #[test]
    fn equal_documents_have_no_changes() {
        let document = json!({"a": [1, {"b": null}]});
        assert!(diff(&document, &document).is_empty());
    }

    #[test]
    fn fields_are_named_by_their_path() {
        let before =
            json!({"task": {"exec": {"argv": ["a", "b"]}}, "weight": 1, "labels": {"x.y": "1"}});
        let after = json!({"task": {"exec": {"argv": ["a", "c"]}}, "labels": {"x.y": "2"}, "timeout": "1m"});
        assert_eq!(
            told(before, after),
            [
                r#"labels["x.y"]: "1" -> "2""#,
                r#"task.exec.argv[1]: "b" -> "c""#,
                r#"timeout: - -> "1m""#,
                "weight: 1 -> -",
            ]
        );
    }

    #[test]
    fn lists_of_different_length_and_values_of_different_kind_change_whole() {
        assert_eq!(
            told(json!({"a": [1, 2]}), json!({"a": [1]})),
            ["a: [1,2] -> [1]"]
        );
        assert_eq!(
            told(json!({"a": {"b": 1}}), json!({"a": 1})),
            [r#"a: {"b":1} -> 1"#]
        );
        assert_eq!(told(json!(1), json!(null)), [": 1 -> null"]);
    }
}
