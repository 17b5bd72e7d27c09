//! The queues that were defined, in every namespace, all of them.

use std::collections::BTreeMap;

use crate::model::{ParsedLimits, QueueRef, QueueRow};

#[derive(Debug, Default)]
pub(super) struct Queues {
    known: BTreeMap<QueueRef, Queue>,
}

#[derive(Debug)]
struct Queue {
    row: QueueRow,
    limits: ParsedLimits,
}

impl Queues {
    /// Takes a queue as it stands. Limits that cannot be read any more limit nothing.
    pub(super) fn put(&mut self, row: QueueRow) {
        let limits = row.spec.limits().unwrap_or_default();
        self.known.insert(row.queue(), Queue { row, limits });
    }

    /// The row, also of a deleted queue.
    pub(super) fn row(&self, queue: &QueueRef) -> Option<&QueueRow> {
        self.known.get(queue).map(|queue| &queue.row)
    }

    /// What it limits; `None` when it is not defined.
    pub(super) fn limits(&self, queue: &QueueRef) -> Option<&ParsedLimits> {
        let queue = self.known.get(queue).filter(|queue| !queue.row.deleted);
        queue.map(|queue| &queue.limits)
    }

    pub(super) fn is_paused(&self, queue: &QueueRef) -> bool {
        let queue = self.known.get(queue).filter(|queue| !queue.row.deleted);
        queue.is_some_and(|queue| queue.row.paused.is_some())
    }

    pub(super) fn defined(&self) -> impl Iterator<Item = &QueueRow> {
        let rows = self.known.values().map(|queue| &queue.row);
        rows.filter(|row| !row.deleted)
    }
}
