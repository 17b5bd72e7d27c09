//! A worker's way to each server: it dials all of them, keeps one stream to each that answers, and dials again when it is gone.

use std::collections::VecDeque;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::LinkId;

use super::{Worker, may_come_twice};
use crate::check::Ledger;
use crate::clock::{MS, SECOND};
use crate::world::event::{Event, Process, Side};
use crate::world::net::{Conn, ConnId, Way};
use crate::world::{World, note};

/// Words on a stream, either way, that may be said again.
const REMEMBERED: usize = 8;

/// The way to one server.
pub struct Link {
    /// The session's name for it.
    pub(super) id: LinkId,
    pub(crate) conn: Option<ConnId>,
    failures: u32,
    said: VecDeque<wire::WorkerMessage>,
    /// What it was told on its present stream.
    heard: VecDeque<wire::ServerMessage>,
}

impl Link {
    pub(super) fn new(id: LinkId) -> Self {
        Self {
            id,
            conn: None,
            failures: 0,
            said: VecDeque::new(),
            heard: VecDeque::new(),
        }
    }

    pub(super) fn remember_said(&mut self, messages: &[wire::WorkerMessage]) {
        self.said
            .extend(messages.iter().filter(|it| names_attempt(it)).cloned());
        let excess = self.said.len().saturating_sub(REMEMBERED);
        self.said.drain(..excess);
    }

    fn remember_heard(&mut self, message: &wire::ServerMessage) {
        if may_come_twice(message) {
            self.heard.push_back(message.clone());
            let excess = self.heard.len().saturating_sub(REMEMBERED);
            self.heard.drain(..excess);
        }
    }
}

fn names_attempt(message: &wire::WorkerMessage) -> bool {
    use wire::worker_message::Body;
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
}

impl Worker {
    /// Whether the server has welcomed it on a stream that is open.
    pub(crate) fn is_connected_to(&self, server: usize) -> bool {
        let Some(link) = self.links.get(&server).filter(|link| link.conn.is_some()) else {
            return false;
        };
        let live = self.live.as_ref();
        live.is_some_and(|live| live.session.is_connected_on(link.id))
    }

    pub(crate) fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.links.values().filter_map(|link| link.conn)
    }

    /// The server of a link.
    pub(super) fn server_of(&self, id: LinkId) -> Option<usize> {
        let found = self.links.iter().find(|(_, link)| link.id == id);
        found.map(|(server, _)| *server)
    }

    fn fresh_link(&mut self) -> LinkId {
        self.last_link += 1;
        LinkId(self.last_link)
    }

    /// Links of a process that has just begun.
    pub(super) fn begin_links(&mut self, servers: usize) {
        for server in 0..servers {
            let link = Link::new(self.fresh_link());
            self.links.insert(server, link);
        }
    }
}

impl World {
    pub(crate) fn dial(&mut self, worker: usize, process: Process, server: usize) {
        let node = &mut self.workers[worker];
        let reachable = node.unreachable.max(self.servers[server].unreachable) <= self.at;
        let alive = node.live(process).is_some();
        let idle = node.links.get(&server).filter(|it| it.conn.is_none());
        let Some(link) = idle.filter(|_| alive).map(|link| link.id) else {
            return;
        };
        let id = ConnId(self.number());
        self.conns.insert(
            id,
            Conn {
                worker,
                process,
                server,
                link,
                life: None,
                stream: None,
                number: 0,
                ledger: Ledger::default(),
                up: Way::default(),
                down: Way::default(),
                server_gone: false,
                worker_gone: false,
            },
        );
        if let Some(link) = self.workers[worker].links.get_mut(&server) {
            link.conn = Some(id);
        }
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

    /// The link of a stream, if it is the present one of its process.
    fn link_of(&mut self, id: ConnId) -> Option<(usize, Process, usize)> {
        let conn = self.conns.get(&id)?;
        let (worker, process, server) = (conn.worker, conn.process, conn.server);
        let node = &mut self.workers[worker];
        let present = node.links.get(&server)?.conn == Some(id);
        (present && node.live(process).is_some()).then_some((worker, process, server))
    }

    pub(crate) fn opened(&mut self, id: ConnId, accepted: bool) {
        // A worker that has given the call up does not wait for its answer.
        if self.conns.get(&id).is_none_or(|conn| conn.worker_gone) {
            return;
        }
        let Some((worker, process, server)) = self.link_of(id) else {
            return;
        };
        if !accepted {
            self.conns.remove(&id);
            self.not_there(worker, process, server);
            self.dial_again(worker, process, server);
            return;
        }
        let node = &mut self.workers[worker];
        let Some(link) = node.links.get_mut(&server) else {
            return;
        };
        link.heard.clear();
        let link = link.id;
        let Some(live) = node.live(process) else {
            return;
        };
        let number = live.session.stream_opened(link);
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.number = number;
        }
        self.serve(worker, process);
    }

    /// Nobody answers: now and then the server is taken for gone, and is another one when it is back.
    fn not_there(&mut self, worker: usize, process: Process, server: usize) {
        let node = &mut self.workers[worker];
        let forgets = self.servers.len() > 1 && node.random.chance(300);
        let fresh = forgets.then(|| node.fresh_link());
        let Some(link) = node.links.get_mut(&server) else {
            return;
        };
        link.conn = None;
        let gone = link.id;
        if let Some(fresh) = fresh {
            let failures = link.failures;
            *link = Link::new(fresh);
            link.failures = failures;
            if let Some(live) = node.live(process) {
                live.session.link_gone(gone);
            }
        }
    }

    /// Waits before it dials again: twice as long each time.
    pub(super) fn dial_again(&mut self, worker: usize, process: Process, server: usize) {
        let node = &mut self.workers[worker];
        let Some(link) = node.links.get_mut(&server) else {
            return;
        };
        let step = ((100 * MS) << link.failures.min(6)).min(5 * SECOND);
        link.failures += 1;
        let wait = step / 2 + node.random.below(step / 2 + 1);
        self.push(
            self.at.plus(wait),
            Event::Dial {
                worker,
                process,
                server,
            },
        );
    }

    pub(crate) fn down(&mut self, id: ConnId, message: wire::ServerMessage) {
        if !self.arrives(id, Side::Worker) {
            return;
        }
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.ledger.heard(&message);
        let (worker, process, number) = (conn.worker, conn.process, conn.number);
        let (server, link) = (conn.server, conn.link);
        let now = self.workers[worker].clock.now(self.at);
        let node = &mut self.workers[worker];
        let present = node.links.get_mut(&server);
        if let Some(present) = present.filter(|it| it.conn == Some(id)) {
            present.remember_heard(&message);
        }
        let Some(live) = node.live(process) else {
            return;
        };
        live.session.handle(now, link, number, message);
        if node.is_connected_to(server)
            && let Some(link) = node.links.get_mut(&server)
        {
            link.failures = 0;
        }
        self.serve(worker, process);
    }

    /// The worker notices that a stream is gone.
    pub(crate) fn gone_down(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(&id).filter(|conn| !conn.worker_gone) else {
            return;
        };
        let (link, number) = (conn.link, conn.number);
        let present = self.link_of(id);
        self.let_go(id, Side::Worker);
        if self.conns.contains_key(&id) {
            // The server reads the end of the stream, if it has not noticed before.
            let at = self.at.plus(self.latency());
            self.push(at, Event::GoneUp { conn: id });
        }
        let Some((worker, process, server)) = present else {
            return;
        };
        note!(self, "worker {worker} notices that stream {} is gone", id.0);
        let node = &mut self.workers[worker];
        if let Some(link) = node.links.get_mut(&server) {
            link.conn = None;
        }
        if let Some(live) = node.live(process) {
            live.session.stream_lost(link, number);
        }
        self.dial_again(worker, process, server);
        self.serve(worker, process);
    }

    pub(super) fn let_stream_go(
        &mut self,
        worker: usize,
        process: Process,
        link: LinkId,
        (reason, again): (&str, bool),
    ) {
        note!(self, "worker {worker} lets a stream go, {link:?}: {reason}");
        self.check_disconnect(worker, reason, again);
        let node = &mut self.workers[worker];
        let Some(server) = node.server_of(link) else {
            return;
        };
        let conn = node.links.get_mut(&server).and_then(|it| it.conn.take());
        if let Some(conn) = conn {
            self.close_from(conn, Side::Worker);
        }
        if again {
            self.dial_again(worker, process, server);
        }
    }

    /// Every stream is given up; what was said last arrives.
    pub(super) fn close_streams(&mut self, worker: usize) {
        for conn in self.take_conns(worker) {
            self.close_from(conn, Side::Worker);
        }
    }

    pub(super) fn drop_streams(&mut self, worker: usize) {
        for conn in self.take_conns(worker) {
            self.drop_side(conn, Side::Worker);
        }
        self.workers[worker].links.clear();
    }

    fn take_conns(&mut self, worker: usize) -> Vec<ConnId> {
        let links = self.workers[worker].links.values_mut();
        links.filter_map(|link| link.conn.take()).collect()
    }

    /// Dials everybody, the first at once.
    pub(super) fn dial_all(&mut self, worker: usize, process: Process) {
        let servers = self.servers.len();
        let first = self.workers[worker].random.below(servers as u64) as usize;
        for server in 0..servers {
            let at = match server == first {
                true => self.at,
                false => self.at.plus(self.workers[worker].random.below(SECOND)),
            };
            self.push(
                at,
                Event::Dial {
                    worker,
                    process,
                    server,
                },
            );
        }
    }

    /// A stream of a worker that something happens to.
    pub(crate) fn any_conn(&mut self, worker: usize) -> Option<ConnId> {
        let node = &mut self.workers[worker];
        let conns: Vec<ConnId> = node.conns().collect();
        match conns.len() {
            0 => None,
            1 => Some(conns[0]),
            _ => Some(*node.random.pick(&conns)),
        }
    }

    /// Someone between the two repeats what was said before.
    pub(crate) fn repeat_words(&mut self, worker: usize) {
        let Some((conn, server)) = self.welcomed_conn(worker) else {
            return;
        };
        let node = &mut self.workers[worker];
        let said = node.links.get(&server).map_or(0, |it| it.said.len());
        if said == 0 {
            return;
        }
        let index = node.random.below(said as u64) as usize;
        let message = node.links.get(&server).map(|it| it.said[index].clone());
        note!(self, "words of worker {worker} are repeated");
        self.send_up(conn, message.into_iter().collect());
    }

    /// The same the other way: what the worker heard on this stream comes again.
    pub(crate) fn repeat_heard(&mut self, worker: usize) {
        let Some((conn, server)) = self.welcomed_conn(worker) else {
            return;
        };
        let node = &mut self.workers[worker];
        let heard = node.links.get(&server).map_or(0, |it| it.heard.len());
        if heard == 0 {
            return;
        }
        let index = node.random.below(heard as u64) as usize;
        let message = node.links.get(&server).map(|it| it.heard[index].clone());
        note!(self, "words to worker {worker} are repeated");
        if let Some(body) = message.and_then(|it| it.body) {
            self.send_down(conn, body);
        }
    }

    fn welcomed_conn(&mut self, worker: usize) -> Option<(ConnId, usize)> {
        let conn = self.any_conn(worker)?;
        let server = self.conns.get(&conn)?.server;
        let welcomed = self.workers[worker].is_connected_to(server);
        welcomed.then_some((conn, server))
    }

    /// Cuts the streams of a worker, or one of them; where both sides are cut, all.
    pub(crate) fn cut_all_of(&mut self, worker: usize, noticed: [u64; 2]) {
        let conns: Vec<ConnId> = self.workers[worker].conns().collect();
        for conn in conns {
            self.cut(conn, true, true, noticed);
        }
    }
}
