//! Streams between workers and servers: ordered and reliable until they break.
//!
//! A stream may be cut in one direction: what is under way in it is lost, and so is what follows, until either side
//! notices and lets go. Nothing is repeated or reordered within a stream; across streams of one worker everything is.

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::LinkId;

use super::World;
use super::event::{Event, Life, Process, Side};
use crate::check::Ledger;
use crate::clock::{At, MS, SECOND};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// One stream, from the moment a worker dials.
#[derive(Debug)]
pub struct Conn {
    pub worker: usize,
    pub process: Process,
    pub server: usize,
    /// The session's name for the way to that server.
    pub link: LinkId,
    /// The life of the server's loop that opened it; `None` before the hello.
    pub life: Option<Life>,
    /// The engine's name for it.
    pub stream: Option<drumtower_core::engine::StreamId>,
    /// The worker's number of it.
    pub number: u64,
    /// The credit that was given on it.
    pub ledger: Ledger,
    pub up: Way,
    pub down: Way,
    /// The server has let go of it.
    pub server_gone: bool,
    pub worker_gone: bool,
}

/// One direction.
#[derive(Debug, Default)]
pub struct Way {
    cut: bool,
    /// When the last message arrives: the next does not overtake it.
    last: At,
}

impl Conn {
    /// Whether everything arrives on both sides.
    pub(crate) fn is_whole(&self) -> bool {
        !self.up.cut && !self.down.cut
    }
}

impl World {
    pub(crate) fn latency(&mut self) -> u64 {
        let most = if self.at < self.weather.slow_network.0 {
            self.weather.slow_network.1
        } else {
            self.plan.latency_us
        };
        self.random.skewed(50, most.max(100))
    }

    fn arrival(&mut self, conn: ConnId, side: Side) -> Option<At> {
        let mut at = self.at.plus(self.latency());
        let conn = self.conns.get_mut(&conn)?;
        let (until, latency) = self.workers[conn.worker].hears_late;
        if side == Side::Worker && self.at < until {
            at = at.plus(latency);
        }
        let way = match side {
            Side::Server => &mut conn.up,
            Side::Worker => &mut conn.down,
        };
        if way.cut {
            return None;
        }
        way.last = way.last.max(at);
        Some(way.last)
    }

    pub(crate) fn send_up(&mut self, conn: ConnId, messages: Vec<wire::WorkerMessage>) {
        if let Some(at) = self.arrival(conn, Side::Server) {
            self.push(at, Event::Up { conn, messages });
        }
    }

    pub(crate) fn send_down(&mut self, conn: ConnId, body: wire::server_message::Body) {
        let message = Box::new(wire::ServerMessage { body: Some(body) });
        if let Some(at) = self.arrival(conn, Side::Worker) {
            self.push(at, Event::Down { conn, message });
        }
    }

    /// Whether a message that arrives now still counts: what was under way in a cut direction is lost.
    pub(crate) fn arrives(&self, conn: ConnId, side: Side) -> bool {
        self.conns.get(&conn).is_some_and(|conn| match side {
            Side::Server => !conn.up.cut && !conn.server_gone,
            Side::Worker => !conn.down.cut && !conn.worker_gone,
        })
    }

    /// Cuts a stream; each side that is listed notices after so long.
    pub(crate) fn cut(&mut self, id: ConnId, up: bool, down: bool, noticed: [u64; 2]) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.up.cut |= up;
        conn.down.cut |= down;
        let [server, worker] = noticed;
        self.push(self.at.plus(server), Event::GoneUp { conn: id });
        self.push(self.at.plus(worker), Event::GoneDown { conn: id });
    }

    /// One side has ended the stream in good order: the other reads what was sent before, then its end.
    pub(crate) fn close_from(&mut self, id: ConnId, side: Side) {
        let other = match side {
            Side::Server => Side::Worker,
            Side::Worker => Side::Server,
        };
        let at = self.arrival(id, other);
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        // A direction that was cut before is noticed sooner or later.
        let at = at.unwrap_or(self.at.plus(5 * SECOND));
        match side {
            Side::Server => {
                conn.server_gone = true;
                self.push(at.plus(1), Event::GoneDown { conn: id });
            }
            Side::Worker => {
                conn.worker_gone = true;
                self.push(at.plus(1), Event::GoneUp { conn: id });
            }
        }
        self.forget(id);
    }

    /// Drops what both sides have let go of.
    pub(crate) fn forget(&mut self, id: ConnId) {
        if self
            .conns
            .get(&id)
            .is_some_and(|conn| conn.server_gone && conn.worker_gone)
        {
            self.conns.remove(&id);
        }
    }

    /// The machine of one side has died or its process was killed: nothing more leaves it, and the other side learns it
    /// at once by a reset, or only by silence.
    pub(crate) fn drop_side(&mut self, id: ConnId, side: Side) {
        let silent = self.random.chance(300);
        let wait = if silent {
            self.random.between(SECOND, 20 * SECOND)
        } else {
            self.random.between(MS, 200 * MS)
        };
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.up.cut = true;
        conn.down.cut = true;
        match side {
            Side::Server => {
                conn.server_gone = true;
                self.push(self.at.plus(wait), Event::GoneDown { conn: id });
            }
            Side::Worker => {
                conn.worker_gone = true;
                self.push(self.at.plus(wait), Event::GoneUp { conn: id });
            }
        }
        self.forget(id);
    }
}
