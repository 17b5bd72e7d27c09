//! Reads what a server owns, however long it takes, without losing its session meanwhile: when a life begins, and when its share
//! has changed.

use drumtower_core::engine::{Boot, Engine, take_over};
use drumtower_server::driver::boot::{self, Taken};
use drumtower_store::{Commit, Store};

use super::{Loop, Phase, guarded};
use crate::clock::{MS, SECOND};
use crate::world::event::{Event, Life};
use crate::world::{World, note};

impl World {
    pub(super) fn begin_reading(&mut self, server: usize, life: Life, taken: Taken) {
        let most = match self.at < self.weather.slow_loads {
            true => 3 * SECOND,
            false => 20 * MS,
        };
        let left_us = self.random.skewed(100, most);
        self.go_on_reading(server, life, taken, left_us);
    }

    fn go_on_reading(&mut self, server: usize, life: Life, taken: Taken, left_us: u64) {
        let session_us = self.servers[server].options.session_ms.unsigned_abs() * MS;
        let hop = left_us.min(session_us / 3);
        let read = Event::ReadBoot {
            server,
            life,
            taken,
            left_us: left_us - hop,
        };
        self.push(self.at.plus(hop), read);
    }

    /// Whether this life waits for what is being read.
    fn reads(&self, server: usize, life: Life) -> bool {
        match &self.servers[server].phase {
            Phase::Booting(booting) => *booting == life,
            Phase::Ready(live) => live.life == life && live.legacy.is_some(),
            Phase::Down => false,
        }
    }

    pub(crate) fn read_boot(&mut self, server: usize, life: Life, taken: Taken, left_us: u64) {
        if !self.reads(server, life) {
            return;
        }
        if self.servers[server].storeless > self.at {
            return self.reading_failed(server, "the store cannot be reached");
        }
        if left_us > 0 {
            return match self.renew_while_reading(server, taken) {
                Some(taken) => self.go_on_reading(server, life, taken, left_us),
                None => self.reading_failed(server, "another server took the segments"),
            };
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

    fn renew_while_reading(&mut self, server: usize, taken: Taken) -> Option<Taken> {
        if !self.is_cluster() {
            return Some(taken);
        }
        let extend_ms = self.servers[server].options.session_ms;
        let seq = taken.seq + 1;
        let renewal = take_over(taken.session, seq, extend_ms, Vec::new(), Vec::new());
        match self.store.commit(&renewal) {
            Ok(Commit::Done) => {
                self.check_commit(&renewal);
                Some(Taken { seq, ..taken })
            }
            _ => None,
        }
    }

    fn reading_failed(&mut self, server: usize, why: &str) {
        if matches!(self.servers[server].phase, Phase::Ready(_)) {
            return self.reset(server, why);
        }
        note!(self, "server {server} could not read: {why}");
        let pause = self.random.between(50 * MS, 2 * SECOND);
        self.begin_life(server, pause);
    }

    pub(crate) fn booted(&mut self, server: usize, life: Life, boot: Boot) {
        if !self.reads(server, life) {
            return;
        }
        if let Phase::Ready(live) = &mut self.servers[server].phase {
            if let Some(legacy) = live.legacy.take() {
                self.succeed(server, life, boot, legacy);
            }
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
}
