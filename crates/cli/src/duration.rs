//! Durations on the command line, written as in manifests and in the configuration.

use std::time::Duration;

pub fn parse(text: &str) -> Result<Duration, String> {
    drumtower_core::schedule::parse_duration(text)
        .map(Duration::from_millis)
        .map_err(|error| error.to_string())
}

/// As [`parse`] reads it.
pub fn words(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1000, "s"),
    ];
    let whole = units
        .iter()
        .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    match whole {
        Some((unit, name)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}
