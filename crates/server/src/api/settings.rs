//! Routes of settings: what is set for a namespace, or for the whole installation, under a revision each.
//!
//! Everybody may read what holds for the installation, because it decides what becomes of their jobs. Only an admin of all
//! namespaces changes it.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Refusal, Reply};
use drumtower_core::model::{
    Actor, JobSettings, JsonText, NamespaceName, SettingKey, SettingName, SettingRow,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Edge;
use super::body::{self, Bounded};
use super::gate::{NamespacePath, SettingPath};
use super::jobs::unexpected;
use super::page::Page;
use super::precondition::SETTING;
use super::problem::{Kind, Problem};
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
    admit(&principal, &key)?;
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
    admit(&principal, &key)?;
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
    set_for(&edge, Some(namespace)).await
}

pub async fn list_of_installation(
    State(edge): State<Edge>,
    uri: Uri,
) -> Result<Json<Page<Setting>>, Problem> {
    Parameters::read(&uri, &[])?;
    set_for(&edge, None).await
}

async fn set_for(
    edge: &Edge,
    namespace: Option<NamespaceName>,
) -> Result<Json<Page<Setting>>, Problem> {
    let rows = edge.read(|store| store.settings()).await?;
    let own = rows
        .into_iter()
        .filter(|row| row.key.namespace == namespace);
    Ok(Json(Page::whole(own.filter_map(view))))
}

/// What jobs get that do not say it, and what they may say at most, as it stands.
pub async fn of_jobs(edge: &Edge) -> Result<JobSettings, Problem> {
    let rows = edge.read(|store| store.settings()).await?;
    let row = rows.into_iter().find(|row| row.key == SettingKey::JOBS);
    match row.and_then(|row| row.value) {
        Some(value) => Ok(JobSettings::parse("settings.jobs", &value)?),
        None => Ok(JobSettings::default()),
    }
}

/// What holds for every namespace is not for an admin of one.
fn admit(principal: &Principal, key: &SettingKey) -> Result<(), Problem> {
    match (&principal.namespace, &key.namespace) {
        (Some(own), None) => Err(Problem::new(
            Kind::ForbiddenNamespace,
            format!(
                "setting `{}` holds for every namespace, and the token is bound to `{own}`: use an admin token without a namespace",
                key.name
            ),
        )),
        _ => Ok(()),
    }
}

fn shown(row: SettingRow) -> impl IntoResponse {
    (
        [(header::ETAG, SETTING.etag(row.revision))],
        Json(view(row)),
    )
}

impl SettingPath {
    /// Without a namespace it is one of the installation.
    pub(super) fn of(namespace: Option<&str>, name: &str) -> Result<Self, Problem> {
        let namespace = namespace.map(NamespaceName::new).transpose()?;
        let key = SettingKey::named(namespace, name)
            .map_err(|error| Problem::parameter("name", error.to_string()))?;
        Ok(Self(key))
    }
}
