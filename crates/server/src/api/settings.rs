//! Routes of settings: what a namespace has set, under a revision each.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Refusal, Reply};
use drumtower_core::model::{Actor, JsonText, NamespaceName, SettingKey, SettingName, SettingRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Edge;
use super::body::{self, Bounded};
use super::gate::{NamespacePath, SettingPath};
use super::jobs::unexpected;
use super::page::Page;
use super::precondition::SETTING;
use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use crate::auth::Principal;

/// A setting as callers see it.
#[derive(Serialize, JsonSchema)]
pub struct Setting {
    namespace: Option<NamespaceName>,
    name: SettingName,
    revision: u64,
    updated: Time,
    actor: Actor,
    #[schemars(with = "serde_json::Value")]
    value: JsonText,
}

/// `None` when it was deleted.
fn view(row: SettingRow) -> Option<Setting> {
    Some(Setting {
        namespace: row.key.namespace,
        name: row.key.name,
        revision: row.revision,
        updated: row.updated.into(),
        actor: row.actor,
        value: row.value?,
    })
}

pub async fn put(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    SettingPath(key): SettingPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = SETTING.condition(&headers)?;
    let value: Value = body::parse(&bytes)?;
    let command = Command::PutSetting {
        key,
        value: JsonText::from_value(&value),
        condition,
    };
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Setting { row, created } => {
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, shown(*row)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

pub async fn show(
    State(edge): State<Edge>,
    SettingPath(key): SettingPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let rows = edge.read(|store| store.settings()).await?;
    let row = rows
        .into_iter()
        .find(|row| row.key == key && row.value.is_some());
    match row {
        Some(row) => Ok(shown(row).into_response()),
        None => Err(Refusal::NoSuchSetting(key.name).into()),
    }
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    SettingPath(key): SettingPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = SETTING.condition_on_existing(&headers)?;
    let command = Command::DeleteSetting { key, condition };
    edge.handle.command(principal.actor, command).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// There are few names, so they come on one page.
pub async fn list(
    State(edge): State<Edge>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
) -> Result<Json<Page<Setting>>, Problem> {
    Parameters::read(&uri, &[])?;
    let rows = edge.read(|store| store.settings()).await?;
    let own = rows
        .into_iter()
        .filter(|row| row.key.namespace.as_ref() == Some(&namespace));
    Ok(Json(Page::whole(own.filter_map(view))))
}

fn shown(row: SettingRow) -> impl IntoResponse {
    (
        [(header::ETAG, SETTING.etag(row.revision))],
        Json(view(row)),
    )
}

impl SettingPath {
    pub(super) fn of(namespace: &str, name: &str) -> Result<Self, Problem> {
        Ok(Self(SettingKey {
            namespace: Some(NamespaceName::new(namespace)?),
            name: name
                .parse()
                .map_err(|error: drumtower_core::model::SpecError| {
                    Problem::parameter("name", error.to_string())
                })?,
        }))
    }
}
