//! A worker reports the end of an attempt. Only the current attempt, under its fence and from the
//! worker it was given to, ends a run; a report of any other
//! is acknowledged, so that the worker may forget it, and changes nothing.

use crate::model::{AttemptEnd, AttemptOutcome, Now, ProcessId, Reason, RunState};

use super::super::{Effect, Engine, Finished, StreamId, ToWorker};

impl Engine {
    pub(super) fn finish_attempt(
        &mut self,
        now: Now,
        process: ProcessId,
        stream: StreamId,
        finished: Finished,
    ) {
        let attempt = finished.attempt;
        self.effect(Effect::Send {
            stream,
            message: ToWorker::FinishAck { attempt },
        });
        let Some(resident) = self.runs.held_by(process, attempt) else {
            return;
        };
        let run = &mut resident.run;
        let (state, reason, cause) = verdict(&finished, run.cancel.is_some());
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
            cpu_ms: finished.cpu_ms,
            peak_memory_bytes: finished.peak_memory_bytes,
            error: finished.error,
            log: finished.log,
        });
        run.result = finished.result;
        self.release_attempt(process, attempt);
        self.end_run(now, attempt.run, state, reason, cause);
    }
}

fn verdict(finished: &Finished, cancel_requested: bool) -> (RunState, Reason, Option<String>) {
    let said = || {
        finished
            .error
            .clone()
            .unwrap_or_else(|| "the task failed without saying why".to_owned())
    };
    match finished.outcome {
        AttemptOutcome::Succeeded => (RunState::Completed, Reason::Succeeded, None),
        AttemptOutcome::Failed => (RunState::Failed, Reason::TaskFailed, Some(said())),
        AttemptOutcome::TimedOut => (RunState::Failed, Reason::TimedOut, Some(said())),
        AttemptOutcome::Cancelled if cancel_requested => (
            RunState::Cancelled,
            Reason::Cancelled,
            Some("cancelled on request".to_owned()),
        ),
        AttemptOutcome::Lost | AttemptOutcome::Undelivered if cancel_requested => (
            RunState::Cancelled,
            Reason::Cancelled,
            Some("cancelled on request; its lease ended first".to_owned()),
        ),
        AttemptOutcome::Cancelled => (
            RunState::Failed,
            Reason::TaskFailed,
            Some("stopped by its worker".to_owned()),
        ),
        AttemptOutcome::Lost | AttemptOutcome::Undelivered => {
            (RunState::Failed, Reason::WorkerLost, Some(said()))
        }
    }
}
