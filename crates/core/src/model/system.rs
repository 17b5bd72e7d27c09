//! Rows that keep the system itself: meta, sessions, segments, counters, idempotency keys, tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::lease::Terms;

use super::{Actor, Epoch, Home, NamespaceName, RunId, SegmentId, SessionId, TokenId, WallMs};

/// The one row that says what this store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Drawn when the store was made.
    pub cluster: String,
    pub schema_version: u32,
    /// The oldest schema version whose servers may still write here.
    pub oldest_server: u32,
    pub segment_count: u16,
    /// The time-zone data that schedules were computed with.
    pub tz_version: String,
    pub created: WallMs,
}

/// Whose a session is, and where others reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// How the server is called in what it records. One that is started anew has the same name.
    pub server: Actor,
    /// The URL by which other servers reach it; `None` when it has no others.
    pub address: Option<String>,
    /// Of its program.
    pub version: String,
    /// Where it keeps the output of runs; `None` when it has no others.
    pub home: Option<Home>,
    /// The longest that a worker goes on by what it grants.
    pub lease_ms: u64,
}

impl Member {
    /// A server that no other needs to reach.
    pub fn alone(server: &str) -> Self {
        Self {
            server: Actor::new(server),
            address: None,
            version: String::new(),
            home: None,
            lease_ms: Terms::default().lease_ms,
        }
    }
}

/// One life of one engine loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    pub id: SessionId,
    pub member: Member,
    /// The number of the last commit.
    pub seq: u64,
    /// By the database's clock; says only when the session may be revoked.
    pub expires: WallMs,
    /// Once set, never cleared.
    pub revoked: bool,
    /// When it first owned a segment, by the database's clock. Kept only where servers share a store.
    pub took: Option<WallMs>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRow {
    pub id: SegmentId,
    pub owner: SessionId,
    pub epoch: Epoch,
    /// No id of this segment above the mark was ever stored or shown.
    pub id_mark: u64,
}

/// Conservation: created = completed + failed + cancelled + live, in every snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub created: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
}

impl Counters {
    pub fn live(self) -> u64 {
        self.created
            .saturating_sub(self.completed + self.failed + self.cancelled)
    }
}

/// (namespace, job, key) in sixteen bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdempotencyHash(pub [u8; 16]);

impl IdempotencyHash {
    pub fn of(namespace: &str, job: &str, key: &str) -> Self {
        Self::digest(&[namespace, job, key])
    }

    /// The same for what servers call a request among themselves. It has a part more, so no key of a caller's can be it.
    pub fn of_request(namespace: &str, job: &str, request: RequestId) -> Self {
        Self::digest(&["", namespace, job, &format!("{:032x}", request.0)])
    }

    /// What the request asked for, to tell a repetition from another request under the same key.
    pub fn fingerprint(parts: &[&str]) -> Self {
        Self::digest(parts)
    }

    fn digest(parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize()[..16]);
        Self(short)
    }
}

/// What a server calls a trigger that it sends to another, so that it can send it again: drawn for each. Unlike an
/// idempotency key it is not the caller's: nobody is shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub u128);

/// The answer that a repeated request gets again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyEntry {
    pub hash: IdempotencyHash,
    pub fingerprint: IdempotencyHash,
    pub run: RunId,
    pub created: WallMs,
}

impl IdempotencyEntry {
    pub const KEPT_MS: i64 = 24 * 3_600_000;

    /// Entries grow old by the hour they were made in.
    pub fn hour(&self) -> i64 {
        self.created.0.div_euclid(3_600_000)
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Admin,
    Operator,
    Viewer,
    Worker,
}

/// A token as it is kept: never its secret, only the secret's SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    pub id: TokenId,
    pub name: String,
    pub role: Role,
    /// The one namespace it is good for; `None` means all.
    pub namespace: Option<NamespaceName>,
    pub hash: [u8; 32],
    pub created: WallMs,
    pub actor: Actor,
    pub revoked: bool,
}
