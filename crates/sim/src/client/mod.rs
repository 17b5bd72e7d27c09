//! Users: they write jobs, trigger and cancel runs, and write down what they were told.
//!
//! A request whose answer does not come is made again, with the same idempotency key. What was answered with yes must be
//! there for ever.

mod backfills;
mod deeds;
mod forward;
mod letters;
mod locks;

use std::collections::BTreeSet;

use drumtower_audit::Record;
use drumtower_core::engine::{Command, Condition, JobRef, Refusal, Reply, Trigger, Triggered};
use drumtower_core::model::{Actor, JobRecord, Obedience, Requirement, Run, RunId};
use drumtower_store::Read;

use crate::clock::{At, MS, SECOND};
use crate::random::Random;
use crate::server::{Phase, Work};
use crate::world::event::Event;
use crate::world::{World, note};

pub use deeds::{Deed, Tend};
pub(crate) use letters::REQUEUED;
pub use locks::Hold;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// A request under way.
#[derive(Debug)]
pub struct Call {
    pub(crate) client: usize,
    pub(crate) deed: Deed,
    tries: u32,
    server: usize,
    sent: At,
    /// A copy of it may arrive whatever is answered.
    copied: bool,
}

/// What a caller is told.
#[derive(Debug)]
pub enum Said {
    Answer(Box<Result<Reply, Refusal>>),
    /// It may have happened.
    Unknown,
    /// It did not happen.
    NotReady,
}

pub struct Client {
    pub(crate) random: Random,
    /// Runs that it was told of.
    pub(crate) runs: Vec<RunId>,
    pub(crate) journal: Vec<Record>,
    /// Requests that it may make once more, as they were.
    pub(crate) made: Vec<Trigger>,
    /// Locks that it believes to hold.
    pub(crate) holds: Vec<Hold>,
    /// Names under which it holds nothing any more.
    given_back: BTreeSet<String>,
    /// How much its clock gains.
    drift_ppm: i64,
    keys: u64,
}

impl Client {
    pub fn new(mut random: Random) -> Self {
        Self {
            drift_ppm: random.signed(4_500),
            random,
            runs: Vec::new(),
            journal: Vec::new(),
            made: Vec::new(),
            holds: Vec::new(),
            given_back: BTreeSet::new(),
            keys: 0,
        }
    }
}

/// Whether what a user asks for is to count for the overlap of its job.
fn obedience(random: &mut Random) -> Obedience {
    match random.chance(500) {
        true => Obedience::Obey,
        false => Obedience::Ignore,
    }
}

const TRIES: u32 = 8;
const PATIENCE_US: u64 = 15 * SECOND;

impl World {
    pub(crate) fn act(&mut self, client: usize) {
        if self.calm {
            return;
        }
        if self.weather.outage > self.at {
            let at = self.weather.outage.plus(self.random.below(5 * SECOND));
            self.push(at, Event::Act { client });
            return;
        }
        if let Some(deed) = self.choose(client) {
            self.call(client, deed, 0);
        }
        let pause = self.plan.figures.pause_us;
        let pause = match self.is_filling() {
            // Whoever sets a site up applies one definition after the other.
            true => 4 * MS,
            false => pause,
        };
        let wait = self.clients[client].random.between(MS, 2 * pause);
        self.push(self.at.plus(wait), Event::Act { client });
    }

    /// Whether the jobs of a large site are still being written.
    fn is_filling(&self) -> bool {
        const LARGE: usize = 20;
        let (jobs, filled) = (self.plan.figures.jobs, self.checks.jobs_made);
        jobs > LARGE && filled < jobs as u64 && self.at < At(30 * SECOND)
    }

    pub(crate) fn call(&mut self, client: usize, deed: Deed, tries: u32) {
        let call = CallId(self.number());
        let server = self.some_server();
        note!(self, "client {client} asks for {}", deed.words());
        self.cover(deed.name());
        self.write_sent(client, &deed);
        let copied = self.leave_copy(client, &deed);
        let patience_us = deed.patience_us();
        if matches!(&deed, Deed::Acquire(request) if request.wait_ms > 0)
            && self.clients[client].random.chance(250)
        {
            let at = self
                .at
                .plus(self.clients[client].random.between(MS, patience_us));
            self.push(at, Event::HangUp { call });
        }
        self.calls.insert(
            call,
            Call {
                client,
                deed,
                tries,
                server,
                sent: self.at,
                copied,
            },
        );
        let at = self.at.plus(self.latency());
        self.push(at, Event::Request { call });
        self.push(self.at.plus(patience_us), Event::Timeout { call });
    }

    /// Somewhere on its way a request is kept, and comes once more.
    fn leave_copy(&mut self, client: usize, deed: &Deed) -> bool {
        let kept = self.at < self.weather.late_copies && self.random.chance(400);
        if kept {
            let at = self.at.plus(self.random.skewed(MS, 40 * SECOND));
            let deed = Box::new(deed.clone());
            self.push(at, Event::Copy { client, deed });
        }
        kept
    }

    /// A copy arrives; its answer reaches nobody.
    pub(crate) fn copy(&mut self, client: usize, deed: &Deed) {
        let (server, call) = (self.server_for(deed), CallId(self.number()));
        if let Phase::Ready(live) = &mut self.servers[server].phase {
            let actor = Actor::new(&format!("client-{client}"));
            let command = deed.command();
            live.take_command(Work::Command {
                call,
                actor,
                command,
            });
            note!(self, "a copy arrives of {}", deed.words());
            self.wake_server(server);
        }
    }

    fn write_sent(&mut self, client: usize, deed: &Deed) {
        let wall = self.servers[0].clock.now(self.at).wall;
        for trigger in deed.triggers() {
            self.checks.obeys(trigger);
            if let Some(key) = &trigger.idempotency_key {
                let job = format!("{}/{}", trigger.job.namespace, trigger.job.name);
                self.clients[client].journal.push(Record::Sent {
                    key: key.clone(),
                    job,
                    wall_ms: wall,
                });
            }
        }
    }

    /// A request reaches its server.
    pub(crate) fn request(&mut self, id: CallId) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let (server, command) = (call.server, call.deed.command());
        let actor = Actor::new(&format!("client-{}", call.client));
        match &mut self.servers[server].phase {
            Phase::Ready(live) if !live.is_stopping() => {
                live.take_command(Work::Command {
                    call: id,
                    actor,
                    command,
                });
                self.wake_server(server);
            }
            _ => self.answer(id, Said::NotReady),
        }
    }

    /// An answer leaves the server; it may get lost.
    pub(crate) fn answer(&mut self, call: CallId, said: Said) {
        if !self.calm && self.random.chance(25) {
            return;
        }
        let at = self.at.plus(self.latency());
        self.push(at, Event::Reply { call, said });
    }

    pub(crate) fn connection_lost(&mut self, call: CallId) {
        let at = self.at.plus(self.latency());
        let said = Said::Unknown;
        self.push(at, Event::Reply { call, said });
    }

    /// The caller has waited long enough: it closes its connection, and asks again on another.
    pub(crate) fn timeout(&mut self, id: CallId) {
        if let Some(call) = self.calls.get(&id) {
            let server = call.server;
            self.close_call(server, id, None);
            self.reply(id, Said::Unknown);
        }
    }

    /// The caller does not want it any more.
    pub(crate) fn hang_up(&mut self, id: CallId) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        note!(
            self,
            "client {} hangs up on {}",
            call.client,
            call.deed.words()
        );
        self.cover("hang up");
        let owner = match call.deed {
            Deed::Acquire(request) if !call.copied => Some(request.owner),
            _ => None,
        };
        self.close_call(call.server, id, owner);
    }

    /// A connection is closed by the caller, which is noticed a little later.
    fn close_call(&mut self, server: usize, call: CallId, owner: Option<String>) {
        let at = self.at.plus(self.latency());
        self.push(
            at,
            Event::HungUp {
                server,
                call,
                owner,
            },
        );
    }

    pub(crate) fn reply(&mut self, id: CallId, said: Said) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        match said {
            Said::Answer(answer) => self.answered(call, *answer),
            Said::Unknown => self.unanswered(call, true),
            Said::NotReady => self.unanswered(call, false),
        }
    }

    fn unanswered(&mut self, call: Call, open: bool) {
        let client = call.client;
        note!(
            self,
            "client {client} has no answer to {}{}",
            call.deed.words(),
            if open { "" } else { ": not ready" }
        );
        for trigger in call.deed.triggers() {
            if let Some(key) = trigger.idempotency_key.clone() {
                let record = match open || call.copied {
                    true => Record::Unknown { key },
                    false => Record::Refused {
                        key,
                        code: "not_ready".to_owned(),
                    },
                };
                self.clients[client].journal.push(record);
            }
        }
        // Only what carries a key, or changes nothing the second time, is safe to repeat.
        if call.tries < TRIES && (!open || call.deed.is_repeatable()) {
            let wait = self.clients[client]
                .random
                .between(50 * MS, SECOND << call.tries.min(3));
            let at = self.at.plus(wait);
            self.call_at(at, call);
        }
    }

    fn call_at(&mut self, at: crate::clock::At, call: Call) {
        // Waiting is part of the request: it is on its way a little longer.
        let wait = at.since(self.at);
        let id = CallId(self.number());
        let (client, tries) = (call.client, call.tries + 1);
        self.write_sent(client, &call.deed);
        let server = self.some_server();
        let patience_us = call.deed.patience_us();
        self.calls.insert(
            id,
            Call {
                client,
                deed: call.deed,
                tries,
                server,
                sent: at,
                copied: call.copied,
            },
        );
        self.push(at, Event::Request { call: id });
        self.push(
            self.at.plus(wait + patience_us),
            Event::Timeout { call: id },
        );
    }

    fn answered(&mut self, call: Call, answer: Result<Reply, Refusal>) {
        let client = call.client;
        match answer {
            Err(refusal) => {
                note!(
                    self,
                    "client {client} is refused {}: {refusal}",
                    call.deed.words()
                );
                self.check_refusal(&call.deed, &refusal);
                self.lock_refused(&call, &refusal);
            }
            Ok(Reply::Triggered(results)) if matches!(call.deed, Deed::Misuse(_)) => {
                self.check_misused(&results);
            }
            Ok(Reply::Lock(row)) => self.lock_given(&call, &row),
            Ok(Reply::Discarded(runs)) => {
                note!(self, "client {client} has thrown away {}", runs.len());
                self.check_discarded(&runs);
            }
            Ok(Reply::Triggered(results)) => {
                let triggers = call.deed.triggers().to_vec();
                for (trigger, result) in triggers.into_iter().zip(results) {
                    self.triggered(client, trigger, result, call.copied);
                }
            }
            Ok(Reply::Run(run)) => {
                note!(
                    self,
                    "client {client} is told {} is {}",
                    run.id,
                    run.state.as_str()
                );
                self.check_cancelled(&run);
            }
            Ok(Reply::Backfill { row, .. }) => {
                let (id, state) = (row.id, row.state.as_str());
                note!(self, "client {client} is told {id} is {state}");
                self.check_backfill_told(&row);
            }
            Ok(Reply::Job { record, .. }) => {
                note!(
                    self,
                    "client {client} is told {} stands at {}",
                    record.row.name,
                    record.row.revision
                );
                self.check_job(&record);
            }
            Ok(reply) => {
                note!(self, "client {client} has {}: done", call.deed.words());
                drop(reply);
            }
        }
    }

    fn triggered(
        &mut self,
        client: usize,
        trigger: Trigger,
        result: Result<Triggered, Refusal>,
        copied: bool,
    ) {
        match result {
            Ok(triggered) => {
                let run = triggered.run;
                note!(
                    self,
                    "client {client} is told of {run}, repeated: {}",
                    triggered.repeated
                );
                self.check_triggered(run);
                self.check_requeued(&trigger);
                if let Some(key) = &trigger.idempotency_key {
                    let key = key.clone();
                    self.clients[client]
                        .journal
                        .push(Record::Answered { key, run });
                    self.clients[client].made.push(trigger);
                }
                self.clients[client].runs.push(run);
            }
            Err(refusal) => {
                note!(self, "client {client} is refused a run: {refusal}");
                if let Some(key) = trigger.idempotency_key {
                    let code = "refused".to_owned();
                    let record = match copied {
                        true => Record::Unknown { key },
                        false => Record::Refused { key, code },
                    };
                    self.clients[client].journal.push(record);
                }
            }
        }
    }

    /// Brings about the end: what fires by itself is paused, what is held back goes on, what nobody can run is cancelled.
    pub(crate) fn tidy_up(&mut self, busy: Vec<JobRecord>, runs: &[Run]) {
        for job in busy {
            let job = JobRef {
                namespace: job.row.namespace,
                name: job.row.name,
            };
            self.call(0, Deed::Pause(job), 0);
        }
        let queues = self.reader.queues().unwrap_or_default();
        for row in queues.into_iter().filter(|row| row.paused.is_some()) {
            self.call(0, Deed::ResumeQueue(row.queue()), 0);
        }
        for drain in self.reader.drains().unwrap_or_default() {
            self.call(0, Deed::ResumeWorker(drain.worker), 0);
        }
        let hopeless: Vec<RunId> = runs
            .iter()
            .filter(|run| run.cancel.is_none() && !self.somebody_can(run))
            .map(|run| run.id)
            .collect();
        for run in hopeless {
            self.call(0, Deed::Cancel(run), 0);
        }
        self.cancel_hopeless_backfills();
    }

    fn somebody_can(&self, run: &Run) -> bool {
        let Ok(Some(version)) = self.reader.job_version(run.job, run.job_version) else {
            return false;
        };
        self.somebody_serves(&version.spec.requirement())
    }

    fn somebody_serves(&self, needed: &Requirement) -> bool {
        self.workers.iter().any(|worker| worker.is_able(needed))
    }
}

impl Deed {
    pub(crate) fn command(&self) -> Command {
        let condition = Condition::Any;
        match self.clone() {
            Self::Put(spec) => Command::PutJob { spec, condition },
            Self::Pause(job) => Command::PauseJob { job, condition },
            Self::Resume(job) => Command::ResumeJob { job, condition },
            Self::Delete(job) => Command::DeleteJob { job, condition },
            Self::Trigger(triggers) | Self::Rerun(triggers) | Self::Requeue(triggers) => {
                Command::TriggerRuns { triggers }
            }
            Self::Misuse(trigger) => Command::TriggerRuns {
                triggers: vec![*trigger],
            },
            Self::Discard(namespace, runs) => Command::DiscardLetters { namespace, runs },
            Self::Acquire(request) => Command::AcquireLock { request },
            Self::Renew { hold, ttl_ms } => Command::RenewLock {
                lock: hold.lock,
                fence: hold.fence,
                ttl_ms,
            },
            Self::Release { lock, fence } => Command::ReleaseLock { lock, fence },
            Self::Cancel(run) => Command::CancelRun { run, scope: None },
            Self::PutQueue(spec) => Command::PutQueue {
                spec: *spec,
                condition,
            },
            Self::PauseQueue(queue) => Command::PauseQueue { queue, condition },
            Self::ResumeQueue(queue) => Command::ResumeQueue { queue, condition },
            Self::DeleteQueue(queue) => Command::DeleteQueue { queue, condition },
            Self::Drain(worker, deadline_ms) => Command::DrainWorker {
                worker,
                deadline_ms,
            },
            Self::ResumeWorker(worker) => Command::ResumeWorker { worker },
            Self::ResetWorker(worker) => Command::ResetWorker { worker },
            Self::ResetBreaker(job) => Command::ResetBreaker { job },
            Self::Calendar(spec) => Command::PutCalendar {
                spec: *spec,
                condition,
            },
            Self::Backfill(backfill) => Command::CreateBackfill { backfill },
            Self::Tend(backfill, tend) => tend.command(backfill),
        }
    }

    /// How long a caller waits for the answer.
    fn patience_us(&self) -> u64 {
        match self {
            Self::Acquire(request) => PATIENCE_US + request.wait_ms * MS,
            _ => PATIENCE_US,
        }
    }
}
