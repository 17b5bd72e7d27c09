//! One attempt that the worker answers for, from its assignment to the acknowledgement of its end.
//!
//! ```text
//! Starting ──attempt_started──► Running ──attempt_finished──► Finished ──FinishAck──► forgotten
//!     ├───────────────────attempt_finished───────────────────────►┘
//!     └──attempt_refused──► forgotten
//! ```
//!
//! While it has not finished it may be told to stop (once, the first reason stands) and later be aborted (once).

use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::StopReason;
use super::checkpoint::Checkpoints;
use super::log::Log;
use super::progress::Progress;

const NEVER: MonoMs = MonoMs(u64::MAX);

#[derive(Debug)]
pub(super) struct Held {
    pub(super) attempt: wire::AttemptRef,
    pub(super) weight: u32,
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
    pub(super) fn new(attempt: wire::AttemptRef, assign: &wire::Assign, deadline: MonoMs) -> Self {
        let before = assign.checkpoint.as_ref().map_or(0, |mark| mark.number);
        Self {
            attempt,
            weight: assign.weight,
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
    /// over, for the server may have given the run to another since.
    pub(super) fn renew(&mut self, sent: MonoMs, deadline: MonoMs) {
        if sent < self.deadline || armed(Fault::RenewedAfterExpiry) {
            self.deadline = self.deadline.max(deadline);
        }
    }

    /// Notes that it was told to stop. False when it had been, or has finished.
    pub(super) fn stop(&mut self, now: MonoMs, reason: StopReason, times: StopTimes) -> bool {
        if self.is_finished() || self.stop.is_some() {
            return false;
        }
        self.stop = Some(Stop {
            reason,
            abort_at: now.plus(times.grace_ms),
            aborted: false,
        });
        true
    }

    /// The next moment at which [`Held::due`] has something to say.
    pub(super) fn next_moment(&self, times: StopTimes) -> MonoMs {
        match &self.stop {
            _ if self.is_finished() => NEVER,
            None => before(self.deadline, times.margin_ms)
                .min(self.timeout_at)
                .min(self.silent_at),
            Some(stop) if stop.aborted => NEVER,
            Some(stop) => stop.abort_at.min(self.deadline),
        }
    }

    /// What has to be done to it by now; each thing is said once.
    pub(super) fn due(&mut self, now: MonoMs, times: StopTimes) -> Option<Due> {
        if self.next_moment(times) > now {
            return None;
        }
        if let Some(stop) = &mut self.stop {
            stop.aborted = true;
            return Some(Due::Abort);
        }
        let lease_ends = before(self.deadline, times.margin_ms) <= now;
        let reason = if lease_ends {
            StopReason::LeaseEnds
        } else if self.timeout_at <= now {
            StopReason::TimedOut
        } else {
            StopReason::NoProgress
        };
        self.stop(now, reason, times);
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
        Held::new(attempt, &assign, MonoMs(deadline))
    }

    #[test]
    fn silence_counts_from_the_last_word() {
        let mut held = held(1000, 200);
        held.progress_timeout_ms = 30;
        held.started(MonoMs(20), 0);
        assert_eq!(held.next_moment(TIMES), MonoMs(50));
        held.heard(MonoMs(45));
        assert_eq!(held.due(MonoMs(74), TIMES), None);
        assert_eq!(
            held.due(MonoMs(75), TIMES),
            Some(Due::Stop(StopReason::NoProgress))
        );
    }

    #[test]
    fn the_end_of_a_lease_stops_before_and_aborts_at_it() {
        let mut held = held(100, 0);
        assert_eq!(held.due(MonoMs(89), TIMES), None);
        assert_eq!(
            held.due(MonoMs(90), TIMES),
            Some(Due::Stop(StopReason::LeaseEnds))
        );
        assert_eq!(held.due(MonoMs(99), TIMES), None);
        assert_eq!(held.due(MonoMs(100), TIMES), Some(Due::Abort));
        assert_eq!(held.due(MonoMs(200), TIMES), None);
    }

    #[test]
    fn a_timeout_counts_from_the_start_and_leaves_the_grace() {
        let mut held = held(1000, 30);
        held.started(MonoMs(20), 0);
        assert_eq!(held.due(MonoMs(49), TIMES), None);
        assert_eq!(
            held.due(MonoMs(50), TIMES),
            Some(Due::Stop(StopReason::TimedOut))
        );
        assert_eq!(held.next_moment(TIMES), MonoMs(100));
        assert!(
            !held.stop(MonoMs(60), StopReason::Cancelled, TIMES),
            "the first reason stands"
        );
    }

    #[test]
    fn a_lease_that_is_over_is_not_renewed() {
        let mut held = held(100, 0);
        held.renew(MonoMs(99), MonoMs(199));
        assert_eq!(held.deadline, MonoMs(199));
        held.renew(MonoMs(50), MonoMs(150));
        assert_eq!(held.deadline, MonoMs(199), "it never moves back");
        held.renew(MonoMs(199), MonoMs(299));
        assert_eq!(held.deadline, MonoMs(199), "its heartbeat came too late");
    }

    #[test]
    fn a_renewal_leaves_a_cancelled_attempt_its_grace() {
        let mut held = held(100, 0);
        assert!(held.stop(MonoMs(80), StopReason::Cancelled, TIMES));
        assert_eq!(held.next_moment(TIMES), MonoMs(100));
        held.deadline = MonoMs(500);
        assert_eq!(held.next_moment(TIMES), MonoMs(130));
    }
}
