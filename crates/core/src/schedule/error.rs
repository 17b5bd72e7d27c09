//! What can be wrong with the text of a schedule. Every message says what to write instead.

/// Why a schedule or a duration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Places another error in the list; entries are numbered from 1.
    #[error("entry {number}: {error}")]
    Entry { number: usize, error: Box<Error> },
    #[error("give exactly one of `cron`, `every` and `at`; found {found}")]
    Form { found: String },
    #[error("`{field}` belongs to `{owner}` and has no effect here: remove it")]
    Stray {
        field: &'static str,
        owner: &'static str,
    },
    #[error(
        "timezone `{name}` is not in the time-zone database: use an IANA name such as `Europe/Berlin`, or `UTC`"
    )]
    Zone { name: String },
    #[error(
        "{field} `{value}` is not an instant: use RFC 3339 with an offset and at most milliseconds, such as `2026-01-31T08:00:00Z`"
    )]
    Instant { field: &'static str, value: String },
    #[error("every must be at least `1ms`")]
    ZeroInterval,
    #[error("duration `{value}`: {problem}")]
    Duration {
        value: String,
        problem: &'static str,
    },
    #[error("cron `{line}`: {fault}")]
    Cron { line: String, fault: CronFault },
}

impl Error {
    /// The manifest's key that is at fault.
    pub fn field(&self) -> String {
        "schedule".to_owned()
    }

    pub(super) fn in_entry(self, number: usize) -> Self {
        Error::Entry {
            number,
            error: Box::new(self),
        }
    }
}

/// What is wrong with a cron line. Positions count characters of the line from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronFault {
    #[error(
        "{found} fields: write 5 (minute, hour, day of month, month, day of week), 6 with seconds first, or 7 with years last"
    )]
    FieldCount { found: usize },
    #[error(
        "unknown name: use @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or five fields"
    )]
    Nickname,
    #[error("{field} field, position {position}: a value is missing: use {allowed}")]
    Missing {
        field: &'static str,
        position: usize,
        allowed: String,
    },
    #[error(
        "{field} field, position {position}: `{value}` is not understood: use {allowed}, a range `a-b`, a step `/n`, a list `a,b`, or `*`"
    )]
    Unknown {
        field: &'static str,
        position: usize,
        value: String,
        allowed: String,
    },
    #[error("{field} field, position {position}: `{value}` is out of range: use {allowed}")]
    OutOfRange {
        field: &'static str,
        position: usize,
        value: String,
        allowed: String,
    },
    #[error(
        "{field} field, position {position}: range `{value}` runs backwards: write `{instead}`"
    )]
    Backwards {
        field: &'static str,
        position: usize,
        value: String,
        instead: String,
    },
    #[error("{field} field, position {position}: step `{value}` is not a number from 1 to {most}")]
    Step {
        field: &'static str,
        position: usize,
        value: String,
        most: u32,
    },
}
