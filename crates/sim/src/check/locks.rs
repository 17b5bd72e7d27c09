//! Locks: one holder at a time, by the holders' own counting, and fences that only grow.

use std::collections::{BTreeMap, BTreeSet};

use drumtower_core::change::ChangeSet;
use drumtower_core::model::{Fence, LockRef, LockRow};

use super::Checks;
use crate::clock::At;
use crate::world::World;

#[derive(Default)]
pub(crate) struct Locks {
    /// The last hold of each that became durable: its fence and its owner.
    last: BTreeMap<LockRef, (Fence, String)>,
    /// Who asked for a lock and has hung up, with the commit that was under way when the server learned of it.
    gone: BTreeMap<String, Option<u64>>,
    /// Locks that somebody took from their holder by force: only fences protect what they guard.
    forced: BTreeSet<LockRef>,
}

const PROMISE: &str = "locks";

impl World {
    /// Nobody is given a lock while another believes to hold it.
    pub(super) fn check_locks(&mut self, changes: &ChangeSet) {
        for row in changes.locks.values().flatten() {
            self.checks.check_gone(row, changes.seq);
            self.checks.lock_held(row);
            if self.checks.locks.forced.contains(&row.lock) {
                continue;
            }
            let at = self.at;
            let mut holds = self.clients.iter().flat_map(|client| &client.holds);
            let other = holds
                .find(|hold| hold.lock == row.lock && hold.owner != row.owner && hold.until > at);
            if let Some(other) = other {
                let words = format!(
                    "{} is given to {} while {} holds it for another {} us",
                    row.lock.name,
                    row.owner,
                    other.owner,
                    other.until.since(at)
                );
                self.checks.find(PROMISE, words);
            }
        }
    }

    /// A user begins to believe in a hold, or goes on believing.
    pub(crate) fn check_hold(&mut self, row: &LockRow, until: At) {
        let last = self.checks.locks.last.get(&row.lock).cloned();
        let known = last.as_ref().is_some_and(|(fence, _)| *fence >= row.fence);
        if !known && until > self.at && !self.checks.locks.forced.contains(&row.lock) {
            let words = format!(
                "{} is told of fence {}, which is not stored",
                row.owner, row.fence.0
            );
            self.checks.find("V9", words);
        }
        let overtaken = last.is_some_and(|(fence, owner)| {
            fence > row.fence && owner != row.owner && until > self.at
        });
        if overtaken && !self.checks.locks.forced.contains(&row.lock) {
            let words = format!(
                "{} believes to hold {} for another {} us, which was given to another",
                row.owner,
                row.lock.name,
                until.since(self.at)
            );
            self.checks.find(PROMISE, words);
        }
    }
}

impl Checks {
    pub(crate) fn lock_forced(&mut self, lock: &LockRef) {
        self.locks.forced.insert(lock.clone());
    }

    /// The engine was told that nobody waits under this name any more.
    pub(crate) fn caller_gone(&mut self, owner: Option<String>, flight: Option<u64>) {
        self.locks.gone.extend(owner.map(|owner| (owner, flight)));
    }

    /// Nobody is given a lock who is known to be gone.
    fn check_gone(&mut self, row: &LockRow, seq: u64) {
        let gone = self.locks.gone.get(&row.owner);
        let known = gone.is_some_and(|flight| *flight != Some(seq));
        let last = self.locks.last.get(&row.lock);
        if known && last.is_none_or(|(fence, _)| *fence != row.fence) {
            let words = format!(
                "{} is given to {}, who has hung up",
                row.lock.name, row.owner
            );
            self.find(PROMISE, words);
        }
    }

    fn lock_held(&mut self, row: &LockRow) {
        let held = (row.fence, row.owner.clone());
        let before = self.locks.last.insert(row.lock.clone(), held.clone());
        let Some(before) = before else { return };
        let renewed = before == held;
        if !renewed && before.0 >= row.fence {
            let words = format!(
                "{}: fence {} of {} follows on {} of {}",
                row.lock.name, row.fence.0, row.owner, before.0.0, before.1
            );
            self.find("V6", words);
        }
    }
}
