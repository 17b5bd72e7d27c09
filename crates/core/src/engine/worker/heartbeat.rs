//! A heartbeat: it renews leases, says what the worker holds, and thereby what it does not.
//!
//! The renewal is an effect of a commit that is first sent after this step, so a server that cannot commit renews
//! nothing. An attempt that is not named is concluded from only when the worker must have known of it: it came on this
//! stream at or before the acknowledged position, or on an earlier stream, whose messages the worker no longer takes.

use std::collections::BTreeSet;

use crate::fault::{Fault, armed};
use crate::model::{LossCause, Now, ProcessId, RunState};

use super::super::drains::DRAINED;
use super::super::fleet::Held;
use super::super::{AttemptRef, Effect, Engine, Heartbeat, StreamId, ToWorker};

/// What an attempt that was not named must have come to.
enum Missing {
    /// It reached the worker, and the worker has no memory of it.
    Forgotten,
    /// It was sent on an earlier stream and never arrived.
    NeverArrived,
    /// It may still be on its way.
    OnItsWay,
}

impl Engine {
    pub(super) fn heartbeat(
        &mut self,
        now: Now,
        process: ProcessId,
        stream: StreamId,
        heartbeat: Heartbeat,
    ) {
        let worker = self.fleet.expect_mut(process);
        if heartbeat.number <= worker.beat {
            return;
        }
        worker.beat = heartbeat.number;
        let silence_ms = now.mono.0.saturating_sub(worker.leased_from.0);
        worker.leased_from = now.mono;
        worker.last_heartbeat = Some(now.wall);
        worker.skew_ms = heartbeat.wall.since(now.wall);
        let (host, skew_ms) = (worker.hello.host.clone(), worker.skew_ms);
        worker.load = heartbeat.load;
        self.hear_clock(now, &host, heartbeat.wall);
        self.warn_of_skew(process, skew_ms);
        self.count_beat(now, process, silence_ms);
        let unnamed = self.compare_held(process, stream, &heartbeat);
        for (attempt, missing) in unnamed {
            match missing {
                Missing::Forgotten => {
                    self.release_attempt(process, attempt);
                    self.lose_attempt(now, attempt, LossCause::Forgotten.as_str());
                }
                Missing::NeverArrived => {
                    self.release_attempt(process, attempt);
                    self.undelivered(now, attempt, LossCause::NeverArrived.as_str());
                }
                Missing::OnItsWay => {}
            }
        }
        let early = u64::from(armed(Fault::UnreceivedBeatEchoed));
        self.effect(Effect::Send {
            stream,
            message: ToWorker::Renew {
                beat: heartbeat.number + early,
            },
        });
        if !armed(Fault::RenewedWithoutCommit) {
            self.building.want_renewal();
        }
        self.place_in_lines(process);
    }

    /// Claims what the worker names, stops what it has no right to, and returns what it does not name.
    fn compare_held(
        &mut self,
        process: ProcessId,
        stream: StreamId,
        heartbeat: &Heartbeat,
    ) -> Vec<(AttemptRef, Missing)> {
        let mut named = BTreeSet::new();
        for attempt in &heartbeat.held {
            if self.claim(process, *attempt, stream) {
                named.insert(attempt.run);
            }
        }
        let worker = self.fleet.expect_mut(process);
        let runs = &self.runs;
        let unnamed = worker
            .attempts
            .iter()
            .filter(|(run, _)| !named.contains(run));
        unnamed
            .map(|(run, held)| {
                let started = runs
                    .get(*run)
                    .is_some_and(|resident| resident.run.state == RunState::Running);
                let missing = match held.sent {
                    Some((sent_on, position))
                        if sent_on == stream && position <= heartbeat.acked_position =>
                    {
                        Missing::Forgotten
                    }
                    Some((sent_on, _)) if sent_on == stream && !armed(Fault::OnItsWayIsLost) => {
                        Missing::OnItsWay
                    }
                    Some(_) | None if started => Missing::Forgotten,
                    Some(_) | None => Missing::NeverArrived,
                };
                (
                    AttemptRef {
                        run: *run,
                        attempt: held.attempt,
                        fence: held.fence,
                    },
                    missing,
                )
            })
            .collect()
    }

    /// Whether the attempt that a worker names is its own and current.
    fn claim(&mut self, process: ProcessId, attempt: AttemptRef, stream: StreamId) -> bool {
        let (rightful, cancelled) = match self.runs.with_attempt(attempt) {
            Some(resident) => {
                let own = resident
                    .run
                    .current_attempt()
                    .is_some_and(|current| current.process == process);
                (own, resident.run.cancel.is_some())
            }
            None => (false, false),
        };
        if !rightful {
            let reason = "it is not this worker's to run";
            self.effect(Effect::Send {
                stream,
                message: ToWorker::Cancel { attempt, reason },
            });
            return false;
        }
        let worker = self.fleet.expect_mut(process);
        let held = worker.attempts.entry(attempt.run);
        let held = held.or_insert(Held {
            attempt: attempt.attempt,
            fence: attempt.fence,
            sent: None,
        });
        let first_on_this_stream = held.sent.is_none_or(|(sent_on, _)| sent_on != stream);
        if first_on_this_stream {
            held.sent = Some((stream, 0));
            let reason = match cancelled {
                true => Some("cancelled"),
                false => self.forced_drain(process).map(|_| DRAINED),
            };
            if let Some(reason) = reason {
                let message = ToWorker::Cancel { attempt, reason };
                self.effect(Effect::Send { stream, message });
            }
        }
        true
    }
}
