//! The audit log: who changed what, when, from what to what.
//!
//! An entry is written in the commit that makes the change, so there is no change without one and none without its change.
//! What runs do by themselves is not in it: a run keeps its own transitions, and who asked for it.

use serde::{Deserialize, Serialize};

use super::{Actor, AuditId, Change, JsonText, Limits, NamespaceName, WallMs};

/// What was done.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AuditAction {
    Created,
    Changed,
    Paused,
    Resumed,
    Deleted,
    /// A run was asked to stop, or a backfill ended.
    Cancelled,
    /// A token lost its right for ever.
    Revoked,
    /// A dead letter was made a new run.
    Requeued,
    /// A dead letter was thrown away.
    Discarded,
    /// A worker gets no new work.
    Drained,
    /// What was held against a worker is forgotten, or a circuit breaker was closed by hand.
    Reset,
}

impl AuditAction {
    pub const ALL: [Self; 11] = [
        Self::Created,
        Self::Changed,
        Self::Paused,
        Self::Resumed,
        Self::Deleted,
        Self::Cancelled,
        Self::Revoked,
        Self::Requeued,
        Self::Discarded,
        Self::Drained,
        Self::Reset,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Deleted => "deleted",
            Self::Cancelled => "cancelled",
            Self::Revoked => "revoked",
            Self::Requeued => "requeued",
            Self::Discarded => "discarded",
            Self::Drained => "drained",
            Self::Reset => "reset",
        }
    }
}

/// What it was done to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    Job,
    Calendar,
    Run,
    Token,
    Setting,
    Lock,
    Queue,
    Worker,
    Backfill,
}

impl AuditKind {
    pub const ALL: [Self; 9] = [
        Self::Job,
        Self::Calendar,
        Self::Run,
        Self::Token,
        Self::Setting,
        Self::Lock,
        Self::Queue,
        Self::Worker,
        Self::Backfill,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Calendar => "calendar",
            Self::Run => "run",
            Self::Token => "token",
            Self::Setting => "setting",
            Self::Lock => "lock",
            Self::Queue => "queue",
            Self::Worker => "worker",
            Self::Backfill => "backfill",
        }
    }
}

/// The thing that an entry tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditObject {
    pub kind: AuditKind,
    /// `None` for what belongs to the whole installation.
    pub namespace: Option<NamespaceName>,
    /// Its name; of a run or a backfill its id.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub id: AuditId,
    pub at: WallMs,
    pub actor: Actor,
    pub action: AuditAction,
    pub object: AuditObject,
    /// The version or revision that the change made, where there are such.
    pub version: Option<u64>,
    /// Field by field; large values are cut, their documents are kept as versions.
    pub changes: Vec<Change>,
}

impl AuditEntry {
    /// How long entries are kept.
    pub const KEPT_MS: i64 = 400 * 86_400_000;

    /// Cuts what is too large to be kept twice.
    pub fn bounded(mut changes: Vec<Change>) -> Vec<Change> {
        let more = changes.len().saturating_sub(Limits::AUDIT_FIELDS);
        changes.truncate(Limits::AUDIT_FIELDS);
        for change in &mut changes {
            change.before = change.before.take().map(cut);
            change.after = change.after.take().map(cut);
        }
        if more > 0 {
            changes.push(Change {
                field: "…".to_owned(),
                before: None,
                after: Some(quoted(&format!("{more} more fields"))),
            });
        }
        changes
    }

    /// About how much the entry weighs in a commit.
    pub fn bytes(&self) -> usize {
        let text = |value: &Option<JsonText>| value.as_ref().map_or(0, |it| it.as_str().len());
        let change = |it: &Change| it.field.len() + text(&it.before) + text(&it.after);
        self.changes.iter().map(change).sum()
    }
}

fn cut(value: JsonText) -> JsonText {
    let bytes = value.as_str().len();
    if bytes <= Limits::AUDIT_VALUE_BYTES {
        return value;
    }
    let start: String = value.as_str().chars().take(200).collect();
    quoted(&format!("{start}… ({bytes} bytes)"))
}

fn quoted(text: &str) -> JsonText {
    JsonText::from_value(&serde_json::Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn large_changes_are_cut_and_say_so() {
        let long = Value::from("x".repeat(5_000));
        let before: Value = (0..200).map(|n| (format!("f{n:03}"), json!(n))).collect();
        let mut after = before.clone();
        for (_, value) in after.as_object_mut().unwrap() {
            *value = long.clone();
        }
        let changes = AuditEntry::bounded(super::super::diff(&before, &after));
        assert_eq!(changes.len(), Limits::AUDIT_FIELDS + 1);
        let first = changes[0].after.as_ref().unwrap();
        assert!(first.as_str().len() < 300, "{first:?}");
        assert!(first.as_str().contains("(5002 bytes)"), "{first:?}");
        let last = changes.last().unwrap().after.as_ref().unwrap();
        assert!(last.as_str().contains("more fields"), "{last:?}");
    }
}
