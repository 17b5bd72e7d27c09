//! `[log]`: how much the program says about itself, and in which form.

use clap::Args;
use tracing_subscriber::EnvFilter;

use super::{Given, Key, Kind, Settings};

pub const KEYS: &[Key] = &[
    Key::new("log.level", "DRUMTOWER_LOG", Kind::Text(level))
        .flag("--log-level")
        .default("info"),
    Key::new("log.format", "DRUMTOWER_LOG_FORMAT", Kind::Choice(FORMATS))
        .flag("--log-format")
        .default("text"),
];

const FORMATS: &[&str] = &["text", "json"];

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Logs")]
#[group(skip)]
pub struct Flags {
    /// How much is logged: error, warn, info, debug, trace, or parts such as drumtower_server=debug,warn
    #[arg(long, env = "DRUMTOWER_LOG", value_name = "LEVEL", value_parser = parse_level)]
    log_level: Option<String>,
    /// The form of a line in the log
    #[arg(long, env = "DRUMTOWER_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"])]
    log_format: Option<String>,
}

/// How the program logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub level: String,
    pub json: bool,
}

impl Flags {
    pub fn given(&self, given: Given) -> Given {
        given
            .text("log.level", self.log_level.as_ref())
            .text("log.format", self.log_format.as_ref())
    }
}

impl Log {
    pub fn of(settings: &Settings) -> Self {
        Self {
            level: settings.text("log.level").unwrap_or_default(),
            json: settings.text("log.format").as_deref() == Some("json"),
        }
    }
}

/// A bare word that is no level would be taken for a part of the program, and everything else would fall silent.
pub fn level(text: &str) -> Result<(), String> {
    const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace", "off"];
    let is_level = |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
    let mut bare = text.split(',').map(str::trim).filter(|part| {
        let is_part = part.contains(['=', '[', ']', '{', '}']);
        !part.is_empty() && !is_part
    });
    if let Some(word) = bare.find(|word| !is_level(word)) {
        return Err(format!(
            "`{word}` is no level: there is {}; of one part write `{word}=debug`",
            LEVELS.join(", ")
        ));
    }
    EnvFilter::try_new(text)
        .map(|_| ())
        .map_err(|error| format!("`{text}` is not understood ({error}): write a level such as `debug`, or parts such as `drumtower_server=debug,warn`"))
}

fn parse_level(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok("info".to_owned());
    }
    level(text).map(|()| text.to_owned())
}
