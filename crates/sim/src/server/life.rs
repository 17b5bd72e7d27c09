//! One life of the loop: what came is stepped, what was decided is committed, what is committed is told.

use std::collections::{BTreeMap, VecDeque};

use drumtower_core::engine::{
    Command, Effect, Engine, Input, Legacy, LoadRequest, Loaded, Step, StreamId, Ticket, Transfer,
    WorkerEvent,
};
use drumtower_core::model::{Actor, MonoMs, Now};
use drumtower_server::driver::load::load;
use drumtower_server::driver::shares::Look;

use super::commit::Flight;
use super::{Phase, guarded};
use crate::client::{CallId, Said};
use crate::clock::{At, MS, SECOND};
use crate::world::event::{Event, Life};
use crate::world::net::ConnId;
use crate::world::{World, note};

/// The longest that the engine is not told the time.
const LONGEST_SLEEP_MS: u64 = 1_000;

pub struct Loop {
    pub(crate) life: Life,
    pub(crate) engine: Engine,
    pub(super) queue: VecDeque<Work>,
    pub(super) flight: Option<Flight>,
    /// Answers of loads that wait for room in a batch.
    parked_loads: VecDeque<LoadAnswer>,
    pub(super) streams: BTreeMap<StreamId, ConnId>,
    pub(super) tickets: BTreeMap<Ticket, CallId>,
    waiting: usize,
    loading: usize,
    ticked: MonoMs,
    /// The turn that counts.
    turn: u64,
    turn_at: At,
    /// Which of this life's engines this one is.
    pub(super) engines: u64,
    /// What is to move as soon as nothing is in flight.
    pub(super) change: Option<Transfer>,
    /// Segments have moved, and what is owned is being read.
    pub(super) legacy: Option<Box<Legacy>>,
    /// A look is under way.
    pub(super) looking: bool,
    /// When it looks again.
    pub(super) looked_at: Option<MonoMs>,
    /// What a look brought, and the engine that looked.
    pub(super) seen: Option<(u64, Box<Look>)>,
    /// How often tokens, settings and drains had changed at the last look.
    pub(super) definitions: Option<u64>,
    /// It is to end, and stay down for so long.
    pub(super) stopping: Option<u64>,
}

/// What was read for an engine, and the command that waits for it.
struct LoadAnswer {
    engine: u64,
    loaded: Result<Box<Loaded>, &'static str>,
    waiting: Option<Box<Input>>,
}

/// What came and was not stepped yet.
pub enum Work {
    Command {
        call: CallId,
        actor: Actor,
        command: Command,
    },
    Open(StreamId, ConnId),
    Event(StreamId, WorkerEvent),
    Again(Box<Input>),
    /// Nobody waits for the answer; whoever asked for a lock under this name does not ask again.
    Gone(Ticket, Option<String>),
}

impl Loop {
    pub(super) fn new(life: Life, engine: Engine) -> Self {
        Self {
            life,
            change: engine.strays(),
            engine,
            queue: VecDeque::new(),
            flight: None,
            parked_loads: VecDeque::new(),
            streams: BTreeMap::new(),
            tickets: BTreeMap::new(),
            waiting: 0,
            loading: 0,
            ticked: MonoMs::default(),
            turn: 0,
            turn_at: At(u64::MAX),
            engines: 0,
            legacy: None,
            looking: false,
            looked_at: None,
            seen: None,
            definitions: None,
            stopping: None,
        }
    }

    /// Whether segments are moving: nothing is stepped.
    pub(crate) fn is_moving(&self) -> bool {
        let moves = |flight: &Flight| flight.moves();
        self.legacy.is_some() || self.flight.as_ref().is_some_and(moves)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether it could end just now.
    pub(super) fn is_free(&self) -> bool {
        self.flight.is_none() && self.legacy.is_none()
    }

    pub(super) fn take_conns(&mut self) -> Vec<ConnId> {
        let opening = self.queue.iter().filter_map(|work| match work {
            Work::Open(_, conn) => Some(*conn),
            _ => None,
        });
        let opening: Vec<ConnId> = opening.collect();
        let open = std::mem::take(&mut self.streams).into_values();
        opening.into_iter().chain(open).collect()
    }

    /// Callers who wait for an answer.
    pub(super) fn calls(&self) -> Vec<CallId> {
        let queued = self.queue.iter().filter_map(|work| match work {
            Work::Command { call, .. } => Some(*call),
            _ => None,
        });
        queued.chain(self.tickets.values().copied()).collect()
    }

    pub(crate) fn take_command(&mut self, work: Work) {
        self.queue.push_back(work);
    }

    pub(super) fn is_quiet(&self) -> bool {
        let still = self.is_free() && self.change.is_none() && self.stopping.is_none();
        still && self.queue.is_empty() && self.tickets.is_empty()
    }
}

impl World {
    /// Something came: the loop turns soon.
    pub(crate) fn wake_server(&mut self, server: usize) {
        let soon = self.at.plus(self.random.skewed(1, 400));
        self.turn_server_at(server, soon);
    }

    fn turn_server_at(&mut self, server: usize, at: At) {
        let token = self.number();
        let Phase::Ready(live) = &mut self.servers[server].phase else {
            return;
        };
        if live.turn_at <= at && live.turn_at >= self.at {
            return;
        }
        live.turn = token;
        live.turn_at = at;
        let life = live.life;
        self.push(
            at,
            Event::Turn {
                server,
                life,
                token,
            },
        );
    }

    pub(crate) fn turn(&mut self, server: usize, life: Life, token: u64) {
        let current = self.servers[server].live(life);
        let Some(live) = current.filter(|live| live.turn == token) else {
            return;
        };
        live.turn_at = At(u64::MAX);
        if let Err(why) = self.turn_once(server, life) {
            self.checks.find("panic", why);
            return;
        }
        if let Err(why) = self.leave_in_order(server, life) {
            self.checks.find("panic", why);
            return;
        }
        self.sleep(server, life);
    }

    /// As the driver's turn: time, work, batch, loads, until there is nothing to do.
    fn turn_once(&mut self, server: usize, life: Life) -> Result<(), String> {
        loop {
            let now = self.servers[server].clock.now(self.at);
            match self.servers[server].live(life) {
                Some(live) if !live.is_moving() => {}
                _ => return Ok(()),
            }
            self.take_look(server, life, now)?;
            let Some(live) = self.servers[server].live(life) else {
                return Ok(());
            };
            if live.change.is_some() {
                return self.finish_engine(server, life, now);
            }
            self.look_around(server, life, now);
            let Some(live) = self.servers[server].live(life) else {
                return Ok(());
            };
            let wake = live.engine.next_wakeup(now);
            let slept = now.mono.0.saturating_sub(live.ticked.0) >= LONGEST_SLEEP_MS;
            if wake.is_some_and(|at| at <= now.mono) || slept {
                live.ticked = now.mono;
                self.step(server, life, now, Input::Tick)?;
            }
            self.work(server, life, now)?;
            let sent = self.send_batch(server, life, now)?;
            let Some(live) = self.servers[server].live(life) else {
                return Ok(());
            };
            let wanted = live.engine.take_loads();
            for request in wanted {
                self.start_load(server, life, request, None);
            }
            let Some(live) = self.servers[server].live(life) else {
                return Ok(());
            };
            let none = live.queue.is_empty() && live.parked_loads.is_empty();
            if (none || live.engine.is_full()) && !sent {
                return Ok(());
            }
        }
    }

    /// Nothing wakes a loop whose batch is full but the end of the commit in flight.
    fn sleep(&mut self, server: usize, life: Life) {
        let now = self.servers[server].clock.now(self.at);
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        let full = live.engine.is_full() || live.change.is_some();
        if full && live.flight.is_some() || live.is_moving() {
            return;
        }
        let longest = now.mono.plus(LONGEST_SLEEP_MS);
        let wake = live.engine.next_wakeup(now).unwrap_or(longest).min(longest);
        let look = live.looked_at.filter(|_| !live.looking);
        let wake = look.map_or(wake, |look| look.min(wake));
        let at = self.servers[server].clock.when(wake);
        let at = at.max(self.at.plus(50));
        self.turn_server_at(server, at);
    }

    pub(super) fn step(
        &mut self,
        server: usize,
        life: Life,
        now: Now,
        input: Input,
    ) -> Result<(), String> {
        let Some(live) = self.servers[server].live(life) else {
            return Ok(());
        };
        let engine = &mut live.engine;
        match guarded(move || engine.step(now, input))? {
            Step::Done => {}
            Step::Need { request, input } => {
                live.waiting += 1;
                self.start_load(server, life, request, Some(input));
            }
        }
        Ok(())
    }

    fn work(&mut self, server: usize, life: Life, now: Now) -> Result<(), String> {
        loop {
            let Some(live) = self.servers[server].live(life) else {
                return Ok(());
            };
            if live.engine.is_full() {
                return Ok(());
            }
            if let Some(answer) = live.parked_loads.pop_front() {
                self.take_loaded(server, life, now, answer)?;
                continue;
            }
            let Some(work) = live.queue.pop_front() else {
                return Ok(());
            };
            match work {
                Work::Again(input) => self.step(server, life, now, *input)?,
                Work::Gone(ticket, owner) => {
                    let flight = live.flight.as_ref().map(|flight| flight.seq);
                    self.step(server, life, now, Input::CallerGone(ticket))?;
                    self.checks.caller_gone(owner, flight);
                }
                Work::Open(stream, conn) => {
                    live.streams.insert(stream, conn);
                }
                Work::Event(stream, event) => {
                    let closed = matches!(event, WorkerEvent::Disconnected | WorkerEvent::Goodbye);
                    self.step(server, life, now, Input::Worker { stream, event })?;
                    if closed && let Some(live) = self.servers[server].live(life) {
                        live.streams.remove(&stream);
                    }
                }
                Work::Command {
                    call,
                    actor,
                    command,
                } => {
                    self.servers[server].tickets += 1;
                    let ticket = Ticket(self.servers[server].tickets);
                    if let Some(live) = self.servers[server].live(life) {
                        live.tickets.insert(ticket, call);
                    }
                    let input = Input::Command {
                        ticket,
                        actor,
                        command,
                    };
                    self.step(server, life, now, input)?;
                }
            }
        }
    }

    /// A caller is gone. One that was answered, or whose request has not been stepped, is not missed.
    pub(crate) fn hung_up(&mut self, server: usize, call: CallId, owner: Option<String>) {
        let Phase::Ready(live) = &mut self.servers[server].phase else {
            return;
        };
        let ticket = live.tickets.iter().find(|(_, it)| **it == call);
        if let Some(ticket) = ticket.map(|(ticket, _)| *ticket) {
            live.tickets.remove(&ticket);
            live.queue.push_back(Work::Gone(ticket, owner));
            self.wake_server(server);
        }
    }

    fn start_load(
        &mut self,
        server: usize,
        life: Life,
        request: LoadRequest,
        waiting: Option<Box<Input>>,
    ) {
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        live.loading += 1;
        let engine = live.engines;
        let most = self.load_us();
        let at = self.at.plus(self.random.skewed(50, most));
        self.push(
            at,
            Event::Read {
                server,
                life,
                engine,
                request,
                waiting,
            },
        );
    }

    pub(super) fn load_us(&self) -> u64 {
        if self.at < self.weather.slow_loads {
            6 * SECOND
        } else {
            2 * MS
        }
    }

    /// The store reads; what it found may be old by the time it arrives.
    pub(crate) fn read(
        &mut self,
        (server, life, engine): (usize, Life, u64),
        request: &LoadRequest,
        waiting: Option<Box<Input>>,
    ) {
        let failed = std::mem::take(&mut self.weather.load_error);
        let cut = self.servers[server].storeless > self.at;
        let loaded = match load(&self.reader, request) {
            _ if failed || cut => Err("the store could not be read"),
            Ok(loaded) => loaded.map(Box::new).ok_or("another server took over"),
            Err(error) => {
                self.checks
                    .find("load", format!("the store could not be read: {error}"));
                return;
            }
        };
        let most = if cut { 3 * SECOND } else { self.load_us() };
        let at = self.at.plus(self.random.skewed(50, most));
        self.push(
            at,
            Event::Loaded {
                server,
                life,
                engine,
                loaded,
                waiting,
            },
        );
    }

    pub(crate) fn loaded(
        &mut self,
        (server, life, engine): (usize, Life, u64),
        loaded: Result<Box<Loaded>, &'static str>,
        waiting: Option<Box<Input>>,
    ) {
        let Some(live) = self.servers[server].live(life) else {
            return;
        };
        live.loading -= 1;
        live.parked_loads.push_back(LoadAnswer {
            engine,
            loaded,
            waiting,
        });
        self.cover("load");
        self.wake_server(server);
    }

    /// What an engine before this one asked for is not known here: the command asks again.
    fn take_loaded(
        &mut self,
        server: usize,
        life: Life,
        now: Now,
        answer: LoadAnswer,
    ) -> Result<(), String> {
        let engine = self.servers[server].live(life).map(|live| live.engines);
        if engine == Some(answer.engine) {
            match answer.loaded {
                Ok(loaded) => self.step(server, life, now, Input::Loaded(*loaded))?,
                Err(why) => {
                    self.reset(server, why);
                    return Ok(());
                }
            }
        }
        if let (Some(input), Some(live)) = (answer.waiting, self.servers[server].live(life)) {
            live.waiting -= 1;
            live.queue.push_front(Work::Again(input));
        }
        Ok(())
    }

    /// All state is dropped and read anew; callers are told what is known, workers dial again.
    pub(crate) fn reset(&mut self, server: usize, why: &str) {
        note!(self, "server {server} starts anew: {why}");
        let node = &mut self.servers[server];
        let Phase::Ready(mut live) = std::mem::replace(&mut node.phase, Phase::Down) else {
            return;
        };
        node.believed_offset = Some(live.engine.believed_offset());
        if let Some(flight) = live.flight.take() {
            for effect in flight.effects {
                if let Effect::Reply { ticket, .. } = effect
                    && let Some(call) = live.tickets.remove(&ticket)
                {
                    self.answer(call, Said::Unknown);
                }
            }
        }
        for call in live.calls() {
            self.answer(call, Said::NotReady);
        }
        let open = live.take_conns();
        for conn in open {
            self.close_stream(conn, "starting anew", true);
        }
        if let Some(down_us) = live.stopping {
            return self.push(self.at.plus(down_us), Event::StartServer { server });
        }
        let pause = self.random.between(50 * MS, 2 * SECOND);
        self.begin_life(server, pause);
    }
}
