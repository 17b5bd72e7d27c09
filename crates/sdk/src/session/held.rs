//! One attempt that the worker answers for, from its assignment to the acknowledgement of its end.
//!
//! ```text
//! Starting ──attempt_started──► Running ──attempt_finished──► Finished ──FinishAck──► forgotten
//!     ├───────────────────attempt_finished───────────────────────►┘
//!     └──attempt_refused──► forgotten
//! ```
//!
//! While it has not finished it may be told to stop (once, the first reason stands) and later be aborted (once). Which
//! link it belongs to is [another matter](super::home).

use std::collections::BTreeMap;

use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::checkpoint::Checkpoints;
use super::log::Log;
use super::progress::Progress;
use super::{LinkId, NEVER, StopReason};

#[derive(Debug)]
pub(super) struct Held {
    pub(super) attempt: wire::AttemptRef,
    pub(super) weight: u32,
    /// The link on which it was assigned, or renewed last.
    pub(super) home: Option<LinkId>,
    /// The first heartbeat from which on it is named on all links; without a home it has one.
    open_since: Option<u64>,
    /// The other links whose servers may take it for their own, as they have not denied it, each with the last
    /// heartbeat that named it there. A server concludes from silence, so it is named there until then.
    told: BTreeMap<LinkId, u64>,
    times: StopTimes,
    /// When its lease ends.
    pub(super) deadline: MonoMs,
    pub(super) timeout_ms: u64,
    pub(super) timeout_at: MonoMs,
    /// 0 is for ever.
    pub(super) progress_timeout_ms: u64,
    /// When it counts as stuck unless it is heard of.
    silent_at: MonoMs,
    pub(super) phase: Phase,
    pub(super) stop: Option<Stop>,
    pub(super) log: Log,
    /// Whether the outbox has an entry that will send its chunks.
    pub(super) log_queued: bool,
    pub(super) progress: Progress,
    pub(super) checkpoints: Checkpoints,
    /// The server knows an end of it, so this one is not to be told.
    pub(super) settled: bool,
}

#[derive(Debug)]
pub(super) enum Phase {
    Starting,
    Running { wall_ms: i64 },
    Finished(Box<wire::Finished>),
}

#[derive(Debug)]
pub(super) struct Stop {
    pub(super) reason: StopReason,
    abort_at: MonoMs,
    aborted: bool,
}

/// How long before the end of a lease, and how long after being told, an attempt stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopTimes {
    pub(super) margin_ms: u64,
    pub(super) grace_ms: u64,
}

/// What time has made of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    Stop(StopReason),
    Abort,
}

impl Held {
    pub(super) fn new(
        attempt: wire::AttemptRef,
        assign: &wire::Assign,
        home: LinkId,
        deadline: MonoMs,
        times: StopTimes,
    ) -> Self {
        let before = assign.checkpoint.as_ref().map_or(0, |mark| mark.number);
        Self {
            attempt,
            weight: assign.weight,
            home: Some(home),
            open_since: None,
            told: BTreeMap::new(),
            times,
            deadline,
            timeout_ms: assign.timeout_ms,
            timeout_at: NEVER,
            progress_timeout_ms: assign.progress_timeout_ms,
            silent_at: NEVER,
            phase: Phase::Starting,
            stop: None,
            log: Log::default(),
            log_queued: false,
            progress: Progress::default(),
            checkpoints: Checkpoints::after(before),
            settled: false,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished(_))
    }

    /// What it takes from the capacity.
    pub(super) fn running_weight(&self) -> u32 {
        if self.is_finished() { 0 } else { self.weight }
    }

    /// Whether a heartbeat on this link has to name it.
    pub(super) fn concerns(&self, link: LinkId) -> bool {
        self.home == Some(link) || self.open_since.is_some() || self.told.contains_key(&link)
    }

    /// A heartbeat names it on a link.
    pub(super) fn named(&mut self, link: LinkId, beat: u64) {
        if self.home != Some(link) {
            self.told.insert(link, beat);
        }
    }

    /// Whether a renewal of this heartbeat on this link may prolong its lease.
    pub(super) fn can_be_renewed(&self, link: LinkId, beat: u64) -> bool {
        self.home == Some(link) || self.open_since.is_some_and(|since| since <= beat)
    }

    /// Whether the server of a link was told of it and has not denied it; from now on it was not told.
    pub(super) fn forget_told(&mut self, link: LinkId) -> bool {
        self.told.remove(&link).is_some()
    }

    /// The server of a link says, of the heartbeat that named it, that another server answers for it.
    pub(super) fn denied(&mut self, link: LinkId, beat: u64) {
        if self.told.get(&link).is_some_and(|told| *told <= beat) {
            self.told.remove(&link);
        }
    }

    /// Whether what this server keeps of it counts: with a home, only what the home keeps.
    pub(super) fn listens_to(&self, link: LinkId) -> bool {
        self.home.is_none_or(|home| home == link)
    }

    /// It belongs to nobody until it is renewed, and is named on all links. `last_beat` is the last on the link that it
    /// was at home on.
    pub(super) fn orphan(&mut self, last_beat: u64, next_beat: u64) {
        self.leave_home(last_beat);
        self.open(next_beat);
    }

    pub(super) fn open(&mut self, next_beat: u64) {
        self.open_since.get_or_insert(next_beat);
    }

    /// Named to all servers from then on, whatever was kept of it before.
    pub(super) fn open_anew(&mut self, next_beat: u64) {
        self.open_since = Some(next_beat);
    }

    fn leave_home(&mut self, last_beat: u64) {
        if let Some(home) = self.home.take() {
            self.told.insert(home, last_beat);
        }
    }

    /// Another link is its home, whose server has heard nothing of it.
    pub(super) fn move_to(&mut self, link: LinkId, last_beat: u64) {
        self.leave_home(last_beat);
        self.told.remove(&link);
        self.home = Some(link);
        self.log.rewind();
        self.log_queued = false;
        self.progress.rewind();
        self.checkpoints.rewind();
    }

    /// Its home answers for it, as far as that heartbeat says: what came before it became open says nothing.
    pub(super) fn close(&mut self, beat: u64) {
        self.open_since.take_if(|since| *since <= beat);
    }

    pub(super) fn started(&mut self, now: MonoMs, wall_ms: i64) {
        if matches!(self.phase, Phase::Starting) {
            self.phase = Phase::Running { wall_ms };
            if self.timeout_ms > 0 && !armed(Fault::TimeoutNotKept) {
                self.timeout_at = now.plus(self.timeout_ms);
            }
            self.heard(now);
        }
    }

    /// It runs, and said so just now.
    pub(super) fn heard(&mut self, now: MonoMs) {
        let watched = self.progress_timeout_ms > 0 && !armed(Fault::SilenceNotHeard);
        if watched && matches!(self.phase, Phase::Running { .. }) {
            self.silent_at = now.plus(self.progress_timeout_ms);
        }
    }

    /// A heartbeat is echoed. One that was sent while the lease lasted prolongs it; a lease that was over by then stays
    /// over, for the server may have given the run to another since. True when its end moved.
    pub(super) fn renew(&mut self, sent: MonoMs, deadline: MonoMs) -> bool {
        let lasted = sent < self.deadline || armed(Fault::RenewedAfterExpiry);
        let moves = lasted && self.deadline < deadline;
        if moves {
            self.deadline = deadline;
        }
        moves
    }

    /// Notes that it was told to stop. False when it had been, or has finished.
    pub(super) fn stop(&mut self, now: MonoMs, reason: StopReason) -> bool {
        if self.is_finished() || self.stop.is_some() {
            return false;
        }
        self.stop = Some(Stop {
            reason,
            abort_at: now.plus(self.times.grace_ms),
            aborted: false,
        });
        true
    }

    /// The next moment at which [`Held::due`] has something to say.
    pub(super) fn next_moment(&self) -> MonoMs {
        match &self.stop {
            _ if self.is_finished() => NEVER,
            None => before(self.deadline, self.times.margin_ms)
                .min(self.timeout_at)
                .min(self.silent_at),
            Some(stop) if stop.aborted => NEVER,
            Some(stop) => stop.abort_at.min(self.deadline),
        }
    }

    /// What has to be done to it by now; each thing is said once.
    pub(super) fn due(&mut self, now: MonoMs) -> Option<Due> {
        if self.next_moment() > now {
            return None;
        }
        if let Some(stop) = &mut self.stop {
            stop.aborted = true;
            return Some(Due::Abort);
        }
        let lease_ends = before(self.deadline, self.times.margin_ms) <= now;
        let reason = if lease_ends {
            StopReason::LeaseEnds
        } else if self.timeout_at <= now {
            StopReason::TimedOut
        } else {
            StopReason::NoProgress
        };
        self.stop(now, reason);
        Some(Due::Stop(reason))
    }
}

pub(super) fn before(moment: MonoMs, ms: u64) -> MonoMs {
    MonoMs(moment.0.saturating_sub(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: StopTimes = StopTimes {
        margin_ms: 10,
        grace_ms: 50,
    };

    fn held(deadline: u64, timeout_ms: u64) -> Held {
        let attempt = wire::AttemptRef {
            run: 1,
            attempt: 1,
            fence: 1,
        };
        let assign = wire::Assign {
            weight: 1,
            timeout_ms,
            ..wire::Assign::default()
        };
        Held::new(attempt, &assign, LinkId(0), MonoMs(deadline), TIMES)
    }

    #[test]
    fn silence_counts_from_the_last_word() {
        let mut held = held(1000, 200);
        held.progress_timeout_ms = 30;
        held.started(MonoMs(20), 0);
        assert_eq!(held.next_moment(), MonoMs(50));
        held.heard(MonoMs(45));
        assert_eq!(held.due(MonoMs(74)), None);
        assert_eq!(
            held.due(MonoMs(75)),
            Some(Due::Stop(StopReason::NoProgress))
        );
    }

    #[test]
    fn the_end_of_a_lease_stops_before_and_aborts_at_it() {
        let mut held = held(100, 0);
        assert_eq!(held.due(MonoMs(89)), None);
        assert_eq!(held.due(MonoMs(90)), Some(Due::Stop(StopReason::LeaseEnds)));
        assert_eq!(held.due(MonoMs(99)), None);
        assert_eq!(held.due(MonoMs(100)), Some(Due::Abort));
        assert_eq!(held.due(MonoMs(200)), None);
    }

    #[test]
    fn a_timeout_counts_from_the_start_and_leaves_the_grace() {
        let mut held = held(1000, 30);
        held.started(MonoMs(20), 0);
        assert_eq!(held.due(MonoMs(49)), None);
        assert_eq!(held.due(MonoMs(50)), Some(Due::Stop(StopReason::TimedOut)));
        assert_eq!(held.next_moment(), MonoMs(100));
        assert!(
            !held.stop(MonoMs(60), StopReason::Cancelled),
            "the first reason stands"
        );
    }

    #[test]
    fn a_lease_that_is_over_is_not_renewed() {
        let mut held = held(100, 0);
        assert!(held.renew(MonoMs(99), MonoMs(199)));
        assert_eq!(held.deadline, MonoMs(199));
        assert!(!held.renew(MonoMs(50), MonoMs(150)));
        assert_eq!(held.deadline, MonoMs(199), "it never moves back");
        assert!(!held.renew(MonoMs(199), MonoMs(299)));
        assert_eq!(held.deadline, MonoMs(199), "its heartbeat came too late");
    }

    #[test]
    fn a_renewal_leaves_a_cancelled_attempt_its_grace() {
        let mut held = held(100, 0);
        assert!(held.stop(MonoMs(80), StopReason::Cancelled));
        assert_eq!(held.next_moment(), MonoMs(100));
        held.deadline = MonoMs(500);
        assert_eq!(held.next_moment(), MonoMs(130));
    }

    #[test]
    fn what_is_open_can_be_renewed_by_whoever_was_told() {
        let (home, other) = (LinkId(0), LinkId(1));
        let mut held = held(100, 0);
        assert!(held.concerns(home) && !held.concerns(other));
        assert!(held.can_be_renewed(home, 1) && !held.can_be_renewed(other, 9));
        held.orphan(4, 5);
        assert!(held.concerns(other));
        assert!(!held.can_be_renewed(home, 4) && held.can_be_renewed(home, 5));
        assert!(!held.can_be_renewed(other, 4) && held.can_be_renewed(other, 5));
        held.orphan(4, 8);
        assert!(
            held.can_be_renewed(other, 5),
            "it has been open all the while"
        );
    }

    #[test]
    fn a_server_that_was_told_of_it_is_told_until_it_denies_it() {
        let (home, other) = (LinkId(0), LinkId(1));
        let mut held = held(100, 0);
        held.open(5);
        held.named(other, 6);
        held.close(4);
        assert!(held.can_be_renewed(other, 6), "the home said nothing since");
        held.close(5);
        assert!(!held.can_be_renewed(other, 6) && held.concerns(other));
        held.named(other, 8);
        held.denied(other, 6);
        assert!(held.concerns(other), "a later heartbeat is on its way");
        held.denied(other, 8);
        assert!(!held.concerns(other) && held.concerns(home));
    }
}
