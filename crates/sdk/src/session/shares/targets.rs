//! Targets: how much of the capacity each link may have, in the long run.
//!
//! - A link that joins gets a fair share, taken from the greatest targets; one that leaves gives its own to the others
//!   evenly.
//! - A want moves target to its link until the link may have that much more. A server that wants nothing itself gives
//!   of what it left [idle](super::Share::idle): half, or more where more is needed, so that one busy server has nearly
//!   all in a few steps. It keeps 1 as long as it can.
//! - To a link below the fair share gives also whoever is above it, idle or not. So servers that all want come to fair
//!   shares.
//!
//! A want stands and moves target again whenever something changed, until it is met.

use super::{LinkId, Share, Shares};

impl Shares {
    /// The server of a link is ready to be given credit.
    pub(in super::super) fn join(&mut self, link: LinkId) {
        let mut share = Share::default();
        if self.links.is_empty() {
            share.target = self.capacity;
        }
        self.links.insert(link, share);
        let fair = self.fair();
        for _ in self.target(link)..fair {
            self.move_target(self.greatest_but(link), link, 1);
        }
        self.balance();
    }

    /// Shares out the target of a link that is gone.
    pub(super) fn hand_on(&mut self, target: u64) {
        let count = self.links.len() as u64;
        for (place, share) in (0..).zip(self.links.values_mut()) {
            share.target += target / count + u64::from(place < target % count);
        }
    }

    /// Lets every want that stands move what it can, the oldest first.
    pub(super) fn balance(&mut self) {
        for share in self.links.values_mut() {
            share.forget_met_want();
        }
        let wants = self.links.iter();
        let wants = wants.filter_map(|(link, share)| Some((share.want?.number, *link)));
        let mut wants: Vec<_> = wants.collect();
        wants.sort_unstable();
        for (_, link) in wants {
            self.pull(link);
        }
    }

    fn pull(&mut self, link: LinkId) {
        while let lacking @ 1.. = self.lacking(link) {
            let others = self.links.keys().filter(|donor| **donor != link);
            let spare = others.map(|donor| (self.spare(*donor, link), *donor));
            let Some((spare @ 1.., donor)) = spare.max() else {
                return;
            };
            let amount = spare.div_ceil(2).max(lacking).min(spare);
            self.move_target(Some(donor), link, amount);
        }
    }

    /// By how much the target of a link is too small for what it wants.
    fn lacking(&self, link: LinkId) -> u64 {
        let Some(share) = self.links.get(&link) else {
            return 0;
        };
        let wanted = share.want.map_or(0, |want| want.weight);
        let needed = (share.running + wanted).min(self.capacity);
        needed.saturating_sub(share.target)
    }

    /// How much of its target a link can give to another.
    fn spare(&self, donor: LinkId, to: LinkId) -> u64 {
        let Some(share) = self.links.get(&donor) else {
            return 0;
        };
        let unused = share.target.saturating_sub(share.running.max(1));
        let idle = match share.want {
            None => unused.min(share.idle),
            Some(_) => 0,
        };
        let fair = self.fair();
        let above = share.target.saturating_sub(fair);
        let below = fair.saturating_sub(self.target(to));
        idle.max(above.min(below))
    }

    fn fair(&self) -> u64 {
        self.capacity / (self.links.len() as u64).max(1)
    }

    fn target(&self, link: LinkId) -> u64 {
        self.links.get(&link).map_or(0, |share| share.target)
    }

    fn greatest_but(&self, link: LinkId) -> Option<LinkId> {
        let others = self.links.iter().filter(|(other, _)| **other != link);
        let greatest = others.max_by_key(|(_, share)| share.target);
        greatest.map(|(other, _)| *other)
    }

    fn move_target(&mut self, from: Option<LinkId>, to: LinkId, amount: u64) {
        let Some(share) = from.and_then(|from| self.links.get_mut(&from)) else {
            return;
        };
        let amount = amount.min(share.target);
        share.target -= amount;
        if let Some(share) = self.links.get_mut(&to) {
            share.target += amount;
        }
    }
}
