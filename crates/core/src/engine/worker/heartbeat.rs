//! A heartbeat: it renews leases, says what the worker holds, and thereby what it does not.
//!
//! A worker names to each server what that one prolonged last, and to all of them what nobody prolonged lately. What is of
//! a segment that is not owned here is named back to it as another's: the lease of that does not run on.
//!
//! The renewal is an effect of a commit that is first sent after this step, so a server that cannot commit renews
//! nothing. An attempt that is not named is concluded from only when the worker must have known of it: it came on this
//! stream at or before the acknowledged position, or on an earlier stream, whose messages the worker no longer takes. What
//! another server gave to a worker that keeps a stream to each may still arrive from there, until its lease is over; after
//! that it counts as lost, for it may have run.

use std::collections::BTreeSet;

use crate::fault::{Fault, armed};
use crate::model::{LossCause, MonoMs, Now, ProcessId, RunState};

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
        let (held, elsewhere) = self.whose(process, &heartbeat.held);
        let unnamed = self.compare_held(now, process, stream, &heartbeat, &held);
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
        let elsewhere = match armed(Fault::ForeignAttemptRenewed) {
            true => Vec::new(),
            false => elsewhere,
        };
        self.effect(Effect::Send {
            stream,
            message: ToWorker::Renew {
                beat: heartbeat.number + early,
                elsewhere,
            },
        });
        if !armed(Fault::RenewedWithoutCommit) {
            self.building.want_renewal();
        }
        self.place_in_lines(process);
        self.want_credit_for_lines(process);
    }

    /// What a worker names, and that part of it that another server has to answer for. One that does not heed this is told to
    /// stop that part instead.
    ///
    /// What has come back while something that was said of it was not heard is called another's once: to whoever claims it next,
    /// the worker says everything again.
    fn whose(
        &mut self,
        process: ProcessId,
        named: &[AttemptRef],
    ) -> (Vec<AttemptRef>, Vec<AttemptRef>) {
        let owned = self.segments.owned();
        let worker = self.fleet.expect_mut(process);
        let heeds = worker.hello.links;
        let ours = |attempt: &AttemptRef| !heeds || owned.contains(attempt.run.segment());
        let (held, mut elsewhere): (Vec<_>, Vec<_>) = named.iter().copied().partition(ours);
        let unheard = held.iter().filter(|it| worker.unheard.remove(it));
        elsewhere.extend(unheard);
        let named: BTreeSet<AttemptRef> = elsewhere.iter().copied().collect();
        worker.unheard.retain(|it| named.contains(it));
        (held, elsewhere)
    }

    /// Claims what the worker names, stops what it has no right to, and returns what it does not name.
    fn compare_held(
        &mut self,
        now: Now,
        process: ProcessId,
        stream: StreamId,
        heartbeat: &Heartbeat,
        held: &[AttemptRef],
    ) -> Vec<(AttemptRef, Missing)> {
        let mut named = BTreeSet::new();
        for attempt in held {
            if self.claim(process, *attempt, stream) {
                named.insert(attempt.run);
            }
        }
        let worker = self.fleet.expect_mut(process);
        let (runs, alone) = (&self.runs, self.options.idle_commit_ms.is_none());
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
                    None if now.mono < held.arrives_by
                        && worker.hello.links
                        && !alone
                        && !armed(Fault::ArrivalNotAwaited) =>
                    {
                        Missing::OnItsWay
                    }
                    Some(_) | None if started => Missing::Forgotten,
                    // It may have run under the server that gave it out, and its end told to nobody here.
                    None if worker.hello.links && !alone => Missing::Forgotten,
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
            arrives_by: MonoMs(0),
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
