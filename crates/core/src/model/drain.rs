//! Maintenance of workers: a name that gets no new work until someone says so.
//!
//! It belongs to the name and not to a process, so that neither a restart of the worker nor one of the server ends it.

use serde::{Deserialize, Serialize};

use super::{Actor, Limits, NamespaceName, SpecError, WallMs, WorkerName, instant};

/// Names workers: every process of that name, or those whose token is bound to one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkerRef {
    pub name: WorkerName,
    /// `None` means all of that name.
    pub namespace: Option<NamespaceName>,
}

impl WorkerRef {
    /// Whether it names a process with this name and this namespace of its token.
    pub fn names(&self, worker: &WorkerName, namespace: Option<&NamespaceName>) -> bool {
        let scope = self.namespace.as_ref();
        self.name == *worker && (scope.is_none() || scope == namespace)
    }
}

/// A drain that is in force. One that is not has no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    pub worker: WorkerRef,
    pub since: WallMs,
    pub actor: Actor,
    /// When what still runs is stopped; `None` lets it end by itself.
    pub deadline: Option<WallMs>,
    /// When the deadline came and what still ran was asked to stop.
    pub forced: Option<WallMs>,
}

impl DrainRow {
    /// Why an attempt ended that was asked to stop, once the deadline has come. The actor is who began the drain, and the
    /// deadline may have been set anew since.
    pub fn stopped(&self) -> Option<String> {
        let (actor, since) = (&self.actor, instant(self.since));
        let forced = instant(self.forced?);
        Some(format!(
            "its worker was drained by {actor} at {since}, and told at {forced} to stop what it ran"
        ))
    }
}

/// Checks how long what runs may take to end.
pub fn check_drain_deadline(deadline_ms: u64) -> Result<(), SpecError> {
    if deadline_ms <= Limits::DRAIN_MS {
        return Ok(());
    }
    let days = Limits::DRAIN_MS / 86_400_000;
    let message = format!("may be up to {days} days: leave it out to let everything end by itself");
    Err(SpecError::new("deadline", message))
}
