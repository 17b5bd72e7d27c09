//! An attempt ends without its worker's word.
//!
//! *Lost*: it may have run, and nobody knows how far it came. *Undelivered*: it is certain that it never started and never
//! will. The policy of the job says what follows.

use crate::model::{AttemptEnd, AttemptOutcome, Now};

use super::super::{AttemptRef, Engine};

impl Engine {
    /// The worker that held it cannot be running it any more, and nobody knows how far it came.
    pub(super) fn lose_attempt(&mut self, now: Now, attempt: AttemptRef, cause: &str) {
        self.close_attempt(now, attempt, AttemptOutcome::Lost, cause);
    }

    pub(super) fn undelivered(&mut self, now: Now, attempt: AttemptRef, cause: &str) {
        self.close_attempt(now, attempt, AttemptOutcome::Undelivered, cause);
    }

    /// Writes the end of an attempt, unless it is not the current one.
    fn close_attempt(
        &mut self,
        now: Now,
        attempt: AttemptRef,
        outcome: AttemptOutcome,
        cause: &str,
    ) {
        let Some(resident) = self.runs.with_attempt(attempt) else {
            return;
        };
        let Some(current) = resident.run.attempts.last_mut() else {
            return;
        };
        let since = current.started.unwrap_or(current.assigned);
        current.end = Some(AttemptEnd {
            outcome,
            at: now.wall,
            duration_ms: u64::try_from(now.wall.since(since)).unwrap_or(0),
            exit_code: None,
            signal: None,
            http_status: None,
            verdict: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: Some(cause.chars().take(1024).collect()),
            log: None,
        });
        self.conclude(now, attempt.run);
    }
}
