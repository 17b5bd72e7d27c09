//! Locks that users take: a name held by one owner for a while, with a fence that only grows.
//!
//! How long a lock is still held is not stored. A new owner of the segment gives every lock its whole term again: too long
//! never does harm, too short would.

use serde::{Deserialize, Serialize};

use super::{Actor, Fence, Limits, LockName, NamespaceName, SegmentId, SpecError, WallMs};

/// Names a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LockRef {
    pub namespace: NamespaceName,
    pub name: LockName,
}

impl LockRef {
    /// Where its fences are drawn.
    pub fn segment(&self) -> SegmentId {
        SegmentId::of(self.namespace.as_str(), &format!("lock {}", self.name))
    }
}

/// A lock that is held. One that is not has no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRow {
    pub lock: LockRef,
    /// Who holds it, in the holder's own words. The same owner gets the same hold again.
    pub owner: String,
    /// Greater than that of every hold before.
    pub fence: Fence,
    /// How long it is held after it was last renewed.
    pub ttl_ms: u64,
    pub acquired: WallMs,
    /// Whose token was used.
    pub actor: Actor,
}

/// A wish to hold a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRequest {
    pub lock: LockRef,
    pub owner: String,
    pub ttl_ms: u64,
    /// How long to wait while another holds it.
    pub wait_ms: u64,
}

impl LockRequest {
    pub fn check(&self) -> Result<(), SpecError> {
        let length = self.owner.chars().count();
        if length == 0 || length > Limits::NAME_CHARS || self.owner.chars().any(char::is_control) {
            let message = format!("must be 1 to {} printable characters", Limits::NAME_CHARS);
            return Err(SpecError::new("owner", message));
        }
        check_ttl(self.ttl_ms)?;
        if self.wait_ms > Limits::LOCK_WAIT_MS {
            let most = Limits::LOCK_WAIT_MS / 1000;
            let message = format!("may be {most}s: ask again when that has passed");
            return Err(SpecError::new("wait", message));
        }
        Ok(())
    }
}

pub(crate) fn check_ttl(ttl_ms: u64) -> Result<(), SpecError> {
    if (Limits::LOCK_TTL_MIN_MS..=Limits::LOCK_TTL_MAX_MS).contains(&ttl_ms) {
        return Ok(());
    }
    let message = format!("`{ttl_ms}ms` is not between 1s and 24h");
    Err(SpecError::new("ttl", message))
}
