//! One run of one job, made by a call.

use std::borrow::Cow;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Reply, Trigger, Triggered, When};
use drumtower_core::model::{Actor, JsonText, Limits, Obedience, RunId};
use drumtower_core::schedule::parse_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{self, Bounded};
use super::gate::JobPath;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::instant;
use super::{Edge, internal};
use crate::auth::Principal;
use crate::cluster::Numbered;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewRun")]
pub struct Request<'a> {
    /// Instead of the job's own.
    #[serde(borrow, default)]
    #[schemars(with = "Option<serde_json::Value>")]
    params: Option<&'a RawValue>,
    /// How long after the request it is due, such as `30m`; not with `at`.
    #[serde(borrow, default)]
    delay: Option<Cow<'a, str>>,
    /// When it is due, in RFC 3339; not with `delay`.
    #[serde(borrow, default)]
    at: Option<Cow<'a, str>>,
    /// Whether it has a part in the job's overlap: `obey`, then it counts, and waits or is refused when the job is full; or
    /// `ignore`, the default, then it neither holds back nor is held back.
    #[serde(default)]
    overlap: Obedience,
    /// Makes the run even if the job's circuit breaker is open.
    #[serde(default)]
    force: bool,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "Triggered")]
pub struct Answer {
    id: RunId,
    /// The idempotency key was known: this is the run of the first request.
    repeated: bool,
}

impl Answer {
    pub fn id(&self) -> RunId {
        self.id
    }
}

impl From<Triggered> for Answer {
    fn from(Triggered { run, repeated }: Triggered) -> Self {
        Self { id: run, repeated }
    }
}

pub async fn trigger(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    numbered: Option<Extension<Numbered>>,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    Parameters::read(&uri, &[])?;
    let idempotency_key = key_of(&headers)?;
    let request: Request<'_> = if bytes.is_empty() {
        Request::default()
    } else {
        body::parse(&bytes)?
    };
    let trigger = Trigger {
        job,
        params: params(request.params)?,
        idempotency_key,
        request: numbered.map(|Extension(numbered)| numbered.id()),
        when: when(request.delay.as_deref(), request.at.as_deref())?,
        rerun: None,
        overlap: request.overlap,
        force: request.force,
    };
    make(&edge, principal.actor, trigger).await
}

/// Makes the run, or finds the one of the first request.
pub async fn make(
    edge: &Edge,
    actor: Actor,
    trigger: Trigger,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let command = Command::TriggerRuns {
        triggers: vec![trigger],
    };
    match edge.handle.command(actor, command).await?? {
        Reply::Triggered(mut outcomes) => match outcomes.pop() {
            Some(Ok(triggered)) => {
                let status = if triggered.repeated {
                    StatusCode::OK
                } else {
                    StatusCode::CREATED
                };
                Ok((status, Json(triggered.into())))
            }
            Some(Err(refusal)) => Err(refusal.into()),
            None => Err(internal(&"the engine answered a trigger with nothing")),
        },
        other => Err(internal(&format!(
            "the engine answered a trigger with {other:?}"
        ))),
    }
}

/// The header `Idempotency-Key`, within its bounds.
pub fn key_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| Problem::new(Kind::InvalidHeader, "Idempotency-Key: not printable text"))?;
    checked_key(Cow::Borrowed(text))
        .map(Some)
        .map_err(|problem| Problem {
            kind: Kind::InvalidHeader,
            field: None,
            ..problem
        })
}

/// A key within its bounds.
pub fn checked_key(key: Cow<'_, str>) -> Result<String, Problem> {
    if key.is_empty()
        || key.chars().count() > Limits::IDEMPOTENCY_KEY_CHARS
        || key.chars().any(char::is_control)
    {
        let detail = format!(
            "idempotency_key: must be 1 to {} printable characters",
            Limits::IDEMPOTENCY_KEY_CHARS
        );
        return Err(Problem::field("idempotency_key", detail));
    }
    Ok(key.into_owned())
}

/// When a run that does not start at once is due: after a delay, or at an instant.
pub fn when(delay: Option<&str>, at: Option<&str>) -> Result<Option<When>, Problem> {
    match (delay, at) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::field(
            "at",
            "at: give either `delay` or `at`, not both",
        )),
        (Some(delay), None) => parse_duration(delay)
            .map(|ms| Some(When::After(ms)))
            .map_err(|error| Problem::field("delay", format!("delay: {error}"))),
        (None, Some(at)) => instant("at", at).map(|at| Some(When::At(at))),
    }
}

/// Parameters within their bound, as the text they came in.
pub fn params(given: Option<&RawValue>) -> Result<Option<JsonText>, Problem> {
    let Some(raw) = given else { return Ok(None) };
    if raw.get().len() > Limits::PARAMS_BYTES {
        let detail = format!(
            "params: may have {} bytes, has {}",
            Limits::PARAMS_BYTES,
            raw.get().len()
        );
        return Err(Problem::field("params", detail));
    }
    JsonText::parse("params", raw.get())
        .map(Some)
        .map_err(|error| Problem::field("params", error.to_string()))
}
