//! A server: the real engine, driven as the driver does it.
//!
//! ```text
//! down ──start──► booting ──take-over, then read──► ready ──reset──► booting, or standing by when another owns
//! ```
//!
//! The loop follows the driver's rules: one commit in flight, the identical set again when no answer came, effects after
//! their commit, loads tagged with the last acknowledged commit, a command that needs rows steps again when they are
//! there. What another process or machine would do (the store, the network) is the world's.

mod commit;
mod life;
mod perform;
mod streams;

use std::panic::{AssertUnwindSafe, catch_unwind};

use drumtower_core::engine::{self, Boot, Engine};
use drumtower_core::model::Member;
use drumtower_server::driver::boot::{self, Taken};

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
    /// After so many more effects it dies, and is down for so long.
    pub(crate) dies_after: Option<(u32, u64)>,
    /// What the last life of this process believed of the wall clock.
    believed_offset: Option<i64>,
    streams: u64,
    tickets: u64,
}

pub enum Phase {
    Down,
    Standby,
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
    /// A process is started: it boots if it is the one that should.
    pub(crate) fn start_server(&mut self, server: usize) {
        if !matches!(self.servers[server].phase, Phase::Down) {
            return;
        }
        if self.weather.outage > self.at {
            return self.push(self.weather.outage, Event::StartServer { server });
        }
        self.servers[server].believed_offset = None;
        self.begin_life(server, 0);
    }

    pub(crate) fn begin_life(&mut self, server: usize, after_us: u64) {
        if self.owner != server {
            self.servers[server].phase = Phase::Standby;
            note!(self, "server {server} stands by");
            return;
        }
        let life = Life(self.number());
        self.servers[server].phase = Phase::Booting(life);
        let at = self.at.plus(after_us + self.random.skewed(100, 20 * MS));
        self.push(at, Event::TakeOver { server, life });
    }

    fn is_booting(&self, server: usize, life: Life) -> bool {
        matches!(self.servers[server].phase, Phase::Booting(booting) if booting == life)
    }

    pub(crate) fn take_over(&mut self, server: usize, life: Life) {
        if !self.is_booting(server, life) {
            return;
        }
        let options = &self.servers[server].options;
        let member = Member::alone(&options.server.0);
        let took = boot::take(&member, options.session_ms, &mut self.store, &self.reader);
        let taken = match took {
            Ok(taken) => taken,
            Err(error) => {
                self.checks
                    .find("boot", format!("a take-over did not go through: {error}"));
                return;
            }
        };
        note!(
            self,
            "server {server} takes over as session {}",
            taken.session.0
        );
        self.checks.taken_over(taken.session);
        let most = if self.at < self.weather.slow_loads {
            3 * SECOND
        } else {
            20 * MS
        };
        let at = self.at.plus(self.random.skewed(100, most));
        self.push(
            at,
            Event::ReadBoot {
                server,
                life,
                taken,
            },
        );
    }

    pub(crate) fn read_boot(&mut self, server: usize, life: Life, taken: Taken) {
        if !self.is_booting(server, life) {
            return;
        }
        match boot::read(&self.reader, taken) {
            Ok(boot) => {
                let at = self.at.plus(self.random.skewed(100, 20 * MS));
                let boot = Box::new(boot);
                self.push(at, Event::Booted { server, life, boot });
            }
            Err(error) => self
                .checks
                .find("boot", format!("the store could not be read: {error}")),
        }
    }

    pub(crate) fn booted(&mut self, server: usize, life: Life, boot: Boot) {
        if !self.is_booting(server, life) {
            return;
        }
        self.cover("boot");
        let node = &mut self.servers[server];
        let now = node.clock.now(self.at);
        let boot = Boot {
            believed_offset: node.believed_offset,
            ..boot
        };
        let options = node.options.clone();
        match guarded(move || Engine::boot(options, now, boot)) {
            Ok(engine) => {
                note!(self, "server {server} is ready");
                self.servers[server].phase = Phase::Ready(Box::new(Loop::new(life, engine)));
                self.wake_server(server);
            }
            Err(why) => self.checks.find("panic", format!("at boot: {why}")),
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
        // Whoever is meant to own comes back; sometimes the other takes its place instead.
        if self.owner == server && self.servers.len() > 1 && self.random.chance(400) {
            self.elect_another();
        }
        self.push(self.at.plus(down_us), Event::StartServer { server });
    }

    /// Another server is to own the segments, whatever the present owner thinks.
    pub(crate) fn elect_another(&mut self) {
        let others = self.servers.len() as u64;
        self.owner = (self.owner + 1) % others as usize;
        let server = self.owner;
        note!(self, "server {server} is elected");
        match self.servers[server].phase {
            Phase::Standby => self.begin_life(server, 0),
            // The only one there is takes over from itself.
            Phase::Ready(_) if others == 1 => self.reset(server, "elected anew"),
            Phase::Down | Phase::Booting(_) | Phase::Ready(_) => {}
        }
    }

    /// Whether it is ready and has nothing in its hands.
    pub(crate) fn is_quiet(&self, server: usize) -> bool {
        match &self.servers[server].phase {
            Phase::Ready(live) => live.is_quiet(),
            _ => false,
        }
    }
}
