//! Heartbeats: their numbers, and when each was sent.
//!
//! A lease runs from when the echoed heartbeat was *sent*, so the times are noted before a heartbeat leaves and looked
//! up when the server names it. What the server's clock says, or how long an echo travelled, plays no part.

use std::collections::VecDeque;

use drumtower_core::model::MonoMs;

/// Far more than the heartbeats of any lease; a bound all the same.
const REMEMBERED: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Beats {
    last: u64,
    /// Send times of the latest numbers, without gaps; the last one is that of `last`.
    sent: VecDeque<MonoMs>,
}

impl Beats {
    /// Takes the next number for a heartbeat that leaves at `now`.
    pub(super) fn send(&mut self, now: MonoMs) -> u64 {
        self.last += 1;
        self.sent.push_back(now);
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        self.last
    }

    /// When a heartbeat was sent; `None` for one that never was, or so long ago that no lease can rest on it.
    pub(super) fn sent_at(&self, number: u64) -> Option<MonoMs> {
        let age = usize::try_from(self.last.checked_sub(number)?).ok()?;
        let index = self.sent.len().checked_sub(age + 1)?;
        self.sent.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_is_known() {
        let mut beats = Beats::default();
        assert_eq!(beats.sent_at(0), None);
        assert_eq!(beats.send(MonoMs(5)), 1);
        assert_eq!(beats.send(MonoMs(9)), 2);
        assert_eq!(beats.sent_at(1), Some(MonoMs(5)));
        assert_eq!(beats.sent_at(2), Some(MonoMs(9)));
        assert_eq!(beats.sent_at(0), None);
        assert_eq!(beats.sent_at(3), None);
        assert_eq!(beats.sent_at(u64::MAX), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut beats = Beats::default();
        for at in 0..5000 {
            beats.send(MonoMs(at));
        }
        assert_eq!(beats.sent.len(), REMEMBERED);
        assert_eq!(beats.sent_at(5000), Some(MonoMs(4999)));
        assert_eq!(beats.sent_at(5000 - REMEMBERED as u64), None);
    }
}
