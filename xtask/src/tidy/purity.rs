//! `core` decides from its inputs alone.
//!
//! Two walls: its own `clippy.toml` refuses the types and functions, and a scan of the text refuses what
//! that lint does not see (async code, whole modules, an `allow` that would open the first wall).

use super::{Finding, numbered};
use crate::tree::File;

const CONFIG: &str = "crates/core/clippy.toml";
const SOURCES: &str = "crates/core/src/";

const DISALLOWED_TYPES: &[&str] = &[
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::hash::RandomState",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread::Thread",
    "std::thread::JoinHandle",
];

const DISALLOWED_METHODS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "std::thread::spawn",
    "std::thread::sleep",
];

/// Text that has no place in the code of `core`, with the reason.
const FORBIDDEN: &[(&str, &str)] = &[
    (".await", "core is not asynchronous"),
    ("std::thread", "core has one thread and does not know it"),
    ("thread_local!", "core has one thread and does not know it"),
    ("std::fs", "core does no I/O"),
    ("std::net", "core does no I/O"),
    (
        "allow(clippy::disallowed",
        "this would open the wall that clippy.toml holds",
    ),
    (
        "expect(clippy::disallowed",
        "this would open the wall that clippy.toml holds",
    ),
];

/// `core` has its own lint configuration and it refuses what it must.
pub fn check_config(files: &[File]) -> Vec<Finding> {
    let Some(file) = files.iter().find(|file| file.path == CONFIG) else {
        return vec![Finding::new(
            CONFIG,
            0,
            "missing; core must refuse clocks, threads and hashed maps by lint",
        )];
    };
    let mut findings = Vec::new();
    for (list, required) in [
        ("disallowed-types", DISALLOWED_TYPES),
        ("disallowed-methods", DISALLOWED_METHODS),
    ] {
        let body = list_body(&file.text, list);
        for path in required
            .iter()
            .filter(|path| !body.contains(&format!("\"{path}\"")))
        {
            findings.push(Finding::new(CONFIG, 0, format!("{list} must name {path}")));
        }
    }
    findings
}

/// The text of `name = [ … ]`, without commented lines.
fn list_body(text: &str, name: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let rest = lines.skip_while(|line| !line.starts_with(name));
    let body = rest.take_while(|line| !line.starts_with(']'));
    body.collect::<Vec<_>>().join("\n")
}

/// The code of `core` names no clock, thread or async construct.
pub fn check_sources(files: &[File]) -> Vec<Finding> {
    let sources = files
        .iter()
        .filter(|file| file.path.starts_with(SOURCES) && file.has_extension(&["rs"]));
    sources
        .flat_map(|file| numbered(file).filter_map(|(line, text)| complain(file, line, text)))
        .collect()
}

fn complain(file: &File, line: usize, text: &str) -> Option<Finding> {
    let code = text.split("//").next().unwrap_or_default();
    let words = || code.split(|it: char| !it.is_alphanumeric() && it != '_');
    let reason = if words().any(|word| word == "async") {
        Some("core is not asynchronous")
    } else if names_a_clock(code) {
        Some("core takes time as a value; of std::time only Duration")
    } else {
        FORBIDDEN
            .iter()
            .find(|(needle, _)| code.contains(needle))
            .map(|(_, reason)| *reason)
    };
    reason.map(|reason| Finding::new(&file.path, line, format!("{reason}: {}", text.trim())))
}

/// Whether a line speaks of `std::time` for anything but `Duration`.
fn names_a_clock(code: &str) -> bool {
    code.match_indices("std::time").any(|(start, needle)| {
        let after = &code[start + needle.len()..];
        let named = after
            .strip_prefix("::")
            .unwrap_or_default()
            .trim_start_matches(['{', ' ']);
        let rest = named.strip_prefix("Duration");
        // `{Duration, Instant}` begins well and ends badly; `DurationX` is something else.
        !rest.is_some_and(|rest| {
            !rest.starts_with(',') && !rest.starts_with(|it: char| it.is_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(code: &str) -> usize {
        check_sources(&[File::new("crates/core/src/engine.rs", code)]).len()
    }

    #[test]
    fn impure_code_is_found() {
        for code in [
            "pub async fn step() {}",
            "let task = async move { 1 };",
            "let answer = call().await;",
            "std::thread::yield_now();",
            "use std::time::Instant;",
            "use std::time::{Duration, Instant};",
            "use std::time;",
            "let now = std::time::SystemTime::now();",
            "#[allow(clippy::disallowed_types)]",
            "use std::fs;",
        ] {
            assert_eq!(complaints(code), 1, "{code}");
        }
    }

    #[test]
    fn pure_code_and_comments_pass() {
        for code in [
            "use std::time::Duration;",
            "use std::time::{Duration};",
            "fn wait(it: std::time::Duration) {}",
            "// never std::time::Instant, never .await",
            "let asynchronous = 1;",
        ] {
            assert_eq!(complaints(code), 0, "{code}");
        }
        assert!(
            check_sources(&[File::new("crates/server/src/lib.rs", "async fn run() {}")]).is_empty()
        );
    }

    #[test]
    fn a_missing_or_thin_configuration_is_found() {
        assert_eq!(check_config(&[]).len(), 1);
        let thin = "disallowed-types = [\n    { path = \"std::time::Instant\" },\n]\n# \"std::thread::spawn\"\n";
        let found = check_config(&[File::new(CONFIG, thin)]);
        assert_eq!(
            found.len(),
            DISALLOWED_TYPES.len() - 1 + DISALLOWED_METHODS.len(),
            "{found:?}"
        );
    }

    #[test]
    fn a_type_in_the_wrong_list_does_not_count() {
        let swapped = "disallowed-methods = [\n    { path = \"std::time::Instant\" },\n]\n";
        let found = check_config(&[File::new(CONFIG, swapped)]);
        assert!(
            found
                .iter()
                .any(|it| it.message == "disallowed-types must name std::time::Instant"),
            "{found:?}"
        );
    }
}
