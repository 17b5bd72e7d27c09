//! A worker's session, servers that share a store, and the wires between them, under one clock that the test moves.
//!
//! After each step the world checks what must always hold: nothing starts twice, nothing runs at or beyond the end of
//! its lease, two attempts of one run never overlap, and what all servers may still assign, what they have in flight
//! and what runs never exceed the capacity together.

// Each test plays another part of it.
#![allow(dead_code)]

pub mod server;
pub mod store;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use drumtower_core::model::{MonoMs, Now, ProcessId, WallMs};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, Attempt, Config, LinkId, Session};
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use server::{LEASE_MS, Server};
use store::Store;

pub const CAPACITY: u32 = 8;

pub struct World {
    pub now: u64,
    pub session: Session,
    pub servers: Vec<Server>,
    pub store: Store,
    wires: Vec<Wire>,
    beats: BTreeMap<u64, u64>,
    pub running: BTreeMap<Attempt, Running>,
    pub starts: BTreeMap<Attempt, u32>,
    pub outcomes: Vec<wire::Outcome>,
    /// How often a checkpoint was told to be settled.
    pub settled: usize,
}

/// Between the worker and one server.
#[derive(Default)]
struct Wire {
    stream: Option<u64>,
    to_server: VecDeque<FromWorker>,
    to_worker: VecDeque<Body>,
    /// The server hears nothing and says nothing.
    frozen: bool,
    /// The classes that the server lost while this stream was open.
    lost: BTreeSet<u64>,
}

pub struct Running {
    pub deadline: u64,
    weight: u32,
    chunks: u64,
    /// The checkpoint it began with, and the last that it saved.
    from: u64,
    saved: u64,
}

fn link(server: usize) -> LinkId {
    LinkId(u32::try_from(server).expect("few servers"))
}

impl World {
    /// The first of so many servers owns all runs.
    pub fn new(servers: usize) -> Self {
        let mut config = Config::new("w", ProcessId(1), CAPACITY);
        config.exec = true;
        config.stop_margin_ms = 100;
        config.stop_grace_ms = 300;
        Self {
            now: 10,
            session: Session::new(config),
            servers: (0..servers).map(Server::new).collect(),
            store: Store::default(),
            wires: (0..servers).map(|_| Wire::default()).collect(),
            beats: BTreeMap::new(),
            running: BTreeMap::new(),
            starts: BTreeMap::new(),
            outcomes: Vec::new(),
            settled: 0,
        }
    }

    pub fn clock(&self) -> Now {
        Now {
            wall: WallMs(self.now as i64),
            mono: MonoMs(self.now),
        }
    }

    pub fn open(&mut self, server: usize) {
        self.break_stream(server);
        let stream = self.session.stream_opened(link(server));
        self.wires[server].stream = Some(stream);
        self.servers[server].stream_opened(stream);
        self.settle();
    }

    /// Everything on the wire is lost.
    pub fn break_stream(&mut self, server: usize) {
        let wire = &mut self.wires[server];
        if let Some(stream) = wire.stream.take() {
            wire.to_server.clear();
            wire.to_worker.clear();
            wire.lost.clear();
            self.session.stream_lost(link(server), stream);
            self.servers[server].stream_opened(stream);
        }
        self.settle();
    }

    pub fn freeze(&mut self, server: usize, frozen: bool) {
        self.wires[server].frozen = frozen;
    }

    /// Another server owns the runs of a class. One that owned them before may have taken no notice of what it was told
    /// meanwhile, so it begins with a new stream.
    pub fn hand_over(&mut self, class: u64, server: usize) {
        let former = self.store.owner(class);
        if former == server {
            return;
        }
        self.wires[former].lost.insert(class);
        self.store.hand_over(self.now, class, server);
        if self.wires[server].lost.contains(&class) {
            self.break_stream(server);
        }
    }

    /// Lets time pass; the driver is woken whenever the session wants to be.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            let wake = self
                .session
                .poll_timeout()
                .map_or(end, |at| at.0.max(self.now));
            if wake >= end {
                break;
            }
            self.now = wake;
            self.settle();
            self.now += 1;
        }
        self.now = self.now.max(end);
        self.settle();
    }

    /// Does what the session asks for until it asks for nothing, then checks the invariants.
    pub fn settle(&mut self) {
        self.session.handle_timeout(MonoMs(self.now));
        loop {
            let mut idle = true;
            while let Some(action) = self.session.poll_action() {
                self.perform(action);
                idle = false;
            }
            for server in 0..self.servers.len() {
                while let Some(message) = self.session.poll_transmit(self.clock(), link(server)) {
                    self.transmit(server, message.body.expect("a body"));
                    idle = false;
                }
            }
            if idle {
                break;
            }
        }
        self.check();
    }

    fn transmit(&mut self, server: usize, body: FromWorker) {
        if let FromWorker::Heartbeat(beat) = &body {
            self.beats.insert(beat.number, self.now);
        }
        if let FromWorker::Finished(finished) = &body {
            self.outcomes.push(finished.outcome());
        }
        let wire = &mut self.wires[server];
        if wire.stream.is_some() {
            wire.to_server.push_back(body);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Start { assign, deadline } => {
                let attempt = assign.attempt.expect("it names the attempt").into();
                assert_eq!(
                    deadline.0,
                    self.beats[&assign.beat] + LEASE_MS,
                    "the lease runs from the sending"
                );
                *self.starts.entry(attempt).or_default() += 1;
                self.running.insert(
                    attempt,
                    Running {
                        deadline: deadline.0,
                        weight: assign.weight,
                        chunks: 0,
                        from: assign.checkpoint.as_ref().map_or(0, |mark| mark.number),
                        saved: 0,
                    },
                );
                self.session.attempt_started(self.clock(), attempt);
            }
            Action::Extend { attempts, deadline } => {
                for attempt in attempts {
                    if let Some(running) = self.running.get_mut(&attempt) {
                        assert!(running.deadline < deadline.0, "a lease moved back");
                        running.deadline = deadline.0;
                    }
                }
            }
            // Odd runs obey, even ones have to be ended by force.
            Action::Stop { attempt, .. } if attempt.run % 2 == 1 => {
                self.end(attempt, wire::Outcome::Cancelled)
            }
            Action::Abort { attempt } => self.end(attempt, wire::Outcome::Cancelled),
            Action::Stop { .. } | Action::LogRoom { .. } => {}
            Action::CheckpointSettled {
                attempt,
                number,
                kept,
            } => {
                let newest = self.store.checkpoints.get(&attempt.run);
                assert!(!kept || newest.is_some_and(|newest| number <= *newest));
                self.settled += 1;
            }
            Action::Disconnect { reason, .. } => panic!("no one broke the protocol: {reason}"),
        }
    }

    fn end(&mut self, attempt: Attempt, outcome: wire::Outcome) {
        if let Some(running) = self.running.remove(&attempt) {
            let mut end = wire::Finished {
                duration_ms: running.chunks,
                peak_memory_bytes: running.saved,
                ..wire::Finished::default()
            };
            end.set_outcome(outcome);
            self.session.attempt_finished(attempt, end);
        }
    }

    fn picked(&self, pick: usize) -> Option<Attempt> {
        self.running
            .keys()
            .nth(pick % self.running.len().max(1))
            .copied()
    }

    pub fn finish(&mut self, pick: usize) {
        if let Some(attempt) = self.picked(pick) {
            self.end(attempt, wire::Outcome::Succeeded);
            self.settle();
        }
    }

    pub fn write(&mut self, pick: usize) {
        if let Some(attempt) = self.picked(pick) {
            self.session.log_chunk(0, attempt, 1, b"line");
            self.running.get_mut(&attempt).expect("it runs").chunks += 1;
            self.settle();
        }
    }

    /// The attempt saves a checkpoint whose body is its number.
    pub fn save(&mut self, pick: usize) {
        if let Some(attempt) = self.picked(pick) {
            let running = self.running.get_mut(&attempt).expect("it runs");
            let before = self.store.checkpoints.get(&attempt.run);
            let next = running.saved.max(running.from) + 1;
            assert!(before.is_none_or(|before| *before < next), "it went back");
            let body = next.to_le_bytes().to_vec();
            let now = MonoMs(self.now);
            let number = self.session.save_checkpoint(now, attempt, body.into());
            assert_eq!(number, Some(next), "numbers have no gaps");
            running.saved = next;
            self.settle();
        }
    }

    /// What a server would say.
    pub fn ask<T>(&mut self, server: usize, what: impl FnOnce(&mut Server, &mut Store) -> T) -> T {
        what(&mut self.servers[server], &mut self.store)
    }

    /// A server says something, if it has anything to say.
    pub fn say(
        &mut self,
        server: usize,
        what: impl FnOnce(&mut Server, &mut Store) -> Option<Body>,
    ) {
        if self.wires[server].stream.is_some() && !self.wires[server].frozen {
            let body = self.ask(server, what);
            self.wires[server].to_worker.extend(body);
        }
    }

    pub fn deliver_to_server(&mut self, server: usize, count: usize) {
        for _ in 0..count {
            let wire = &mut self.wires[server];
            if wire.frozen {
                break;
            }
            let Some(body) = wire.to_server.pop_front() else {
                break;
            };
            let now = self.now;
            self.say(server, |server, store| server.handle(now, store, body));
        }
        self.check();
    }

    pub fn deliver_to_worker(&mut self, server: usize, count: usize) {
        for _ in 0..count {
            let wire = &mut self.wires[server];
            let (Some(stream), Some(body)) = (wire.stream, wire.to_worker.pop_front()) else {
                break;
            };
            let message = wire::ServerMessage { body: Some(body) };
            let now = self.clock();
            self.session.handle(now, link(server), stream, message);
            self.settle();
        }
    }

    /// Everything that is on the wires arrives.
    pub fn exchange(&mut self) {
        for server in 0..self.servers.len() {
            self.deliver_to_server(server, usize::MAX);
            self.deliver_to_worker(server, usize::MAX);
        }
    }

    pub fn renew(&mut self) {
        for server in 0..self.servers.len() {
            self.say(server, |server, store| server.renew(store));
        }
    }

    /// The faults are over: everything must come to its end.
    pub fn calm(&mut self) {
        for server in 0..self.servers.len() {
            self.freeze(server, false);
            self.open(server);
        }
        for _ in 0..200 {
            self.finish(0);
            self.exchange();
            self.renew();
            self.exchange();
            self.advance(50);
        }
        assert!(self.running.is_empty());
        let mut attempts = self.store.attempts.values();
        assert!(
            attempts.all(|assigned| assigned.ended),
            "an attempt has no end"
        );
        let unacknowledged: Vec<_> = self.servers.iter().flat_map(|it| &it.last_held).collect();
        assert!(unacknowledged.is_empty(), "{unacknowledged:?} wait");
        assert_eq!(self.credit(), u64::from(CAPACITY), "credit leaked");
    }

    /// What the servers may still assign.
    pub fn credit(&self) -> u64 {
        self.servers.iter().map(Server::credit).sum()
    }

    fn check(&self) {
        for (attempt, running) in &self.running {
            assert!(
                self.now < running.deadline,
                "{attempt:?} runs beyond its lease"
            );
        }
        assert!(
            self.starts.values().all(|count| *count == 1),
            "an attempt started twice"
        );
        let runs: Vec<u64> = self.running.keys().map(|attempt| attempt.run).collect();
        assert!(
            runs.windows(2).all(|pair| pair[0] != pair[1]),
            "two attempts of one run"
        );
        let running: u64 = self
            .running
            .values()
            .map(|running| u64::from(running.weight))
            .sum();
        let on_wires = self.wires.iter().flat_map(|wire| &wire.to_worker);
        let in_flight: u64 = on_wires.map(weight).sum();
        let total = self.credit() + in_flight + running;
        assert!(
            total <= u64::from(CAPACITY),
            "{total} of {CAPACITY} is promised or used"
        );
    }
}

fn weight(body: &Body) -> u64 {
    match body {
        Body::Assign(assign) => u64::from(assign.weight),
        _ => 0,
    }
}
