//! A run that ended, made once more: with its parameters or others, by the job's current definition or the one it had.

use std::borrow::Cow;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::{Extension, Json};
use drumtower_core::engine::{JobRef, Refusal, Rerun, Trigger};
use drumtower_core::model::{Checkpoint, JobName, Obedience, Run, RunId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Edge;
use super::body::{self, Bounded};
use super::gate::RunPath;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::runs;
use super::trigger::{self, Answer, checked_key, key_of, params, when};
use crate::auth::Principal;
use crate::cluster::Numbered;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewRerun")]
pub struct Request<'a> {
    /// Instead of those that the run had.
    #[serde(borrow, default)]
    #[schemars(with = "Option<serde_json::Value>")]
    params: Option<&'a RawValue>,
    /// Which definition it follows.
    #[serde(default)]
    version: Which,
    /// Whether it goes on from the checkpoint that the run left, instead of from the beginning.
    #[serde(default)]
    resume: bool,
    /// How long after the request it is due, such as `30m`; not with `at`.
    #[serde(borrow, default)]
    delay: Option<Cow<'a, str>>,
    /// When it is due, in RFC 3339; not with `delay`.
    #[serde(borrow, default)]
    at: Option<Cow<'a, str>>,
    /// Whether it has a part in the job's overlap, as with a trigger: `obey` or `ignore`, the default.
    #[serde(default)]
    overlap: Obedience,
    /// The same as the header `Idempotency-Key`.
    #[serde(borrow, default)]
    #[schemars(length(min = 1, max = 256))]
    idempotency_key: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RerunVersion")]
enum Which {
    /// The definition of the job as it is.
    #[default]
    Current,
    /// The one that the run was made from.
    Original,
}

pub async fn rerun(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(id): RunPath,
    uri: Uri,
    numbered: Option<Extension<Numbered>>,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    Parameters::read(&uri, &[])?;
    let request: Request<'_> = if bytes.is_empty() {
        Request::default()
    } else {
        body::parse(&bytes)?
    };
    let idempotency_key = key(&headers, request.idempotency_key)?;
    let (params, when) = (
        params(request.params)?,
        when(request.delay.as_deref(), request.at.as_deref())?,
    );
    let run = runs::find(&edge, &principal, id).await?;
    if !run.state.is_terminal() {
        return Err(Problem::new(
            Kind::RunNotEnded,
            format!("{id} has not ended: wait for it, or cancel it first"),
        ));
    }
    let (job, mut rerun) = source(&edge, run, request.version).await?;
    if request.resume {
        rerun.checkpoint = Some(checkpoint(&edge, id).await?);
    }
    let trigger = Trigger {
        params,
        idempotency_key,
        request: numbered.map(|Extension(numbered)| numbered.id()),
        when,
        rerun: Some(Box::new(rerun)),
        overlap: request.overlap,
        ..Trigger::of(job)
    };
    trigger::make(&edge, principal.actor, trigger).await
}

/// One key, from the header or the body.
fn key(headers: &HeaderMap, given: Option<Cow<'_, str>>) -> Result<Option<String>, Problem> {
    match (key_of(headers)?, given) {
        (Some(_), Some(_)) => Err(Problem::field(
            "idempotency_key",
            "idempotency_key: the header Idempotency-Key is given too: send one of them",
        )),
        (None, Some(given)) => checked_key(given).map(Some),
        (header, None) => Ok(header),
    }
}

/// The repetition of a run by the job's current definition.
pub async fn again(edge: &Edge, run: Run) -> Result<(JobRef, Rerun), Problem> {
    source(edge, run, Which::Current).await
}

/// What the repetition takes from the run. The parameters that it had by way of its definition are taken along, as another
/// definition may have others.
async fn source(edge: &Edge, run: Run, which: Which) -> Result<(JobRef, Rerun), Problem> {
    let (job, number) = (run.job, run.job_version);
    let (record, version) = edge
        .read(move |store| Ok((store.job(job)?, store.job_version(job, number)?)))
        .await?;
    let living = record.filter(|record| !record.row.deleted);
    let Some(record) = living else {
        let name = version.map(|version| version.spec.name);
        return Err(gone(&run, name));
    };
    let own = run.params.clone();
    let had = version
        .as_ref()
        .and_then(|version| version.spec.params.clone());
    let rerun = Rerun {
        of: run.id,
        job,
        nominal: run.nominal,
        params: own.or(had),
        version: version.filter(|_| which == Which::Original),
        checkpoint: None,
        letter: false,
    };
    let job = JobRef {
        namespace: record.row.namespace,
        name: record.row.name,
    };
    Ok((job, rerun))
}

/// What the run left to go on from: only failed runs keep it.
async fn checkpoint(edge: &Edge, id: RunId) -> Result<Checkpoint, Problem> {
    let found = edge.read(move |store| store.checkpoint(id)).await?;
    found.ok_or_else(|| {
        Problem::field(
            "resume",
            format!("resume: {id} left no checkpoint: leave it out to begin from the start"),
        )
    })
}

fn gone(run: &Run, name: Option<JobName>) -> Problem {
    match name {
        Some(name) => Refusal::NoSuchJob(JobRef {
            namespace: run.namespace.clone(),
            name,
        })
        .into(),
        None => Problem::new(Kind::NoSuchJob, format!("the job of {} is gone", run.id)),
    }
}
