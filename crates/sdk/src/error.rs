//! The SDK's one error.

use std::fmt;

/// Why a worker could not be built, or why it stopped.
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

    /// The worker's own settings are wrong; nothing was dialled.
    pub fn is_configuration(&self) -> bool {
        self.kind == Kind::Configuration
    }

    /// The server does not accept the token.
    pub fn is_unauthorized(&self) -> bool {
        self.kind == Kind::Unauthorized
    }

    /// The server does not want this worker and says that dialling again is of no use.
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
