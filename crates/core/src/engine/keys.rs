//! Idempotency keys that are being looked at: loaded for a command, or used in a batch that may not be visible yet.

use std::collections::BTreeMap;

use crate::model::{IdempotencyEntry, IdempotencyHash};

#[derive(Debug)]
struct Known {
    entry: Option<IdempotencyEntry>,
    /// The batch that was being built when this was last true.
    seq: u64,
}

#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<IdempotencyHash, Known>);

impl Keys {
    /// `None` when not known, `Some(None)` when known to be unused.
    pub(super) fn get(&self, hash: &IdempotencyHash) -> Option<Option<&IdempotencyEntry>> {
        self.0.get(hash).map(|known| known.entry.as_ref())
    }

    /// Takes a loaded answer unless something is known already, which is newer.
    pub(super) fn loaded(
        &mut self,
        hash: IdempotencyHash,
        entry: Option<IdempotencyEntry>,
        seq: u64,
    ) {
        self.0.entry(hash).or_insert(Known { entry, seq });
    }

    pub(super) fn used(&mut self, entry: IdempotencyEntry, seq: u64) {
        self.0.insert(
            entry.hash,
            Known {
                entry: Some(entry),
                seq,
            },
        );
    }

    pub(super) fn forget(&mut self, safe: u64) {
        self.0.retain(|_, known| known.seq > safe);
    }
}
