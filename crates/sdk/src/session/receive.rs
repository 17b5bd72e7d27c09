//! What the server says, one function a message.

use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::{MonoMs, Now};
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::{CHECKPOINTS, PROTOCOL_MAX, PROTOCOL_MIN};
use wire::server_message::Body;

use super::seen::Known;
use super::{Action, Attempt, Out, Recall, Session, StopReason, StreamPhase};

impl Session {
    /// Takes in a message that arrived on stream number `stream`.
    pub fn handle(&mut self, now: Now, stream: u64, message: wire::ServerMessage) {
        if stream != self.stream.number || self.stream.phase == StreamPhase::Down {
            return;
        }
        // A body that this version does not know is for a later one.
        let Some(body) = message.body else { return };
        match body {
            Body::Welcome(welcome) => self.welcome(now.mono, &welcome),
            Body::Close(close) => self.close(now.mono, close),
            _ if !self.is_welcomed() => self.violation("the server did not begin with a welcome"),
            Body::Renew(renew) => self.renew(now.mono, renew.beat),
            Body::Assign(assign) => self.assign(now.mono, assign),
            Body::Cancel(cancel) => self.cancel(now.mono, &cancel),
            Body::FinishAck(ack) => self.finish_ack(now.mono, ack.attempt),
            Body::LogAck(ack) => self.log_ack(&ack),
            Body::CheckpointAck(ack) => self.checkpoint_ack(&ack),
            Body::RecallAnswer(_) => self.recall_answer(),
        }
    }

    fn welcome(&mut self, now: MonoMs, welcome: &wire::Welcome) {
        if self.stream.phase != StreamPhase::Greeted {
            return self.violation("a welcome without a hello");
        }
        if !(PROTOCOL_MIN..=PROTOCOL_MAX).contains(&welcome.protocol) {
            let reason = format!(
                "the server speaks protocol {}, this worker {PROTOCOL_MIN} to {PROTOCOL_MAX}: upgrade the older one",
                welcome.protocol
            );
            return self.reject(now, reason);
        }
        if welcome.lease_ms == 0 || welcome.heartbeat_ms == 0 {
            return self.violation("a welcome without a lease or without a heartbeat interval");
        }
        self.lease_ms = welcome.lease_ms;
        self.stream.heartbeat_ms = welcome.heartbeat_ms;
        self.stream.phase = StreamPhase::Welcomed;
        self.stream.next_beat = now;
        self.stream.takes_checkpoints = welcome.features.iter().any(|it| it == CHECKPOINTS);
        self.repeat_unacknowledged(now);
    }

    fn repeat_unacknowledged(&mut self, now: MonoMs) {
        let attempts: Vec<Attempt> = self.held.keys().copied().collect();
        for attempt in attempts {
            self.queue_log(attempt);
            self.queue_progress(now, attempt);
            self.queue_checkpoint(attempt);
            let finished = self
                .held
                .get(&attempt)
                .is_some_and(|held| held.is_finished());
            if finished && armed(Fault::EndNotRepeated) {
                continue;
            }
            self.outbox.push_back(if finished {
                Out::Finished(attempt)
            } else {
                Out::Started(attempt)
            });
        }
    }

    fn renew(&mut self, now: MonoMs, beat: u64) {
        let Some(sent) = self.beats.sent_at(beat) else {
            return self.violation("a renewal echoes a heartbeat that was not sent");
        };
        let from = match armed(Fault::LeaseFromReceipt) {
            true => now,
            false => sent,
        };
        let deadline = from.plus(self.lease_ms);
        for held in self.held.values_mut() {
            held.renew(sent, deadline);
        }
        if self.running() > 0 {
            self.actions.push_back(Action::Extend { deadline });
        }
    }

    fn cancel(&mut self, now: MonoMs, cancel: &wire::Cancel) {
        let Some(attempt) = cancel.attempt else {
            return;
        };
        if self.held.contains_key(&attempt.into()) {
            self.stop_one(now, attempt.into(), StopReason::Cancelled);
        } else if self.seen.look_up(attempt) == Known::No {
            // It never came, and after this it will not be started if it does.
            self.seen.note(attempt, false);
            self.refuse(attempt, "it was cancelled before it arrived");
        }
    }

    fn finish_ack(&mut self, now: MonoMs, attempt: Option<wire::AttemptRef>) {
        let Some(attempt) = attempt.map(Attempt::from) else {
            return;
        };
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if held.is_finished() {
            self.held.remove(&attempt);
            self.unacknowledged -= 1;
        } else {
            held.settled = true;
            self.stop_one(now, attempt, StopReason::Cancelled);
        }
    }

    fn log_ack(&mut self, ack: &wire::LogAck) {
        let Some(attempt) = ack.attempt.map(Attempt::from) else {
            return;
        };
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        let bytes = held.log.acknowledge(ack.seq);
        if bytes > 0 && !held.is_finished() {
            self.actions.push_back(Action::LogRoom { attempt, bytes });
        }
    }

    fn recall_answer(&mut self) {
        if self.stream.recall == Recall::Sent {
            self.stream.recall = Recall::Answered;
            self.credits.recalled();
        }
    }

    fn close(&mut self, now: MonoMs, close: wire::Close) {
        if close.again {
            self.disconnect(close.reason);
        } else {
            self.reject(now, close.reason);
        }
    }

    /// The server breaks the protocol: the stream is of no use, the next one may be.
    pub(super) fn violation(&mut self, what: &str) {
        self.disconnect(format!("the server broke the protocol: {what}"));
    }

    fn disconnect(&mut self, reason: String) {
        self.reset_stream();
        self.actions.push_back(Action::Disconnect {
            reason,
            again: true,
        });
    }

    /// There will be no other stream, so no lease can be renewed.
    pub fn reject(&mut self, now: MonoMs, reason: String) {
        self.reset_stream();
        self.rejected = Some(reason.clone());
        self.stop_all(now, StopReason::LeaseEnds);
        self.actions.push_back(Action::Disconnect {
            reason,
            again: false,
        });
    }
}
