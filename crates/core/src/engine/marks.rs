//! Things to remember until their batch is durable and every load that began before it has returned.
//!
//! Batches only grow, so what may be forgotten always stands in front.

use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
pub(super) struct Marks<K, V> {
    values: BTreeMap<K, (u64, V)>,
    order: VecDeque<(u64, K)>,
}

impl<K, V> Default for Marks<K, V> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Ord + Copy, V> Marks<K, V> {
    /// What is remembered of `key`, and the batch it was last true in.
    pub(super) fn get(&self, key: &K) -> Option<(u64, &V)> {
        self.values.get(key).map(|(seq, value)| (*seq, value))
    }

    pub(super) fn put(&mut self, key: K, seq: u64, value: V) {
        self.values.insert(key, (seq, value));
        self.order.push_back((seq, key));
    }

    /// Forgets everything up to batch `safe`.
    pub(super) fn forget(&mut self, safe: u64) {
        while let Some((seq, key)) = self.order.front().copied()
            && seq <= safe
        {
            self.order.pop_front();
            if self.values.get(&key).is_some_and(|(last, _)| *last <= safe) {
                self.values.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_lives_as_long_as_its_last_batch() {
        let mut marks = Marks::default();
        marks.put('a', 1, "first");
        marks.put('b', 2, "other");
        marks.put('a', 3, "second");
        marks.forget(2);
        assert_eq!(marks.get(&'a'), Some((3, &"second")));
        assert_eq!(marks.get(&'b'), None);
        marks.forget(3);
        assert_eq!(marks.get(&'a'), None);
        assert!(marks.values.is_empty() && marks.order.is_empty());
    }
}
