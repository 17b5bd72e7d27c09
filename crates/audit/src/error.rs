//! What keeps an audit from being made at all. What it finds is not an error: that is in the report.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("journal {}: {source}", path.display())]
    Journal {
        path: PathBuf,
        source: std::io::Error,
    },
    /// Only the last line of a file may be torn.
    #[error("journal {} line {line}: {message}", path.display())]
    Line {
        path: PathBuf,
        line: u64,
        message: String,
    },
    #[error("journal role `{0}` must be 1 to 128 characters of a-z 0-9 . _ -")]
    Role(String),
    #[error(transparent)]
    Store(#[from] drumtower_store::Error),
    #[error("job {job} version {version}: {field}: {message}")]
    Schedule {
        job: String,
        version: u32,
        field: String,
        message: String,
    },
}
