//! Backfills: created over an interval that has passed, looked at, paused, resumed and cancelled.
//!
//! The version is read and its times are counted here; whether it may begin is decided by the engine.

use std::borrow::Cow;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, JobRef, NewBackfill, Refusal, Reply};
use drumtower_core::model::{
    BackfillId, BackfillOrder, BackfillPlan, BackfillRow, BackfillState, BackfillWhich, JobRecord,
    Limits, Obedience,
};
use drumtower_store::BackfillFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::backfill_view::{BackfillView, PreviewView};
use super::body::{self, Bounded};
use super::gate::{BackfillPath, JobPath};
use super::page::{self, Page};
use super::precondition::BACKFILL;
use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use super::{Edge, internal, time, trigger};
use crate::auth::Principal;
use crate::history;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewBackfill")]
pub struct Request<'a> {
    /// The first instant of the interval, in RFC 3339.
    #[serde(borrow)]
    from: Cow<'a, str>,
    /// The first instant after it; not in the future.
    #[serde(borrow)]
    to: Cow<'a, str>,
    /// Which times make runs: `missing` unless given.
    #[serde(default)]
    which: BackfillWhich,
    /// `oldest_first` unless given.
    #[serde(default)]
    order: BackfillOrder,
    /// How many of its runs may be under way at once; 1 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    max_active: Option<u32>,
    /// Of its runs, from 0 to 9; 0 unless given, below that of jobs.
    #[serde(default)]
    #[schemars(range(max = 9))]
    priority: Option<u32>,
    /// Instead of the job's own.
    #[serde(borrow, default)]
    #[schemars(with = "Option<serde_json::Value>")]
    params: Option<&'a RawValue>,
    /// Whether its runs count for the job's overlap: `obey`, then it waits while the job is full; or `ignore`, the default.
    #[serde(default)]
    overlap: Obedience,
    /// Makes runs also while the job's circuit breaker is open, instead of waiting until it lets runs through.
    #[serde(default)]
    force: bool,
}

impl Request<'_> {
    fn plan(&self) -> Result<BackfillPlan, Problem> {
        let default = BackfillPlan::over(
            time::instant("from", &self.from)?,
            time::instant("to", &self.to)?,
        );
        let plan = BackfillPlan {
            which: self.which,
            order: self.order,
            max_active: self.max_active.unwrap_or(default.max_active),
            priority: self.priority.unwrap_or(default.priority),
            params: trigger::params(self.params)?,
            overlap: self.overlap,
            force: self.force,
            ..default
        };
        let now = time::now();
        if plan.from < plan.to && plan.to > now {
            let detail = format!(
                "to: {} lies in the future, it is {}: a backfill is of times that have passed; the schedule makes the others",
                Time(plan.to),
                Time(now)
            );
            return Err(Problem::field("to", detail));
        }
        plan.check(now)?;
        Ok(plan)
    }
}

pub async fn create(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    JobPath(job): JobPath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let idempotency_key = trigger::key_of(&headers)?;
    let plan = body::parse::<Request<'_>>(&bytes)?.plan()?;
    let (record, times) = counted(&edge, &job, &plan).await?;
    let backfill = Box::new(NewBackfill {
        job,
        version: record.version,
        plan,
        times,
        idempotency_key,
    });
    let command = Command::CreateBackfill { backfill };
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Backfill { row, repeated } => {
            let status = match repeated {
                true => StatusCode::OK,
                false => StatusCode::CREATED,
            };
            Ok((status, told(&row)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

/// The job as it stands, and how many times its schedule has in the interval.
async fn counted(
    edge: &Edge,
    job: &JobRef,
    plan: &BackfillPlan,
) -> Result<(JobRecord, u64), Problem> {
    let (key, interval) = (job.clone(), (plan.from.0, plan.to.0));
    let found = edge
        .read(move |store| {
            let Some(record) = store.job_named(&key.namespace, &key.name)? else {
                return Ok(None);
            };
            let schedule = history::schedule_of(store, &record.version)?;
            let schedule = schedule.filter(|it| it.after_end_ms().is_none());
            let most = Limits::BACKFILL_TIMES + 1;
            let count = schedule.map_or(0, |it| {
                it.count_between(interval.0.saturating_sub(1), interval.1 - 1, most)
            });
            Ok(Some((record, count)))
        })
        .await?;
    let (record, times) = found.ok_or_else(|| Refusal::NoSuchJob(job.clone()))?;
    plan.check_job(&record.version.spec)?;
    plan.check_times(times)?;
    Ok((record, times))
}

pub async fn preview(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<PreviewView>, Problem> {
    Parameters::read(&uri, &[])?;
    let plan = body::parse::<Request<'_>>(&bytes)?.plan()?;
    let (record, _) = counted(&edge, &job, &plan).await?;
    let view = edge
        .read(move |store| {
            let preview = history::preview(store, &record, &plan, time::now())?;
            Ok(PreviewView::new(record.version.version, &plan, preview))
        })
        .await?;
    Ok(Json(view))
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "state", "limit", "cursor"])?;
    let filter = BackfillFilter {
        namespace: principal.narrow(parameters.one("namespace")?)?,
        states: states(&parameters)?,
        ..BackfillFilter::default()
    };
    listed(&edge, &uri, &parameters, filter).await
}

pub async fn list_of_job(
    State(edge): State<Edge>,
    JobPath(job): JobPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["state", "limit", "cursor"])?;
    let key = job.clone();
    let record = edge
        .read(move |store| store.job_named(&key.namespace, &key.name))
        .await?;
    let filter = BackfillFilter {
        job: Some(record.ok_or(Refusal::NoSuchJob(job))?.row.id),
        states: states(&parameters)?,
        ..BackfillFilter::default()
    };
    listed(&edge, &uri, &parameters, filter).await
}

fn states(parameters: &Parameters) -> Result<Vec<BackfillState>, Problem> {
    let state = |text: &str| {
        let mut known = BackfillState::ALL.into_iter();
        let found = known.find(|state| state.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let names = BackfillState::ALL.map(BackfillState::as_str).join(", ");
            Problem::parameter("state", format!("state: `{text}` is not one of {names}"))
        })
    };
    parameters.all("state").map(state).collect()
}

async fn listed(
    edge: &Edge,
    uri: &Uri,
    parameters: &Parameters,
    filter: BackfillFilter,
) -> Result<Response, Problem> {
    let listing = page::listing(edge, uri, parameters);
    let before: Option<BackfillId> = match parameters.text("cursor")? {
        Some(cursor) => Some(listing.decode(cursor)?.parse()?),
        None => None,
    };
    let limit = parameters.limit()?;
    let rows = edge
        .read(move |store| store.backfills(&filter, before, limit))
        .await?;
    let last = rows.last().filter(|_| rows.len() >= limit);
    let page = Page {
        items: rows.iter().map(BackfillView::from).collect(),
        next: last.map(|row| listing.encode(&row.id.to_string())),
    };
    Ok(Json(page).into_response())
}

/// The backfill, if it exists for this caller.
pub async fn find(
    edge: &Edge,
    principal: &Principal,
    id: BackfillId,
) -> Result<BackfillRow, Problem> {
    let row = edge.read(move |store| store.backfill(id)).await?;
    row.filter(|row| principal.sees(&row.namespace))
        .ok_or_else(|| Refusal::NoSuchBackfill(id).into())
}

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    BackfillPath(id): BackfillPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    Ok(told(&find(&edge, &principal, id).await?))
}

pub async fn pause(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    BackfillPath(backfill): BackfillPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let command = Command::PauseBackfill {
        backfill,
        scope: principal.namespace.clone(),
        condition: BACKFILL.condition_on_existing(&headers)?,
    };
    carry_out(&edge, principal, command).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    BackfillPath(backfill): BackfillPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let command = Command::ResumeBackfill {
        backfill,
        scope: principal.namespace.clone(),
        condition: BACKFILL.condition_on_existing(&headers)?,
    };
    carry_out(&edge, principal, command).await
}

pub async fn cancel(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    BackfillPath(backfill): BackfillPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["runs"])?;
    let command = Command::CancelBackfill {
        backfill,
        scope: principal.namespace.clone(),
        condition: BACKFILL.condition_on_existing(&headers)?,
        runs: parameters.flag("runs")?.unwrap_or(false),
    };
    carry_out(&edge, principal, command).await
}

async fn carry_out(
    edge: &Edge,
    principal: Principal,
    command: Command,
) -> Result<Response, Problem> {
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Backfill { row, .. } => Ok(told(&row)),
        other => Err(unexpected(&other)),
    }
}

fn told(row: &BackfillRow) -> Response {
    let etag = BACKFILL.etag(row.revision);
    ([(header::ETAG, etag)], Json(BackfillView::from(row))).into_response()
}

fn unexpected(reply: &Reply) -> Problem {
    internal(&format!(
        "the engine answered about a backfill with {reply:?}"
    ))
}
