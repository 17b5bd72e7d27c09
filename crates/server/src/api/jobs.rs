//! Routes of jobs.

use std::sync::LazyLock;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use drumtower_core::engine::{Command, JobRef, Refusal, Reply};
use drumtower_core::model::{JobName, JobRecord, JobSpec, NamespaceName};
use drumtower_store::JobFilter;

use super::body::{self, Bounded};
use super::gate::{JobPath, NamespacePath};
use super::job_view::Job;
use super::page::{self, Page};
use super::precondition::JOB;
use super::problem::Problem;
use super::query::Parameters;
use super::{Edge, internal};
use crate::auth::Principal;

pub async fn put(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = JOB.condition(&headers)?;
    let spec = manifest(&bytes, &job)?;
    match edge
        .handle
        .command(
            principal.actor,
            Command::PutJob {
                spec: Box::new(spec),
                condition,
            },
        )
        .await??
    {
        Reply::Job {
            record,
            created: true,
        } => Ok((StatusCode::CREATED, shown(&record)).into_response()),
        Reply::Job {
            record,
            created: false,
        } => Ok(shown(&record).into_response()),
        other => Err(unexpected(&other)),
    }
}

/// Reads a manifest for the job that the path names.
pub fn manifest(bytes: &[u8], job: &JobRef) -> Result<JobSpec, Problem> {
    let spec: JobSpec = body::manifest(bytes, "Job", job.namespace.as_str(), job.name.as_str())?;
    spec.check()?;
    Ok(spec)
}

pub async fn show(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    Ok(shown(&find(&edge, job).await?).into_response())
}

pub async fn find(edge: &Edge, job: JobRef) -> Result<JobRecord, Problem> {
    let wanted = job.clone();
    let record = edge
        .read(move |store| store.job_named(&wanted.namespace, &wanted.name))
        .await?;
    record.ok_or_else(|| Refusal::NoSuchJob(job).into())
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = JOB.condition_on_existing(&headers)?;
    edge.handle
        .command(principal.actor, Command::DeleteJob { job, condition })
        .await??;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn pause(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = JOB.condition_on_existing(&headers)?;
    changed(&edge, principal, Command::PauseJob { job, condition }).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = JOB.condition_on_existing(&headers)?;
    changed(&edge, principal, Command::ResumeJob { job, condition }).await
}

pub async fn reset_breaker(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    changed(&edge, principal, Command::ResetBreaker { job }).await
}

pub async fn changed(
    edge: &Edge,
    principal: Principal,
    command: Command,
) -> Result<Response, Problem> {
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Job { record, .. } => Ok(shown(&record).into_response()),
        other => Err(unexpected(&other)),
    }
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let known = [
        "namespace",
        "label",
        "paused",
        "prefix",
        "search",
        "limit",
        "cursor",
    ];
    let parameters = Parameters::read(&uri, &known)?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    page(&edge, namespace, &uri, &parameters).await
}

pub async fn list_namespace(
    State(edge): State<Edge>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
) -> Result<Response, Problem> {
    let known = ["label", "paused", "prefix", "search", "limit", "cursor"];
    let parameters = Parameters::read(&uri, &known)?;
    page(&edge, Some(namespace), &uri, &parameters).await
}

async fn page(
    edge: &Edge,
    namespace: Option<NamespaceName>,
    uri: &Uri,
    parameters: &Parameters,
) -> Result<Response, Problem> {
    let listing = page::listing(edge, uri, parameters);
    let filter = JobFilter {
        namespace,
        labels: labels(parameters)?,
        paused: parameters.flag("paused")?,
        prefix: prefix(parameters)?,
        search: search(parameters)?,
    };
    let after = parameters.text("cursor")?;
    let after = after
        .map(|cursor| place(&listing.decode(cursor)?))
        .transpose()?;
    let limit = parameters.limit()?;
    let page = edge
        .read(move |store| store.jobs(&filter, after.as_ref(), limit))
        .await?;
    let place = |(namespace, name)| listing.encode(&format!("{namespace}/{name}"));
    let page = Page {
        items: page.jobs.iter().map(Job::from).collect(),
        next: page.next.map(place),
    };
    Ok(Json(page).into_response())
}

/// How names begin. What no name begins with is refused rather than answered with nothing.
fn prefix(parameters: &Parameters) -> Result<Option<String>, Problem> {
    let Some(prefix) = parameters.text("prefix")?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    JobName::new(prefix)
        .map(|name| Some(name.to_string()))
        .map_err(|error| Problem::parameter("prefix", format!("prefix: {error}")))
}

/// The longest text that is looked for: names and labels are no longer.
const SEARCH: usize = 128;

/// What names and labels are looked through for.
fn search(parameters: &Parameters) -> Result<Option<String>, Problem> {
    let Some(text) = parameters.text("search")?.map(str::trim) else {
        return Ok(None);
    };
    if text.chars().count() > SEARCH {
        let detail = format!("search: has more than {SEARCH} characters: look for less");
        return Err(Problem::parameter("search", detail));
    }
    Ok(Some(text.to_lowercase()).filter(|text| !text.is_empty()))
}

fn labels(parameters: &Parameters) -> Result<Vec<(String, String)>, Problem> {
    let label = |text: &str| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::parameter(
            "label",
            format!("label: `{text}` is not of the form key=value"),
        )),
    };
    parameters.all("label").map(label).collect()
}

/// The place in the order of jobs that a cursor stands for. It chooses no namespace: the filter does.
pub fn place(place: &str) -> Result<(NamespaceName, JobName), Problem> {
    let (namespace, name) = place.split_once('/').unwrap_or_default();
    Ok((NamespaceName::new(namespace)?, JobName::new(name)?))
}

static SCHEMA: LazyLock<String> =
    LazyLock::new(|| schemars::schema_for!(JobSpec).as_value().to_string());

/// The JSON schema of the manifest.
pub async fn schema(uri: Uri) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let kind = HeaderValue::from_static("application/schema+json");
    Ok(([(header::CONTENT_TYPE, kind)], SCHEMA.as_str()))
}

pub fn shown(record: &JobRecord) -> impl IntoResponse + use<> {
    (
        [(header::ETAG, JOB.etag(record.row.revision))],
        Json(Job::from(record)).into_response(),
    )
}

pub fn unexpected(reply: &Reply) -> Problem {
    internal(&format!("the engine answered with {reply:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobRef {
        JobRef {
            namespace: NamespaceName::new("team").unwrap(),
            name: JobName::new("report").unwrap(),
        }
    }

    fn read(text: &str) -> Result<JobSpec, Problem> {
        manifest(text.as_bytes(), &job())
    }

    #[test]
    fn the_path_completes_the_manifest() {
        let spec = read(r#"{"kind":"Job","task":{"exec":{"argv":["true"]}}}"#).unwrap();
        assert_eq!(
            (spec.namespace.as_str(), spec.name.as_str()),
            ("team", "report")
        );
        let spec = read(r#"{"kind":"Job","name":"report","namespace":"team","task":{"exec":{"argv":["true"]}}}"#).unwrap();
        assert_eq!(spec.name.as_str(), "report");
    }

    #[test]
    fn what_contradicts_the_path_or_the_rules_is_named() {
        let field = |text: &str| read(text).expect_err(text).field.unwrap_or_default();
        assert_eq!(
            field(r#"{"kind":"Job","name":"other","task":{"exec":{"argv":["true"]}}}"#),
            "name"
        );
        assert_eq!(
            field(r#"{"kind":"Job","namespace":"default","task":{"exec":{"argv":["true"]}}}"#),
            "namespace"
        );
        assert_eq!(
            field(r#"{"kind":"Job","task":{"exec":{"argv":[]}}}"#),
            "task.exec.argv"
        );
        assert_eq!(
            field(r#"{"kind":"Job","task":{"exec":{"argv":"true"}}}"#),
            "task.exec.argv"
        );
        assert_eq!(
            field(r#"{"kind":"Job","task":{"exec":{"argv":["true"]}},"wieght":1}"#),
            "wieght"
        );
        assert_eq!(
            field(r#"{"kind":"Job","name":7,"task":{"exec":{"argv":["true"]}}}"#),
            "name"
        );
        assert!(read("[]").is_err());
    }
}
