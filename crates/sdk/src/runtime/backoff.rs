//! How long to wait before dialling again: twice as long each time, with jitter so that workers do not come in a herd.

use std::time::Duration;

const FIRST_MS: u64 = 100;
const LONGEST_MS: u64 = 5_000;

pub(super) struct Backoff {
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            failures: 0,
            random: seed | 1,
        }
    }

    /// The server answered: the next failure is a first one.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Between half of the step and the whole of it.
    pub(super) fn next(&mut self) -> Duration {
        let step_ms = FIRST_MS
            .saturating_mul(1 << self.failures.min(16))
            .min(LONGEST_MS);
        self.failures += 1;
        Duration::from_millis(step_ms / 2 + self.draw() % (step_ms / 2 + 1))
    }

    /// Xorshift: spread is all that is asked of it.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_start_over_after_success() {
        let mut backoff = Backoff::new(7);
        for step_ms in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let wait = backoff.next().as_millis();
            assert!(
                (step_ms / 2..=step_ms).contains(&wait),
                "{wait} for {step_ms}"
            );
        }
        backoff.reset();
        assert!(backoff.next().as_millis() <= 100);
    }

    #[test]
    fn two_workers_do_not_wait_alike() {
        let waits = |seed| -> Vec<_> {
            let mut backoff = Backoff::new(seed);
            (0..8).map(|_| backoff.next()).collect()
        };
        assert_ne!(waits(0x1234_5678_9abc_def1), waits(0xfedc_ba98_7654_3211));
    }
}
