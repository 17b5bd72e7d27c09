//! An attempt ends without its worker's word.
//!
//! *Lost*: it may have run, so the run fails, or is cancelled if that was asked for. *Undelivered*: it is certain that it
//! never started and never will, so the run goes back in line, a bounded number of times.

use crate::model::{AttemptEnd, AttemptOutcome, Now, Reason, RunState};

use super::super::{AttemptRef, Engine};

/// An assignment that cannot be delivered this often points to something that another try will not mend.
const UNDELIVERED_MAX: usize = 10;

impl Engine {
    /// The worker that held it cannot be running it any more, and nobody knows how far it came.
    pub(super) fn lose_attempt(&mut self, now: Now, attempt: AttemptRef, cause: &str) {
        if self.close_attempt(now, attempt, AttemptOutcome::Lost, cause) {
            self.end_without_word(now, attempt, format!("worker lost: {cause}"));
        }
    }

    pub(super) fn undelivered(&mut self, now: Now, attempt: AttemptRef, cause: &str) {
        if !self.close_attempt(now, attempt, AttemptOutcome::Undelivered, cause) {
            return;
        }
        let resident = self.runs.expect_mut(attempt.run);
        if resident.run.cancel.is_some() || resident.run.attempts.len() >= UNDELIVERED_MAX {
            self.end_without_word(
                now,
                attempt,
                format!("could not be delivered to a worker: {cause}"),
            );
            return;
        }
        resident
            .run
            .transition(RunState::Pending, now.wall, Reason::Undelivered);
        let compiled = std::sync::Arc::clone(&resident.compiled);
        let line = self.line_of(&compiled);
        self.back_in_line(line, attempt.run);
        self.building.run_updated(attempt.run);
    }

    fn end_without_word(&mut self, now: Now, attempt: AttemptRef, cause: String) {
        if self.runs.expect(attempt.run).run.cancel.is_some() {
            self.end_run(
                now,
                attempt.run,
                RunState::Cancelled,
                Reason::Cancelled,
                Some(cause),
            );
        } else {
            self.end_run(
                now,
                attempt.run,
                RunState::Failed,
                Reason::WorkerLost,
                Some(cause),
            );
        }
    }

    /// Writes the end of the current attempt; false when it is not the current one.
    fn close_attempt(
        &mut self,
        now: Now,
        attempt: AttemptRef,
        outcome: AttemptOutcome,
        cause: &str,
    ) -> bool {
        let Some(resident) = self.runs.with_attempt(attempt) else {
            return false;
        };
        let Some(current) = resident.run.attempts.last_mut() else {
            return false;
        };
        let since = current.started.unwrap_or(current.assigned);
        current.end = Some(AttemptEnd {
            outcome,
            at: now.wall,
            duration_ms: u64::try_from(now.wall.since(since)).unwrap_or(0),
            exit_code: None,
            signal: None,
            cpu_ms: 0,
            peak_memory_bytes: 0,
            error: Some(cause.chars().take(1024).collect()),
            log: None,
        });
        true
    }
}
