//! A worker has started an attempt, or has refused to.

use crate::model::{Now, ProcessId, Reason, RunState, WallMs};

use super::super::{AttemptRef, Engine};

impl Engine {
    /// Takes note in memory. It is written with the run's next change, or alone when the attempt lasts.
    pub(in super::super) fn start_attempt(
        &mut self,
        now: Now,
        process: ProcessId,
        attempt: AttemptRef,
        at: WallMs,
    ) {
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return;
        };
        if resident.run.state != RunState::Scheduled {
            return;
        }
        if let Some(current) = resident.run.attempts.last_mut() {
            current.started = Some(at);
        }
        resident
            .run
            .transition(RunState::Running, now.wall, Reason::Started);
        self.note_start(now, attempt);
    }

    /// The worker never started it and never will: the run may go to another at once. What it said had started may have run.
    pub(super) fn refuse_attempt(
        &mut self,
        now: Now,
        process: ProcessId,
        attempt: AttemptRef,
        reason: &str,
    ) {
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return;
        };
        let started = resident.run.state == RunState::Running;
        self.release_attempt(process, attempt);
        if started {
            self.lose_attempt(now, attempt, reason);
        } else {
            self.undelivered(now, attempt, reason);
        }
    }
}
