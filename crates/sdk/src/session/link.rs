//! One link: the way to one server, and the stream that it has just now.
//!
//! ```text
//! down ──stream_opened──► opened ──Hello sent──► greeted ──Welcome──► welcomed: heartbeats, grants, everything else
//!   ▲                        │                      │                    │
//!   └───── stream_lost ──────┴──────────────────────┴────────────────────┘
//! ```
//!
//! Nothing but the number of the stream outlives it. The outbox speaks only of attempts whose home the link is.

use std::collections::{BTreeSet, VecDeque};

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::{Attempt, NEVER};

/// Names a link over the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

#[derive(Debug, Default)]
pub(super) struct Link {
    /// The number of the stream.
    pub(super) stream: u64,
    pub(super) phase: StreamPhase,
    pub(super) lease_ms: u64,
    pub(super) heartbeat_ms: u64,
    pub(super) next_beat: MonoMs,
    /// The number of the last one.
    pub(super) last_beat: u64,
    /// When it counts as silent unless it renews.
    pub(super) silent_at: MonoMs,
    pub(super) last_position: u64,
    /// The server takes progress and checkpoints.
    pub(super) takes_checkpoints: bool,
    pub(super) said_goodbye: bool,
    pub(super) outbox: VecDeque<Out>,
    /// Refusals, which leave before everything else.
    pub(super) refusals: VecDeque<wire::Refused>,
    /// Starts that are told if the attempt still runs at that time.
    pub(super) starts: VecDeque<(MonoMs, Attempt)>,
    /// Words of progress that follow too soon on the last ones, and when they are told.
    pub(super) reports: BTreeSet<(MonoMs, Attempt)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StreamPhase {
    #[default]
    Down,
    /// Hello is to be sent.
    Opened,
    /// Hello was sent.
    Greeted,
    Welcomed,
}

/// What waits to be sent. It names what to say; the words are found when it leaves.
#[derive(Debug)]
pub(super) enum Out {
    Started(Attempt),
    Log(Attempt),
    Progress(Attempt),
    Checkpoint(Attempt),
    Finished(Attempt),
}

impl Out {
    fn attempt(&self) -> Attempt {
        match self {
            Self::Started(it)
            | Self::Log(it)
            | Self::Progress(it)
            | Self::Checkpoint(it)
            | Self::Finished(it) => *it,
        }
    }
}

impl Link {
    pub(super) fn open(&mut self, stream: u64) {
        *self = Self {
            stream,
            phase: StreamPhase::Opened,
            ..Self::default()
        };
    }

    pub(super) fn reset(&mut self) {
        *self = Self {
            stream: self.stream,
            ..Self::default()
        };
    }

    pub(super) fn has_stream(&self) -> bool {
        self.phase != StreamPhase::Down
    }

    pub(super) fn is_welcomed(&self) -> bool {
        self.phase == StreamPhase::Welcomed
    }

    /// The server gave its terms.
    pub(super) fn welcome(&mut self, now: MonoMs, welcome: &wire::Welcome) {
        self.phase = StreamPhase::Welcomed;
        self.lease_ms = welcome.lease_ms;
        self.heartbeat_ms = welcome.heartbeat_ms;
        self.next_beat = now;
        self.silent_at = self.patience_from(now);
    }

    /// The server renewed what it answers for.
    pub(super) fn heard(&mut self, now: MonoMs) {
        self.silent_at = self.patience_from(now);
    }

    /// The server gave something to renew: it has to, from here on.
    pub(super) fn expect_renewal(&mut self, now: MonoMs) {
        self.silent_at = self.silent_at.min(self.patience_from(now));
    }

    /// Whether it has just become silent.
    pub(super) fn falls_silent(&mut self, now: MonoMs) -> bool {
        let silent = self.is_welcomed() && self.silent_at <= now;
        if silent {
            self.silent_at = NEVER;
        }
        silent
    }

    /// Two heartbeats and a half: early enough for another server to prolong the lease.
    fn patience_from(&self, now: MonoMs) -> MonoMs {
        now.plus(self.heartbeat_ms.saturating_mul(5) / 2)
    }

    /// Drops what it would say of all other attempts.
    pub(super) fn speak_only_of(&mut self, own: impl Fn(Attempt) -> bool) {
        self.outbox.retain(|out| own(out.attempt()));
        self.starts.retain(|(_, attempt)| own(*attempt));
        self.reports.retain(|(_, attempt)| own(*attempt));
    }

    /// Puts into the outbox what has waited for long enough.
    pub(super) fn release(&mut self, now: MonoMs) {
        while let Some((at, attempt)) = self.starts.front().copied()
            && at <= now
        {
            self.starts.pop_front();
            self.outbox.push_back(Out::Started(attempt));
        }
        while let Some((at, attempt)) = self.reports.first().copied()
            && at <= now
        {
            self.reports.pop_first();
            self.outbox.push_back(Out::Progress(attempt));
        }
    }

    /// When it has something to do at the latest.
    pub(super) fn next_moment(&self) -> MonoMs {
        if !self.is_welcomed() {
            return NEVER;
        }
        let start = self.starts.front().map_or(NEVER, |(at, _)| *at);
        let report = self.reports.first().map_or(NEVER, |(at, _)| *at);
        self.next_beat.min(self.silent_at).min(start).min(report)
    }
}
