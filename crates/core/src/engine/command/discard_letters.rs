//! Throws dead letters away. One that is not there any more is passed over.

use crate::model::{Actor, AuditAction, NamespaceName, Now, RunId};

use super::super::{Engine, Reply};

impl Engine {
    pub(super) fn discard_letters(
        &mut self,
        now: Now,
        actor: &Actor,
        namespace: &NamespaceName,
        runs: Vec<RunId>,
    ) -> Reply {
        let mut discarded = Vec::new();
        for run in runs {
            if self.letters.get(run) == Some(true) {
                self.remove_letter(now, actor, namespace, run, AuditAction::Discarded);
                discarded.push(run);
            }
        }
        Reply::Discarded(discarded)
    }
}
