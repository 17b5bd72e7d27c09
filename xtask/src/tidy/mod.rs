//! The checks that hold the style: each takes files or tables and returns findings, none of them panics.
//!
//! A check is a pure function over text, so that its own tests can feed it a bad sample and see it object;
//! `tests/tidy.rs` feeds it the repository. Checks that ask the built binary say so and take what it printed.

use std::fmt;

use crate::tree::File;

pub mod commands;
pub mod edges;
pub mod fresh;
pub mod headers;
pub mod help;
pub mod leftovers;
pub mod links;
pub mod markdown;
pub mod names;
pub mod parity;
pub mod purity;
pub mod registries;
pub mod shell;
pub mod sizes;
pub mod toml;

/// One breach: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// Counted from 1; 0 when the whole file is meant.
    pub line: usize,
    pub message: String,
}

impl Finding {
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Lines of a file with their numbers, counted from 1.
fn numbered(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}
