//! The audit log: who changed what, newest first.

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::model::{
    Actor, AuditAction, AuditEntry, AuditId, AuditKind, Change, NamespaceName,
};
use drumtower_store::AuditFilter;
use schemars::JsonSchema;
use serde::Serialize;

use super::Edge;
use super::page::{self, Page};
use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use crate::auth::Principal;

/// An entry as callers see it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditEntry")]
pub struct Entry {
    id: AuditId,
    at: Time,
    actor: Actor,
    action: AuditAction,
    kind: AuditKind,
    namespace: Option<NamespaceName>,
    name: String,
    version: Option<u64>,
    changes: Vec<Change>,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at.into(),
            actor: entry.actor,
            action: entry.action,
            kind: entry.object.kind,
            namespace: entry.object.namespace,
            name: entry.object.name,
            version: entry.version,
            changes: entry.changes,
        }
    }
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Json<Page<Entry>>, Problem> {
    let parameters = Parameters::read(
        &uri,
        &[
            "namespace",
            "kind",
            "name",
            "actor",
            "action",
            "since",
            "until",
            "limit",
            "cursor",
        ],
    )?;
    let filter = AuditFilter {
        namespace: principal.narrow(parameters.one("namespace")?)?,
        kind: choice(&parameters, "kind", &AuditKind::ALL, AuditKind::as_str)?,
        name: parameters.text("name")?.map(str::to_owned),
        actor: parameters.text("actor")?.map(str::to_owned),
        action: choice(
            &parameters,
            "action",
            &AuditAction::ALL,
            AuditAction::as_str,
        )?,
        since: parameters.instant("since")?,
        until: parameters.instant("until")?,
    };
    let listing = page::listing(&edge, &uri, &parameters);
    let before = match parameters.text("cursor")? {
        Some(cursor) => Some(listing.decode(cursor)?.parse()?),
        None => None,
    };
    let limit = parameters.limit()?;
    let page = edge
        .read(move |store| store.audit(&filter, before, limit))
        .await?;
    Ok(Json(Page {
        items: page.entries.into_iter().map(Entry::from).collect(),
        next: page.next.map(|id| listing.encode(&id.to_string())),
    }))
}

/// The one of `known` that a parameter names.
fn choice<T: Copy>(
    parameters: &Parameters,
    name: &str,
    known: &[T],
    text_of: fn(T) -> &'static str,
) -> Result<Option<T>, Problem> {
    let Some(given) = parameters.text(name)? else {
        return Ok(None);
    };
    let found = known.iter().copied().find(|it| text_of(*it) == given);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|it| text_of(*it)).collect();
        let given: String = given.chars().take(64).collect();
        Problem::parameter(
            name,
            format!("{name}: `{given}` is none of {}", names.join(", ")),
        )
    })
}
