//! A worker: the real session of the SDK, with tasks that only take time.
//!
//! A process dials, serves and ends: by a kill, by draining, or because the server sends it away. Another process follows
//! it, with another id. Commands run under a supervisor that kills them when their lease ends, even while the worker is
//! frozen; handlers run inside the worker and freeze with it.

mod habit;
mod links;
mod task;

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::model::{MonoMs, ProcessId};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, Attempt, Config, Session};

use crate::clock::{At, Clock, MS};
use crate::plan::WorkerPlan;
use crate::random::Random;
use crate::world::event::{Event, Process};
use crate::world::net::ConnId;
use crate::world::{World, note};

pub(crate) use habit::steps_in;
pub(crate) use links::Link;
pub(crate) use task::Task;

pub struct Worker {
    pub(crate) name: String,
    pub(crate) shape: WorkerPlan,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// `None` while no process runs.
    pub(crate) live: Option<Live>,
    /// The way to each server; none while no process runs.
    pub(crate) links: BTreeMap<usize, Link>,
    last_link: u32,
    pub(crate) frozen: At,
    /// Dialling is of no use before this.
    pub(crate) unreachable: At,
    /// Until when what it is told takes so much longer.
    pub(crate) hears_late: (At, u64),
    /// How long it is down when it has drained.
    rests_us: u64,
    /// When it was last frozen, or will have been.
    pub(crate) thawed: At,
}

pub struct Live {
    pub(crate) process: Process,
    pub(crate) id: ProcessId,
    pub(crate) session: Session,
    pub(crate) tasks: BTreeMap<Attempt, Task>,
    wake: u64,
}

impl Worker {
    pub fn new(index: usize, shape: WorkerPlan, random: Random) -> Self {
        Self {
            name: format!("worker-{index}"),
            clock: shape.clock.clone(),
            shape,
            random,
            live: None,
            links: BTreeMap::new(),
            last_link: 0,
            frozen: At(0),
            unreachable: At(0),
            hears_late: (At(0), 0),
            rests_us: 0,
            thawed: At(0),
        }
    }

    pub(crate) fn freeze(&mut self, until: At) {
        self.frozen = self.frozen.max(until);
        self.thawed = self.thawed.max(until);
    }

    /// The present process, if it is this one.
    pub(crate) fn live(&mut self, process: Process) -> Option<&mut Live> {
        self.live.as_mut().filter(|live| live.process == process)
    }

    fn config(&self, index: usize, id: ProcessId) -> Config {
        let handlers: BTreeSet<String> = self.shape.handlers.iter().cloned().collect();
        Config {
            host: format!("worker-host-{index}"),
            exec: self.shape.exec,
            http: false,
            handlers,
            ..Config::new(self.name.clone(), id, self.shape.capacity)
        }
    }
}

impl World {
    pub(crate) fn start_worker(&mut self, index: usize) {
        if self.workers[index].live.is_some() {
            return;
        }
        if self.weather.outage > self.at {
            return self.push(self.weather.outage, Event::StartWorker { worker: index });
        }
        let process = Process(self.number());
        let id = ProcessId(self.random.draw());
        let servers = self.servers.len();
        let worker = &mut self.workers[index];
        worker.begin_links(servers);
        worker.live = Some(Live {
            process,
            id,
            session: Session::new(worker.config(index, id)),
            tasks: BTreeMap::new(),
            wake: 0,
        });
        note!(self, "worker {index} starts as process {:016x}", id.0);
        self.dial_all(index, process);
    }

    pub(crate) fn wake(&mut self, worker: usize, process: Process, token: u64) {
        let current = self.workers[worker].live(process);
        if current.is_some_and(|live| live.wake == token) {
            self.serve(worker, process);
        }
    }

    /// One turn of the worker's loop: time, actions, messages.
    pub(crate) fn serve(&mut self, worker: usize, process: Process) {
        let now = self.workers[worker].clock.now(self.at);
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        live.session.handle_timeout(now.mono);
        loop {
            let Some(live) = self.workers[worker].live(process) else {
                return;
            };
            let Some(action) = live.session.poll_action() else {
                break;
            };
            self.act_on(worker, process, action);
        }
        self.transmit(worker, process);
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        if live.session.is_done() {
            self.end_process(worker);
            return;
        }
        if let Some(at) = live.session.poll_timeout() {
            self.wake_worker_at(worker, process, at);
        }
    }

    fn wake_worker_at(&mut self, worker: usize, process: Process, mono: MonoMs) {
        let at = self.workers[worker].clock.when(mono).max(self.at.plus(20));
        let token = self.number();
        if let Some(live) = self.workers[worker].live(process) {
            live.wake = token;
        }
        self.push(
            at,
            Event::Wake {
                worker,
                process,
                token,
            },
        );
    }

    fn transmit(&mut self, worker: usize, process: Process) {
        for conn in self.workers[worker].conns().collect::<Vec<_>>() {
            self.transmit_on(worker, process, conn);
        }
        self.check_granted(worker);
    }

    fn transmit_on(&mut self, worker: usize, process: Process, id: ConnId) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let (server, link) = (conn.server, conn.link);
        let node = &mut self.workers[worker];
        let now = node.clock.now(self.at);
        let Some(live) = node.live(process) else {
            return;
        };
        let mut messages = Vec::new();
        while let Some(message) = live.session.poll_transmit(now, link) {
            conn.ledger.said(&message);
            messages.push(message);
        }
        if messages.is_empty() {
            return;
        }
        if let Some(link) = node.links.get_mut(&server) {
            link.remember_said(&messages);
        }
        for message in &messages {
            self.check_said(worker, message);
        }
        self.send_up(id, messages);
    }

    fn act_on(&mut self, worker: usize, process: Process, action: Action) {
        match action {
            Action::Start { assign, deadline } => {
                self.begin_task(worker, process, &assign, deadline);
            }
            Action::Extend { attempts, deadline } => {
                self.extend_tasks(worker, process, &attempts, deadline);
            }
            Action::Stop { attempt, reason } => self.stop_task(worker, process, attempt, reason),
            Action::Abort { attempt } => self.abort_task(worker, process, attempt),
            Action::CheckpointSettled {
                attempt,
                number,
                kept: true,
            } => self.check_saved(attempt.run_id(), number),
            Action::LogRoom { .. } | Action::CheckpointSettled { .. } => {}
            Action::Disconnect {
                link,
                reason,
                again,
            } => self.let_stream_go(worker, process, link, (&reason, again)),
        }
    }

    /// The process has nothing left to do and ends; another follows.
    fn end_process(&mut self, worker: usize) {
        let rest = self.workers[worker].rests_us.max(50 * MS);
        note!(self, "worker {worker} has left");
        self.close_streams(worker);
        self.kill_worker(worker, rest);
    }

    /// The process dies, and everything that it ran.
    pub(crate) fn kill_worker(&mut self, worker: usize, down_us: u64) {
        self.push(self.at.plus(down_us), Event::StartWorker { worker });
        let node = &mut self.workers[worker];
        node.frozen = At(0);
        let Some(live) = node.live.take() else {
            return;
        };
        note!(self, "worker {worker} ends with {} tasks", live.tasks.len());
        self.drop_streams(worker);
    }

    pub(crate) fn drain_worker(&mut self, worker: usize, within_us: u64, down_us: u64) {
        let now = self.workers[worker].clock.mono(self.at);
        self.workers[worker].rests_us = down_us;
        let Some(live) = &mut self.workers[worker].live else {
            return;
        };
        let process = live.process;
        live.session.drain(now, now.plus(within_us / MS));
        self.serve(worker, process);
    }
}

/// Whether a second copy on the same stream must change nothing.
fn may_come_twice(message: &wire::ServerMessage) -> bool {
    use wire::server_message::Body as Down;
    let body = message.body.as_ref();
    body.is_some_and(|body| {
        matches!(
            body,
            Down::Assign(_)
                | Down::Renew(_)
                | Down::Cancel(_)
                | Down::FinishAck(_)
                | Down::CheckpointAck(_)
        )
    })
}
