//! Leaving in good order: take all credit back, let what runs end, have the ends acknowledged, say goodbye.
//!
//! ```text
//! drain(until) ──► recall on every link; assignments are refused ──► at `until` what still runs is told to stop
//!      └─► nothing held, credit back ──► Goodbye on every link ──► done      └─► shortly after, done in any case
//! ```

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use wire::worker_message::Body;

use super::link::Link;
use super::{LinkId, NEVER, Session, StopReason};

/// After everything was told to stop and aborted: time for the ends to reach a server.
const FAREWELL_MS: u64 = 3_000;

#[derive(Debug)]
pub(super) struct Drain {
    until: MonoMs,
    give_up: MonoMs,
    stopped: bool,
    gave_up: bool,
}

impl Drain {
    pub(super) fn next_moment(&self) -> MonoMs {
        if self.gave_up {
            NEVER
        } else if self.stopped {
            self.give_up
        } else {
            self.until
        }
    }
}

impl Session {
    /// Takes no more work and leaves when all that runs has ended, at `until` by force. Called again, an earlier time
    /// counts.
    pub fn drain(&mut self, now: MonoMs, until: MonoMs) {
        let until = self
            .drain
            .as_ref()
            .map_or(until, |drain| drain.until.min(until));
        let give_up = until.max(now).plus(self.config.stop_grace_ms + FAREWELL_MS);
        match &mut self.drain {
            Some(drain) => {
                drain.until = until;
                drain.give_up = drain.give_up.min(give_up);
            }
            None => {
                self.drain = Some(Drain {
                    until,
                    give_up,
                    stopped: false,
                    gave_up: false,
                });
                self.shares.close();
            }
        }
        self.drive_drain(now);
    }

    pub(super) fn drive_drain(&mut self, now: MonoMs) {
        let Some(drain) = &mut self.drain else { return };
        if drain.give_up <= now && drain.stopped {
            drain.gave_up = true;
        }
        if drain.until <= now && !drain.stopped {
            drain.stopped = true;
            self.stop_all(now, StopReason::Draining);
        }
    }

    pub(super) fn goodbye(&mut self, id: LinkId) -> Option<Body> {
        let link = self.links.get_mut(&id)?;
        let credit_is_back = self.shares.outstanding() == 0;
        if !self.held.is_empty() || !credit_is_back || link.said_goodbye {
            return None;
        }
        link.said_goodbye = true;
        Some(Body::Goodbye(wire::Goodbye {}))
    }

    /// Whether there is nothing left to do: the worker drained, gave up draining, or was sent away and runs nothing.
    pub fn is_done(&self) -> bool {
        if self.rejected.is_some() {
            return self.running() == 0;
        }
        let Some(drain) = &self.drain else {
            return false;
        };
        drain.gave_up || (self.held.is_empty() && self.has_taken_leave())
    }

    /// Every server that listens was told, or there is no server to tell.
    fn has_taken_leave(&self) -> bool {
        let mut welcomed = self.links.values().filter(|link| link.is_welcomed());
        if self.is_connected() {
            welcomed.all(|link| link.said_goodbye)
        } else {
            !self.links.values().any(Link::has_stream)
        }
    }
}
