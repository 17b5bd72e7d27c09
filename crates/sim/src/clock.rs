//! True time, which nobody in the world can read, and the clocks that nodes read instead.
//!
//! A node's two clocks run on one oscillator that drifts. The wall clock may be stepped; the monotonic one counts on
//! through freezes and restarts, as the clock of a machine does.

use drumtower_core::model::{MonoMs, Now, WallMs};

/// Microseconds since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct At(pub u64);

pub const MS: u64 = 1_000;
pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;

impl At {
    pub fn plus(self, us: u64) -> Self {
        Self(self.0.saturating_add(us))
    }

    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[derive(Clone, Debug)]
pub struct Clock {
    wall_base: i64,
    mono_base: u64,
    /// How many microseconds it gains in a second of true time.
    drift_ppm: i64,
    /// The sum of all steps of the wall clock.
    stepped: i64,
}

impl Clock {
    pub fn new(wall_base: i64, mono_base: u64, drift_ppm: i64) -> Self {
        Self {
            wall_base,
            mono_base,
            drift_ppm,
            stepped: 0,
        }
    }

    fn elapsed_ms(&self, at: At) -> u64 {
        let gained = i128::from(at.0) * i128::from(self.drift_ppm) / 1_000_000;
        let us = (i128::from(at.0) + gained).max(0);
        u64::try_from(us / 1_000).unwrap_or(u64::MAX)
    }

    pub fn now(&self, at: At) -> Now {
        let elapsed = self.elapsed_ms(at);
        let wall = self.wall_base + self.stepped + i64::try_from(elapsed).unwrap_or(i64::MAX / 2);
        Now {
            wall: WallMs(wall),
            mono: MonoMs(self.mono_base + elapsed),
        }
    }

    pub fn mono(&self, at: At) -> MonoMs {
        self.now(at).mono
    }

    pub fn step(&mut self, ms: i64) {
        self.stepped += ms;
    }

    /// Someone sets the wall clock right. Returns by how much.
    pub fn set_right(&mut self) -> i64 {
        -std::mem::take(&mut self.stepped)
    }

    /// The first instant at which the monotonic clock shows `mono` or more.
    pub fn when(&self, mono: MonoMs) -> At {
        let us = i128::from(mono.0.saturating_sub(self.mono_base)) * 1_000;
        let guess = us * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm));
        let mut at = At(u64::try_from(guess)
            .unwrap_or(u64::MAX)
            .saturating_sub(2_000));
        while self.mono(at) < mono {
            at = at.plus(200);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_on_the_monotonic_clock_is_found_again() {
        for drift in [-4_000, -1, 0, 17, 4_000] {
            let clock = Clock::new(1_800_000_000_000, 55_000, drift);
            for ahead in [0, 1, 999, 15_000, 86_400_000] {
                let mono = MonoMs(55_000 + ahead);
                let at = clock.when(mono);
                assert!(clock.mono(at) >= mono);
                assert!(clock.mono(at).0 <= mono.0 + 1, "{drift} {ahead}");
            }
        }
    }

    #[test]
    fn a_step_moves_the_wall_clock_alone() {
        let mut clock = Clock::new(0, 0, 0);
        let before = clock.now(At(SECOND));
        clock.step(-400);
        let after = clock.now(At(SECOND));
        assert_eq!(
            (before.wall.0 - after.wall.0, before.mono),
            (400, after.mono)
        );
    }
}
