//! SQLite's error codes as the store's own errors.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::Error;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            Some(ErrorCode::DiskFull) => Self::Full(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(text),
            Some(ErrorCode::ConstraintViolation) => Self::Invariant(text),
            Some(_) => Self::Io(text),
            None => match error {
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::QueryReturnedNoRows => Self::Corrupt(text),
                _ => Self::Io(text),
            },
        }
    }
}

/// An error of COMMIT itself. When input or output failed there, the commit mark may be on the disk or not.
pub fn at_commit(error: rusqlite::Error) -> Error {
    match Error::from(error) {
        refused @ (Error::Busy(_) | Error::Full(_) | Error::Corrupt(_) | Error::Invariant(_)) => {
            refused
        }
        other => Error::Unknown(other.to_string()),
    }
}

/// An error of the file system around `path`.
pub fn at_path(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull => Error::Full(format!("{}: {error}", path.display())),
        _ => Error::Io(format!("{}: {error}", path.display())),
    }
}
