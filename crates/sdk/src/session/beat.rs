//! Heartbeats: their numbers, which count over all links, and when and on which link each was sent.
//!
//! A lease runs from when the echoed heartbeat was *sent*, so the times are noted before a heartbeat leaves and looked
//! up when the server of that link names it. What the server's clock says, or how long an echo travelled, plays no part.

use std::collections::VecDeque;

use drumtower_core::model::MonoMs;

use super::LinkId;

/// Far more than the heartbeats of any lease on all links; a bound all the same.
const REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Beats {
    last: u64,
    /// When and where the latest numbers were sent, without gaps; the last one is that of `last`.
    sent: VecDeque<(MonoMs, LinkId)>,
}

impl Beats {
    /// The number of the next heartbeat, on whatever link.
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Takes the next number for a heartbeat that leaves on a link at `now`.
    pub(super) fn send(&mut self, now: MonoMs, link: LinkId) -> u64 {
        self.last += 1;
        self.sent.push_back((now, link));
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        self.last
    }

    /// When a heartbeat was sent on a link; `None` for one that never was, or so long ago that no lease can rest on it.
    pub(super) fn sent_at(&self, number: u64, link: LinkId) -> Option<MonoMs> {
        let age = usize::try_from(self.last.checked_sub(number)?).ok()?;
        let index = self.sent.len().checked_sub(age + 1)?;
        let (at, on) = self.sent.get(index)?;
        (*on == link).then_some(*at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: LinkId = LinkId(1);
    const TWO: LinkId = LinkId(2);

    #[test]
    fn only_what_was_sent_is_known() {
        let mut beats = Beats::default();
        assert_eq!(beats.sent_at(0, ONE), None);
        assert_eq!(beats.send(MonoMs(5), ONE), 1);
        assert_eq!(beats.send(MonoMs(9), ONE), 2);
        assert_eq!(beats.sent_at(1, ONE), Some(MonoMs(5)));
        assert_eq!(beats.sent_at(2, ONE), Some(MonoMs(9)));
        assert_eq!(beats.sent_at(0, ONE), None);
        assert_eq!(beats.sent_at(3, ONE), None);
        assert_eq!(beats.sent_at(u64::MAX, ONE), None);
    }

    #[test]
    fn a_number_is_known_on_its_link_alone() {
        let mut beats = Beats::default();
        assert_eq!(beats.send(MonoMs(5), ONE), 1);
        assert_eq!(beats.send(MonoMs(6), TWO), 2);
        assert_eq!(beats.sent_at(1, TWO), None);
        assert_eq!(beats.sent_at(2, ONE), None);
        assert_eq!(beats.sent_at(2, TWO), Some(MonoMs(6)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut beats = Beats::default();
        for at in 0..9000 {
            beats.send(MonoMs(at), ONE);
        }
        assert_eq!(beats.sent.len(), REMEMBERED);
        assert_eq!(beats.sent_at(9000, ONE), Some(MonoMs(8999)));
        assert_eq!(beats.sent_at(9000 - REMEMBERED as u64, ONE), None);
    }
}
