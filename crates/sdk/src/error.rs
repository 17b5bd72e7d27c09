//! The SDK's one error.

use std::fmt;

/// Why a worker could not be built, why it stopped, or why a lock could not be had.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Configuration,
    Unauthorized,
    Rejected,
    Unreachable,
}

impl Error {
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Configuration,
            message: message.into(),
        }
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Unauthorized,
            message: message.into(),
        }
    }

    pub(crate) fn rejected(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Rejected,
            message: message.into(),
        }
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Unreachable,
            message: message.into(),
        }
    }

    /// Settings or names are wrong; nothing was dialled.
    pub fn is_configuration(&self) -> bool {
        self.kind == Kind::Configuration
    }

    /// The server does not accept the token.
    pub fn is_unauthorized(&self) -> bool {
        self.kind == Kind::Unauthorized
    }

    /// The server could not be reached, or cannot answer just now: the same may work later.
    pub fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// The server does not want this worker or this request and says that trying again is of no use.
    pub fn is_rejected(&self) -> bool {
        self.kind == Kind::Rejected
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
