//! A worker reports the end of an attempt. Only the current attempt, under its fence and from the
//! worker it was given to, says anything about its run; a report of any other
//! is acknowledged, so that the worker may forget it, and changes nothing. What another server has to answer for is not:
//! the worker reports it there once it has been told.

use crate::fault::{Fault, armed};
use crate::model::{AttemptEnd, AttemptOutcome, DrainRow, Now, ProcessId};

use super::super::{Effect, Engine, Finished, StreamId, ToWorker};

impl Engine {
    pub(super) fn finish_attempt(
        &mut self,
        now: Now,
        process: ProcessId,
        stream: StreamId,
        mut finished: Finished,
    ) {
        let attempt = finished.attempt;
        if self.is_for_another(process, attempt) && !armed(Fault::ForeignEndAcknowledged) {
            return;
        }
        self.effect(Effect::Send {
            stream,
            message: ToWorker::FinishAck { attempt },
        });
        let drained = self.forced_drain(process).and_then(DrainRow::stopped);
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return;
        };
        // Nobody cancelled the run: its worker was told to stop what it runs.
        let stopped =
            finished.outcome == AttemptOutcome::Cancelled && resident.run.cancel.is_none();
        if let Some(words) = drained.filter(|_| stopped) {
            finished.error = Some(words);
            if armed(Fault::DrainCountsAsFailure) {
                finished.outcome = AttemptOutcome::Failed;
            }
        }
        let run = &mut resident.run;
        let Some(current) = run.attempts.last_mut() else {
            return;
        };
        current.started = current.started.or(finished.started);
        current.end = Some(AttemptEnd {
            outcome: finished.outcome,
            at: now.wall,
            duration_ms: finished.duration_ms,
            exit_code: finished.exit_code,
            signal: finished.signal,
            http_status: finished.http_status,
            verdict: finished.verdict,
            cpu_ms: finished.cpu_ms,
            peak_memory_bytes: finished.peak_memory_bytes,
            error: finished.error,
            log: finished.log,
        });
        run.result = finished.result;
        self.jobs
            .expect_mut(run.job)
            .pace
            .note(finished.duration_ms);
        self.release_attempt(process, attempt);
        self.note_survival(now, process);
        self.conclude(now, attempt.run);
    }
}
