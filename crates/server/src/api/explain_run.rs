//! Why a run is where it is: reads what is known, leaves the words to `core::explain::run`.

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::Refusal;
use drumtower_core::explain::run::{Account, Advice, Cause, Event, Happening, Remedy, explain};
use drumtower_core::model::{Actor, JobName, NamespaceName, Run, RunId, RunState, WorkerName};
use schemars::JsonSchema;
use serde::Serialize;

use super::gate::RunPath;
use super::problem::Problem;
use super::query::Parameters;
use super::run_view::Named;
use super::time::Time;
use super::{Edge, runs};
use crate::auth::Principal;

/// Why a run is where it is, and what to do about it. Codes stay; words are improved.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunExplanation")]
pub struct Explanation<'a> {
    run: RunId,
    namespace: &'a NamespaceName,
    job: Option<&'a JobName>,
    state: RunState,
    /// The one sentence that answers "why?".
    headline: HeadlineView<'a>,
    /// What happened, in order; the middle of a long life is left out.
    timeline: Vec<EventView<'a>>,
    /// What can be done, the likeliest first.
    advice: Vec<AdviceView<'a>>,
    /// All of it as `drumtower run explain` prints it.
    text: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunExplanationHeadline")]
struct HeadlineView<'a> {
    code: Cause,
    text: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunExplanationEvent")]
struct EventView<'a> {
    at: Time,
    code: Happening,
    text: &'a str,
    attempt: Option<u32>,
    worker: Option<&'a WorkerName>,
    /// Who did it.
    actor: Option<&'a Actor>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunExplanationAdvice")]
struct AdviceView<'a> {
    code: Remedy,
    text: &'a str,
    /// What to type.
    commands: &'a [String],
}

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(id): RunPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let run = find(&edge, &principal, id).await?;
    if !run.state.is_terminal() {
        edge.at_owner(id.segment())?;
    }
    let found = edge.read(move |store| runs::Found::of(store, run)).await?;
    let named = &found.named;
    let fleet = match named.run.state.is_terminal() {
        true => None,
        false => runs::fleet(&edge).await,
    };
    let limit = runs::limit(&edge, &named.run).await;
    let account = explain(&found.known(fleet.as_deref(), limit.as_ref()));
    Ok(Json(Explanation::new(named, &account)).into_response())
}

/// The run, also when only its dead letter is left.
async fn find(edge: &Edge, principal: &Principal, id: RunId) -> Result<Run, Problem> {
    let found = edge.read(move |store| Ok(store.run(id)?.or(store.letter(id)?)));
    let visible = found.await?.filter(|run| principal.sees(&run.namespace));
    visible.ok_or_else(|| Refusal::NoSuchRun(id).into())
}

impl<'a> Explanation<'a> {
    fn new(named: &'a Named, account: &'a Account) -> Self {
        Self {
            run: named.run.id,
            namespace: &named.run.namespace,
            job: named.job.as_ref(),
            state: named.run.state,
            headline: HeadlineView {
                code: account.headline.code,
                text: &account.headline.text,
            },
            timeline: account.timeline.iter().map(EventView::from).collect(),
            advice: account.advice.iter().map(AdviceView::from).collect(),
            text: account.text(),
        }
    }
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            at: event.at.into(),
            code: event.code,
            text: &event.text,
            attempt: event.attempt,
            worker: event.worker.as_ref(),
            actor: event.actor.as_ref(),
        }
    }
}

impl<'a> From<&'a Advice> for AdviceView<'a> {
    fn from(advice: &'a Advice) -> Self {
        Self {
            code: advice.code,
            text: &advice.text,
            commands: &advice.commands,
        }
    }
}
