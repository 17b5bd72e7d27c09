//! What a job that runs after others waits for, in words.

use serde_json::Value;

use crate::output::{Cell, View, text};

/// The lines that tell it; none when the job runs after no other.
pub fn told(job: &Value, view: View) -> Vec<(&'static str, String)> {
    let jobs = job.pointer("/spec/after/jobs").and_then(Value::as_array);
    let Some(jobs) = jobs else {
        return Vec::new();
    };
    let names = jobs.iter().filter_map(Value::as_str);
    let mut lines = vec![("after", names.clone().collect::<Vec<_>>().join(", "))];
    if text(job, "spec.after.need") != "any" {
        let waits = names.map(|name| arrived(job, name, view));
        lines.push(("waits", waits.collect::<Vec<_>>().join("; ")));
    }
    let unmade = &job["waits"]["unmade"];
    if !unmade.is_null() {
        lines.push((
            "made no run",
            format!(
                "{} times, last after {} at {}: {}",
                text(unmade, "count"),
                text(unmade, "run"),
                Cell::time(unmade, "at").words(view),
                text(unmade, "reason")
            ),
        ));
    }
    lines
}

fn arrived(job: &Value, name: &str, view: View) -> String {
    let arrived = &job["waits"]["arrived"][name];
    if arrived.is_null() {
        return format!("{name} has yet to end");
    }
    let at = Cell::time(arrived, "at").words(view);
    format!("{name}: {} at {at}", text(arrived, "run"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_come_and_what_has_not_is_told() {
        let view = View {
            terminal: false,
            color: false,
            now_ms: 0,
        };
        assert!(told(&json!({"spec": {}}), view).is_empty());
        let job = json!({
            "spec": {"after": {"jobs": ["a", "b"]}},
            "waits": {
                "arrived": {"a": {"run": "run_1", "state": "COMPLETED", "at": "2026-11-17T08:00:00Z"}},
                "unmade": {"count": 2, "run": "run_0", "at": "2026-11-17T07:00:00Z", "reason": "overlap"},
            },
        });
        let lines = told(&job, view);
        assert_eq!(lines[0], ("after", "a, b".to_owned()));
        assert!(lines[1].1.starts_with("a: run_1 at "), "{lines:?}");
        assert!(lines[1].1.ends_with("; b has yet to end"), "{lines:?}");
        assert!(
            lines[2].1.starts_with("2 times, last after run_0 at "),
            "{lines:?}"
        );
    }
}
