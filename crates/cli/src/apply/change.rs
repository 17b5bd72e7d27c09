//! What differs between two definitions, key by key.

use serde_json::{Map, Value, json};

/// A key that is not the same in both, with what it says in each; `Null` where it says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As a user would write its path, such as `schedule[0].cron`.
    pub field: String,
    pub before: Value,
    pub after: Value,
}

/// The keys that differ, in the order of their names. Lists of different length differ as a whole: which of their items
/// moved would be a guess.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("", before, after, &mut found);
    found
}

fn compare(path: &str, before: &Value, after: &Value, found: &mut Vec<Change>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = match path.is_empty() {
                    true => key.clone(),
                    false => format!("{path}.{key}"),
                };
                let said = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&below, &said(old), &said(new), found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), old, new, found);
            }
        }
        _ => found.push(Change {
            field: path.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

impl Change {
    pub fn to_value(&self) -> Value {
        json!({"field": self.field, "before": self.before, "after": self.after})
    }

    /// `field: before → after`, each cut to what fits on a line.
    pub fn words(&self) -> String {
        format!(
            "{}: {} → {}",
            self.field,
            shown(&self.before),
            shown(&self.after)
        )
    }
}

fn shown(value: &Value) -> String {
    const MOST: usize = 120;
    let text = match value {
        Value::Null => return "(none)".to_owned(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_that_differs_is_named_with_both_sides() {
        let before = json!({"name": "a", "schedule": [{"cron": "0 2 * * *"}], "labels": {"x": "1"}, "timeout": "5s"});
        let after = json!({"name": "a", "schedule": [{"cron": "0 3 * * *"}], "labels": {"y": "1"}, "timeout": "5s"});
        let words: Vec<String> = changes(&before, &after).iter().map(Change::words).collect();
        assert_eq!(
            words,
            [
                r#"labels.x: "1" → (none)"#,
                r#"labels.y: (none) → "1""#,
                r#"schedule[0].cron: "0 2 * * *" → "0 3 * * *""#,
            ]
        );
        assert_eq!(changes(&before, &before), []);
    }

    #[test]
    fn a_list_that_grew_differs_as_a_whole_and_long_values_are_cut() {
        let found = changes(&json!({"argv": ["a"]}), &json!({"argv": ["b", "a"]}));
        assert_eq!(found[0].words(), r#"argv: ["a"] → ["b","a"]"#);
        let long = changes(&json!({}), &json!({"text": "x".repeat(500)}));
        assert!(long[0].words().ends_with("x…"), "{}", long[0].words());
    }
}
