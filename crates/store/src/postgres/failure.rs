//! What PostgreSQL answers as the store's own errors.

use tokio_postgres::error::SqlState;

use crate::Error;

/// The whole chain: the library names only the kind of an error in its first line.
fn told(error: &tokio_postgres::Error) -> String {
    let mut text = match error.as_db_error() {
        Some(refused) => return refusal(refused),
        None => error.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

fn refusal(refused: &tokio_postgres::error::DbError) -> String {
    let (message, code) = (refused.message(), refused.code().code());
    match refused.detail() {
        Some(detail) => format!("{message} ({detail}, SQLSTATE {code})"),
        None => format!("{message} (SQLSTATE {code})"),
    }
}

/// An error before COMMIT was sent, or of a read: nothing was changed.
impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = told(&error);
        let Some(code) = error.code() else {
            return if error.is_closed() || is_io(&error) {
                Self::Io(format!("the connection to PostgreSQL broke: {text}"))
            } else if is_conversion(&error) {
                Self::Corrupt(text)
            } else {
                Self::Io(text)
            };
        };
        match code.code() {
            "40001" | "40P01" | "55P03" | "57014" | "25P03" | "25P04" => Self::Busy(text),
            "53100" => Self::Full(text),
            "XX001" | "XX002" => Self::Corrupt(text),
            code if code.starts_with("23") => Self::Invariant(text),
            _ => Self::Io(text),
        }
    }
}

/// An error of COMMIT itself. Only what says that the transaction was rolled back says so.
pub fn at_commit(error: &tokio_postgres::Error) -> Error {
    let text = told(error);
    match error.code().map(SqlState::code) {
        Some("40001" | "40P01") => Error::Busy(text),
        Some(code) if code.starts_with("23") => Error::Invariant(text),
        _ => Error::Unknown(text),
    }
}

/// A statement of a transaction in which one before it failed.
pub fn is_follower(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

pub fn is_forbidden(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn is_conversion(error: &tokio_postgres::Error) -> bool {
    error.to_string().starts_with("error deserializing")
}
