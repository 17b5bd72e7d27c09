//! Routes of backups. A backup holds every namespace, so only an admin of all of them may make or see one.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use drumtower_store::sqlite::backup::{Error, Reason};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Edge;
use super::body::{self, Bounded};
use super::page::Page;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use crate::auth::Principal;
use crate::backup::Backup;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewBackup")]
pub struct Request {
    /// Whether the output of runs is copied too.
    #[serde(default)]
    logs: bool,
}

pub async fn make(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<(StatusCode, Json<Backup>), Problem> {
    Parameters::read(&uri, &[])?;
    admit(&principal)?;
    let request: Request = match bytes.is_empty() {
        true => Request::default(),
        false => body::parse(&bytes)?,
    };
    let made = edge.backups.make(Reason::Asked, request.logs).await?;
    Ok((StatusCode::CREATED, Json(Backup::from(&made))))
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Json<Page<Backup>>, Problem> {
    Parameters::read(&uri, &[])?;
    admit(&principal)?;
    let found = edge.backups.list().await?;
    Ok(Json(Page::whole(found.iter().rev().map(Backup::from))))
}

fn admit(principal: &Principal) -> Result<(), Problem> {
    match &principal.namespace {
        None => Ok(()),
        Some(own) => Err(Problem::new(
            Kind::ForbiddenNamespace,
            format!(
                "a backup holds every namespace, and the token is bound to `{own}`: use an admin token without a namespace"
            ),
        )),
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::Busy(_) => Kind::BackupUnderWay,
            Error::Stopped => Kind::Stopping,
            _ => Kind::BackupFailed,
        };
        Self::new(kind, error.to_string())
    }
}
