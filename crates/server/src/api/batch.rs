//! Many runs with one call: the hot way in.
//!
//! The body is parsed straight into borrowed pieces, and everything in it becomes one command. An item that is refused
//! does not touch its neighbours; the answer has one entry per item, in their order.

use std::borrow::Cow;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::IntoResponse;
use drumtower_core::engine::{Command, JobRef, Reply, Trigger};
use drumtower_core::model::{JobName, Limits, NameError, NamespaceName, Obedience};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{self, Bounded};
use super::problem::{self, Kind, Problem};
use super::query::Parameters;
use super::trigger::{Answer, checked_key, key_of, params, when};
use super::{Edge, internal};
use crate::auth::Principal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Batch")]
pub struct Batch<'a> {
    #[serde(borrow)]
    #[schemars(length(max = 1000))]
    runs: Vec<Item<'a>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BatchItem")]
struct Item<'a> {
    /// The token's own unless given.
    #[serde(borrow, default)]
    #[schemars(with = "Option<NamespaceName>")]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    #[schemars(with = "JobName")]
    job: Text<'a>,
    /// Instead of the job's own.
    #[serde(borrow, default)]
    #[schemars(with = "Option<serde_json::Value>")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>", length(min = 1, max = 256))]
    idempotency_key: Option<Text<'a>>,
    /// How long after the request it is due, such as `30m`; not with `at`.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    delay: Option<Text<'a>>,
    /// When it is due, in RFC 3339; not with `delay`.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    at: Option<Text<'a>>,
    /// As with one run.
    #[serde(default)]
    overlap: Obedience,
    /// As with one run.
    #[serde(default)]
    force: bool,
}

/// Borrowed where it holds no escapes; serde borrows a bare `Cow`, but not one within an `Option`.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BatchAnswer")]
pub struct Answers<'a> {
    runs: Vec<Entry<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "BatchEntry")]
enum Entry<'a> {
    Made(Answer),
    Refused { problem: problem::Body<'a> },
}

pub async fn trigger(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::BATCH }>,
) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let key = batch_key(&headers)?;
    let (triggers, mut outcomes) = read(&bytes, &principal, key.as_deref())?;
    drop(bytes);
    if !triggers.is_empty() {
        let count = triggers.len();
        match edge
            .handle
            .command(principal.actor, Command::TriggerRuns { triggers })
            .await??
        {
            Reply::Triggered(answers) if answers.len() == count => {
                let open = outcomes.iter_mut().filter(|outcome| outcome.is_none());
                for (outcome, answer) in open.zip(answers) {
                    *outcome = Some(answer.map(Answer::from).map_err(Problem::from));
                }
            }
            other => {
                return Err(internal(&format!(
                    "the engine answered {count} triggers with {other:?}"
                )));
            }
        }
    }
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], answer(&outcomes)?))
}

/// The key of the whole batch: an item without one of its own gets this and its place, so that a repeated batch makes no
/// second run. It leaves room for the place.
fn batch_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    const ROOM: usize = 4;
    let key = key_of(headers)?;
    let most = Limits::IDEMPOTENCY_KEY_CHARS - ROOM;
    match &key {
        Some(key) if key.chars().count() > most => Err(Problem::new(
            Kind::InvalidHeader,
            format!("Idempotency-Key: that of a batch may have {most} characters"),
        )),
        _ => Ok(key),
    }
}

type Outcome = Option<Result<Answer, Problem>>;

/// The triggers to carry out, and one outcome per item: settled for those refused here, open for the others.
fn read(
    bytes: &Bytes,
    principal: &Principal,
    key: Option<&str>,
) -> Result<(Vec<Trigger>, Vec<Outcome>), Problem> {
    let Batch { runs } = body::parse(bytes)?;
    if runs.len() > Limits::BATCH_RUNS {
        let detail = format!(
            "runs: may have {} items, has {}: send several batches",
            Limits::BATCH_RUNS,
            runs.len()
        );
        return Err(Problem::field("runs", detail));
    }
    let mut triggers = Vec::with_capacity(runs.len());
    let mut outcomes = Vec::with_capacity(runs.len());
    let home = principal.home();
    let mut last = None;
    for (index, mut item) in runs.into_iter().enumerate() {
        if let (Some(key), None) = (key, &item.idempotency_key) {
            item.idempotency_key = Some(Text(format!("{key}/{index}").into()));
        }
        match trigger_of(item, principal, &home, &mut last) {
            Ok(trigger) => {
                triggers.push(trigger);
                outcomes.push(None);
            }
            Err(problem) => outcomes.push(Some(Err(problem))),
        }
    }
    Ok((triggers, outcomes))
}

/// `last` is the job of the item before, as batches mostly name the same one again: its names are shared, not copied.
fn trigger_of(
    item: Item<'_>,
    principal: &Principal,
    home: &NamespaceName,
    last: &mut Option<JobRef>,
) -> Result<Trigger, Problem> {
    let namespace = item
        .namespace
        .as_ref()
        .map_or(home.as_str(), |Text(namespace)| namespace);
    let same =
        |job: &&JobRef| job.name.as_str() == item.job.0 && job.namespace.as_str() == namespace;
    let job = match last.as_ref().filter(same) {
        Some(job) => job.clone(),
        None => job_of(namespace, &item.job.0, principal)?,
    };
    let trigger = Trigger {
        params: params(item.params)?,
        idempotency_key: item
            .idempotency_key
            .map(|Text(key)| checked_key(key))
            .transpose()?,
        when: when(
            item.delay.as_ref().map(|Text(delay)| &**delay),
            item.at.as_ref().map(|Text(at)| &**at),
        )?,
        job: job.clone(),
        rerun: None,
        overlap: item.overlap,
        force: item.force,
    };
    *last = Some(job);
    Ok(trigger)
}

fn job_of(namespace: &str, name: &str, principal: &Principal) -> Result<JobRef, Problem> {
    let wrong = |field: &str, error: NameError| Problem::field(field, error.to_string());
    let namespace = NamespaceName::new(namespace).map_err(|error| wrong("namespace", error))?;
    principal.enter(&namespace)?;
    let name = JobName::new(name).map_err(|error| wrong("job", error))?;
    Ok(JobRef { namespace, name })
}

fn answer(outcomes: &[Outcome]) -> Result<Vec<u8>, Problem> {
    let mut runs = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        runs.push(match outcome {
            Some(Ok(made)) => Entry::Made(*made),
            Some(Err(problem)) => Entry::Refused {
                problem: problem.body(),
            },
            None => return Err(internal(&"an item of a batch was left without an answer")),
        });
    }
    serde_json::to_vec(&Answers { runs }).map_err(|error| internal(&error))
}
