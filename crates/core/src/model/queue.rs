//! Queues: what jobs of a namespace share, with limits over all of them.
//!
//! A job names the queue its runs go through. A queue that nobody has defined limits nothing, so that it does not matter which
//! is applied first. Pausing is not part of the definition: applying it anew does not undo what an operator did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::check_description;
use super::limit::{JobLimits, ParsedLimits};
use super::{Actor, NamespaceName, Pause, QueueName, SpecError, WallMs};

/// A queue as written in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Drumtower queue manifest")]
pub struct QueueSpec {
    /// What this document describes: `Queue`.
    pub kind: QueueKind,
    /// The queue's name, unique in its namespace; it cannot be changed later.
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub name: QueueName,
    /// The tenant the queue belongs to; jobs of the same namespace may use it.
    #[serde(default)]
    #[schemars(with = "String", regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    pub namespace: NamespaceName,
    /// What the queue is for, shown wherever the queue is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How many attempts of all its jobs together may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub concurrency: Option<u32>,
    /// Where in the parameters the value stands that `per_key` counts by, as a JSON pointer such as `/customer`. Runs without
    /// such a value count together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = r"^(/.*)?$"))]
    pub key: Option<String>,
    /// How many attempts with the same value of `key`, of whichever job, may run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub per_key: Option<u32>,
    /// How many attempts may start in which time, such as `100/1m`; evenly spread, unless `burst` says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// How many attempts may start at once after a rest, before `rate` spreads them: 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub burst: Option<u32>,
}

impl QueueSpec {
    /// Checks everything that types alone do not, and reads the limits. The first fault is reported.
    pub fn limits(&self) -> Result<ParsedLimits, SpecError> {
        check_description(&self.description)?;
        JobLimits {
            concurrency: self.concurrency,
            key: self.key.clone(),
            per_key: self.per_key,
            rate: self.rate.clone(),
            burst: self.burst,
        }
        .read("")
    }

    pub fn queue(&self) -> QueueRef {
        QueueRef {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QueueKind {
    Queue,
}

/// Names a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueRef {
    pub namespace: NamespaceName,
    pub name: QueueName,
}

/// A queue that was defined. The row of a deleted one stays, so that no revision comes twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    pub spec: QueueSpec,
    /// Raised by every edit, pause, resume and deletion: the ETag.
    pub revision: u64,
    /// While it is paused it gives nothing out.
    pub paused: Option<Pause>,
    pub deleted: bool,
    pub created: WallMs,
    pub updated: WallMs,
    pub actor: Actor,
}

impl QueueRow {
    pub fn queue(&self) -> QueueRef {
        self.spec.queue()
    }
}
