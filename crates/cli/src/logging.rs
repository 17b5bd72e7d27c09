//! Logs of the program itself: lines on standard error, as text for people or as JSON for programs.
//!
//! What is logged must hold no secret: tokens and their digests are never fields of an event.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config;
use crate::config::log::Log;
use crate::output::say;

/// What a bare `info` means: our own parts, and of others only what is wrong.
const INFO: &str =
    "warn,drumtower=info,drumtower_server=info,drumtower_worker=info,drumtower_sdk=info";

/// For `dev`, `serve` and `work`. To be called once.
pub fn start(log: &Log) {
    let filter = EnvFilter::try_new(wanted(&log.level)).unwrap_or_else(|_| EnvFilter::new(INFO));
    let color = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A complaint about lines that cannot be written could not be written either.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    if log.json {
        lines.json().flatten_event(true).init();
    } else {
        lines.with_ansi(color).init();
    }
}

/// For commands that have no configuration.
pub fn start_by_variable() {
    let level = std::env::var("DRUMTOWER_LOG").unwrap_or_default();
    let level = level.trim().to_owned();
    let level = match config::log::level(wanted(&level)) {
        Ok(()) => level,
        Err(why) => {
            say(&format!("warning: DRUMTOWER_LOG: {why}; using `info`"));
            "info".to_owned()
        }
    };
    start(&Log { level, json: false });
}

fn wanted(level: &str) -> &str {
    match level {
        "" | "info" => INFO,
        other => other,
    }
}
