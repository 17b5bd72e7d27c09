//! What commands print: tables for people, lines for pipes, JSON and YAML for programs.
//!
//! A table has a heading, colours and relative times when standard output is a terminal. In a pipe it is one line a row,
//! cells separated by tabs, times in full, without a heading: made for `cut` and `awk`. `--color` wins over
//! `NO_COLOR`, which is honoured.

mod cell;
mod progress;
mod table;

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::failure::{Failure, Result};

pub use cell::{Cell, bytes, duration, exact, tame, text};
pub use progress::{Progress, overwrite};
pub use table::{Column, render};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people; tab-separated in a pipe
    #[default]
    Table,
    Json,
    Yaml,
}

#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

static COLOR: OnceLock<Color> = OnceLock::new();

impl Color {
    /// Holds for everything that is printed from now on.
    pub fn choose(self) {
        let _ = COLOR.set(self);
    }

    /// Whether something that is a terminal or not gets colours.
    pub fn on(terminal: bool) -> bool {
        match COLOR.get().copied().unwrap_or_default() {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// Who looks at the output.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub terminal: bool,
    pub color: bool,
    pub now_ms: i64,
}

impl View {
    pub fn of_stdout() -> Self {
        let terminal = std::io::stdout().is_terminal();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            terminal,
            color: Color::on(terminal),
            now_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

impl Output {
    /// Prints a listing.
    pub fn list(self, items: Vec<Value>, columns: &[Column], empty: &str) -> Result<()> {
        match self.output {
            Format::Table if items.is_empty() => {
                if View::of_stdout().terminal {
                    line(empty)?;
                }
                Ok(())
            }
            Format::Table => write(&render(&items, columns, View::of_stdout())),
            _ => self.value(&Value::Array(items)),
        }
    }

    /// Prints one thing: in words for people, as it is for programs.
    pub fn one(self, value: &Value, words: impl FnOnce(View) -> String) -> Result<()> {
        match self.output {
            Format::Table => write(&words(View::of_stdout())),
            _ => self.value(value),
        }
    }

    fn value(self, value: &Value) -> Result<()> {
        match self.output {
            Format::Yaml => {
                let yaml = serde_saphyr::to_string(value);
                write(&yaml.map_err(|error| {
                    Failure::failed(format!("the answer has no form in YAML: {error}"))
                })?)
            }
            _ => line(&format!("{value:#}")),
        }
    }
}

/// Writes to standard output; a reader that has gone ends the command quietly.
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a line to standard error. That nobody reads it is no reason to end.
pub fn say(text: &str) {
    hint(&format!("{text}\n"));
}

/// As [`say`], without the end of the line.
pub fn hint(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

pub fn line(text: &str) -> Result<()> {
    write(&format!("{text}\n"))
}

/// `name: words` a line, the words below each other.
pub fn pairs(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    lines
        .iter()
        .map(|(name, words)| {
            format!(
                "{:<width$} {}\n",
                format!("{name}:"),
                tame(words).trim_end()
            )
        })
        .collect()
}
