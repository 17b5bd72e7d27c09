//! How long a hold is believed, and when it is renewed: without a clock and without I/O.

use std::time::Duration;

use drumtower_core::model::MonoMs;

/// The most that is kept back of a term for stopping what the lock guards.
const RESERVE_MS: u64 = 5_000;
/// Before a renewal that nobody answered is tried again.
const AGAIN_MS: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    ttl_ms: u64,
    /// One term after the last request that was granted was sent.
    until: MonoMs,
    /// Whether the last renewal found nobody.
    unanswered: bool,
}

impl Term {
    /// By a request that was sent then.
    pub(super) fn granted(ttl_ms: u64, sent: MonoMs) -> Self {
        Self {
            ttl_ms,
            until: sent.plus(ttl_ms),
            unanswered: false,
        }
    }

    pub(super) fn renewed(&mut self, sent: MonoMs) {
        self.until = self.until.max(sent.plus(self.ttl_ms));
        self.unanswered = false;
    }

    pub(super) fn not_answered(&mut self) {
        self.unanswered = true;
    }

    /// From when on it must be taken for lost: a fifth of the term before its end, five seconds at most.
    pub(super) fn ends(&self) -> MonoMs {
        let reserve = RESERVE_MS.min(self.ttl_ms / 5);
        MonoMs(self.until.0.saturating_sub(reserve))
    }

    /// How long until then.
    pub(super) fn left(&self, now: MonoMs) -> Duration {
        Duration::from_millis(self.ends().0.saturating_sub(now.0))
    }

    /// When to renew next: at a third of the term, so that two renewals may fail.
    pub(super) fn pause(&self, now: MonoMs) -> Duration {
        let third = self.ttl_ms / 3;
        let wait = match self.unanswered {
            true => third.min(AGAIN_MS),
            false => third,
        };
        Duration::from_millis(wait).min(self.left(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_believed_from_when_the_request_was_sent() {
        let mut term = Term::granted(30_000, MonoMs(1_000));
        assert_eq!(term.ends(), MonoMs(26_000));
        assert_eq!(term.pause(MonoMs(1_500)), Duration::from_secs(10));
        term.renewed(MonoMs(11_000));
        assert_eq!(term.ends(), MonoMs(36_000));
        // An answer to an older request takes nothing back.
        term.renewed(MonoMs(2_000));
        assert_eq!(term.ends(), MonoMs(36_000));
    }

    #[test]
    fn renewals_that_nobody_answers_come_faster_and_end_with_the_hold() {
        let mut term = Term::granted(30_000, MonoMs(0));
        term.not_answered();
        assert_eq!(term.pause(MonoMs(10_000)), Duration::from_secs(1));
        assert_eq!(term.pause(MonoMs(24_700)), Duration::from_millis(300));
        assert_eq!(term.left(MonoMs(25_000)), Duration::ZERO);
        let short = Term::granted(1_000, MonoMs(0));
        assert_eq!(short.ends(), MonoMs(800));
    }
}
