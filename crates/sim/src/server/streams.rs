//! The server's side of workers' streams: from the protocol's words to the engine's.

use drumtower_core::engine::{StreamId, WorkerEvent};
use drumtower_core::model::NamespaceName;
use drumtower_proto::worker::v1 as wire;
use drumtower_server::grpc::greeting;
use drumtower_server::grpc::incoming::{self, Incoming};
use wire::server_message::Body;

use super::{Phase, Work};
use crate::world::event::{Event, Side};
use crate::world::net::ConnId;
use crate::world::{World, note};

impl World {
    /// A worker calls. A process that is there accepts; whether it wants the worker is said after the hello.
    pub(crate) fn dialled(&mut self, conn: ConnId) {
        let Some(held) = self.conns.get(&conn) else {
            return;
        };
        let accepted = !matches!(self.servers[held.server].phase, Phase::Down);
        let at = self.at.plus(self.latency());
        self.push(at, Event::Opened { conn, accepted });
    }

    pub(crate) fn up(&mut self, conn: ConnId, messages: Vec<wire::WorkerMessage>) {
        if !self.arrives(conn, Side::Server) {
            return;
        }
        for message in messages {
            let incoming = match incoming::read(message) {
                Ok(incoming) => incoming,
                Err(violation) => {
                    self.checks.find("protocol", violation.to_string());
                    return;
                }
            };
            match incoming {
                Incoming::Hello(hello) => self.hello(conn, hello),
                Incoming::Event(event) => self.heard(conn, event),
                Incoming::Finished(finished, _) => {
                    self.heard(conn, WorkerEvent::Finished(finished));
                }
                Incoming::Log(_) | Incoming::Unknown => {}
            }
        }
    }

    fn hello(&mut self, id: ConnId, hello: wire::Hello) {
        let Some(conn) = self.conns.get(&id) else {
            return;
        };
        let (server, worker) = (conn.server, conn.worker);
        if !self.servers[server].is_ready() {
            self.close_stream(id, "not ready", true);
            return;
        }
        let scope = self.workers[worker].shape.namespace.as_deref();
        let scope = scope.and_then(|name| NamespaceName::new(name).ok());
        let hello = match greeting::read(hello, scope) {
            Ok((hello, _)) => hello,
            Err(reason) => {
                self.checks.find("protocol", reason);
                return;
            }
        };
        self.servers[server].streams += 1;
        let stream = StreamId(self.servers[server].streams);
        let Phase::Ready(live) = &mut self.servers[server].phase else {
            return;
        };
        if live.stopping.is_some() {
            self.close_stream(id, "the server is stopping", true);
            return;
        }
        let life = live.life;
        live.queue.push_back(Work::Open(stream, id));
        live.queue
            .push_back(Work::Event(stream, WorkerEvent::Connected(hello)));
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.stream = Some(stream);
            conn.life = Some(life);
        }
        self.cover("connect");
        self.wake_server(server);
    }

    fn heard(&mut self, conn: ConnId, event: WorkerEvent) {
        let Some(held) = self.conns.get(&conn) else {
            return;
        };
        let (Some(stream), Some(life)) = (held.stream, held.life) else {
            return;
        };
        let server = held.server;
        let deed = match &event {
            WorkerEvent::Heartbeat(_) => Some("heartbeat"),
            WorkerEvent::Started { .. } => Some("started"),
            WorkerEvent::Finished(end) if end.verdict.is_some() => Some("verdict"),
            WorkerEvent::Finished(_) => Some("finished"),
            WorkerEvent::Progress { .. } => Some("progress"),
            WorkerEvent::Checkpoint { .. } => Some("checkpoint"),
            WorkerEvent::Refused { .. } => Some("refused"),
            WorkerEvent::Goodbye => Some("goodbye"),
            WorkerEvent::Disconnected => Some("disconnect"),
            _ => None,
        };
        let present = self.servers[server].live(life);
        let Some(live) = present.filter(|live| live.stopping.is_none()) else {
            return;
        };
        live.queue.push_back(Work::Event(stream, event));
        if let Some(deed) = deed {
            self.cover(deed);
        }
        self.wake_server(server);
    }

    /// The server ends a stream and says why.
    pub(super) fn close_stream(&mut self, conn: ConnId, reason: &str, again: bool) {
        let reason = reason.to_owned();
        self.send_down(conn, Body::Close(wire::Close { reason, again }));
        self.close_from(conn, Side::Server);
    }

    /// The server notices that a stream is gone.
    pub(crate) fn gone_up(&mut self, conn: ConnId) {
        let open = self.conns.get(&conn).is_some_and(|held| !held.server_gone);
        if !open {
            return;
        }
        note!(self, "server notices that stream {} is gone", conn.0);
        self.heard(conn, WorkerEvent::Disconnected);
        let both = self.let_go(conn, Side::Server);
        debug_assert!(both, "it was open");
        // The worker learns of it too: its own side of the connection is reset.
        if self.arrives(conn, Side::Worker) {
            let at = self.at.plus(self.latency());
            self.push(at, Event::GoneDown { conn });
        }
    }
}
