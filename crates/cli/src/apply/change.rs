//! What differs between two definitions, in words.

use drumtower_core::model::{Change, JsonText};

/// `field: before → after`, each cut to what fits on a line.
pub fn words(change: &Change) -> String {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    format!("{}: {} → {}", change.field, shown(before), shown(after))
}

fn shown(value: Option<&JsonText>) -> String {
    const MOST: usize = 120;
    let text = value.map_or("(none)", JsonText::as_str);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_core::model::diff;
    use serde_json::{Value, json};

    fn told(before: Value, after: Value) -> Vec<String> {
        diff(&before, &after).iter().map(words).collect()
    }

    #[test]
    fn each_key_that_differs_is_named_with_both_sides() {
        let before =
            json!({"schedule": [{"cron": "0 2 * * *"}], "labels": {"x": "1"}, "timeout": "5s"});
        let after =
            json!({"schedule": [{"cron": "0 3 * * *"}], "labels": {"y": "1"}, "timeout": "5s"});
        assert_eq!(
            told(before, after),
            [
                r#"labels.x: "1" → (none)"#,
                r#"labels.y: (none) → "1""#,
                r#"schedule[0].cron: "0 2 * * *" → "0 3 * * *""#,
            ]
        );
    }

    #[test]
    fn long_values_are_cut() {
        let long = told(json!({}), json!({"text": "x".repeat(500)}));
        assert!(long[0].ends_with("x…"), "{long:?}");
    }
}
