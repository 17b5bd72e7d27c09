//! What people are told of: one thing that happened to one run.

use std::sync::Arc;

use drumtower_core::model::{
    JobId, JobName, NamespaceName, NotifyOn, Run, RunId, RunState, WallMs, WorkerName,
};
use serde::{Deserialize, Serialize};

use crate::driver::tap::{JobKey, RunFact};

/// How much of an error is told; the run itself has it whole.
const ERROR_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub kind: NotifyOn,
    pub job_id: JobId,
    pub namespace: NamespaceName,
    pub job: JobName,
    pub run: RunId,
    /// When it happened: the end of the run, or the instant at which it was late.
    pub at: WallMs,
    pub due: WallMs,
    pub started: Option<WallMs>,
    pub attempts: u32,
    pub worker: Option<WorkerName>,
    pub exit_code: Option<i32>,
    pub error: Option<String>,
    /// Of lateness: only rules with this `late_after` are told.
    pub late_after_ms: Option<u64>,
}

/// A run as it was seen, in a fact or in the store.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    pub run: RunId,
    pub job: &'a Arc<JobKey>,
    pub state: RunState,
    pub created: WallMs,
    pub due: WallMs,
    /// When it got into its state.
    pub at: WallMs,
    pub attempts: u32,
    pub started: Option<WallMs>,
    pub worker: Option<&'a WorkerName>,
    pub exit_code: Option<i32>,
    pub error: Option<&'a str>,
}

impl<'a> Sighting<'a> {
    pub fn of_fact(fact: &'a RunFact) -> Self {
        let end = fact.end.as_ref();
        Self {
            run: fact.run,
            job: &fact.job,
            state: fact.state,
            created: fact.created,
            due: fact.due,
            at: fact.at,
            attempts: fact.attempts,
            started: fact.started,
            worker: fact.worker.as_ref(),
            exit_code: end.and_then(|end| end.exit_code),
            error: end.and_then(|end| end.error.as_deref()),
        }
    }

    pub fn of_run(run: &'a Run, job: &'a Arc<JobKey>) -> Self {
        let last = run.attempts.last();
        let end = last.and_then(|attempt| attempt.end.as_ref());
        Self {
            run: run.id,
            job,
            state: run.state,
            created: run.created,
            due: run.due,
            at: run.transitions.last().map_or(run.created, |it| it.at),
            attempts: u32::try_from(run.attempts.len()).unwrap_or(u32::MAX),
            started: run.attempts.iter().find_map(|attempt| attempt.started),
            worker: last.map(|attempt| &attempt.worker),
            exit_code: end.and_then(|end| end.exit_code),
            error: run.error.as_deref(),
        }
    }

    pub fn event(&self, kind: NotifyOn, at: WallMs, late_after_ms: Option<u64>) -> Event {
        Event {
            kind,
            job_id: self.job.id,
            namespace: self.job.namespace.clone(),
            job: self.job.name.clone(),
            run: self.run,
            at,
            due: self.due,
            started: self.started,
            attempts: self.attempts,
            worker: self.worker.cloned(),
            exit_code: self.exit_code,
            error: self.error.map(beginning),
            late_after_ms,
        }
    }
}

fn beginning(error: &str) -> String {
    let mut end = error.len().min(ERROR_BYTES);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error[..end].to_owned()
}
