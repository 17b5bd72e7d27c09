//! The versions of a job: what it was, what changed between two of them, and the way back to one.
//!
//! A version never changes. Restoring one puts its content as a new version, so that the past stays as it was.

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, JobRef};
use drumtower_core::model::{Actor, Change, JobRecord, JobSpec, JobVersion, diff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{self, Bounded};
use super::gate::{JobPath, VersionPath};
use super::openapi::JobManifest;
use super::page::{self, Page};
use super::precondition::JOB;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::Time;
use super::{Edge, internal, jobs};
use crate::auth::Principal;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JobVersion")]
pub struct Version<'a> {
    version: u32,
    created: Time,
    actor: &'a Actor,
    /// Whether new runs are made from it.
    current: bool,
    #[schemars(with = "JobManifest")]
    spec: &'a JobSpec,
}

#[derive(Serialize, JsonSchema)]
pub struct Diff {
    from: u32,
    to: u32,
    /// In order of their paths.
    changes: Vec<Change>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Restoration")]
pub struct Request {
    /// The version whose content the job gets.
    #[schemars(range(min = 1))]
    version: u32,
}

impl<'a> Version<'a> {
    fn new(version: &'a JobVersion, job: &JobRecord) -> Self {
        Self {
            version: version.version,
            created: version.created.into(),
            actor: &version.actor,
            current: version.version == job.row.version,
            spec: &version.spec,
        }
    }
}

/// Newest first.
pub async fn list(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    let limit = parameters.limit()?;
    let listing = page::listing(&edge, &uri, &parameters);
    let before = listing.version_before(&parameters)?;
    let record = jobs::find(&edge, job).await?;
    let id = record.row.id;
    let versions = edge
        .read(move |store| store.job_versions(id, Some(before), limit))
        .await?;
    // They are numbered from 1 without a gap.
    let last = versions.last().filter(|last| last.version > 1);
    let page = Page {
        next: last.map(|last| listing.encode(&last.version.to_string())),
        items: versions
            .iter()
            .map(|version| Version::new(version, &record))
            .collect(),
    };
    Ok(Json(page).into_response())
}

pub async fn show(
    State(edge): State<Edge>,
    VersionPath(job, number): VersionPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let record = jobs::find(&edge, job.clone()).await?;
    let version = find(&edge, &record, &job, number).await?;
    Ok(Json(Version::new(&version, &record)).into_response())
}

async fn find(
    edge: &Edge,
    record: &JobRecord,
    job: &JobRef,
    number: u32,
) -> Result<JobVersion, Problem> {
    let id = record.row.id;
    let version = edge
        .read(move |store| store.job_version(id, number))
        .await?;
    version.ok_or_else(|| {
        let detail = format!(
            "job `{}` in namespace `{}` has no version {number}: it has 1 to {}",
            job.name, job.namespace, record.row.version
        );
        Problem::new(Kind::NoSuchVersion, detail)
    })
}

/// What turns one version into another: by default what the last edit changed.
pub async fn difference(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Json<Diff>, Problem> {
    let parameters = Parameters::read(&uri, &["from", "to"])?;
    let (from, to): (Option<u32>, Option<u32>) = (parameters.one("from")?, parameters.one("to")?);
    let record = jobs::find(&edge, job.clone()).await?;
    let to = to.unwrap_or(record.row.version);
    let from = from.unwrap_or(to.saturating_sub(1).max(1));
    let before = document(&find(&edge, &record, &job, from).await?.spec)?;
    let after = document(&find(&edge, &record, &job, to).await?.spec)?;
    Ok(Json(Diff {
        from,
        to,
        changes: diff(&before, &after),
    }))
}

fn document(spec: &JobSpec) -> Result<serde_json::Value, Problem> {
    serde_json::to_value(spec).map_err(|error| internal(&error))
}

pub async fn restore(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = JOB.condition_on_existing(&headers)?;
    let Request { version } = body::parse(&bytes)?;
    let record = jobs::find(&edge, job.clone()).await?;
    let version = find(&edge, &record, &job, version).await?;
    let command = Command::PutJob {
        spec: Box::new(version.spec),
        condition,
    };
    jobs::changed(&edge, principal, command).await
}
