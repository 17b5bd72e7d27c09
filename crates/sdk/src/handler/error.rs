//! Why a handler failed, in words.

use std::fmt;

use crate::bounds;

/// The failure of a handler. Any error converts into it, with its causes; `?` works.
pub struct HandlerError {
    message: String,
}

impl HandlerError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: bounds::error_text(message.into()),
        }
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }
}

/// Not `std::error::Error`, because every such error converts into it.
impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.message, f)
    }
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::Limits;

    use super::*;

    #[test]
    fn causes_are_told_and_length_is_bounded() {
        #[derive(Debug)]
        struct Outer(std::num::ParseIntError);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("no count")
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        let cause = "x".parse::<u8>().expect_err("not a number");
        assert_eq!(
            HandlerError::from(Outer(cause)).to_string(),
            "no count: invalid digit found in string"
        );
        let long = HandlerError::new("鼓".repeat(5000)).into_message();
        assert!(long.len() <= Limits::ERROR_BYTES && long.ends_with("(cut)"));
    }
}
