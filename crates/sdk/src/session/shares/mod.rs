//! How the capacity of the worker is shared among its links.
//!
//! Invariants: what is outstanding on all links and what runs never exceed the capacity together. Each link has a
//! target; the targets together are the capacity, and a link is granted up to its target, so that what it has
//! outstanding and what runs for it stay within. What runs without a link counts against the capacity alone.
//!
//! Targets ([`targets`]) begin as fair shares and follow what servers want and what they leave unused. A link whose
//! target fell below what it has is asked for its credit back: all of it, for only an answer behind all assignments
//! says what is left. Then it is granted up to its target again.
//!
//! A want that is greater than the target of its link has a turn when it is the oldest: until all of it is granted at
//! once, to a link for which nothing else runs, the others are held to what it leaves of the capacity. A server of
//! light runs can thus not starve a heavy one of another, nor can the lighter runs of its own server; and heavy ones
//! cannot starve light ones, as the next want of the same server is the youngest. Targets stay as they are.
//!
//! Where there is too little for all targets, whoever has wanted for longest comes first.

mod targets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use drumtower_core::fault::{Fault, armed};
use drumtower_proto::worker::v1 as wire;

use super::LinkId;
use super::credit::Credit;

#[derive(Debug)]
pub(super) struct Shares {
    capacity: u64,
    /// The weight of all that runs, for a link or for none.
    running: u64,
    links: BTreeMap<LinkId, Share>,
    /// The turn that gave all that was wanted, while nothing of it is used.
    served: Option<Turn>,
    /// How many wants there were: the age of each is its number.
    wants: u64,
    /// How many recalls there were. An answer names the one that it answers.
    recalls: u64,
    /// Nothing is granted any more.
    closed: bool,
}

/// What one link has. It exists while the link is welcomed.
#[derive(Debug, Default)]
struct Share {
    credit: Credit,
    /// The weight of what runs for it.
    running: u64,
    target: u64,
    /// It stands until so much is outstanding.
    want: Option<Want>,
    /// The recall that was sent and not answered.
    recall: Option<u64>,
    /// The least that was outstanding since its last mark.
    low: u64,
    /// The credit that its server left unused from one mark to the next, and since.
    idle: u64,
}

#[derive(Clone, Copy, Debug)]
struct Want {
    weight: u64,
    number: u64,
}

/// The link whose turn it is, and the weight that it wants.
#[derive(Clone, Copy, Debug)]
struct Turn {
    link: LinkId,
    weight: u64,
}

impl Share {
    fn outstanding(&self) -> u64 {
        self.credit.outstanding()
    }

    /// What it has, to be used or in use.
    fn taken(&self) -> u64 {
        self.outstanding() + self.running
    }

    fn room(&self) -> u64 {
        self.target.saturating_sub(self.taken())
    }
}

impl Shares {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity: u64::from(capacity),
            running: 0,
            links: BTreeMap::new(),
            served: None,
            wants: 0,
            recalls: 0,
            closed: false,
        }
    }

    /// Grants nothing from now on, and takes back what is outstanding.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// The link is gone, and its credit with it. What runs for it runs for nobody.
    pub(super) fn leave(&mut self, link: LinkId) {
        if let Some(gone) = self.links.remove(&link) {
            self.served.take_if(|served| served.link == link);
            self.hand_on(gone.target);
            self.balance();
        }
    }

    /// Counts an assignment. False when its server had no credit for it.
    pub(super) fn consume(&mut self, link: LinkId, weight: u32) -> bool {
        let Some(share) = self.links.get_mut(&link) else {
            return false;
        };
        let covered = share.credit.consume(weight);
        let left = share.outstanding();
        share.low = share.low.min(left);
        share.idle = share.idle.min(left);
        self.served.take_if(|served| served.link == link);
        covered
    }

    /// Something begins to run.
    pub(super) fn occupy(&mut self, link: LinkId, weight: u32) {
        self.running += u64::from(weight);
        self.rehome(None, Some(link), weight);
    }

    /// Something ended.
    pub(super) fn vacate(&mut self, home: Option<LinkId>, weight: u32) {
        self.running = self.running.saturating_sub(u64::from(weight));
        self.rehome(home, None, weight);
    }

    /// What runs runs for another.
    pub(super) fn rehome(&mut self, from: Option<LinkId>, to: Option<LinkId>, weight: u32) {
        let weight = u64::from(weight);
        if let Some(share) = from.and_then(|from| self.links.get_mut(&from)) {
            share.running = share.running.saturating_sub(weight);
        }
        if let Some(share) = to.and_then(|to| self.links.get_mut(&to)) {
            share.running += weight;
        }
        self.balance();
    }

    /// A server wants credit for at least so much. Its latest word counts, at the age of the first that was not met.
    pub(super) fn want(&mut self, link: LinkId, weight: u32) {
        let Some(share) = self.links.get_mut(&link) else {
            return;
        };
        let weight = u64::from(weight).min(self.capacity);
        let number = share.want.map_or(self.wants, |want| want.number);
        share.want = Some(Want { weight, number });
        self.wants += 1;
        self.balance();
    }

    /// The server echoed a heartbeat: what it left unused since the echo before, it has no use for just now.
    pub(super) fn mark(&mut self, link: LinkId) {
        // What is called back says nothing of what is used.
        let steady = |share: &&mut Share| share.recall.is_none();
        let Some(share) = self.links.get_mut(&link).filter(steady) else {
            return;
        };
        share.idle = share.low;
        share.low = share.outstanding();
        let idle = share.idle;
        self.served
            .take_if(|served| served.link == link && served.weight <= idle);
        self.balance();
    }

    /// The new total to tell a server, when there is something to add.
    pub(super) fn grant(&mut self, link: LinkId) -> Option<u64> {
        let share = self.links.get(&link)?;
        if self.closed || share.recall.is_some() {
            return None;
        }
        let turn = self.turn();
        let amount = match turn {
            Some(turn) if turn.link == link => self.whole(share, turn),
            _ => self.up_to_target(link, share, turn),
        };
        if amount == 0 {
            return None;
        }
        self.served = self.served.or(turn.filter(|turn| turn.link == link));
        let share = self.links.get_mut(&link)?;
        let total = share.credit.grant(amount);
        share.forget_met_want();
        Some(total)
    }

    /// What its target and the turn of another leave it, behind those who have waited for longer.
    fn up_to_target(&self, link: LinkId, share: &Share, turn: Option<Turn>) -> u64 {
        let left = match turn {
            Some(turn) => (self.capacity - turn.weight).saturating_sub(self.taken_beside(turn)),
            None => self.free(),
        };
        let others = self
            .links
            .iter()
            .filter(|(other, _)| **other != link && turn.is_none_or(|turn| turn.link != **other));
        let before = others.map(|(_, other)| match other.want {
            Some(want) if share.want.is_none_or(|own| want.number < own.number) => {
                other.room().min(want.weight)
            }
            _ => 0,
        });
        let left = left.min(self.free()).saturating_sub(before.sum());
        share.room().min(left)
    }

    /// All that is missing, once it can be had and nothing else runs for the link.
    fn whole(&self, share: &Share, turn: Turn) -> u64 {
        let missing = turn.weight.saturating_sub(share.outstanding());
        if share.running == 0 && missing <= self.free() {
            missing
        } else {
            0
        }
    }

    /// A recall to send, when the link has credit that it should not have.
    pub(super) fn recall(&mut self, link: LinkId) -> Option<wire::Recall> {
        let share = self.links.get(&link)?;
        if share.recall.is_some() || share.outstanding() == 0 || !self.is_due(link, share) {
            return None;
        }
        self.recalls += 1;
        let id = self.recalls;
        let share = self.links.get_mut(&link)?;
        share.recall = Some(id);
        if armed(Fault::CreditLentTwice) {
            share.credit.recalled();
        }
        Some(wire::Recall {
            id,
            stays: !self.closed,
        })
    }

    fn is_due(&self, link: LinkId, share: &Share) -> bool {
        if self.closed {
            return true;
        }
        match self.turn() {
            Some(turn) if turn.link == link => false,
            Some(turn) if self.crowds(turn) => true,
            _ => {
                let served = self.served.is_some_and(|served| served.link == link);
                share.taken() > share.target && !served
            }
        }
    }

    /// A server answered a recall. It stands behind all that was assigned before, so the rest is back.
    pub(super) fn answered(&mut self, link: LinkId, id: u64) {
        if let Some(share) = self.links.get_mut(&link)
            && share.recall == Some(id)
        {
            share.recall = None;
            share.credit.recalled();
            self.balance();
        }
    }

    /// The oldest want, if it is greater than the target of its link. One that its target allows is older while
    /// something is to be had for it. None while what the last turn gave is unused.
    fn turn(&self) -> Option<Turn> {
        if self.served.is_some() {
            return None;
        }
        let wants = self.links.iter().filter_map(|(link, share)| {
            let want = share.want?;
            (want.weight > share.target || share.room() > 0).then_some((*link, share, want))
        });
        let (link, share, want) = wants.min_by_key(|(.., want)| want.number)?;
        let weight = want.weight;
        (weight > share.target).then_some(Turn { link, weight })
    }

    /// What is outstanding or runs, but for the link whose turn it is.
    fn taken_beside(&self, turn: Turn) -> u64 {
        let own = self.links.get(&turn.link).map_or(0, Share::taken);
        (self.running + self.outstanding()).saturating_sub(own)
    }

    /// Whether the others have more than the turn leaves them, even when all recalls are answered.
    fn crowds(&self, turn: Turn) -> bool {
        let others = self.links.iter().filter(|(link, _)| **link != turn.link);
        let recalled = others.filter(|(_, share)| share.recall.is_some());
        let coming: u64 = recalled.map(|(_, share)| share.outstanding()).sum();
        self.taken_beside(turn).saturating_sub(coming) > self.capacity - turn.weight
    }

    fn free(&self) -> u64 {
        self.capacity
            .saturating_sub(self.running + self.outstanding())
    }

    /// Credit that servers may still use.
    pub(super) fn outstanding(&self) -> u64 {
        self.links.values().map(Share::outstanding).sum()
    }

    pub(super) fn running(&self) -> u64 {
        self.running
    }
}

impl Share {
    fn forget_met_want(&mut self) {
        let outstanding = self.outstanding();
        self.want.take_if(|want| want.weight <= outstanding);
    }
}
