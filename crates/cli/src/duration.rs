//! Durations on the command line, written as in manifests.

use std::time::Duration;

pub fn parse(text: &str) -> Result<Duration, String> {
    drumtower_core::schedule::parse_duration(text)
        .map(Duration::from_millis)
        .map_err(|error| error.to_string())
}
