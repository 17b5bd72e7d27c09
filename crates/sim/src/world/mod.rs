//! One world: its nodes, its network, its store, and the queue of what is going to happen.
//!
//! Everything runs in one thread and in virtual time; the only source of chance is the seed. Where a node is frozen, what
//! would happen there waits, and its clocks go on.

pub mod event;
pub mod net;
mod troubles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use drumtower_core::model::WallMs;
use drumtower_store::memory::{Memory, Reader};

use crate::check::Checks;
use crate::client::{Call, CallId, Client};
use crate::clock::{At, Clock};
use crate::coverage::Coverage;
use crate::plan::Plan;
use crate::random::Random;
use crate::server::Server;
use crate::trace::Trace;
use crate::worker::Worker;
use event::{Event, Place, Side};
use net::{Conn, ConnId};
use troubles::Weather;

pub struct World {
    pub(crate) at: At,
    queue: BTreeMap<(At, u64), Event>,
    pushed: u64,
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    pub(crate) store: Memory,
    pub(crate) reader: Reader,
    /// What the clock of the store shows.
    store_wall: Arc<AtomicI64>,
    pub(crate) store_clock: Clock,
    pub(crate) servers: Vec<Server>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) clients: Vec<Client>,
    pub(crate) calls: BTreeMap<CallId, Call>,
    /// Draws names that are never used twice: lives, processes, streams, calls.
    numbers: u64,
    pub(crate) weather: Weather,
    pub(crate) calm: bool,
    pub(crate) checks: Checks,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Trace,
    happened: u64,
    done: bool,
}

/// Far more than happens in the busiest world.
const MOST_EVENTS: u64 = 5_000_000;

macro_rules! note {
    ($world:expr, $($words:tt)*) => {
        $world.trace.note($world.at, format_args!($($words)*))
    };
}
pub(crate) use note;

impl World {
    pub fn new(seed: u64, keep_trace: bool) -> Self {
        let mut random = Random::new(seed);
        let plan = Plan::draw(&mut random);
        let store_clock = plan.store_clock.clone();
        let begins = store_clock.now(At(0)).wall;
        let store_wall = Arc::new(AtomicI64::new(begins.0));
        let read = Arc::clone(&store_wall);
        let store = Memory::with_clock(Arc::new(move || WallMs(read.load(Ordering::Relaxed))));
        let store = match plan.servers.len() {
            1 => store,
            _ => store.share(),
        };
        let reader = store.reader();
        let servers = plan.servers.iter().map(Server::new).collect();
        let workers = plan
            .workers
            .iter()
            .enumerate()
            .map(|(index, shape)| Worker::new(index, shape.clone(), random.fork()))
            .collect();
        let clients = (0..plan.clients)
            .map(|_| Client::new(random.fork()))
            .collect();
        let mut world = Self {
            at: At(0),
            queue: BTreeMap::new(),
            pushed: 0,
            random,
            store,
            reader,
            store_wall,
            store_clock,
            servers,
            workers,
            conns: BTreeMap::new(),
            clients,
            calls: BTreeMap::new(),
            numbers: 0,
            weather: Weather::default(),
            calm: false,
            checks: Checks::default(),
            coverage: Coverage::default(),
            trace: Trace::new(keep_trace),
            happened: 0,
            done: false,
            plan,
        };
        world.begin(seed);
        world
    }

    fn begin(&mut self, seed: u64) {
        note!(
            self,
            "seed {seed}: {:?}, {} servers, {} workers, {} jobs, calm at {} s",
            self.plan.shape,
            self.servers.len(),
            self.workers.len(),
            self.plan.figures.jobs,
            self.plan.calm_at.0 / 1_000_000
        );
        self.look_at_clocks();
        for server in 0..self.servers.len() {
            self.push(At(0), Event::StartServer { server });
        }
        for worker in 0..self.workers.len() {
            let at = At(self.random.below(3_000_000));
            self.push(at, Event::StartWorker { worker });
        }
        for client in 0..self.clients.len() {
            let at = At(self.random.below(1_000_000));
            self.push(at, Event::Act { client });
        }
        for index in 0..self.plan.troubles.len() {
            self.push(self.plan.troubles[index].0, Event::Trouble { index });
        }
        self.push(self.plan.calm_at, Event::Calm);
    }

    /// Runs to the end, or to the first finding.
    pub fn run(&mut self) {
        while !self.done && self.checks.findings.is_empty() {
            let Some(((at, number), event)) = self.queue.pop_first() else {
                self.checks.find(
                    "V16",
                    "the world has nothing left to do and is not done".into(),
                );
                break;
            };
            self.at = at;
            self.happened += 1;
            if self.happened > MOST_EVENTS {
                let words = format!("{MOST_EVENTS} things happened and there is no end to it");
                self.checks.find("V16", words);
            }
            let wall = self.store_now();
            self.store_wall.store(wall.0, Ordering::Relaxed);
            match self.frozen(&event) {
                // With its number, so that what came before it still does when the frost is prolonged.
                Some(until) => drop(self.queue.insert((until, number), event)),
                None => self.happen(event),
            }
        }
    }

    /// By the store's clock: an embedded store has none but its server's.
    pub(crate) fn store_now(&self) -> WallMs {
        let clock = match self.is_cluster() {
            true => &self.store_clock,
            false => &self.servers[0].clock,
        };
        clock.now(self.at).wall
    }

    pub(crate) fn finish(&mut self) {
        self.done = true;
    }

    pub(crate) fn push(&mut self, at: At, event: Event) {
        self.pushed += 1;
        self.queue.insert((at.max(self.at), self.pushed), event);
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Until when the place where this would happen is frozen.
    fn frozen(&self, event: &Event) -> Option<At> {
        let until = match event.place() {
            Place::Server(server) => self.servers[server].frozen,
            Place::Worker(worker) => self.workers[worker].frozen,
            Place::Conn(conn, side) => {
                let conn = self.conns.get(&conn)?;
                match side {
                    Side::Server => self.servers[conn.server].frozen,
                    Side::Worker => self.workers[conn.worker].frozen,
                }
            }
            Place::Elsewhere => return None,
        };
        (until > self.at).then_some(until)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::StartServer { server } => self.start_server(server),
            Event::Join { server, life } => self.join(server, life),
            Event::ReadBoot {
                server,
                life,
                taken,
                left_us,
            } => self.read_boot(server, life, taken, left_us),
            Event::Look {
                server,
                life,
                session,
                engine,
                known,
            } => self.look((server, life), session, engine, known),
            Event::Looked {
                server,
                life,
                engine,
                look,
            } => self.looked(server, life, engine, look),
            Event::Booted { server, life, boot } => self.booted(server, life, *boot),
            Event::Turn {
                server,
                life,
                token,
            } => self.turn(server, life, token),
            Event::Reach {
                server,
                life,
                changes,
                answered,
                outlives,
            } => self.reach(server, life, &changes, answered, outlives),
            Event::Answered {
                server,
                life,
                seq,
                answer,
            } => self.commit_answered(server, life, seq, answer),
            Event::Resubmit { server, life, seq } => self.resubmit(server, life, seq),
            Event::Read {
                server,
                life,
                engine,
                request,
                waiting,
            } => self.read((server, life, engine), &request, waiting),
            Event::Loaded {
                server,
                life,
                engine,
                loaded,
                waiting,
            } => self.loaded((server, life, engine), loaded, waiting),
            Event::Dial {
                worker,
                process,
                server,
            } => self.dial(worker, process, server),
            Event::Dialled { conn } => self.dialled(conn),
            Event::Opened { conn, accepted } => self.opened(conn, accepted),
            Event::Up { conn, messages } => self.up(conn, messages),
            Event::Down { conn, message } => self.down(conn, *message),
            Event::GoneUp { conn } => self.gone_up(conn),
            Event::GoneDown { conn } => self.gone_down(conn),
            Event::CutUp { conn, noticed } => self.cut(conn, true, false, noticed),
            Event::Flap {
                worker,
                left,
                down_us,
                up_us,
            } => self.flap(worker, left, down_us, up_us),
            Event::StartWorker { worker } => self.start_worker(worker),
            Event::Wake {
                worker,
                process,
                token,
            } => self.wake(worker, process, token),
            Event::TaskStarts {
                worker,
                process,
                attempt,
            } => self.task_starts(worker, process, attempt),
            Event::TaskSays {
                worker,
                process,
                attempt,
            } => self.task_says(worker, process, attempt),
            Event::TaskEnds {
                worker,
                process,
                attempt,
            } => self.task_ends(worker, process, attempt),
            Event::Deadline {
                worker,
                process,
                attempt,
            } => self.deadline(worker, process, attempt),
            Event::Act { client } => self.act(client),
            Event::Request { call } => self.request(call),
            Event::Reply { call, said } => self.reply(call, said),
            Event::Copy { client, deed } => self.copy(client, &deed),
            Event::Timeout { call } => self.timeout(call),
            Event::HangUp { call } => self.hang_up(call),
            Event::HungUp {
                server,
                call,
                owner,
            } => self.hung_up(server, call, owner),
            Event::Trouble { index } => self.trouble(index),
            Event::Calm => self.calm_down(),
            Event::Poll => self.poll(),
        }
    }
}
