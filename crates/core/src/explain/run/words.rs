//! Times, durations and counts as people read them.

use jiff::Timestamp;

use crate::model::{RetryRule, WallMs};
use crate::schedule::format_duration;

pub(super) use crate::model::instant;

/// `2026-11-16 08:00:05.120`, at the beginning of a line.
pub(super) fn moment(at: WallMs) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}

/// As long as matters to somebody who waits: `120ms`, `1.2s`, `42s`, `12m30s`, `3h20m`, `2d4h`.
pub(super) fn span(ms: u64) -> String {
    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    let to = |unit: u64| format_duration(ms / unit * unit);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..10_000 if ms % 1_000 >= 100 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        1_000..HOUR => to(1_000),
        HOUR..172_800_000 => to(MINUTE),
        _ => to(HOUR),
    }
}

/// The time between two instants; nothing when the clock went back.
pub(super) fn between(from: WallMs, to: WallMs) -> String {
    span(u64::try_from(to.since(from)).unwrap_or(0))
}

/// `in 12s`, or `at once` when that is past.
pub(super) fn ahead(at: WallMs, now: WallMs) -> String {
    match u64::try_from(at.since(now)) {
        Ok(ms) if ms > 0 => format!("in {}", span(ms)),
        _ => "at once".to_owned(),
    }
}

pub(super) fn times(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// The first line of somebody else's words, not too long and without an end mark.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 200;
    let line = text.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().filter(|it| !it.is_control()).collect();
    let cut: String = line.chars().take(MOST).collect();
    match cut.len() < line.len() {
        true => format!("{cut}…"),
        false => cut.trim_end_matches('.').to_owned(),
    }
}

/// What a rule of `retry.on` fits: `exit code 2 or 64`.
pub(super) fn of_rule(rule: &RetryRule) -> String {
    let numbers = |name: &str, list: &[i32]| {
        let list: Vec<String> = list.iter().map(i32::to_string).collect();
        (!list.is_empty()).then(|| format!("{name} {}", list.join(" or ")))
    };
    let statuses: Vec<String> = rule.http_status.iter().map(ToString::to_string).collect();
    let status = (!statuses.is_empty()).then(|| format!("HTTP status {}", statuses.join(" or ")));
    let kinds = [
        numbers("exit code", &rule.exit_codes),
        numbers("signal", &rule.signals),
        rule.timeout.then(|| "a timeout".to_owned()),
        status,
    ];
    kinds
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_exact_as_they_matter() {
        let spans = [
            0,
            120,
            1_000,
            1_234,
            9_999,
            42_700,
            750_000,
            12_000_000,
            187_200_000,
        ];
        let told = spans.map(span).join(" ");
        assert_eq!(told, "0ms 120ms 1s 1.2s 9.9s 42s 12m30s 3h20m 2d4h");
    }

    #[test]
    fn a_long_error_is_cut_and_its_control_characters_stay_out() {
        assert_eq!(quoted("no database.\nat line 3"), "no database");
        assert_eq!(quoted("\u{1b}[31mred"), "[31mred");
        assert_eq!(quoted(&"x".repeat(300)).chars().count(), 201);
    }
}
