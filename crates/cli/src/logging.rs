//! Logs of the program itself: lines on standard error, chosen by `DRUMTOWER_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What is worth a line unless someone asks for more.
const DEFAULT: &str =
    "warn,drumtower=info,drumtower_server=info,drumtower_worker=info,drumtower_sdk=info";

pub fn start() {
    let wanted = std::env::var("DRUMTOWER_LOG").unwrap_or_default();
    let wanted = if wanted.trim().is_empty() {
        DEFAULT
    } else {
        wanted.trim()
    };
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|error| {
        eprintln!(
            "warning: DRUMTOWER_LOG `{wanted}` is not understood ({error}); using `{DEFAULT}`"
        );
        EnvFilter::new(DEFAULT)
    });
    let color = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(color)
        .init();
}
