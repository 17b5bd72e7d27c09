//! Routes of tokens. A secret is drawn here, shown once in the answer, and kept nowhere.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, NewToken, Refusal, Reply};
use drumtower_core::model::{Actor, NamespaceName, Role, TokenId, TokenRow, WorkerName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{self, Bounded};
use super::gate::TokenPath;
use super::page::Page;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::Time;
use super::{Edge, internal};
use crate::auth::{Principal, Secret, first_start};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewToken")]
pub struct Request {
    /// Unique among living tokens.
    #[schemars(regex(pattern = r"^[a-z0-9._-]{1,128}$"))]
    name: String,
    role: Role,
    /// The one namespace it is good for; `null` means all.
    #[serde(default)]
    namespace: Option<NamespaceName>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub struct Token<'a> {
    id: TokenId,
    name: &'a str,
    role: Role,
    namespace: Option<&'a NamespaceName>,
    created: Time,
    actor: &'a Actor,
    revoked: bool,
    /// Only in the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

pub async fn create(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    no_key(&headers)?;
    let Request {
        name,
        role,
        namespace,
    } = body::parse(&bytes)?;
    check_name(&name)?;
    // An admin of one namespace makes tokens for that one only, or it could step out of it.
    let namespace = principal.narrow(namespace)?;
    let secret = Secret::draw().map_err(|error| internal(&error))?;
    let token = NewToken {
        name,
        role,
        namespace,
        hash: secret.digest(),
    };
    let row = match edge
        .handle
        .command(principal.actor, Command::CreateToken { token })
        .await??
    {
        Reply::Token(row) => row,
        other => {
            return Err(internal(&format!(
                "the engine answered a new token with {other:?}"
            )));
        }
    };
    if first_start::is_free_admin(&row)
        && let Err(error) =
            first_start::retire_stored(&edge.data, &edge.handle, edge.reader.clone()).await
    {
        tracing::error!(%error, "the bootstrap token could not be ended; the next start tries again");
    }
    refresh(&edge).await?;
    let token = shown(&row, Some(&secret));
    Ok((StatusCode::CREATED, Json(token)).into_response())
}

/// The secret is shown once and kept nowhere, so a repeated request cannot be answered again. The name keeps it from making
/// a second token.
fn no_key(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.contains_key("idempotency-key") {
        false => Ok(()),
        true => Err(Problem::new(
            Kind::InvalidHeader,
            "Idempotency-Key: not taken here, because a secret is shown only once: leave it out, a name makes one token",
        )),
    }
}

fn check_name(name: &str) -> Result<(), Problem> {
    // Every name of the system obeys one rule; only the words of the error are about tokens.
    if WorkerName::new(name).is_err() {
        return Err(Problem::field(
            "name",
            "name: a token's name has 1 to 128 characters of a-z 0-9 . _ -",
        ));
    }
    if first_start::RESERVED.contains(&name) {
        return Err(Problem::field(
            "name",
            format!("name: `{name}` is a part of the system: choose another name"),
        ));
    }
    Ok(())
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let rows = edge.read(|store| store.tokens()).await?;
    let seen = rows
        .iter()
        .filter(|row| !row.revoked && principal.owns(row.namespace.as_ref()));
    let page = Page::whole(seen.map(|row| shown(row, None)));
    Ok(Json(page).into_response())
}

pub async fn revoke(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    TokenPath(id): TokenPath,
    uri: Uri,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let rows = edge.read(|store| store.tokens()).await?;
    let known = rows.iter().find(|row| row.id == id && !row.revoked);
    if known.is_none_or(|row| !principal.owns(row.namespace.as_ref())) {
        return Err(Refusal::NoSuchToken(id).into());
    }
    edge.handle
        .command(principal.actor, Command::RevokeToken { id })
        .await??;
    refresh(&edge).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The table in memory follows the store by itself; a caller that was answered must find it done.
async fn refresh(edge: &Edge) -> Result<(), Problem> {
    let authority = edge.authority.clone();
    tokio::task::spawn_blocking(move || authority.refresh())
        .await
        .map_err(|error| internal(&error))??;
    Ok(())
}

fn shown<'a>(row: &'a TokenRow, secret: Option<&'a Secret>) -> Token<'a> {
    Token {
        id: row.id,
        name: &row.name,
        role: row.role,
        namespace: row.namespace.as_ref(),
        created: row.created.into(),
        actor: &row.actor,
        revoked: row.revoked,
        secret: secret.map(Secret::text),
    }
}
