//! A server: the real engine, driven as the driver does it.
//!
//! ```text
//! down ──start──► booting: joins, then reads ──► ready ──reset──► booting
//!   ▲                                             │ ▲
//!   └──────────────────leaves, dies───────────────┘ └── its share changes (`moving`)
//! ```
//!
//! A server that is alone takes everything on an embedded store; several on one store each keep their share, by the
//! driver's own looks and plans.
//!
//! The loop follows the driver's rules: one commit in flight, the identical set again when no answer came, effects after
//! their commit, loads tagged with the last acknowledged commit, a command that needs rows steps again when they are
//! there. What another process or machine would do (the store, the network) is the world's.

mod commit;
mod life;
mod moving;
mod perform;
mod reading;
mod streams;

use std::panic::{AssertUnwindSafe, catch_unwind};

use drumtower_core::engine;
use drumtower_core::model::Member;
use drumtower_server::driver::boot;
use drumtower_store::Error;

use crate::clock::{At, Clock, MS, SECOND};
use crate::plan::ServerPlan;
use crate::world::event::{Event, Life, Side};
use crate::world::{World, note};

pub(crate) use life::{Loop, Work};

pub struct Server {
    pub(crate) clock: Clock,
    pub(crate) options: engine::Options,
    pub(crate) phase: Phase,
    pub(crate) frozen: At,
    /// It does not reach the store before this.
    pub(crate) storeless: At,
    /// No worker reaches it before this.
    pub(crate) unreachable: At,
    /// After so many more effects it dies, and is down for so long.
    pub(crate) dies_after: Option<(u32, u64)>,
    /// What the last life of this process believed of the wall clock.
    believed_offset: Option<i64>,
    streams: u64,
    tickets: u64,
}

pub enum Phase {
    Down,
    Booting(Life),
    Ready(Box<Loop>),
}

impl Server {
    pub fn new(plan: &ServerPlan) -> Self {
        Self {
            clock: plan.clock.clone(),
            options: plan.options.clone(),
            phase: Phase::Down,
            frozen: At(0),
            storeless: At(0),
            unreachable: At(0),
            dies_after: None,
            believed_offset: None,
            streams: 0,
            tickets: 0,
        }
    }

    /// The loop of this life, if it is still the present one.
    pub(crate) fn live(&mut self, life: Life) -> Option<&mut Loop> {
        match &mut self.phase {
            Phase::Ready(live) if live.life == life => Some(live),
            _ => None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }
}

/// Runs a piece of the engine; a broken invariant is told in words.
pub(crate) fn guarded<T>(piece: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(piece)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic without words".to_owned())
    })
}

impl World {
    /// Several servers on one store.
    pub(crate) fn is_cluster(&self) -> bool {
        self.servers.len() > 1
    }

    pub(crate) fn start_server(&mut self, server: usize) {
        if !matches!(self.servers[server].phase, Phase::Down) {
            return;
        }
        if self.weather.outage > self.at {
            return self.push(self.weather.outage, Event::StartServer { server });
        }
        self.servers[server].believed_offset = None;
        if !self.plan.terms.is_empty() {
            self.servers[server].options.terms = *self.random.pick(&self.plan.terms);
        }
        self.begin_life(server, 0);
    }

    pub(crate) fn begin_life(&mut self, server: usize, after_us: u64) {
        let life = Life(self.number());
        self.servers[server].phase = Phase::Booting(life);
        let at = self.at.plus(after_us + self.random.skewed(100, 20 * MS));
        self.push(at, Event::Join { server, life });
    }

    fn is_booting(&self, server: usize, life: Life) -> bool {
        matches!(self.servers[server].phase, Phase::Booting(booting) if booting == life)
    }

    fn member(&self, server: usize) -> Member {
        let alone = Member::alone(&self.servers[server].options.server.0);
        Member {
            address: self.is_cluster().then(|| address(server)),
            lease_ms: self.servers[server].options.terms.lease_ms,
            ..alone
        }
    }

    pub(crate) fn join(&mut self, server: usize, life: Life) {
        if !self.is_booting(server, life) {
            return;
        }
        if self.servers[server].storeless > self.at {
            let pause = self.random.between(50 * MS, 2 * SECOND);
            return self.begin_life(server, pause);
        }
        let (member, extend_ms) = (self.member(server), self.servers[server].options.session_ms);
        let (store, reader) = (&mut self.store, &self.reader);
        let took = match self.servers.len() {
            1 => boot::take(&member, extend_ms, store, reader),
            // Nothing else happens meanwhile in a world, so there is nothing to pause for.
            _ => boot::join(&member, extend_ms, store, reader, || ()),
        };
        match took {
            Ok(taken) => {
                note!(
                    self,
                    "server {server} begins session {} with {:?}",
                    taken.session.0,
                    taken.segments
                );
                self.check_joined(server, &taken);
                self.begin_reading(server, life, taken);
            }
            Err(Error::Busy(why)) if self.is_cluster() => {
                note!(self, "server {server} cannot join: {why}");
                let pause = self.random.between(50 * MS, 2 * SECOND);
                self.begin_life(server, pause);
            }
            Err(error) => {
                let words = format!("a session did not begin: {error}");
                self.checks.find("boot", words);
            }
        }
    }

    /// The process dies: nothing is told to anyone.
    pub(crate) fn crash_server(&mut self, server: usize, down_us: u64) {
        if matches!(self.servers[server].phase, Phase::Down) {
            return;
        }
        note!(self, "server {server} dies");
        let node = &mut self.servers[server];
        let phase = std::mem::replace(&mut node.phase, Phase::Down);
        node.frozen = At(0);
        node.dies_after = None;
        if let Phase::Ready(live) = phase {
            for call in live.calls() {
                self.connection_lost(call);
            }
        }
        for conn in self.conns_of_server(server) {
            self.drop_side(conn, Side::Server);
        }
        self.push(self.at.plus(down_us), Event::StartServer { server });
    }

    /// Whether all are ready and have nothing in their hands.
    pub(crate) fn is_quiet(&self) -> bool {
        let quiet = |server: &Server| match &server.phase {
            Phase::Ready(live) => live.is_quiet(),
            _ => false,
        };
        self.servers.iter().all(quiet)
    }
}

/// Where a server of a cluster is reached.
pub(crate) fn address(server: usize) -> String {
    format!("http://server-{server}:7070")
}
