//! A worker saves what a later attempt can go on from.
//!
//! It is taken from the holder of the current attempt only, and only if its number grew: a checkpoint never goes back. The
//! acknowledgement leaves after the commit, so what a task was told to be kept is kept.

use crate::fault::{Fault, armed};
use crate::model::{Checkpoint, CheckpointMark, Now, ProcessId};

use super::super::{AttemptRef, Effect, Engine, StreamId, ToWorker};

impl Engine {
    pub(super) fn save_checkpoint(
        &mut self,
        now: Now,
        process: ProcessId,
        stream: StreamId,
        attempt: AttemptRef,
        checkpoint: Checkpoint,
    ) {
        if self.is_for_another(process, attempt) {
            return;
        }
        let number = checkpoint.number;
        let kept = self.keep_checkpoint(now, process, attempt, checkpoint);
        self.effect(Effect::Send {
            stream,
            message: ToWorker::CheckpointAck {
                attempt,
                number,
                kept,
            },
        });
    }

    fn keep_checkpoint(
        &mut self,
        now: Now,
        process: ProcessId,
        attempt: AttemptRef,
        checkpoint: Checkpoint,
    ) -> bool {
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return false;
        };
        let run = &mut resident.run;
        // A copy, or one that a newer has overtaken: what is kept is at least as new.
        let newer = |mark: CheckpointMark| checkpoint.number <= mark.number;
        if run.checkpoint.is_some_and(newer) && !armed(Fault::CheckpointGoesBack) {
            return true;
        }
        if armed(Fault::CheckpointNotWritten) {
            return true;
        }
        run.checkpoint = Some(CheckpointMark {
            number: checkpoint.number,
            attempt: attempt.attempt,
            at: now.wall,
            bytes: u32::try_from(checkpoint.body.len()).unwrap_or(u32::MAX),
        });
        self.building.run_updated(attempt.run);
        self.building.checkpoint(attempt.run, checkpoint);
        true
    }
}
