//! What the server says, one function a message.

use drumtower_core::model::{MonoMs, Now};
use drumtower_proto::worker::v1 as wire;
use drumtower_proto::{CHECKPOINTS, PROTOCOL_MAX, PROTOCOL_MIN};
use wire::server_message::Body;

use super::link::{Link, StreamPhase};
use super::seen::Known;
use super::{Action, Attempt, LinkId, Session, StopReason};

impl Session {
    /// Takes in a message that arrived on stream number `stream` of a link.
    pub fn handle(&mut self, now: Now, link: LinkId, stream: u64, message: wire::ServerMessage) {
        let present = |state: &&Link| state.stream == stream && state.has_stream();
        if self.links.get(&link).filter(present).is_none() {
            return;
        }
        // A body that this version does not know is for a later one.
        let Some(body) = message.body else { return };
        match body {
            Body::Welcome(welcome) => self.welcome(now.mono, link, &welcome),
            Body::Close(close) => self.close(now.mono, link, close),
            _ if !self.is_connected_on(link) => {
                self.violation(link, "the server did not begin with a welcome");
            }
            Body::Renew(renew) => self.renew(now.mono, link, &renew),
            Body::Assign(assign) => self.assign(now.mono, link, assign),
            Body::Cancel(cancel) => self.cancel(now.mono, link, &cancel),
            Body::FinishAck(ack) => self.finish_ack(now.mono, ack.attempt),
            Body::LogAck(ack) => self.log_ack(link, &ack),
            Body::CheckpointAck(ack) => self.checkpoint_ack(link, &ack),
            Body::RecallAnswer(answer) => self.shares.answered(link, answer.id),
            Body::Want(want) => self.shares.want(link, want.weight),
            // Whoever dials has to know.
            Body::Owners(_) => {}
        }
    }

    fn welcome(&mut self, now: MonoMs, id: LinkId, welcome: &wire::Welcome) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.phase != StreamPhase::Greeted {
            return self.violation(id, "a welcome without a hello");
        }
        if !(PROTOCOL_MIN..=PROTOCOL_MAX).contains(&welcome.protocol) {
            let reason = format!(
                "the server speaks protocol {}, this worker {PROTOCOL_MIN} to {PROTOCOL_MAX}: upgrade the older one",
                welcome.protocol
            );
            return self.reject(now, id, reason);
        }
        if welcome.lease_ms == 0 || welcome.heartbeat_ms == 0 {
            return self.violation(
                id,
                "a welcome without a lease or without a heartbeat interval",
            );
        }
        link.welcome(now, welcome);
        link.takes_checkpoints = welcome.features.iter().any(|it| it == CHECKPOINTS);
        self.shares.join(id);
    }

    fn cancel(&mut self, now: MonoMs, link: LinkId, cancel: &wire::Cancel) {
        let Some(attempt) = cancel.attempt else {
            return;
        };
        if self.held.contains_key(&attempt.into()) {
            self.stop_one(now, attempt.into(), StopReason::Cancelled);
        } else if self.seen.look_up(attempt) == Known::No {
            // It never came, and after this it will not be started if it does.
            self.seen.note(attempt, false);
            self.refuse(link, attempt, "it was cancelled before it arrived");
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

    fn log_ack(&mut self, link: LinkId, ack: &wire::LogAck) {
        let Some(attempt) = ack.attempt.map(Attempt::from) else {
            return;
        };
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if !held.listens_to(link) {
            return;
        }
        let bytes = held.log.acknowledge(ack.seq);
        if bytes > 0 && !held.is_finished() {
            self.actions.push_back(Action::LogRoom { attempt, bytes });
        }
    }

    fn close(&mut self, now: MonoMs, link: LinkId, close: wire::Close) {
        if close.again {
            self.disconnect(link, close.reason);
        } else {
            self.reject(now, link, close.reason);
        }
    }

    /// The server breaks the protocol: the stream is of no use, the next one may be.
    pub(super) fn violation(&mut self, link: LinkId, what: &str) {
        self.disconnect(link, format!("the server broke the protocol: {what}"));
    }

    fn disconnect(&mut self, link: LinkId, reason: String) {
        self.reset_stream(link);
        self.actions.push_back(Action::Disconnect {
            link,
            reason,
            again: true,
        });
    }

    /// A server sends the worker away. While another link has a stream, only this one is given up, whatever the reason:
    /// the others say for themselves whether they want the worker. The last one that does not is the end of it: no
    /// lease can be renewed.
    pub fn reject(&mut self, now: MonoMs, link: LinkId, reason: String) {
        self.reset_stream(link);
        if !self.links.values().any(Link::has_stream) {
            self.rejected = Some(reason.clone());
            self.stop_all(now, StopReason::LeaseEnds);
        }
        self.actions.push_back(Action::Disconnect {
            link,
            reason,
            again: false,
        });
    }
}
