//! How far the clock of this machine is from the database's, which all servers go by.
//!
//! ```text
//! right ──off by more than 1 s──► off ──by more than 60 s──► far off: it owns nothing
//!   ▲──────by less than half of it──┘ ◄───less than half of it───┘
//! ```
//!
//! Sessions end and partitions are made by the database's clock, but jobs are fired by that of the server that owns them: a
//! server whose clock is minutes ahead fires its share minutes early, and the others do not. Each reading of the database's
//! clock bounds the difference to half of the time that it took, so of the last ones the fastest counts.

use std::collections::VecDeque;

use drumtower_core::model::{Now, WallMs};

use super::life::Left;
use super::vitals::Vitals;

/// Beyond this somebody is told.
const OFF_MS: u64 = 1_000;
/// Beyond this a server owns nothing.
const FAR_OFF_MS: u64 = 60_000;
/// How many readings count: those of two seconds.
const READINGS: usize = 8;

/// One reading of the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    took_ms: u64,
    ahead_ms: i64,
}

impl Reading {
    /// `theirs` was read between these two moments.
    pub fn new(before: Now, after: Now, theirs: WallMs) -> Self {
        let took_ms = after.mono.0.saturating_sub(before.mono.0);
        let half = i64::try_from(took_ms / 2).unwrap_or(i64::MAX);
        Self {
            took_ms,
            ahead_ms: before.wall.plus(half).since(theirs),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Right,
    Off,
    FarOff,
}

/// What the last readings come to.
#[derive(Debug, Default)]
pub struct Skew {
    readings: VecDeque<Reading>,
    verdict: Verdict,
}

impl Skew {
    /// Takes a reading; the verdict, where it is another than before.
    fn note(&mut self, reading: Reading) -> Option<Verdict> {
        self.readings.truncate(READINGS - 1);
        self.readings.push_front(reading);
        let before = self.verdict;
        self.verdict = self.judge();
        (before != self.verdict).then_some(self.verdict)
    }

    /// Takes a reading, and tells what has changed; why nothing may be owned by this clock, if it is so.
    pub(super) fn take(&mut self, reading: Reading, vitals: &Vitals) -> Option<Left> {
        let changed = self.note(reading);
        self.tell(changed);
        vitals.clock_is_ahead(self.ahead_ms());
        (self.verdict == Verdict::FarOff).then(|| Left::FarOff(self.words()))
    }

    /// How far our clock is ahead, as far as it is known.
    fn ahead_ms(&self) -> Option<i64> {
        self.best().map(|it| it.ahead_ms)
    }

    fn best(&self) -> Option<Reading> {
        self.readings.iter().min_by_key(|it| it.took_ms).copied()
    }

    /// What slow readings leave open is judged in favour of the clock.
    fn judge(&self) -> Verdict {
        let Some(best) = self.best() else {
            return self.verdict;
        };
        let off_ms = best
            .ahead_ms
            .unsigned_abs()
            .saturating_sub(best.took_ms / 2);
        // What was wrong has to become better than it must be, so that nothing goes to and fro.
        let limit = |limit: u64, was: bool| if was { limit / 2 } else { limit };
        if off_ms > limit(FAR_OFF_MS, self.verdict == Verdict::FarOff) {
            Verdict::FarOff
        } else if off_ms > limit(OFF_MS, self.verdict != Verdict::Right) {
            Verdict::Off
        } else {
            Verdict::Right
        }
    }

    /// Says what has changed, if anything has.
    fn tell(&self, changed: Option<Verdict>) {
        let why = self.words();
        match changed {
            None => {}
            Some(Verdict::Right) => tracing::info!("the clock of this machine is right again"),
            Some(Verdict::Off) => {
                tracing::warn!(%why, "what this server fires, it fires by that clock")
            }
            Some(Verdict::FarOff) => {
                tracing::error!(%why, "this server gives up what it owns until its clock is right")
            }
        }
    }

    /// The difference in words, and what to do.
    fn words(&self) -> String {
        let ahead_ms = self.ahead_ms().unwrap_or(0);
        let way = if ahead_ms < 0 { "behind" } else { "ahead of" };
        let seconds = ahead_ms.unsigned_abs() as f64 / 1_000.0;
        format!(
            "the clock of this machine is {seconds:.1} s {way} the database's: set it right, with NTP on both machines"
        )
    }
}

#[cfg(test)]
mod tests {
    use drumtower_core::model::MonoMs;

    use super::*;

    fn reading(took_ms: u64, ahead_ms: i64) -> Reading {
        Reading { took_ms, ahead_ms }
    }

    fn after(readings: &[Reading]) -> Skew {
        let mut skew = Skew::default();
        for reading in readings {
            skew.note(*reading);
        }
        skew
    }

    #[test]
    fn the_middle_of_a_reading_is_compared() {
        let at = |ms: i64| Now {
            wall: WallMs(1_000_000 + ms),
            mono: MonoMs(ms.unsigned_abs()),
        };
        assert_eq!(
            Reading::new(at(0), at(40), WallMs(998_020)),
            reading(40, 2_000)
        );
        assert_eq!(
            Reading::new(at(0), at(0), WallMs(1_000_500)),
            reading(0, -500)
        );
    }

    #[test]
    fn the_fastest_of_the_last_readings_counts() {
        let mut skew = after(&[reading(2, 3), reading(900, 450)]);
        assert_eq!(skew.ahead_ms(), Some(3));
        for _ in 0..READINGS {
            skew.note(reading(9, 70));
        }
        assert_eq!(skew.ahead_ms(), Some(70), "what was long ago is forgotten");
    }

    #[test]
    fn each_change_is_told_once() {
        let mut skew = Skew::default();
        assert_eq!(skew.note(reading(2, 900)), None);
        assert_eq!(skew.note(reading(1, 1_500)), Some(Verdict::Off));
        assert_eq!(skew.note(reading(1, 1_600)), None);
        assert_eq!(skew.note(reading(0, -700)), None, "not much better");
        let right = (0..READINGS).find_map(|_| skew.note(reading(0, 400)));
        assert_eq!(right, Some(Verdict::Right));
    }

    #[test]
    fn who_is_far_off_is_so_until_it_is_clearly_better() {
        let mut skew = after(&[reading(1, -60_500)]);
        assert_eq!(skew.verdict, Verdict::FarOff);
        assert!(skew.words().contains("60.5 s behind"), "{}", skew.words());
        for _ in 0..READINGS {
            skew.note(reading(1, -50_000));
        }
        assert_eq!(skew.verdict, Verdict::FarOff);
        for _ in 0..READINGS {
            skew.note(reading(1, -29_000));
        }
        assert_eq!(skew.verdict, Verdict::Off);
    }

    #[test]
    fn a_slow_database_is_not_a_wrong_clock() {
        assert_eq!(after(&[reading(130_000, 64_000)]).verdict, Verdict::Right);
        assert_eq!(after(&[reading(2_000, -2_500)]).verdict, Verdict::Off);
    }
}
