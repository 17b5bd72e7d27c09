//! Messages as they go over the wire: server-sent events with JSON in them.

use std::fmt::Write;

use drumtower_core::engine::WorkerState;
use drumtower_core::model::{
    BackfillHold, BackfillId, BackfillState, CalendarName, JobId, JobName, NamespaceName,
    QueueName, Reason, RunId, RunState, UnfiredReason, WorkerName,
};
use serde::Serialize;

use super::super::run_view::ProgressView;
use super::super::time::Time;
use super::id::Ids;
use super::window::{Message, Tally};
use crate::driver::tap::BackfillFact;

#[derive(Serialize)]
struct Run<'a> {
    id: RunId,
    namespace: &'a NamespaceName,
    job: &'a JobName,
    job_id: JobId,
    state: RunState,
    /// It was made since the last message.
    made: bool,
    created: Time,
    due: Time,
    at: Time,
    attempt: u32,
    worker: Option<&'a WorkerName>,
    started: Option<Time>,
    progress: Option<ProgressView<'a>>,
    finished: Option<Time>,
    reason: Option<Reason>,
    duration_ms: Option<u64>,
    exit_code: Option<i32>,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct Runs<'a> {
    namespace: Option<&'a NamespaceName>,
    job: Option<&'a JobName>,
    job_id: Option<JobId>,
    jobs: usize,
    made: u64,
    started: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    unfired: u64,
}

#[derive(Serialize)]
struct Unfired<'a> {
    namespace: &'a NamespaceName,
    job: &'a JobName,
    job_id: JobId,
    first: Time,
    last: Time,
    count: u64,
    reason: UnfiredReason,
}

#[derive(Serialize)]
struct Job<'a> {
    namespace: &'a NamespaceName,
    name: &'a JobName,
    id: JobId,
    change: &'static str,
    version: u32,
    revision: u64,
    at: Time,
}

#[derive(Serialize)]
struct Worker<'a> {
    name: &'a WorkerName,
    namespace: Option<&'a NamespaceName>,
    change: &'static str,
    state: WorkerState,
}

#[derive(Serialize)]
struct Calendar<'a> {
    namespace: &'a NamespaceName,
    name: &'a CalendarName,
    change: &'static str,
    version: u32,
    at: Time,
}

#[derive(Serialize)]
struct Queue<'a> {
    namespace: &'a NamespaceName,
    name: &'a QueueName,
    change: &'static str,
    revision: u64,
    at: Time,
}

#[derive(Serialize)]
struct Backfill<'a> {
    id: BackfillId,
    namespace: &'a NamespaceName,
    job: &'a JobName,
    job_id: JobId,
    state: BackfillState,
    held: Option<BackfillHold>,
    times: u64,
    made: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    skipped: u64,
    active: usize,
    ended: Option<Time>,
}

#[derive(Serialize)]
struct Breaker<'a> {
    namespace: &'a NamespaceName,
    job: &'a JobName,
    job_id: JobId,
    change: &'static str,
    until: Option<Time>,
}

#[derive(Serialize)]
struct Ready<'a> {
    server: &'a str,
    max_rate: u32,
}

#[derive(Serialize)]
struct Resync {
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
}

impl<'a> From<&'a BackfillFact> for Backfill<'a> {
    fn from(fact: &'a BackfillFact) -> Self {
        Self {
            id: fact.id,
            namespace: &fact.namespace,
            job: &fact.job,
            job_id: fact.job_id,
            state: fact.state,
            held: fact.held,
            times: fact.times,
            made: fact.made,
            completed: fact.completed,
            failed: fact.failed,
            cancelled: fact.cancelled,
            skipped: fact.skipped,
            active: fact.active,
            ended: fact.ended.map(Time),
        }
    }
}

/// Text that grows message by message.
pub struct Writer<'a> {
    ids: &'a Ids,
    text: String,
}

impl<'a> Writer<'a> {
    pub fn new(ids: &'a Ids) -> Self {
        Self {
            ids,
            text: String::new(),
        }
    }

    pub fn ready(&mut self, server: &str, max_rate: u32, place: u64) {
        self.event("ready", &Ready { server, max_rate }, place);
    }

    /// A comment that keeps the connection alive, with the place that the client may come back to.
    pub fn heartbeat(&mut self, place: u64) {
        let id = self.ids.seal(place);
        let _ = write!(self.text, ": heartbeat\nid: {id}\n\n");
    }

    pub fn message(&mut self, message: &Message, place: u64) {
        match message {
            Message::Run(run) => {
                let end = run.end.as_ref();
                let view = Run {
                    id: run.run,
                    namespace: &run.job.namespace,
                    job: &run.job.name,
                    job_id: run.job.id,
                    state: run.state,
                    made: run.made,
                    created: run.created.into(),
                    due: run.due.into(),
                    at: run.at.into(),
                    attempt: run.attempts,
                    worker: run.worker.as_ref(),
                    started: run.started.map(Time),
                    progress: run.progress.as_deref().map(ProgressView::from),
                    finished: end.map(|_| run.at.into()),
                    reason: end.map(|end| end.reason),
                    duration_ms: end.map(|end| end.duration_ms),
                    exit_code: end.and_then(|end| end.exit_code),
                    error: end.and_then(|end| end.error.as_deref()),
                };
                self.event("run", &view, place);
            }
            Message::Runs { job, jobs, tally } => {
                let job = job.as_deref();
                let Tally {
                    made,
                    started,
                    completed,
                    failed,
                    cancelled,
                    unfired,
                } = *tally;
                let view = Runs {
                    namespace: job.map(|job| &job.namespace),
                    job: job.map(|job| &job.name),
                    job_id: job.map(|job| job.id),
                    jobs: *jobs,
                    made,
                    started,
                    completed,
                    failed,
                    cancelled,
                    unfired,
                };
                self.event("runs", &view, place);
            }
            Message::Unfired(unfired) => {
                let view = Unfired {
                    namespace: &unfired.job.namespace,
                    job: &unfired.job.name,
                    job_id: unfired.job.id,
                    first: unfired.first.into(),
                    last: unfired.last.into(),
                    count: unfired.count,
                    reason: unfired.reason,
                };
                self.event("unfired", &view, place);
            }
            Message::Job(job) => {
                let view = Job {
                    namespace: &job.job.namespace,
                    name: &job.job.name,
                    id: job.job.id,
                    change: job.deed.as_str(),
                    version: job.version,
                    revision: job.revision,
                    at: job.at.into(),
                };
                self.event("job", &view, place);
            }
            Message::Worker(worker) => {
                let view = Worker {
                    name: &worker.name,
                    namespace: worker.namespace.as_ref(),
                    change: worker.deed.as_str(),
                    state: worker.state,
                };
                self.event("worker", &view, place);
            }
            Message::Calendar(calendar) => {
                let view = Calendar {
                    namespace: &calendar.namespace,
                    name: &calendar.name,
                    change: if calendar.deleted { "deleted" } else { "put" },
                    version: calendar.version,
                    at: calendar.at.into(),
                };
                self.event("calendar", &view, place);
            }
            Message::Queue(queue) => {
                let view = Queue {
                    namespace: &queue.queue.namespace,
                    name: &queue.queue.name,
                    change: queue.deed.as_str(),
                    revision: queue.revision,
                    at: queue.at.into(),
                };
                self.event("queue", &view, place);
            }
            Message::Backfill(backfill) => self.event("backfill", &Backfill::from(backfill), place),
            Message::Breaker(breaker) => {
                let view = Breaker {
                    namespace: &breaker.job.namespace,
                    job: &breaker.job.name,
                    job_id: breaker.job.id,
                    change: breaker.turn.as_str(),
                    until: breaker.until.map(Time),
                };
                self.event("breaker", &view, place);
            }
            Message::Resync { reason, missed } => {
                let view = Resync {
                    reason,
                    missed: *missed,
                };
                self.event("resync", &view, place);
            }
        }
    }

    fn event(&mut self, name: &str, data: &impl Serialize, place: u64) {
        // Rows that serde derives and that hold no map cannot fail; an empty object would tell if one did.
        let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
        let id = self.ids.seal(place);
        let _ = write!(self.text, "event: {name}\nid: {id}\ndata: {data}\n\n");
    }

    pub fn take(self) -> String {
        self.text
    }
}
