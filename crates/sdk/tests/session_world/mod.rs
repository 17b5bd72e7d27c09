//! A worker's session, a server and the wire between them, under one clock that the test moves.
//!
//! After each step the world checks what must always hold: nothing starts twice, nothing runs at or beyond the end of its
//! lease, two attempts of one run never overlap, and what the server may still assign, what it has in flight and what runs
//! never exceed the capacity together.

pub mod server;

use std::collections::{BTreeMap, VecDeque};

use drumtower_core::model::{MonoMs, Now, ProcessId, WallMs};
use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::session::{Action, Attempt, Config, Session};
use wire::server_message::Body;
use wire::worker_message::Body as FromWorker;

use server::{LEASE_MS, Server};

pub const CAPACITY: u32 = 8;

pub struct World {
    pub now: u64,
    pub session: Session,
    pub server: Server,
    stream: Option<u64>,
    to_server: VecDeque<FromWorker>,
    to_worker: VecDeque<Body>,
    beats: BTreeMap<u64, u64>,
    pub running: BTreeMap<Attempt, Running>,
    pub starts: BTreeMap<Attempt, u32>,
    pub outcomes: Vec<wire::Outcome>,
    /// How often a checkpoint was told to be settled.
    pub settled: usize,
}

pub struct Running {
    deadline: u64,
    weight: u32,
    chunks: u64,
    /// The checkpoint it began with, and the last that it saved.
    from: u64,
    saved: u64,
}

impl World {
    pub fn new() -> Self {
        let mut config = Config::new("w", ProcessId(1), CAPACITY);
        config.exec = true;
        config.stop_margin_ms = 100;
        config.stop_grace_ms = 300;
        Self {
            now: 10,
            session: Session::new(config),
            server: Server::default(),
            stream: None,
            to_server: VecDeque::new(),
            to_worker: VecDeque::new(),
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

    pub fn open(&mut self) {
        self.break_stream();
        let stream = self.session.stream_opened();
        self.stream = Some(stream);
        self.server.stream_opened(stream);
        self.settle();
    }

    /// Everything on the wire is lost.
    pub fn break_stream(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.session.stream_lost(stream);
            self.server.stream_opened(stream);
            self.to_server.clear();
            self.to_worker.clear();
        }
        self.settle();
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
            while let Some(message) = self.session.poll_transmit(self.clock()) {
                self.transmit(message.body.expect("a body"));
                idle = false;
            }
            if idle {
                break;
            }
        }
        self.check();
    }

    fn transmit(&mut self, body: FromWorker) {
        if let FromWorker::Heartbeat(beat) = &body {
            self.beats.insert(beat.number, self.now);
        }
        if let FromWorker::Finished(finished) = &body {
            self.outcomes.push(finished.outcome());
        }
        if self.stream.is_some() {
            self.to_server.push_back(body);
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
            Action::Extend { deadline } => {
                for running in self.running.values_mut() {
                    running.deadline = running.deadline.max(deadline.0);
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
                let newest = self.server.checkpoints.get(&attempt.run);
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
            let before = self.server.checkpoints.get(&attempt.run);
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

    pub fn server_says(&mut self, body: Option<Body>) {
        if self.stream.is_some() {
            self.to_worker.extend(body);
        }
    }

    pub fn deliver_to_server(&mut self, count: usize) {
        for _ in 0..count {
            let Some(body) = self.to_server.pop_front() else {
                break;
            };
            let answer = self.server.handle(body);
            self.server_says(answer);
        }
        self.check();
    }

    pub fn deliver_to_worker(&mut self, count: usize) {
        for _ in 0..count {
            let (Some(stream), Some(body)) = (self.stream, self.to_worker.pop_front()) else {
                break;
            };
            self.session.handle(
                self.clock(),
                stream,
                wire::ServerMessage { body: Some(body) },
            );
            self.settle();
        }
    }

    /// The faults are over: everything must come to its end.
    pub fn calm(&mut self) {
        self.open();
        for _ in 0..200 {
            self.finish(0);
            self.deliver_to_server(usize::MAX);
            let renewal = self.server.renew();
            self.server_says(renewal);
            self.deliver_to_worker(usize::MAX);
            self.advance(50);
        }
        assert!(self.running.is_empty());
        assert!(
            self.server.attempts.values().all(|assigned| assigned.ended),
            "an attempt has no end"
        );
        assert!(
            self.server.last_held.is_empty(),
            "an end is not acknowledged"
        );
        assert_eq!(self.server.credit(), u64::from(CAPACITY), "credit leaked");
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
        let in_flight: u64 = self.to_worker.iter().map(weight).sum();
        let total = self.server.credit() + in_flight + running;
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
