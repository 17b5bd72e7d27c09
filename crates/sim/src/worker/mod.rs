//! A worker: the real session of the SDK, with tasks that only take time.
//!
//! A process dials, serves and ends: by a kill, by draining, or because the server sends it away. Another process follows
//! it, with another id. Commands run under a supervisor that kills them when their lease ends, even while the worker is
//! frozen; handlers run inside the worker and freeze with it.

mod habit;
mod task;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use drumtower_core::model::{MonoMs, ProcessId};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, Attempt, Config, Session};
use wire::worker_message::Body;

use crate::clock::{At, Clock, MS, SECOND};
use crate::plan::WorkerPlan;
use crate::random::Random;
use crate::world::event::{Event, Process, Side};
use crate::world::net::{Conn, ConnId, Way};
use crate::world::{World, note};

pub(crate) use habit::steps_in;
pub(crate) use task::Task;

/// Words on a stream, either way, that may be said again.
const REMEMBERED: usize = 8;

pub struct Worker {
    pub(crate) name: String,
    pub(crate) shape: WorkerPlan,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// `None` while no process runs.
    pub(crate) live: Option<Live>,
    pub(crate) conn: Option<ConnId>,
    pub(crate) frozen: At,
    /// Dialling is of no use before this.
    pub(crate) unreachable: At,
    /// Until when what it is told takes so much longer.
    pub(crate) hears_late: (At, u64),
    failures: u32,
    next_server: usize,
    /// How long it is down when it has drained.
    rests_us: u64,
    said: VecDeque<wire::WorkerMessage>,
    /// What it was told on its present stream.
    heard: VecDeque<wire::ServerMessage>,
    /// When it was last frozen, or will have been.
    pub(crate) thawed: At,
}

pub struct Live {
    pub(crate) process: Process,
    pub(crate) id: ProcessId,
    pub(crate) session: Session,
    pub(crate) tasks: BTreeMap<Attempt, Task>,
    wake: u64,
    stream: u64,
}

impl Worker {
    pub fn new(index: usize, shape: WorkerPlan, random: Random) -> Self {
        Self {
            name: format!("worker-{index}"),
            clock: shape.clock.clone(),
            shape,
            random,
            live: None,
            conn: None,
            frozen: At(0),
            unreachable: At(0),
            hears_late: (At(0), 0),
            failures: 0,
            next_server: 0,
            rests_us: 0,
            said: VecDeque::new(),
            heard: VecDeque::new(),
            thawed: At(0),
        }
    }

    pub(crate) fn freeze(&mut self, until: At) {
        self.frozen = self.frozen.max(until);
        self.thawed = self.thawed.max(until);
    }

    pub(crate) fn is_connected(&self) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.session.is_connected())
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
        let worker = &mut self.workers[index];
        worker.failures = 0;
        worker.said.clear();
        worker.live = Some(Live {
            process,
            id,
            session: Session::new(worker.config(index, id)),
            tasks: BTreeMap::new(),
            wake: 0,
            stream: 0,
        });
        note!(self, "worker {index} starts as process {:016x}", id.0);
        let worker = index;
        self.push(self.at, Event::Dial { worker, process });
    }

    pub(crate) fn dial(&mut self, worker: usize, process: Process) {
        let servers = self.servers.len();
        let node = &mut self.workers[worker];
        let idle = node.conn.is_none();
        let Some(_) = node.live(process).filter(|_| idle) else {
            return;
        };
        let server = node.next_server % servers;
        node.next_server += 1;
        let reachable = node.unreachable <= self.at;
        let id = ConnId(self.number());
        self.conns.insert(
            id,
            Conn {
                worker,
                process,
                server,
                life: None,
                stream: None,
                number: 0,
                up: Way::default(),
                down: Way::default(),
                server_gone: false,
                worker_gone: false,
            },
        );
        self.workers[worker].conn = Some(id);
        note!(
            self,
            "worker {worker} dials server {server}: stream {}",
            id.0
        );
        if reachable {
            let at = self.at.plus(self.latency());
            self.push(at, Event::Dialled { conn: id });
        } else {
            let accepted = false;
            let at = self.at.plus(3 * SECOND);
            self.push(at, Event::Opened { conn: id, accepted });
        }
    }

    pub(crate) fn opened(&mut self, id: ConnId, accepted: bool) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let (worker, process) = (conn.worker, conn.process);
        // A worker that has given the call up does not wait for its answer.
        if conn.worker_gone || self.workers[worker].conn != Some(id) {
            return;
        }
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        if !accepted {
            self.conns.remove(&id);
            self.workers[worker].conn = None;
            self.dial_again(worker, process);
            return;
        }
        live.stream = live.session.stream_opened();
        conn.number = live.stream;
        self.workers[worker].heard.clear();
        self.serve(worker, process);
    }

    /// Waits before it dials again: twice as long each time.
    fn dial_again(&mut self, worker: usize, process: Process) {
        let node = &mut self.workers[worker];
        let step = ((100 * MS) << node.failures.min(6)).min(5 * SECOND);
        node.failures += 1;
        let wait = step / 2 + node.random.below(step / 2 + 1);
        self.push(self.at.plus(wait), Event::Dial { worker, process });
    }

    pub(crate) fn down(&mut self, id: ConnId, message: wire::ServerMessage) {
        if !self.arrives(id, Side::Worker) {
            return;
        }
        let Some(conn) = self.conns.get(&id) else {
            return;
        };
        let (worker, process, number) = (conn.worker, conn.process, conn.number);
        let now = self.workers[worker].clock.now(self.at);
        let node = &mut self.workers[worker];
        if node.conn == Some(id) && may_come_twice(&message) {
            node.heard.push_back(message.clone());
            if node.heard.len() > REMEMBERED {
                node.heard.pop_front();
            }
        }
        let Some(live) = node.live(process) else {
            return;
        };
        live.session.handle(now, number, message);
        if live.session.is_connected() {
            node.failures = 0;
        }
        self.serve(worker, process);
    }

    /// The worker notices that a stream is gone.
    pub(crate) fn gone_down(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(&id).filter(|conn| !conn.worker_gone) else {
            return;
        };
        let (worker, process, number) = (conn.worker, conn.process, conn.number);
        self.let_go(id, Side::Worker);
        if self.conns.contains_key(&id) {
            // The server reads the end of the stream, if it has not noticed before.
            let at = self.at.plus(self.latency());
            self.push(at, Event::GoneUp { conn: id });
        }
        if self.workers[worker].conn != Some(id) {
            return;
        }
        self.workers[worker].conn = None;
        let Some(live) = self.workers[worker].live(process) else {
            return;
        };
        note!(self, "worker {worker} notices that stream {} is gone", id.0);
        live.session.stream_lost(number);
        self.dial_again(worker, process);
        self.serve(worker, process);
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
        let now = self.workers[worker].clock.now(self.at);
        let node = &mut self.workers[worker];
        let Some(conn) = node.conn else { return };
        let Some(live) = node.live(process) else {
            return;
        };
        let mut messages = Vec::new();
        while let Some(message) = live.session.poll_transmit(now) {
            messages.push(message);
        }
        if messages.is_empty() {
            return;
        }
        let names_attempt = |message: &&wire::WorkerMessage| {
            let body = message.body.as_ref();
            body.is_some_and(|body| {
                matches!(
                    body,
                    Body::Started(_)
                        | Body::Finished(_)
                        | Body::Refused(_)
                        | Body::Progress(_)
                        | Body::Checkpoint(_)
                        | Body::Heartbeat(_)
                )
            })
        };
        node.said
            .extend(messages.iter().filter(names_attempt).cloned());
        let excess = node.said.len().saturating_sub(REMEMBERED);
        node.said.drain(..excess);
        for message in &messages {
            self.check_said(worker, message);
        }
        self.send_up(conn, messages);
    }

    fn act_on(&mut self, worker: usize, process: Process, action: Action) {
        match action {
            Action::Start { assign, deadline } => {
                self.begin_task(worker, process, &assign, deadline);
            }
            Action::Extend { deadline } => self.extend_tasks(worker, process, deadline),
            Action::Stop { attempt, reason } => self.stop_task(worker, process, attempt, reason),
            Action::Abort { attempt } => self.abort_task(worker, process, attempt),
            Action::CheckpointSettled {
                attempt,
                number,
                kept: true,
            } => self.check_saved(attempt.run_id(), number),
            Action::LogRoom { .. } | Action::CheckpointSettled { .. } => {}
            Action::Disconnect { reason, again } => {
                self.let_stream_go(worker, process, &reason, again)
            }
        }
    }

    fn let_stream_go(&mut self, worker: usize, process: Process, reason: &str, again: bool) {
        note!(self, "worker {worker} lets its stream go: {reason}");
        self.check_disconnect(worker, reason, again);
        if let Some(conn) = self.workers[worker].conn.take() {
            self.close_from(conn, Side::Worker);
        }
        if again {
            self.dial_again(worker, process);
        }
    }

    /// The process has nothing left to do and ends; another follows.
    fn end_process(&mut self, worker: usize) {
        let rest = self.workers[worker].rests_us.max(50 * MS);
        note!(self, "worker {worker} has left");
        // What it said last arrives.
        if let Some(conn) = self.workers[worker].conn.take() {
            self.close_from(conn, Side::Worker);
        }
        self.kill_worker(worker, rest);
    }

    /// The process dies, and everything that it ran.
    pub(crate) fn kill_worker(&mut self, worker: usize, down_us: u64) {
        self.push(self.at.plus(down_us), Event::StartWorker { worker });
        let node = &mut self.workers[worker];
        node.frozen = At(0);
        let conn = node.conn.take();
        let Some(live) = node.live.take() else {
            return;
        };
        note!(self, "worker {worker} ends with {} tasks", live.tasks.len());
        if let Some(conn) = conn {
            self.drop_side(conn, Side::Worker);
        }
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

    /// Someone between the two repeats what was said before.
    pub(crate) fn repeat_words(&mut self, worker: usize) {
        let node = &mut self.workers[worker];
        let count = node.said.len() as u64;
        let (Some(conn), true) = (node.conn, node.is_connected() && count > 0) else {
            return;
        };
        let index = node.random.below(count) as usize;
        let message = node.said[index].clone();
        note!(self, "words of worker {worker} are repeated");
        self.send_up(conn, vec![message]);
    }

    /// The same the other way: what the worker heard on this stream comes again.
    pub(crate) fn repeat_heard(&mut self, worker: usize) {
        let node = &mut self.workers[worker];
        let count = node.heard.len() as u64;
        let (Some(conn), true) = (node.conn, node.is_connected() && count > 0) else {
            return;
        };
        let index = node.random.below(count) as usize;
        let body = node.heard[index].body.clone();
        note!(self, "words to worker {worker} are repeated");
        if let Some(body) = body {
            self.send_down(conn, body);
        }
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
