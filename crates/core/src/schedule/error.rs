//! What can be wrong with the text of a schedule. Every message says what to write instead.

use std::fmt;

/// Why a schedule or a duration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Places another error in the list; entries are numbered from 1.
    #[error("entry {number}: {error}")]
    Entry { number: usize, error: Box<Error> },
    /// Places another error under a key beside the list.
    #[error("{error}")]
    Key { key: String, error: Box<Error> },
    #[error("give exactly one of `cron`, `every`, `at` and `after_end`; found {found}")]
    Form { found: String },
    #[error("{found} entries are too many: write up to {most}, lists and ranges in `cron` help")]
    TooMany { found: usize, most: usize },
    #[error("`{field}` has no effect here: {reason}: remove it")]
    Stray {
        field: &'static str,
        reason: &'static str,
    },
    #[error("`after_end` must be the only entry: give it a job of its own")]
    NotAlone,
    #[error(
        "timezone `{name}` is not in the time-zone database: use an IANA name such as `Europe/Berlin`, or `UTC`"
    )]
    Zone { name: String },
    #[error(
        "{field} `{value}` is not an instant: use RFC 3339 with an offset and at most milliseconds, such as `2026-01-31T08:00:00Z`"
    )]
    Instant { field: &'static str, value: String },
    #[error(
        "at `{value}` has no offset: add one, as in `2026-01-31T08:00:00Z`, or give the `timezone` in which it is read"
    )]
    NoOffset { value: String },
    #[error("at `{value}` lies outside the years 1970 to 2199: use an instant within them")]
    Year { value: String },
    #[error("{what} must be at least `1ms`")]
    Zero { what: &'static str },
    #[error("{what} `{value}` is too long: the limit is `{most}`")]
    TooLong {
        what: &'static str,
        value: String,
        most: &'static str,
    },
    #[error("duration `{value}`: {problem}")]
    Duration {
        value: String,
        problem: &'static str,
    },
    #[error("cron `{line}`: {fault}")]
    Cron { line: String, fault: CronFault },
    #[error("there is no calendar `{name}` in the namespace: apply it first, or correct the name")]
    NoCalendar { name: String },
    #[error("{found} calendars are too many: name up to {most}")]
    TooManyCalendars { found: usize, most: usize },
    #[error(
        "entry {number} names no times of day that could be moved: roll is for `at` and for `cron` lines without `*` in second, minute and hour; use `none`"
    )]
    Roll { number: usize },
    #[error("{0}")]
    Calendar(&'static str),
    #[error("end `{end}` is not after start `{start}`: nothing would ever be due")]
    EmptyBounds { start: String, end: String },
    #[error("must be at least 1: remove it to set no limit")]
    NoFires,
}

impl Error {
    /// The manifest's key that is at fault, such as `schedule[0].cron`.
    pub fn field(&self) -> String {
        match self {
            Error::Key { key, .. } => key.clone(),
            Error::Entry { number, error } => {
                let entry = format!("schedule[{}]", number.saturating_sub(1));
                match error.entry_key() {
                    Some(key) => format!("{entry}.{key}"),
                    None => entry,
                }
            }
            _ => "schedule".to_owned(),
        }
    }

    /// The fault itself, for those who name the place already.
    pub fn fault(&self) -> &Error {
        match self {
            Error::Key { error, .. } | Error::Entry { error, .. } => error.fault(),
            fault => fault,
        }
    }

    /// The key of an entry that is at fault; `None` when it is the entry as a whole, or any of its durations.
    fn entry_key(&self) -> Option<&'static str> {
        match self {
            Error::Cron { .. } => Some("cron"),
            Error::Zone { .. } => Some("timezone"),
            Error::Instant { field, .. } | Error::Stray { field, .. } => Some(field),
            Error::NoOffset { .. } | Error::Year { .. } => Some("at"),
            _ => None,
        }
    }

    pub(super) fn in_entry(self, number: usize) -> Self {
        Error::Entry {
            number,
            error: Box::new(self),
        }
    }

    pub(super) fn under(self, key: impl Into<String>) -> Self {
        Error::Key {
            key: key.into(),
            error: Box::new(self),
        }
    }
}

/// Text from outside as messages repeat it: long ones are cut.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What is wrong with a cron line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronFault {
    #[error("{chars} characters are too many: write up to {most}")]
    TooLong { chars: usize, most: usize },
    #[error("{found} field{}: {remedy}", if *found == 1 { "" } else { "s" })]
    FieldCount { found: usize, remedy: String },
    #[error("unknown name: {remedy}")]
    Nickname { remedy: String },
    #[error("{field} field, position {position}: {problem}: {remedy}")]
    Item {
        field: &'static str,
        /// Counts characters of the line from 1. One past the end when something is missing there.
        position: usize,
        problem: Problem,
        remedy: String,
    },
}

impl CronFault {
    /// Where in the line the fault is, in characters from 1; `None` when it is the line as a whole.
    pub fn position(&self) -> Option<usize> {
        match self {
            CronFault::Item { position, .. } => Some(*position),
            _ => None,
        }
    }
}

/// What is wrong with one item of a field, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Missing,
    NotUnderstood(String),
    OutOfRange(String),
    Backwards(String),
    Step(String),
    Misplaced(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Missing => f.write_str("a value is missing"),
            Problem::NotUnderstood(value) => write!(f, "`{value}` is not understood"),
            Problem::OutOfRange(value) => write!(f, "`{value}` is out of range"),
            Problem::Backwards(value) => write!(f, "range `{value}` runs backwards"),
            Problem::Step(value) => write!(f, "step `{value}` is out of range"),
            Problem::Misplaced(value) => write!(f, "`{value}` does not belong here"),
        }
    }
}
