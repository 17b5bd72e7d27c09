//! Dead letters that are being looked at: loaded for a command, or changed in a batch that may not be visible yet.
//!
//! Their rows are in the store only. What a command does to one depends on whether it is still there, and on nothing else.

use crate::fault::{Fault, armed};
use crate::model::{Actor, AuditAction, AuditKind, AuditObject, NamespaceName, Now, Run, RunId};

use super::deeds::Told;
use super::marks::Marks;
use super::{Engine, LoadKey};

#[derive(Debug, Default)]
pub(super) struct Letters(Marks<RunId, bool>);

impl Letters {
    /// Whether the run is a dead letter; `None` when not known.
    pub(super) fn get(&self, run: RunId) -> Option<bool> {
        self.0.get(&run).map(|(_, there)| *there)
    }

    /// Takes a loaded answer unless something is known already, which is newer.
    pub(super) fn loaded(&mut self, run: RunId, there: bool, seq: u64) {
        if self.0.get(&run).is_none() {
            self.0.put(run, seq, there);
        }
    }

    pub(super) fn forget(&mut self, safe: u64) {
        self.0.forget(safe);
    }
}

impl Engine {
    pub(super) fn missing_letter(&self, run: RunId) -> Option<LoadKey> {
        let known = self.letters.get(run).is_some();
        (!known).then_some(LoadKey::Letter(run))
    }

    /// A run has failed for good and is kept.
    pub(super) fn keep_letter(&mut self, run: &Run) {
        if armed(Fault::LetterNotKept) {
            return;
        }
        let seq = self.building_seq();
        self.letters.0.put(run.id, seq, true);
        self.building.letter_kept(run.clone());
    }

    /// A letter that is there goes, by the hand of `actor`.
    pub(super) fn remove_letter(
        &mut self,
        now: Now,
        actor: &Actor,
        namespace: &NamespaceName,
        run: RunId,
        action: AuditAction,
    ) {
        let seq = self.building_seq();
        self.letters.0.put(run, seq, false);
        self.building.letter_removed(run);
        let object = AuditObject {
            kind: AuditKind::Run,
            namespace: Some(namespace.clone()),
            name: run.to_string(),
        };
        self.record_deed(now, actor, run.segment(), action, object, Told::default());
    }
}
