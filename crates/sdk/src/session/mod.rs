//! A worker's side of its connections to servers, without sockets, clocks or threads.
//!
//! Whoever drives it passes in what happened ([`Session::handle`], [`Session::stream_opened`],
//! [`Session::attempt_finished`] …) together with the time, then performs what [`Session::poll_action`] asks for and
//! sends what [`Session::poll_transmit`] yields for each link, and comes back at [`Session::poll_timeout`] at the
//! latest. One session lives as long as the worker's process; streams come and go under it. It has a link to each
//! server that has work to give, and each link one stream at a time:
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
//! - A (run, attempt) is started once, whatever server assigns it. An assignment whose lease is over, or would be before it
//!   could stop in time, is refused; so is one with a fence that is not above the last one seen for its run.
//! - Credits outstanding on all links plus the weight of what runs never exceed the capacity (`shares`).
//! - A new stream starts from nothing: credits are void, and every start, every chunk of output and every end that was
//!   not acknowledged goes out again once its server has said that it answers for the attempt (`home`). Messages of older
//!   streams are dropped.
//! - An end goes out after all output and the last checkpoint of its attempt, and is repeated to each server that answers
//!   for the attempt, on each of its streams, until acknowledged.
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
mod home;
mod link;
mod log;
mod progress;
mod receive;
mod seen;
mod shares;
mod transmit;

use std::collections::{BTreeMap, VecDeque};

use drumtower_core::model::{MonoMs, Now};
use drumtower_core::schedule::format_duration;
use drumtower_proto::worker::v1 as wire;

pub use action::{Action, Attempt, StopReason};
pub use config::Config;
pub use link::LinkId;
pub use log::WINDOW_BYTES;

use crate::bounds;
use beat::Beats;
use drain::Drain;
use held::{Due, Held, Phase};
use link::{Link, Out};
use seen::Seen;
use shares::Shares;

const NEVER: MonoMs = MonoMs(u64::MAX);

/// See the [module](self).
#[derive(Debug)]
pub struct Session {
    config: Config,
    links: BTreeMap<LinkId, Link>,
    /// The number of the last stream, on whatever link.
    last_stream: u64,
    beats: Beats,
    shares: Shares,
    held: BTreeMap<Attempt, Held>,
    /// How many of `held` have finished.
    unacknowledged: usize,
    seen: Seen,
    actions: VecDeque<Action>,
    /// Not later than the next moment of any held attempt.
    check_at: MonoMs,
    load: wire::Load,
    drain: Option<Drain>,
    /// Why no server wants this worker.
    rejected: Option<String>,
}

impl Session {
    pub fn new(config: Config) -> Self {
        let shares = Shares::new(config.capacity);
        Self {
            config,
            links: BTreeMap::new(),
            last_stream: 0,
            beats: Beats::default(),
            shares,
            held: BTreeMap::new(),
            unacknowledged: 0,
            seen: Seen::default(),
            actions: VecDeque::new(),
            check_at: NEVER,
            load: wire::Load::default(),
            drain: None,
            rejected: None,
        }
    }

    /// A stream was opened on a link. Returns its number, which grows over all links and goes with every message
    /// received on it.
    pub fn stream_opened(&mut self, link: LinkId) -> u64 {
        self.reset_stream(link);
        self.last_stream += 1;
        self.links.entry(link).or_default().open(self.last_stream);
        self.last_stream
    }

    /// A stream broke. Nothing happens if it is not the present one of its link.
    pub fn stream_lost(&mut self, link: LinkId, stream: u64) {
        let present = |state: &&Link| state.stream == stream;
        if self.links.get(&link).filter(present).is_some() {
            self.reset_stream(link);
        }
    }

    /// There is no such link any more, nor will there be.
    pub fn link_gone(&mut self, link: LinkId) {
        self.reset_stream(link);
        self.open_told(link);
        self.links.remove(&link);
    }

    fn reset_stream(&mut self, link: LinkId) {
        let Some(state) = self.links.get_mut(&link) else {
            return;
        };
        state.reset();
        self.shares.leave(link);
        self.orphan_all(link);
    }

    /// The attempt runs since `now`.
    pub fn attempt_started(&mut self, now: Now, attempt: Attempt) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        held.started(now.mono, now.wall.0);
        self.check_at = self.check_at.min(held.next_moment());
        let at = now.mono.plus(self.config.started_delay_ms);
        if let Some(link) = self.home_of(attempt) {
            link.starts.push_back((at, attempt));
        }
    }

    /// The attempt has ended, and nothing of it runs any more. `end` need not name the attempt or the start; an outcome
    /// of cancelled means that it obeyed a stop, and is told with the reason of that stop.
    pub fn attempt_finished(&mut self, attempt: Attempt, mut end: wire::Finished) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if held.is_finished() {
            return;
        }
        self.shares.vacate(held.home, held.weight);
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
        end.log_bytes = held.log.total_bytes();
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
        self.queue_checkpoint(attempt);
        if let Some(link) = self.home_of(attempt) {
            link.outbox.push_back(Out::Finished(attempt));
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
        if let Some(held) = self.held.get_mut(&attempt)
            && let Some(link) = held.home.and_then(|home| self.links.get_mut(&home))
            && held.log.has_unsent()
            && !held.log_queued
        {
            held.log_queued = true;
            link.outbox.push_back(Out::Log(attempt));
        }
    }

    /// The link that speaks of an attempt; it is welcomed.
    fn home_of(&mut self, attempt: Attempt) -> Option<&mut Link> {
        let home = self.held.get(&attempt)?.home?;
        self.links.get_mut(&home)
    }

    /// What the next heartbeats tell of the machine.
    pub fn set_load(&mut self, load: wire::Load) {
        self.load = load;
    }

    /// Time has passed: call it when [`Session::poll_timeout`] is reached.
    pub fn handle_timeout(&mut self, now: MonoMs) {
        for link in self.links.values_mut() {
            link.release(now);
        }
        self.open_silent(now);
        self.drive_drain(now);
        if self.check_at <= now {
            self.check_held(now);
        }
    }

    fn check_held(&mut self, now: MonoMs) {
        self.check_at = NEVER;
        for (attempt, held) in &mut self.held {
            match held.due(now) {
                Some(Due::Stop(reason)) => self.actions.push_back(Action::Stop {
                    attempt: *attempt,
                    reason,
                }),
                Some(Due::Abort) => self.actions.push_back(Action::Abort { attempt: *attempt }),
                None => {}
            }
            self.check_at = self.check_at.min(held.next_moment());
        }
    }

    /// When [`Session::handle_timeout`] and [`Session::poll_transmit`] are due at the latest.
    pub fn poll_timeout(&self) -> Option<MonoMs> {
        let links = self.links.values().map(Link::next_moment);
        let drain = self.drain.as_ref().map_or(NEVER, Drain::next_moment);
        let next = links.fold(drain.min(self.check_at), MonoMs::min);
        (next != NEVER).then_some(next)
    }

    /// What has to be done, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Tells everything that runs to stop.
    fn stop_all(&mut self, now: MonoMs, reason: StopReason) {
        for (attempt, held) in &mut self.held {
            if held.stop(now, reason) {
                self.actions.push_back(Action::Stop {
                    attempt: *attempt,
                    reason,
                });
                self.check_at = self.check_at.min(held.next_moment());
            }
        }
    }

    fn stop_one(&mut self, now: MonoMs, attempt: Attempt, reason: StopReason) {
        if let Some(held) = self.held.get_mut(&attempt)
            && held.stop(now, reason)
        {
            self.actions.push_back(Action::Stop { attempt, reason });
            self.check_at = self.check_at.min(held.next_moment());
        }
    }

    /// Whether some server has welcomed this worker.
    pub fn is_connected(&self) -> bool {
        self.links.values().any(Link::is_welcomed)
    }

    /// Whether the present stream of a link has been welcomed by its server.
    pub fn is_connected_on(&self, link: LinkId) -> bool {
        self.links.get(&link).is_some_and(Link::is_welcomed)
    }

    /// The link whose server answers for an attempt.
    pub fn home(&self, attempt: Attempt) -> Option<LinkId> {
        self.held.get(&attempt)?.home
    }

    /// How many attempts run or are about to.
    pub fn running(&self) -> usize {
        self.held.len() - self.unacknowledged
    }

    /// Credits that servers may still use, in weight.
    pub fn outstanding_credit(&self) -> u64 {
        self.shares.outstanding()
    }

    /// Why this worker is not wanted, once the last server has said so.
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
