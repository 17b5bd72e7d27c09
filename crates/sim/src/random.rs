//! Dice that fall the same way every time: everything that a world draws comes from its seed.

/// SplitMix64: small, fast, and good enough to spread choices.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for one purpose, so that another throw elsewhere does not move them.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..count`; 0 when there is nothing to choose from.
    pub fn below(&mut self, count: u64) -> u64 {
        if count == 0 { 0 } else { self.draw() % count }
    }

    /// One of `least..=most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    pub fn signed(&mut self, most: u64) -> i64 {
        let size = i64::try_from(self.between(0, most)).unwrap_or(0);
        if self.chance(500) { size } else { -size }
    }

    /// True in `permille` of a thousand throws.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Mostly small, sometimes as large as `most`: each power of two is as likely as the next.
    pub fn skewed(&mut self, least: u64, most: u64) -> u64 {
        let span = most.saturating_sub(least).max(1);
        let bits = 64 - span.leading_zeros();
        let limit = self.between(0, u64::from(bits));
        let reach = if limit >= 63 {
            span
        } else {
            (1 << limit).min(span)
        };
        least + self.below(reach + 1).min(most.saturating_sub(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throws_stay_within_their_bounds_and_repeat() {
        let (mut one, mut other) = (Random::new(7), Random::new(7));
        for _ in 0..10_000 {
            let thrown = one.skewed(3, 1_000);
            assert!((3..=1_000).contains(&thrown), "{thrown}");
            assert_eq!(thrown, other.skewed(3, 1_000));
            assert!((5..=9).contains(&one.between(5, 9)));
            other.between(5, 9);
        }
        assert_eq!(one.below(0), 0);
    }
}
