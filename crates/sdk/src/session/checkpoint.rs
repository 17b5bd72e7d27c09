//! The checkpoints of one attempt on their way to the server.
//!
//! ```text
//! save ──► newest ──one at a time──► in flight ──CheckpointAck──► settled
//!            ▲ a newer one takes its place        └─ a newer one waits: it goes next
//! ```
//!
//! Only the newest matters: one that was overtaken before it was sent never is, and its number stays unused. Numbers go
//! on from the one that the assignment named. Another home, or a new stream, gets the newest unsettled one again. When
//! the attempt ends it goes out before the end, whatever is in flight; a success needs none.

use std::sync::Arc;

use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;
use wire::worker_message::Body;

use super::link::Out;
use super::{Action, Attempt, LinkId, Session};

#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// The last number that was given.
    last: u64,
    newest: Option<(u64, Arc<[u8]>)>,
    /// What was sent to the present home and the server has not settled.
    in_flight: Option<u64>,
}

impl Checkpoints {
    /// They go on from the one that the attempt begins with.
    pub(super) fn after(number: u64) -> Self {
        Self {
            last: number,
            ..Self::default()
        }
    }

    fn save(&mut self, body: Arc<[u8]>) -> u64 {
        self.last = self.last.saturating_add(1);
        self.newest = Some((self.last, body));
        self.last
    }

    /// The next to send; one that is in flight holds it back unless the attempt has ended.
    fn next(&mut self, ended: bool) -> Option<(u64, Arc<[u8]>)> {
        let newest = self.newest.clone()?;
        let free = match self.in_flight {
            None => true,
            Some(number) => ended && number < newest.0,
        };
        free.then(|| {
            self.in_flight = Some(newest.0);
            newest
        })
    }

    fn settle(&mut self, number: u64) {
        if self.in_flight.is_some_and(|sent| sent <= number) {
            self.in_flight = None;
        }
        if self.newest.as_ref().is_some_and(|(it, _)| *it <= number) {
            self.newest = None;
        }
    }

    pub(super) fn rewind(&mut self) {
        self.in_flight = None;
    }

    pub(super) fn forget(&mut self) {
        self.newest = None;
    }
}

impl Session {
    /// Takes in what a later attempt can go on from, and gives its number; `None` when the attempt is over. An
    /// [`Action::CheckpointSettled`] tells what became of it and of those before it.
    pub fn save_checkpoint(
        &mut self,
        now: MonoMs,
        attempt: Attempt,
        body: Arc<[u8]>,
    ) -> Option<u64> {
        let held = self.held.get_mut(&attempt)?;
        if held.is_finished() {
            return None;
        }
        held.heard(now);
        let number = held.checkpoints.save(body);
        self.queue_checkpoint(attempt);
        Some(number)
    }

    /// Sends the newest checkpoint of an attempt, or gives up if the server takes none.
    pub(super) fn queue_checkpoint(&mut self, attempt: Attempt) {
        let Some(link) = self.home_of(attempt) else {
            return;
        };
        if link.takes_checkpoints {
            link.outbox.push_back(Out::Checkpoint(attempt));
            return;
        }
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if held.checkpoints.newest.take().is_some() {
            self.actions.push_back(Action::CheckpointSettled {
                attempt,
                number: held.checkpoints.last,
                kept: false,
            });
        }
    }

    pub(super) fn next_checkpoint(&mut self, attempt: Attempt) -> Option<Body> {
        let held = self.held.get_mut(&attempt)?;
        let ended = held.is_finished();
        let (number, body) = held.checkpoints.next(ended)?;
        Some(Body::Checkpoint(wire::Checkpoint {
            attempt: Some(held.attempt),
            number,
            body: body.to_vec(),
        }))
    }

    pub(super) fn checkpoint_ack(&mut self, link: LinkId, ack: &wire::CheckpointAck) {
        let Some(attempt) = ack.attempt.map(Attempt::from) else {
            return;
        };
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if !held.listens_to(link) {
            return;
        }
        let number = ack.number.min(held.checkpoints.last);
        held.checkpoints.settle(number);
        self.actions.push_back(Action::CheckpointSettled {
            attempt,
            number,
            kept: ack.kept,
        });
        self.queue_checkpoint(attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(checkpoints: &mut Checkpoints, ended: bool) -> Option<u64> {
        checkpoints.next(ended).map(|(number, _)| number)
    }

    #[test]
    fn one_is_in_flight_and_the_newest_follows() {
        let mut checkpoints = Checkpoints::after(7);
        for expected in 8..=10 {
            assert_eq!(checkpoints.save([1].into()), expected);
            assert_eq!(
                sent(&mut checkpoints, false),
                (expected == 8).then_some(8),
                "one at a time"
            );
        }
        checkpoints.settle(8);
        assert_eq!(sent(&mut checkpoints, false), Some(10));
        checkpoints.settle(10);
        assert_eq!(sent(&mut checkpoints, false), None);
    }

    #[test]
    fn a_new_stream_repeats_the_newest() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.save([1].into());
        checkpoints.save([2].into());
        assert_eq!(sent(&mut checkpoints, false), Some(2));
        checkpoints.rewind();
        assert_eq!(sent(&mut checkpoints, false), Some(2));
        checkpoints.settle(1);
        assert_eq!(sent(&mut checkpoints, false), None, "it is in flight");
    }

    #[test]
    fn the_last_one_does_not_wait_when_the_attempt_has_ended() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.save([1].into());
        assert_eq!(sent(&mut checkpoints, false), Some(1));
        checkpoints.save([2].into());
        assert_eq!(sent(&mut checkpoints, true), Some(2));
        assert_eq!(sent(&mut checkpoints, true), None);
    }
}
