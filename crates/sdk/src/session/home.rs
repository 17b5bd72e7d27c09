//! Whose an attempt is: which link speaks of it, and which servers it is named to.
//!
//! ```text
//!                             ┌──────────────renewed on M──────────────┐
//!                             ▼                                        │
//! assigned on L ──► home L ──the stream of L is lost, or L says that it is elsewhere──► no home, open
//!                    │  ▲
//!                    │  └──renewed on L──┐
//!                    └──L is silent──► home L, open ──renewed on M──► home M
//! ```
//!
//! - The home alone hears of the attempt: its start, output, progress, checkpoints and end.
//! - A heartbeat names what is at home on its link and what is open, from the first heartbeat after it became open. And
//!   it names what earlier ones on the link named, until the server has said of the last of them that it is elsewhere:
//!   a server that hears of an attempt may take it for its own, and for lost when it hears no more of it.
//! - Only a heartbeat that named the attempt can renew it, and whoever renews what is open is its home from then on. To
//!   the server that becomes the home, everything that is not acknowledged goes out again.
//! - An attempt that is at home elsewhere and not open is left alone, whatever a server says of it. What its home says
//!   of an earlier heartbeat does not close it.
//! - Losing its home costs an attempt nothing: its lease runs on, and another server can prolong it.

use std::collections::BTreeSet;

use drumtower_core::fault::{Fault, armed};
use drumtower_core::model::MonoMs;
use drumtower_proto::worker::v1 as wire;

use super::held::Held;
use super::link::Out;
use super::{Action, Attempt, LinkId, Session};

/// What a renewal makes of what its heartbeat named.
#[derive(Default)]
struct Renewed {
    prolonged: Vec<Attempt>,
    /// It was not at home on this link.
    claimed: Vec<Attempt>,
    /// It was, and is another server's.
    orphaned: bool,
}

impl Session {
    /// The server of a link prolongs what a heartbeat named to it, but for what is another's.
    pub(super) fn renew(&mut self, now: MonoMs, id: LinkId, renew: &wire::Renew) {
        let Some(sent) = self.beats.sent_at(renew.beat, id) else {
            return self.violation(
                id,
                "a renewal echoes a heartbeat that was not sent on this link",
            );
        };
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.heard(now);
        let from = match armed(Fault::LeaseFromReceipt) {
            true => now,
            false => sent,
        };
        let deadline = from.plus(link.lease_ms);
        self.shares.mark(id);
        let renewed = self.sort_named(id, renew, sent, deadline);
        if renewed.orphaned || !renewed.claimed.is_empty() {
            self.keep_to_homes();
        }
        if renewed.orphaned {
            self.hurry_all_but(now, id);
        }
        for attempt in renewed.claimed {
            self.repeat(now, attempt);
        }
        if !renewed.prolonged.is_empty() {
            self.actions.push_back(Action::Extend {
                attempts: renewed.prolonged,
                deadline,
            });
        }
    }

    fn sort_named(
        &mut self,
        id: LinkId,
        renew: &wire::Renew,
        sent: MonoMs,
        deadline: MonoMs,
    ) -> Renewed {
        let elsewhere = renew.elsewhere.iter().copied().map(Attempt::from);
        let elsewhere: BTreeSet<Attempt> = elsewhere.collect();
        let next_beat = self.beats.next();
        let mut renewed = Renewed::default();
        for (attempt, held) in &mut self.held {
            let home = held.home;
            let last_beat = home.and_then(|home| Some(self.links.get(&home)?.last_beat));
            let last_beat = last_beat.unwrap_or(0);
            if elsewhere.contains(attempt) {
                if home == Some(id) {
                    self.shares.rehome(home, None, held.running_weight());
                    held.orphan(last_beat, next_beat);
                    renewed.orphaned = true;
                }
                held.denied(id, renew.beat);
                continue;
            }
            if !held.can_be_renewed(id, renew.beat) {
                continue;
            }
            if held.renew(sent, deadline) && !held.is_finished() {
                renewed.prolonged.push(*attempt);
            }
            held.close(renew.beat);
            if home != Some(id) {
                self.shares.rehome(home, Some(id), held.running_weight());
                held.move_to(id, last_beat);
                renewed.claimed.push(*attempt);
            }
        }
        renewed
    }

    /// What a heartbeat names on a link.
    pub(super) fn name_held(&mut self, id: LinkId, beat: u64) -> Vec<wire::AttemptRef> {
        if let Some(link) = self.links.get_mut(&id) {
            link.last_beat = beat;
        }
        let held = self.held.values_mut();
        let concerned = held.filter(|held| held.concerns(id));
        let named = concerned.map(|held| {
            held.named(id, beat);
            held.attempt
        });
        named.collect()
    }

    /// A stream is gone, and with it the home of what was at home there.
    pub(super) fn orphan_all(&mut self, id: LinkId) {
        let next_beat = self.beats.next();
        for held in self.held.values_mut() {
            if held.home == Some(id) {
                held.orphan(next_beat, next_beat);
            }
        }
    }

    /// A link is gone. Its server may come back under another, so what it was told of is named to all: also what was before, or
    /// what its home keeps of a heartbeat from then would end it before that server has heard of it.
    pub(super) fn open_told(&mut self, id: LinkId) {
        let next_beat = self.beats.next();
        for held in self.held.values_mut() {
            if held.forget_told(id) {
                held.open_anew(next_beat);
            }
        }
    }

    /// What a silent server was to renew is named to all servers.
    pub(super) fn open_silent(&mut self, now: MonoMs) {
        let next_beat = self.beats.next();
        for (id, link) in &mut self.links {
            if !link.falls_silent(now) {
                continue;
            }
            let at_home = |held: &&mut Held| held.home == Some(*id);
            for held in self.held.values_mut().filter(at_home) {
                held.open(next_beat);
            }
        }
    }

    /// What moved is not spoken of where it was.
    fn keep_to_homes(&mut self) {
        let held = &self.held;
        for (id, link) in &mut self.links {
            link.speak_only_of(|attempt| {
                held.get(&attempt)
                    .is_some_and(|held| held.home == Some(*id))
            });
        }
    }

    /// The next heartbeat of the other links leaves at once, so that the next owner of what was orphaned hears of it.
    fn hurry_all_but(&mut self, now: MonoMs, id: LinkId) {
        for (other, link) in &mut self.links {
            if *other != id && link.is_welcomed() {
                link.next_beat = link.next_beat.min(now);
            }
        }
    }

    /// Tells the home of an attempt everything that no server has acknowledged.
    fn repeat(&mut self, now: MonoMs, attempt: Attempt) {
        self.queue_log(attempt);
        self.queue_progress(now, attempt);
        self.queue_checkpoint(attempt);
        let finished = self.held.get(&attempt).is_some_and(Held::is_finished);
        if finished && armed(Fault::EndNotRepeated) {
            return;
        }
        let out = if finished {
            Out::Finished(attempt)
        } else {
            Out::Started(attempt)
        };
        if let Some(link) = self.home_of(attempt) {
            link.outbox.push_back(out);
        }
    }
}
