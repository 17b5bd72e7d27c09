//! A Bloom filter over hashes that are random already: their own bytes choose the bits.

use drumtower_core::model::IdempotencyHash;

use crate::Error;

/// Four bits of sixteen for each key: one unknown key in four hundred looks known.
const BITS_A_KEY: u64 = 16;
const PROBES: usize = 4;
/// A short filter would not spread.
const LEAST_BITS: u64 = 1_024;

#[derive(Clone)]
pub struct Filter {
    /// A power of two of bits.
    words: Vec<u64>,
}

impl Filter {
    pub fn for_keys(keys: u64) -> Self {
        let bits = keys
            .saturating_mul(BITS_A_KEY)
            .clamp(LEAST_BITS, 1 << 32)
            .next_power_of_two();
        Self {
            words: vec![0; (bits / 64) as usize],
        }
    }

    fn bits(&self, hash: &IdempotencyHash) -> [(usize, u64); PROBES] {
        let half = |from: usize| {
            hash.0[from..from + 8]
                .iter()
                .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        // An odd step visits different bits.
        let (start, step, mask) = (half(8), half(0) | 1, self.words.len() as u64 * 64 - 1);
        std::array::from_fn(|probe| {
            let bit = start.wrapping_add(step.wrapping_mul(probe as u64)) & mask;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    pub fn put(&mut self, hash: &IdempotencyHash) {
        for (word, bit) in self.bits(hash) {
            self.words[word] |= bit;
        }
    }

    /// False only if the hash was never put.
    pub fn may_hold(&self, hash: &IdempotencyHash) -> bool {
        self.bits(hash)
            .iter()
            .all(|(word, bit)| self.words[*word] & bit != 0)
    }

    /// The codec byte, the format byte, the words.
    pub fn seal(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(2 + self.words.len() * 8);
        blob.extend([0, 1]);
        blob.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
        blob
    }

    pub fn open(blob: &[u8]) -> Result<Self, Error> {
        let words: Option<Vec<u64>> = blob.strip_prefix(&[0, 1]).map(|body| {
            body.chunks_exact(8)
                .map(|word| {
                    word.iter()
                        .rev()
                        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
                })
                .collect()
        });
        match words.filter(|words| words.len().is_power_of_two()) {
            Some(words) => Ok(Self { words }),
            None => Err(Error::Corrupt(
                "a filter of idempotency keys cannot be read".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_held_and_little_else() {
        let key = |n: u32| IdempotencyHash::of("default", "job", &n.to_string());
        let mut filter = Filter::for_keys(10_000);
        (0..10_000).for_each(|n| filter.put(&key(n)));
        let filter = Filter::open(&filter.seal()).expect("it comes back");
        assert!((0..10_000).all(|n| filter.may_hold(&key(n))));
        let strangers = (10_000..30_000)
            .filter(|n| filter.may_hold(&key(*n)))
            .count();
        assert!(
            strangers < 200,
            "{strangers} of 20000 unknown keys look known"
        );
    }

    #[test]
    fn foreign_blobs_are_refused() {
        for blob in [&[][..], &[0, 1], &[9, 9, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(Filter::open(blob).is_err());
        }
    }
}
