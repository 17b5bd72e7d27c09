//! A worker's side of its connection to a server, without sockets, clocks or threads.
//!
//! Whoever drives it passes in what happened ([`Session::handle`], [`Session::stream_opened`],
//! [`Session::attempt_finished`] …) together with the time, then performs what [`Session::poll_action`] asks for and sends
//! what [`Session::poll_transmit`] yields, and comes back at [`Session::poll_timeout`] at the latest. One session lives as
//! long as the worker's process; streams come and go under it.
//!
//! ```text
//! down ──stream_opened──► opened (Hello sent) ──Welcome──► welcomed: heartbeats, grants, everything else
//!   ▲                        │                                │
//!   └──────── stream_lost ───┴────────────────────────────────┘
//! ```
//!
//! Rules
//! - A lease runs from when the heartbeat that the server echoes was sent, never from the receipt of the echo, and its
//!   end never moves back. What cannot be renewed is told to stop a margin before its lease ends and aborted at its end.
//! - A (run, attempt) is started once. An assignment whose lease is over, or would be before it could stop in time, is
//!   refused; so is one with a fence that is not above the last one seen for its run.
//! - Credits outstanding plus the weight of what runs never exceed the capacity.
//! - A new stream starts from nothing: credits are void, and every start, every chunk of output and every end that was
//!   not acknowledged goes out again. Messages of older streams are dropped.
//! - An end goes out after all output and the last checkpoint of its attempt, and is repeated on each new stream until acknowledged.
//!
//! Left to others: sockets and dialling, running the attempts, killing at the deadline even when this code is frozen.

mod action;
mod assign;
mod beat;
mod checkpoint;
mod config;
mod credit;
mod drain;
mod held;
mod log;
mod progress;
mod receive;
mod seen;
mod transmit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use drumtower_core::model::{MonoMs, Now};
use drumtower_core::schedule::format_duration;
use drumtower_proto::worker::v1 as wire;

pub use action::{Action, Attempt, StopReason};
pub use config::Config;
pub use log::WINDOW_BYTES;

use crate::bounds;
use beat::Beats;
use credit::Credits;
use drain::Drain;
use held::{Due, Held, Phase, StopTimes};
use seen::Seen;

const NEVER: MonoMs = MonoMs(u64::MAX);

/// See the [module](self).
#[derive(Debug)]
pub struct Session {
    config: Config,
    stream: Stream,
    beats: Beats,
    lease_ms: u64,
    credits: Credits,
    held: BTreeMap<Attempt, Held>,
    /// How many of `held` have finished.
    unacknowledged: usize,
    seen: Seen,
    outbox: VecDeque<Out>,
    /// Refusals, which leave before everything else.
    refusals: VecDeque<wire::Refused>,
    /// Starts that are told if the attempt still runs at that time.
    starts: VecDeque<(MonoMs, Attempt)>,
    /// Words of progress that follow too soon on the last ones, and when they are told.
    reports: BTreeSet<(MonoMs, Attempt)>,
    actions: VecDeque<Action>,
    /// Not later than the next moment of any held attempt.
    check_at: MonoMs,
    load: wire::Load,
    drain: Option<Drain>,
    /// Why the server does not want this worker.
    rejected: Option<String>,
}

/// What belongs to one stream and ends with it.
#[derive(Debug, Default)]
struct Stream {
    /// Grows with each stream, over the life of the process.
    number: u64,
    phase: StreamPhase,
    heartbeat_ms: u64,
    next_beat: MonoMs,
    last_position: u64,
    recall: Recall,
    /// The server takes progress and checkpoints.
    takes_checkpoints: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamPhase {
    #[default]
    Down,
    /// Hello is to be sent.
    Opened,
    /// Hello was sent.
    Greeted,
    Welcomed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Recall {
    #[default]
    None,
    Wanted,
    Sent,
    Answered,
}

/// What waits to be sent. It names what to say; the words are found when it leaves.
#[derive(Debug)]
enum Out {
    Started(Attempt),
    Log(Attempt),
    Progress(Attempt),
    Checkpoint(Attempt),
    Finished(Attempt),
}

impl Session {
    pub fn new(config: Config) -> Self {
        let credits = Credits::new(config.capacity);
        Self {
            config,
            stream: Stream::default(),
            beats: Beats::default(),
            lease_ms: 0,
            credits,
            held: BTreeMap::new(),
            unacknowledged: 0,
            seen: Seen::default(),
            outbox: VecDeque::new(),
            refusals: VecDeque::new(),
            starts: VecDeque::new(),
            reports: BTreeSet::new(),
            actions: VecDeque::new(),
            check_at: NEVER,
            load: wire::Load::default(),
            drain: None,
            rejected: None,
        }
    }

    /// A stream was opened. Returns its number, which goes with every message received on it.
    pub fn stream_opened(&mut self) -> u64 {
        self.reset_stream();
        self.stream.number += 1;
        self.stream.phase = StreamPhase::Opened;
        self.stream.number
    }

    /// A stream broke. Nothing happens if it is not the present one.
    pub fn stream_lost(&mut self, stream: u64) {
        if stream == self.stream.number {
            self.reset_stream();
        }
    }

    fn reset_stream(&mut self) {
        self.stream = Stream {
            number: self.stream.number,
            ..Stream::default()
        };
        self.credits.void();
        self.outbox.clear();
        self.refusals.clear();
        self.starts.clear();
        self.reports.clear();
        for held in self.held.values_mut() {
            held.log.rewind();
            held.log_queued = false;
            held.progress.rewind();
            held.checkpoints.rewind();
        }
    }

    /// The attempt runs since `now`.
    pub fn attempt_started(&mut self, now: Now, attempt: Attempt) {
        let times = self.stop_times();
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        held.started(now.mono, now.wall.0);
        self.check_at = self.check_at.min(held.next_moment(times));
        if self.is_welcomed() {
            self.starts
                .push_back((now.mono.plus(self.config.started_delay_ms), attempt));
        }
    }

    /// The attempt has ended, and nothing of it runs any more. `end` need not name the attempt or the start; an outcome of cancelled
    /// means that it obeyed a stop, and is told with the reason of that stop.
    pub fn attempt_finished(&mut self, attempt: Attempt, mut end: wire::Finished) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if held.is_finished() {
            return;
        }
        self.credits.free(held.weight);
        if held.settled {
            self.held.remove(&attempt);
            return;
        }
        end.attempt = Some(held.attempt);
        if let Phase::Running { wall_ms } = held.phase
            && end.started_wall_ms == 0
        {
            end.started_wall_ms = wall_ms;
        }
        end.log_truncated |= held.log.truncated();
        if end.outcome() == wire::Outcome::Cancelled {
            let reason = held.stop.as_ref().map(|stop| stop.reason);
            name_stop(&mut end, reason, held.progress_timeout_ms);
        }
        end.error = bounds::error_text(end.error);
        if end.outcome() == wire::Outcome::Succeeded {
            held.checkpoints.forget();
        }
        held.phase = Phase::Finished(Box::new(end));
        self.unacknowledged += 1;
        if self.is_welcomed() {
            self.queue_checkpoint(attempt);
            self.outbox.push_back(Out::Finished(attempt));
        }
    }

    /// Takes output of an attempt in. Its reader keeps at most [`WINDOW_BYTES`] unacknowledged: each
    /// [`Action::LogRoom`] says what became free.
    pub fn log_chunk(&mut self, wall_ms: i64, attempt: Attempt, stream: u32, data: &[u8]) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        let dropped = held.log.push(held.attempt, stream, wall_ms, data);
        if dropped > 0 {
            self.actions.push_back(Action::LogRoom {
                attempt,
                bytes: dropped,
            });
        }
        self.queue_log(attempt);
    }

    fn queue_log(&mut self, attempt: Attempt) {
        let welcomed = self.is_welcomed();
        if let Some(held) = self.held.get_mut(&attempt)
            && welcomed
            && held.log.has_unsent()
            && !held.log_queued
        {
            held.log_queued = true;
            self.outbox.push_back(Out::Log(attempt));
        }
    }

    /// What the next heartbeats tell of the machine.
    pub fn set_load(&mut self, load: wire::Load) {
        self.load = load;
    }

    /// Time has passed: call it when [`Session::poll_timeout`] is reached.
    pub fn handle_timeout(&mut self, now: MonoMs) {
        self.tell_starts(now);
        self.tell_progress(now);
        self.drive_drain(now);
        if self.check_at <= now {
            self.check_held(now);
        }
    }

    fn tell_starts(&mut self, now: MonoMs) {
        while let Some((at, attempt)) = self.starts.front().copied()
            && at <= now
        {
            self.starts.pop_front();
            self.outbox.push_back(Out::Started(attempt));
        }
    }

    fn check_held(&mut self, now: MonoMs) {
        let times = self.stop_times();
        self.check_at = NEVER;
        for (attempt, held) in &mut self.held {
            match held.due(now, times) {
                Some(Due::Stop(reason)) => self.actions.push_back(Action::Stop {
                    attempt: *attempt,
                    reason,
                }),
                Some(Due::Abort) => self.actions.push_back(Action::Abort { attempt: *attempt }),
                None => {}
            }
            self.check_at = self.check_at.min(held.next_moment(times));
        }
    }

    /// When [`Session::handle_timeout`] and [`Session::poll_transmit`] are due at the latest.
    pub fn poll_timeout(&self) -> Option<MonoMs> {
        let beat = if self.is_welcomed() {
            self.stream.next_beat
        } else {
            NEVER
        };
        let start = self.starts.front().map_or(NEVER, |(at, _)| *at);
        let drain = self.drain.as_ref().map_or(NEVER, Drain::next_moment);
        let report = self.reports.first().map_or(NEVER, |(at, _)| *at);
        let next = beat.min(start).min(report).min(drain).min(self.check_at);
        (next != NEVER).then_some(next)
    }

    /// What has to be done, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Tells everything that runs to stop.
    fn stop_all(&mut self, now: MonoMs, reason: StopReason) {
        let times = self.stop_times();
        for (attempt, held) in &mut self.held {
            if held.stop(now, reason, times) {
                self.actions.push_back(Action::Stop {
                    attempt: *attempt,
                    reason,
                });
                self.check_at = self.check_at.min(held.next_moment(times));
            }
        }
    }

    fn stop_one(&mut self, now: MonoMs, attempt: Attempt, reason: StopReason) {
        let times = self.stop_times();
        if let Some(held) = self.held.get_mut(&attempt)
            && held.stop(now, reason, times)
        {
            self.actions.push_back(Action::Stop { attempt, reason });
            self.check_at = self.check_at.min(held.next_moment(times));
        }
    }

    fn stop_times(&self) -> StopTimes {
        StopTimes {
            margin_ms: self.config.stop_margin_ms.min(self.lease_ms / 5),
            grace_ms: self.config.stop_grace_ms,
        }
    }

    fn is_welcomed(&self) -> bool {
        self.stream.phase == StreamPhase::Welcomed
    }

    /// Whether the present stream has been welcomed by the server.
    pub fn is_connected(&self) -> bool {
        self.is_welcomed()
    }

    /// How many attempts run or are about to.
    pub fn running(&self) -> usize {
        self.held.len() - self.unacknowledged
    }

    /// Credits that the server may still use on this stream, in weight.
    pub fn outstanding_credit(&self) -> u64 {
        self.credits.outstanding()
    }

    /// Why the server does not want this worker, once it said so.
    pub fn rejection(&self) -> Option<&str> {
        self.rejected.as_deref()
    }
}

/// An attempt that obeyed a stop ended for the reason of the stop.
fn name_stop(end: &mut wire::Finished, reason: Option<StopReason>, progress_timeout_ms: u64) {
    let silence;
    let (outcome, words) = match reason {
        Some(StopReason::Cancelled) => (wire::Outcome::Cancelled, ""),
        Some(StopReason::TimedOut) => (
            wire::Outcome::TimedOut,
            "the run took longer than its timeout",
        ),
        Some(StopReason::NoProgress) => {
            silence = format!("no progress for {}", format_duration(progress_timeout_ms));
            (wire::Outcome::TimedOut, silence.as_str())
        }
        Some(StopReason::LeaseEnds) => (
            wire::Outcome::LeaseLost,
            "the worker could not renew its lease",
        ),
        // A worker that leaves on request has lost nothing.
        Some(StopReason::Draining) => (
            wire::Outcome::Cancelled,
            "the worker shut down before the attempt ended",
        ),
        None => (
            wire::Outcome::Failed,
            "the attempt was given up by the worker",
        ),
    };
    end.set_outcome(outcome);
    if end.error.is_empty() {
        words.clone_into(&mut end.error);
    }
}
