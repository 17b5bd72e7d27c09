//! Idempotency keys that are being looked at: loaded for a command, or used in a batch that may not be visible yet.

use crate::model::{IdempotencyEntry, IdempotencyHash};

use super::marks::Marks;

#[derive(Debug, Default)]
pub(super) struct Keys(Marks<IdempotencyHash, Option<IdempotencyEntry>>);

impl Keys {
    /// `None` when not known, `Some(None)` when known to be unused.
    pub(super) fn get(&self, hash: &IdempotencyHash) -> Option<Option<&IdempotencyEntry>> {
        self.0.get(hash).map(|(_, entry)| entry.as_ref())
    }

    /// Takes a loaded answer unless something is known already, which is newer.
    pub(super) fn loaded(
        &mut self,
        hash: IdempotencyHash,
        entry: Option<IdempotencyEntry>,
        seq: u64,
    ) {
        if self.0.get(&hash).is_none() {
            self.0.put(hash, seq, entry);
        }
    }

    pub(super) fn used(&mut self, entry: IdempotencyEntry, seq: u64) {
        self.0.put(entry.hash, seq, Some(entry));
    }

    pub(super) fn forget(&mut self, safe: u64) {
        self.0.forget(safe);
    }
}
