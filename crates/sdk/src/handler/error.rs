//! Why a handler failed, in words, and what it wants to become of its run.

use std::fmt;
use std::time::Duration;

use drumtower_proto::worker::v1::finished::Verdict;

use crate::bounds;

/// The failure of a handler. Any error converts into it, with its causes; `?` works.
///
/// The job's `retry` says what follows on a failure, unless the handler knows better:
///
/// ```
/// use std::time::Duration;
/// use drumtower_sdk::HandlerError;
///
/// // The other side is busy: try again in half a minute.
/// let busy = HandlerError::new("the gateway is busy").retry_after(Duration::from_secs(30));
/// // No attempt will ever succeed.
/// let wrong = HandlerError::new("there is no customer 7").give_up();
/// // Not a failure: what it waits for is not there yet.
/// let early = HandlerError::snooze(Duration::from_secs(300));
/// ```
pub struct HandlerError {
    message: String,
    verdict: Option<Verdict>,
}

impl HandlerError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: bounds::error_text(message.into()),
            verdict: None,
        }
    }

    /// Try again after so long, as often as the job's `retry.max_attempts` allows.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.verdict = Some(Verdict::RetryAfterMs(milliseconds(wait)));
        self
    }

    /// The run fails at once: trying again is of no use.
    pub fn give_up(mut self) -> Self {
        self.verdict = Some(Verdict::GiveUp(true));
        self
    }

    /// Not a failure: try again after so long, up to a hundred times. It does not count as an attempt that failed.
    pub fn snooze(wait: Duration) -> Self {
        let mut snoozed = Self::new("put off by the handler");
        snoozed.verdict = Some(Verdict::SnoozeMs(milliseconds(wait)));
        snoozed
    }

    pub(crate) fn into_parts(self) -> (String, Option<Verdict>) {
        (self.message, self.verdict)
    }
}

fn milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
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
        let (long, _) = HandlerError::new("鼓".repeat(5000)).into_parts();
        assert!(long.len() <= Limits::ERROR_BYTES && long.ends_with("(cut)"));
    }
}
