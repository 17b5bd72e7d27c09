//! Routes of sessions: a browser shows a token once and is known by a cookie from then on.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::model::{NamespaceName, Role, WallMs};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::problem::Problem;
use super::query::Parameters;
use super::time;
use super::{Edge, internal};
use crate::auth::{Call, DOORS, Operation, Principal, Who};
use crate::cluster::Errand;
use crate::console::session::LASTS_MS;

/// Who is signed in, and what it may do.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct Session<'a> {
    name: &'a str,
    role: Role,
    /// The one namespace it is good for; `null` means all.
    namespace: Option<&'a NamespaceName>,
    /// How the server is called.
    server: &'a str,
    version: &'static str,
    /// The operations that its role may call.
    may: Vec<May>,
}

/// An operation, by its name in the policy table.
#[derive(Serialize)]
pub struct May(String);

impl JsonSchema for May {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Operation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = DOORS
            .iter()
            .filter(|door| matches!(door.call, Call::Rest(..)))
            .map(|door| format!("{:?}", door.operation))
            .collect();
        json_schema!({"type": "string", "enum": names})
    }
}

pub async fn sign_in(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let until = WallMs(time::now().0.saturating_add(LASTS_MS));
    let sessions = &edge.sessions;
    let sealed = sessions.seal(&edge.authority, &principal, until, &headers);
    let sealed = sealed.map_err(|error| internal(&error))?;
    let cookie = sealed.ok_or_else(|| internal(&"the token of a caller is gone"))?;
    let session = Json(shown(&edge, &principal)).into_response();
    Ok(([(header::SET_COOKIE, cookie)], session).into_response())
}

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    Ok(Json(shown(&edge, &principal)).into_response())
}

pub async fn sign_out(
    State(edge): State<Edge>,
    errand: Option<Extension<Errand>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    if let Some(Extension(errand)) = errand {
        // Each server remembers by itself which sessions are over.
        errand.ask_others(&edge.cluster, &errand.0.own_part()).await;
    }
    let (sessions, authority) = (edge.sessions.clone(), edge.authority.clone());
    // It is written down before it is answered.
    let end = move || sessions.end(&authority, &headers, time::now());
    let cookie = match tokio::task::spawn_blocking(end).await {
        Ok(Ok(cookie)) => cookie,
        Ok(Err(error)) => return Err(internal(&error)),
        Err(error) => return Err(internal(&error)),
    };
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

fn shown<'a>(edge: &'a Edge, principal: &'a Principal) -> Session<'a> {
    let allowed = DOORS.iter().filter(|door| match door.who {
        Who::Anyone => true,
        Who::Roles(roles) => roles.contains(&principal.role),
    });
    let rest = allowed.filter(|door| matches!(door.call, Call::Rest(..)));
    let name = |operation: Operation| May(format!("{operation:?}"));
    Session {
        name: &principal.actor.0,
        role: principal.role,
        namespace: principal.namespace.as_ref(),
        server: &edge.server,
        version: env!("CARGO_PKG_VERSION"),
        may: rest.map(|door| name(door.operation)).collect(),
    }
}
