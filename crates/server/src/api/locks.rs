//! Routes of locks: taken for a while, renewed, given back, each hold under a fence.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Reply};
use drumtower_core::model::{Actor, Fence, LockName, LockRef, LockRequest, LockRow, NamespaceName};
use drumtower_core::schedule::parse_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{self, Bounded};
use super::gate::LockPath;
use super::jobs::unexpected;
use super::page::{self, Page};
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::Time;
use super::{Edge, sum};
use crate::auth::Principal;
use crate::cluster::{Errand, Next};

const DEFAULT_TTL_MS: u64 = 30_000;

/// A lock that is held.
#[derive(Serialize, JsonSchema)]
pub struct Lock {
    namespace: NamespaceName,
    name: LockName,
    /// Who holds it, in the holder's own words.
    owner: String,
    /// Greater than that of every hold before: hand it to what the lock guards.
    fence: String,
    /// How long it is held after it was acquired or last renewed, counted by the holder from when it asked.
    ttl_ms: u64,
    acquired: Time,
    /// Whose token was used.
    actor: Actor,
    /// How many wait for it; told to those who look, not to those who acquire or renew it, and only while the server is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
}

impl Lock {
    /// Takes over how many wait from the part of the server that knows.
    fn learn(&mut self, parts: &[Value]) {
        let all = parts.iter().filter_map(|part| part["items"].as_array());
        let same = |it: &&Value| {
            it["name"] == self.name.as_str() && it["namespace"] == self.namespace.as_str()
        };
        let waiting = all.flatten().filter(same);
        let waiting = waiting.filter_map(|it| it["waiting"].as_u64()).max();
        self.waiting = self
            .waiting
            .or(waiting.and_then(|it| usize::try_from(it).ok()));
    }
}

impl From<LockRow> for Lock {
    fn from(row: LockRow) -> Self {
        Self {
            namespace: row.lock.namespace,
            name: row.lock.name,
            owner: row.owner,
            fence: row.fence.0.to_string(),
            ttl_ms: row.ttl_ms,
            acquired: row.acquired.into(),
            actor: row.actor,
            waiting: None,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acquire {
    /// Who asks: different for each that asks, the same when it asks again because it does not know the answer.
    #[schemars(length(min = 1, max = 128))]
    owner: String,
    /// From `1s` to `24h`; `30s` unless given.
    ttl: Option<String>,
    /// How long to wait while another holds it, up to `5m`; not at all unless given.
    wait: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renew {
    /// The fence of the hold.
    #[schemars(regex(pattern = r"^[0-9]{1,20}$"))]
    fence: String,
    /// From now on; as before unless given.
    ttl: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The fence of the hold.
    #[schemars(regex(pattern = r"^[0-9]{1,20}$"))]
    fence: String,
}

pub async fn acquire(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    LockPath(lock): LockPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Lock>, Problem> {
    Parameters::read(&uri, &[])?;
    let asked: Acquire = body::parse(&bytes)?;
    let request = LockRequest {
        lock,
        owner: asked.owner,
        ttl_ms: duration("ttl", asked.ttl.as_deref())?.unwrap_or(DEFAULT_TTL_MS),
        wait_ms: duration("wait", asked.wait.as_deref())?.unwrap_or(0),
    };
    carry_out(&edge, principal, Command::AcquireLock { request }).await
}

pub async fn renew(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    LockPath(lock): LockPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Lock>, Problem> {
    Parameters::read(&uri, &[])?;
    let asked: Renew = body::parse(&bytes)?;
    let command = Command::RenewLock {
        lock,
        fence: fence(&asked.fence)?,
        ttl_ms: duration("ttl", asked.ttl.as_deref())?,
    };
    carry_out(&edge, principal, command).await
}

pub async fn release(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    LockPath(lock): LockPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let asked: Release = body::parse(&bytes)?;
    let fence = Some(fence(&asked.fence)?);
    let command = Command::ReleaseLock { lock, fence };
    edge.handle.command(principal.actor, command).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// By force, whoever holds it.
pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    LockPath(lock): LockPath,
    uri: Uri,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let held = lock.clone();
    if edge.read(move |store| store.lock(&held)).await?.is_none() {
        return Err(free(&lock));
    }
    let command = Command::ReleaseLock { lock, fence: None };
    edge.handle.command(principal.actor, command).await??;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn show(
    State(edge): State<Edge>,
    LockPath(lock): LockPath,
    uri: Uri,
) -> Result<Json<Lock>, Problem> {
    Parameters::read(&uri, &[])?;
    let asked = lock.clone();
    let Some(row) = edge.read(move |store| store.lock(&asked)).await? else {
        return Err(free(&lock));
    };
    edge.at_owner(lock.segment())?;
    let mut shown = with_waiters(&edge, vec![row]).await;
    shown.pop().map(Json).ok_or_else(|| free(&lock))
}

/// Rows with how many wait for each, as far as that is known here: it is in the memory of a lock's owner, the rows are in the
/// store.
async fn with_waiters(edge: &Edge, rows: Vec<LockRow>) -> Vec<Lock> {
    let locks = rows.iter().map(|row| row.lock.clone()).collect();
    let waiting = edge.handle.lock_waiters(locks).await.unwrap_or_default();
    let waiting = waiting.into_iter().map(Some).chain(std::iter::repeat(None));
    let both = rows.into_iter().zip(waiting);
    let is_here = |lock: &LockRef| edge.cluster.owner(lock.segment()) == Next::Here;
    let shown = both.map(|(row, waiting)| Lock {
        waiting: waiting.filter(|_| is_here(&row.lock)),
        ..Lock::from(row)
    });
    shown.collect()
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Json<Page<Lock>>, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "limit", "cursor"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    let listing = page::listing(&edge, &uri, &parameters);
    let after = match parameters.text("cursor")? {
        Some(cursor) => Some(place(&listing.decode(cursor)?)?),
        None => None,
    };
    let limit = parameters.limit()?;
    let mut rows = edge
        .read(move |store| store.locks(namespace.as_ref(), after.as_ref(), limit + 1))
        .await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more).map(|row| &row.lock);
    let next = last.map(|lock| listing.encode(&format!("{}/{}", lock.namespace, lock.name)));
    let mut items = with_waiters(&edge, rows).await;
    if let Some(Extension(errand)) = errand
        && items.iter().any(|lock| lock.waiting.is_none())
    {
        // The others read the same rows, and know of their own locks who waits.
        let parts = sum::same(&edge, Some(&errand)).await.told;
        items.iter_mut().for_each(|lock| lock.learn(&parts));
    }
    Ok(Json(Page { items, next }))
}

async fn carry_out(
    edge: &Edge,
    principal: Principal,
    command: Command,
) -> Result<Json<Lock>, Problem> {
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Lock(row) => Ok(Json((*row).into())),
        other => Err(unexpected(&other)),
    }
}

fn place(text: &str) -> Result<LockRef, Problem> {
    let (namespace, name) = text.split_once('/').unwrap_or((text, ""));
    Ok(LockRef {
        namespace: NamespaceName::new(namespace)?,
        name: LockName::new(name)?,
    })
}

fn free(lock: &LockRef) -> Problem {
    let detail = format!(
        "nobody holds lock `{}` in namespace `{}`",
        lock.name, lock.namespace
    );
    Problem::new(Kind::NoSuchLock, detail)
}

fn duration(field: &str, text: Option<&str>) -> Result<Option<u64>, Problem> {
    let parsed = text.map(parse_duration).transpose();
    parsed.map_err(|error| Problem::field(field, format!("{field}: {error}")))
}

fn fence(text: &str) -> Result<Fence, Problem> {
    text.parse().map(Fence).map_err(|_| {
        let start: String = text.chars().take(64).collect();
        let detail = format!("fence: `{start}` is not the number that acquiring the lock gave");
        Problem::field("fence", detail)
    })
}
