//! Keeps the share of a server while it works, as the driver does: it looks around, finishes what it has begun, moves segments in
//! one commit, and goes on with an engine for what it owns then. Whoever leaves gives everything up.

use std::sync::Arc;

use drumtower_core::engine::{Boot, Engine, Input, Legacy, Transfer};
use drumtower_core::model::{Now, SessionId};
use drumtower_server::driver::boot::Taken;
use drumtower_server::driver::shares::{LOOK_EVERY, Look};

use super::commit::{Cargo, Flight};
use super::{Phase, guarded};
use crate::client::Said;
use crate::clock::{MS, SECOND};
use crate::world::event::{Event, Life};
use crate::world::{World, note};

impl World {
    /// Looks around now and then, if there is anybody to look for.
    pub(super) fn look_around(&mut self, server: usize, life: Life, now: Now) {
        let is_cluster = self.is_cluster();
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let rests = live.looked_at.is_some_and(|at| now.mono < at);
        if !is_cluster || live.looking || rests || live.stopping.is_some() {
            return;
        }
        live.looking = true;
        live.looked_at = Some(now.mono.plus(LOOK_EVERY.as_millis() as u64));
        let look = Event::Look {
            server,
            life,
            session: live.engine.session(),
            engine: live.engines,
            known: live.definitions,
        };
        let most = self.load_us();
        let at = self.at.plus(self.random.skewed(50, most));
        self.push(at, look);
    }

    pub(crate) fn look(
        &mut self,
        (server, life): (usize, Life),
        session: SessionId,
        engine: u64,
        known: Option<u64>,
    ) {
        let now = self.servers[server].clock.now(self.at);
        let (look, most) = match self.servers[server].storeless > self.at {
            true => (None, 2 * SECOND),
            false => {
                let look = Look::around(&self.reader, session, known, &|| now);
                (look.ok(), 2 * MS)
            }
        };
        let at = self.at.plus(self.random.skewed(50, most));
        let look = look.map(Box::new);
        self.push(
            at,
            Event::Looked {
                server,
                life,
                engine,
                look,
            },
        );
    }

    pub(crate) fn looked(
        &mut self,
        server: usize,
        life: Life,
        engine: u64,
        look: Option<Box<Look>>,
    ) {
        if let Some(live) = self.servers[server].live(life) {
            live.looking = false;
            live.seen = look.map(|look| (engine, look));
            self.wake_server(server);
        }
    }

    pub(super) fn take_look(&mut self, server: usize, life: Life, now: Now) -> Result<(), String> {
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        // While segments are to move nothing is stepped; the next look shows the same.
        let seen = live.seen.take().filter(|_| live.change.is_none());
        let Some((engine, look)) = seen else {
            return Ok(());
        };
        live.definitions = Some(look.definitions);
        // What was seen before segments moved says nothing of what is left to move.
        if !look.plan.is_nothing() && engine == live.engines {
            live.change = Some(look.plan);
        }
        let drains = look.drains.map(Input::Drains);
        let settings = look.settings.map(Input::Settings);
        for input in drains.into_iter().chain(settings) {
            self.step(server, life, now, input)?;
        }
        Ok(())
    }

    /// Commits what was decided and decides nothing more; then segments move.
    pub(super) fn finish_engine(
        &mut self,
        server: usize,
        life: Life,
        now: Now,
    ) -> Result<(), String> {
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        if live.flight.is_some() {
            return Ok(());
        }
        let engine = &mut live.engine;
        if let Some(batch) = guarded(move || engine.take_last_batch(now))? {
            self.send(server, life, batch);
        }
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        if live.flight.is_some() || live.stopping.is_some() {
            return Ok(());
        }
        if let Some(change) = live.change.take() {
            self.change_share(server, life, change)?;
        }
        Ok(())
    }

    fn change_share(
        &mut self,
        server: usize,
        life: Life,
        mut change: Transfer,
    ) -> Result<(), String> {
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        let engine = &live.engine;
        engine.keep_tied(&mut change);
        if change.is_nothing() {
            return Ok(());
        }
        let changes = guarded(|| engine.moves(&change))?;
        let taken = Taken {
            session: changes.session,
            seq: changes.seq,
            segments: live.engine.owns_after(&change),
        };
        note!(
            self,
            "server {server} moves segments in commit {}: {} come, {:?} go, {:?} are revoked",
            changes.seq,
            change.take.len(),
            change.give,
            change.revoke
        );
        let cargo = Cargo::Move(Box::new((change, taken)));
        self.submit_first(server, life, Flight::new(changes, Vec::new(), cargo));
        Ok(())
    }

    /// Segments have moved: what no store has goes to the next engine, which reads the rest.
    pub(super) fn share_changed(
        &mut self,
        server: usize,
        life: Life,
        change: &Transfer,
        taken: Taken,
    ) {
        self.cover("move");
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let engine = &mut live.engine;
        let legacy = match guarded(move || engine.bequeath(&change.give)) {
            Ok(legacy) => legacy,
            Err(why) => return self.checks.find("panic", why),
        };
        let waiting: Vec<_> = legacy
            .waiting
            .iter()
            .filter_map(|ticket| live.tickets.remove(ticket))
            .collect();
        live.legacy = Some(Box::new(legacy));
        for call in waiting {
            self.answer(call, Said::NotReady);
        }
        self.begin_reading(server, life, taken);
    }

    pub(super) fn succeed(&mut self, server: usize, life: Life, boot: Boot, legacy: Box<Legacy>) {
        let node = &mut self.servers[server];
        let (now, options) = (node.clock.now(self.at), node.options.clone());
        let Some(live) = node.live(life) else { return };
        let boot = Boot {
            believed_offset: Some(live.engine.believed_offset()),
            ..boot
        };
        match guarded(move || Engine::succeed(options, now, boot, *legacy)) {
            Ok(engine) => {
                live.change = engine.strays();
                live.engine = engine;
                live.engines += 1;
                note!(self, "server {server} goes on with its share");
                self.wake_server(server);
            }
            Err(why) => self.checks.find("panic", format!("at succession: {why}")),
        }
    }

    /// Somebody wants the process to stop; it is started again later.
    pub(crate) fn stop_server(&mut self, server: usize, down_us: u64) {
        match &mut self.servers[server].phase {
            Phase::Down => {}
            Phase::Booting(_) => self.crash_server(server, down_us),
            Phase::Ready(live) => {
                live.stopping.get_or_insert(down_us);
                self.wake_server(server);
            }
        }
    }

    /// Nothing is in flight any more: it gives its segments up and ends.
    pub(super) fn leave_in_order(&mut self, server: usize, life: Life) -> Result<(), String> {
        let is_cluster = self.is_cluster();
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        let Some(down_us) = live.stopping.filter(|_| live.is_free()) else {
            return Ok(());
        };
        note!(self, "server {server} leaves");
        self.cover("leave");
        let Phase::Ready(live) = std::mem::replace(&mut self.servers[server].phase, Phase::Down)
        else {
            return Ok(());
        };
        self.send_away(server, *live, is_cluster, "the server is stopping")?;
        let node = &mut self.servers[server];
        node.believed_offset = None;
        node.dies_after = None;
        self.push(self.at.plus(down_us), Event::StartServer { server });
        Ok(())
    }

    fn send_away(
        &mut self,
        server: usize,
        mut live: super::Loop,
        leaves: bool,
        why: &str,
    ) -> Result<(), String> {
        let life = live.life;
        for call in live.calls() {
            self.answer(call, Said::NotReady);
        }
        for conn in live.take_conns() {
            self.close_stream(conn, why, true);
        }
        // Those who have not said hello.
        for conn in self.conns_of_server(server) {
            self.close_stream(conn, why, true);
        }
        if leaves {
            let engine = live.engine;
            let changes = guarded(move || engine.leave())?;
            self.submit_last(server, life, Arc::new(changes));
        }
        Ok(())
    }
}
