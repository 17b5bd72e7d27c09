//! `[logs]`: how long a server keeps the output of runs.

use drumtower_server::serve::Options;

use super::{Key, Kind, Settings};

/// Below this there would be no room for the output of one attempt and the file being written.
const LEAST_BYTES: u64 = 64 << 20;
const MOST_BYTES: u64 = 1 << 60;

pub const KEYS: &[Key] = &[
    Key::new("logs.keep", "DRUMTOWER_LOGS_KEEP", Kind::Duration).default("30d"),
    Key::new(
        "logs.max_bytes",
        "DRUMTOWER_LOGS_MAX_BYTES",
        Kind::Count {
            least: LEAST_BYTES,
            most: MOST_BYTES,
        },
    )
    .unset("no bound"),
];

/// Puts what the section says into the options of a server.
pub fn apply(settings: &Settings, options: &mut Options) {
    if let Some(keep) = settings.duration("logs.keep") {
        options.logs.kept_ms = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    }
    options.logs.max_bytes = settings.count("logs.max_bytes");
    if let Some(most) = options.logs.max_bytes {
        // Files go whole: small ones, so that what is kept comes near to the bound.
        options.logs.file_bytes = options.logs.file_bytes.min(most / 8);
    }
}
