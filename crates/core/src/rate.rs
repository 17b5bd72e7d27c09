//! Rates: how many may start in which time, by the generic cell rate algorithm.
//!
//! All that is remembered is one instant: when the next would start if all came evenly. Each start moves it on by the
//! interval; one may start as long as it lies no more than the burst's worth ahead. So in any span of time at most
//! `burst + span / interval` start. Instants are nanoseconds of a clock that does not step.

/// A rate as it is reckoned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    interval_ns: i64,
    burst: i64,
}

pub const NS_A_MS: i64 = 1_000_000;

impl Rate {
    /// `count` in `period_ms`, `burst` at once. The interval is rounded up: never faster than was said.
    pub fn new(count: u32, period_ms: u64, burst: u32) -> Self {
        let period_ns = i64::try_from(period_ms)
            .unwrap_or(i64::MAX)
            .saturating_mul(NS_A_MS);
        let count = i64::from(count.max(1));
        Self {
            interval_ns: (period_ns / count + i64::from(period_ns % count > 0)).max(1),
            burst: i64::from(burst.max(1)),
        }
    }

    /// From when on the next may start.
    pub fn next_at(self, reached: i64) -> i64 {
        let ahead = (self.burst - 1).saturating_mul(self.interval_ns);
        reached.saturating_sub(ahead)
    }

    pub fn admits(self, reached: i64, now: i64) -> bool {
        self.next_at(reached) <= now
    }

    /// How many may start now.
    pub fn admitted(self, reached: i64, now: i64) -> u32 {
        let used = reached.saturating_sub(now).max(0);
        let left = self.span_ns().saturating_sub(used).max(0);
        u32::try_from(left / self.interval_ns).unwrap_or(u32::MAX)
    }

    /// One starts now.
    pub fn admit(self, reached: i64, now: i64) -> i64 {
        reached.max(now).saturating_add(self.interval_ns)
    }

    /// The furthest ahead that starts can move the instant: as after a whole burst. What lies further comes from another
    /// rate, or from another clock.
    pub fn span_ns(self) -> i64 {
        self.burst.saturating_mul(self.interval_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_and_then_evenly() {
        let rate = Rate::new(10, 1_000, 3);
        let mut reached = i64::MIN;
        let mut starts = Vec::new();
        for ms in 0..1_000 {
            let now = ms * NS_A_MS;
            for left in (0..rate.admitted(reached, now)).rev() {
                assert!(rate.admits(reached, now));
                reached = rate.admit(reached, now);
                assert_eq!(rate.admitted(reached, now), left);
                starts.push(ms);
            }
            assert!(!rate.admits(reached, now));
        }
        assert_eq!(starts[..6], [0, 0, 0, 100, 200, 300]);
        assert_eq!(starts.len(), 3 + 9);
    }

    #[test]
    fn starts_move_the_instant_by_a_burst_at_most() {
        let rate = Rate::new(1, 1_000, 2);
        let mut reached = i64::MIN;
        while rate.admits(reached, 7) {
            reached = rate.admit(reached, 7);
        }
        assert_eq!(reached, 7 + rate.span_ns());
    }

    proptest! {
        /// However starts are tried, no span holds more than its share.
        #[test]
        fn no_span_holds_too_many(
            count in 1_u32..50, period in 1_000_u64..5_000, burst in 1_u32..10,
            waits in proptest::collection::vec(0_i64..300, 1..200),
        ) {
            let rate = Rate::new(count, period, burst.min(count));
            let (mut now, mut reached) = (0, i64::MIN);
            let mut starts: Vec<i64> = Vec::new();
            for wait in waits {
                now += wait * NS_A_MS;
                if rate.admits(reached, now) {
                    reached = rate.admit(reached, now);
                    starts.push(now);
                }
            }
            for (first, from) in starts.iter().enumerate() {
                for (last, to) in starts.iter().enumerate().skip(first) {
                    let span = (to - from) as f64 / (period as f64 * 1e6 / f64::from(count));
                    let most = f64::from(burst.min(count)) + span + 1e-6;
                    prop_assert!((last - first + 1) as f64 <= most);
                }
            }
        }
    }
}
