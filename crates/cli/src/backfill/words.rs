//! Backfills in words.

use serde_json::Value;

use crate::output::{Cell, View, exact, pairs, text};

fn number(backfill: &Value, field: &str) -> u64 {
    backfill.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// How many times are done, of how many: made and ended, or passed over.
pub fn progress(backfill: &Value) -> (usize, usize) {
    let fields = ["completed", "failed", "cancelled", "skipped"];
    let done: u64 = fields.iter().map(|field| number(backfill, field)).sum();
    let of = number(backfill, "times");
    (done as usize, of as usize)
}

/// `12/24`
pub fn done(backfill: &Value) -> String {
    let (done, of) = progress(backfill);
    format!("{done}/{of}")
}

/// One line: what it is and what became of its runs.
pub fn standing(backfill: &Value) -> String {
    let count = |field: &str| number(backfill, field);
    format!(
        "{} is {}: {} of {} times, {} runs completed, {} failed, {} cancelled, {} active, {} times skipped\n",
        text(backfill, "id"),
        text(backfill, "state"),
        progress(backfill).0,
        count("times"),
        count("completed"),
        count("failed"),
        count("cancelled"),
        count("active"),
        count("skipped"),
    )
}

/// Why it makes no run although it could.
fn held(backfill: &Value) -> Option<&'static str> {
    match backfill["held"].as_str()? {
        "breaker" => Some(
            "until the job's circuit breaker lets runs through: `drumtower job reset-breaker` closes it",
        ),
        _ => Some("until a run of its job ends: as many are under way as its overlap allows"),
    }
}

pub fn describe(backfill: &Value, view: View) -> String {
    let time = |field: &str| Cell::time(backfill, field).words(view);
    let mut lines = vec![
        ("backfill", text(backfill, "id")),
        (
            "job",
            format!(
                "{}/{} version {}",
                text(backfill, "namespace"),
                text(backfill, "job"),
                text(backfill, "job_version")
            ),
        ),
        ("state", text(backfill, "state")),
        (
            "interval",
            format!(
                "{} to {}",
                exact(&text(backfill, "from")),
                exact(&text(backfill, "to"))
            ),
        ),
        ("which", text(backfill, "which")),
        ("order", text(backfill, "order")),
        ("max active", text(backfill, "max_active")),
        ("priority", text(backfill, "priority")),
        ("times", text(backfill, "times")),
        ("done", done(backfill)),
        ("made", text(backfill, "made")),
        ("completed", text(backfill, "completed")),
        ("failed", text(backfill, "failed")),
        ("cancelled", text(backfill, "cancelled")),
        ("skipped", text(backfill, "skipped")),
        ("active", text(backfill, "active")),
        (
            "created",
            format!("{} by {}", time("created"), text(backfill, "actor")),
        ),
    ];
    if backfill["overlap"] == "obey" {
        lines.push(("overlap", "its runs count".to_owned()));
    }
    if backfill["force"] == true {
        lines.push(("breaker", "is passed by".to_owned()));
    }
    if let Some(why) = held(backfill) {
        lines.push(("waits", why.to_owned()));
    }
    for (word, field) in [("at", "cursor"), ("ended", "ended")] {
        let at = text(backfill, field);
        if !at.is_empty() {
            lines.push((word, exact(&at)));
        }
    }
    let params = &backfill["params"];
    if !params.is_null() {
        lines.push(("params", params.to_string()));
    }
    pairs(&lines)
}

/// What a backfill would do.
pub fn foreseen(preview: &Value) -> String {
    let mut words = format!(
        "would make {} runs of {} times from {} to {}, by version {}\n",
        number(preview, "runs"),
        number(preview, "times"),
        exact(&text(preview, "from")),
        exact(&text(preview, "to")),
        text(preview, "job_version"),
    );
    let fates = preview["fates"].as_object().into_iter().flatten();
    for (fate, told) in fates.filter(|(_, told)| number(told, "count") > 0) {
        let count = number(told, "count");
        let mark = match told["taken"] == true {
            true => "+",
            false => "=",
        };
        words.push_str(&format!("{mark} {fate}: {count}\n"));
        let first = told["first"].as_array().into_iter().flatten();
        let first: Vec<String> = first.filter_map(Value::as_str).map(exact).collect();
        let more = count.saturating_sub(first.len() as u64);
        for at in &first {
            words.push_str(&format!("    {at}\n"));
        }
        if more > 0 {
            words.push_str(&format!("    and {more} more\n"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_names_what_would_be_made() {
        let preview = json!({
            "runs": 2, "times": 3, "job_version": 4,
            "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-02T00:00:00.000Z",
            "fates": {
                "completed": {"count": 1, "taken": false, "first": ["2026-01-01T00:00:00.000Z"]},
                "failed": {"count": 0, "taken": false, "first": []},
                "missing": {"count": 2, "taken": true, "first": ["2026-01-01T08:00:00.000Z"]},
            },
        });
        let words = foreseen(&preview);
        assert!(words.starts_with("would make 2 runs of 3 times"), "{words}");
        assert!(words.contains("= completed: 1\n"), "{words}");
        assert!(words.contains("+ missing: 2\n"), "{words}");
        assert!(words.contains("and 1 more"), "{words}");
        assert!(!words.contains("failed"), "{words}");
    }

    #[test]
    fn what_is_done_has_ended_or_was_passed_over() {
        let backfill = json!({
            "id": "bf_1", "state": "RUNNING", "times": 9, "made": 5, "completed": 2, "failed": 1,
            "cancelled": 0, "skipped": 3, "active": 2,
        });
        assert_eq!(done(&backfill), "6/9");
        assert!(standing(&backfill).starts_with("bf_1 is RUNNING: 6 of 9 times"));
    }
}
