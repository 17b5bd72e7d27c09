//! A set of segments: what a loop owns, and what a read is confined to.

use std::fmt;

use super::SegmentId;

const WORDS: usize = SegmentId::COUNT as usize / 64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentSet([u64; WORDS]);

impl SegmentSet {
    /// Every segment.
    pub const ALL: Self = Self([u64::MAX; WORDS]);
    pub const NONE: Self = Self([0; WORDS]);

    pub fn contains(&self, segment: SegmentId) -> bool {
        let (word, bit) = place(segment);
        self.0[word] & bit != 0
    }

    pub fn insert(&mut self, segment: SegmentId) {
        let (word, bit) = place(segment);
        self.0[word] |= bit;
    }

    pub fn remove(&mut self, segment: SegmentId) {
        let (word, bit) = place(segment);
        self.0[word] &= !bit;
    }

    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// What is in this set and not in the other.
    pub fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// What is in both sets.
    pub fn within(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    pub fn iter(&self) -> impl Iterator<Item = SegmentId> + '_ {
        (0..SegmentId::COUNT)
            .map(SegmentId)
            .filter(|segment| self.contains(*segment))
    }
}

/// The word and the bit of a segment. One beyond the last is nobody's, and in no set but by a bug.
fn place(segment: SegmentId) -> (usize, u64) {
    let number = usize::from(segment.0);
    (number / 64, 1 << (number % 64))
}

impl Default for SegmentSet {
    fn default() -> Self {
        Self::NONE
    }
}

impl FromIterator<SegmentId> for SegmentSet {
    fn from_iter<I: IntoIterator<Item = SegmentId>>(segments: I) -> Self {
        let mut set = Self::NONE;
        for segment in segments {
            set.insert(segment);
        }
        set
    }
}

impl fmt::Debug for SegmentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            0 => f.write_str("no segment"),
            _ if self.is_all() => f.write_str("all segments"),
            1..=8 => f.debug_set().entries(self.iter().map(|it| it.0)).finish(),
            count => write!(f, "{count} segments"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_put_in_and_nothing_else() {
        let some = [0, 63, 64, 511, 1023].map(SegmentId);
        let set: SegmentSet = some.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), some);
        assert_eq!(set.len(), some.len());
        let rest = SegmentSet::ALL.without(&set);
        assert_eq!(rest.len() + set.len(), usize::from(SegmentId::COUNT));
        assert!(some.iter().all(|segment| !rest.contains(*segment)));
        assert!(rest.union(&set).is_all());
        let mut none = set;
        some.into_iter().for_each(|segment| none.remove(segment));
        assert!(none.is_empty());
    }
}
