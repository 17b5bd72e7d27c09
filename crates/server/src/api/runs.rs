//! Routes of runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Hindrance, Refusal, Reply, WorkerView};
use drumtower_core::explain::run::{Known, Wait};
use drumtower_core::explain::run_ids_from;
use drumtower_core::model::{
    BreakerRow, JobId, JobName, JobRecord, JobVersion, Origin, Run, RunId, RunState,
};
use drumtower_core::schedule::parse_duration;
use drumtower_store::{Read, RunFilter};

use super::cursor::Listing;
use super::gate::RunPath;
use super::page::{self, Page};
use super::problem::Problem;
use super::query::Parameters;
use super::run_view::{Named, RunSummary, RunView};
use super::{Edge, backfills, internal, time};
use crate::auth::Principal;
use crate::cluster::Next;
use crate::driver::Waiter;

const KNOWN: &[&str] = &[
    "namespace",
    "job",
    "job_id",
    "state",
    "origin",
    "backfill",
    "since",
    "until",
    "limit",
    "cursor",
];
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(id): RunPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let run = find(&edge, &principal, id).await?;
    if run.state == RunState::Pending {
        // What it waits for is in its owner's memory.
        edge.at_owner(id.segment())?;
    }
    shown(&edge, run).await
}

/// The run, if it exists for this caller.
pub async fn find(edge: &Edge, principal: &Principal, id: RunId) -> Result<Run, Problem> {
    let run = edge.read(move |store| store.run(id)).await?;
    run.filter(|run| principal.sees(&run.namespace))
        .ok_or_else(|| Refusal::NoSuchRun(id).into())
}

async fn shown(edge: &Edge, run: Run) -> Result<Response, Problem> {
    let mut found = edge.read(move |store| Found::of(store, run)).await?;
    let segment = found.named.run.id.segment();
    if found.named.run.state == RunState::Pending
        && found.version.is_some()
        // Its owner alone knows what holds it back.
        && edge.cluster.owner(segment) == Next::Here
        && let Some(fleet) = fleet(edge).await
    {
        let limit = limit(edge, &found.named.run).await;
        let known = found.known(Some(&fleet), limit.as_ref());
        let waiting = Wait::of(&known).text(known.now);
        found.named.waiting = Some(waiting);
    }
    Ok(Json(RunView::from(&found.named)).into_response())
}

/// The workers; `None` when a server that stops knows none any more, and the run is told all the same.
pub(super) async fn fleet(edge: &Edge) -> Option<Vec<WorkerView>> {
    edge.handle.workers().await.ok()
}

/// The limit that holds a waiting run back.
pub(super) async fn limit(edge: &Edge, run: &Run) -> Option<Hindrance> {
    if run.state != RunState::Pending {
        return None;
    }
    let asked = Waiter::Run(Box::new(run.clone()));
    edge.handle.hindrance(asked).await.ok().flatten()
}

/// A run with what the store knows around it.
pub(super) struct Found {
    pub(super) named: Named,
    /// The version of the job that it is pinned to.
    version: Option<JobVersion>,
    breaker: Option<BreakerRow>,
}

impl Found {
    pub(super) fn of(store: &dyn Read, run: Run) -> Result<Self, drumtower_store::Error> {
        let record = store.job(run.job)?;
        let version = store.job_version(run.job, run.job_version)?;
        let usual = version.as_ref().and_then(|it| it.spec.params.clone());
        let params = run.params.clone().or(usual);
        let breaker = record.as_ref().and_then(JobRecord::active_breaker).cloned();
        Ok(Self {
            named: Named {
                run,
                job: record.map(|record| record.row.name),
                params,
                waiting: None,
            },
            version,
            breaker,
        })
    }

    /// What can be told of it at this moment, with what the engine says besides.
    pub(super) fn known<'a>(
        &'a self,
        fleet: Option<&'a [WorkerView]>,
        limit: Option<&'a Hindrance>,
    ) -> Known<'a> {
        Known {
            run: &self.named.run,
            job: self.named.job.as_ref(),
            spec: self.version.as_ref().map(|version| &version.spec),
            fleet,
            limit,
            breaker: self.breaker.as_ref(),
            now: time::now(),
        }
    }
}

pub async fn wait(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(id): RunPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["timeout"])?;
    let deadline = tokio::time::Instant::now() + timeout(&parameters)?;
    let mut changes = edge.handle.watch_run(id);
    loop {
        let run = find(&edge, &principal, id).await?;
        if run.state.is_terminal() {
            return shown(&edge, run).await;
        }
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep_until(deadline) => return shown(&edge, run).await,
            () = edge.stopped() => return shown(&edge, run).await,
        }
    }
}

fn timeout(parameters: &Parameters) -> Result<Duration, Problem> {
    let Some(text) = parameters.text("timeout")? else {
        return Ok(DEFAULT_WAIT);
    };
    let ms = parse_duration(text)
        .map_err(|error| Problem::parameter("timeout", format!("timeout: {error}")))?;
    let given = Duration::from_millis(ms);
    if given > LONGEST_WAIT {
        return Err(Problem::parameter(
            "timeout",
            format!("timeout: `{text}` is longer than 5m: ask again after it"),
        ));
    }
    Ok(given)
}

pub async fn cancel(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    RunPath(run): RunPath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let command = Command::CancelRun {
        run,
        scope: principal.namespace,
    };
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Run(run) => shown(&edge, *run).await,
        other => Err(internal(&format!(
            "the engine answered a cancellation with {other:?}"
        ))),
    }
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, KNOWN)?;
    let listing = page::listing(&edge, &uri, &parameters);
    let (filter, before, limit) = (
        filter(&edge, &principal, &parameters).await?,
        before(&listing, &parameters)?,
        parameters.limit()?,
    );
    let (page, names) = edge
        .read(move |store| {
            let page = store.runs(&filter, before, limit)?;
            let names = names(store, &page.runs)?;
            Ok((page, names))
        })
        .await?;
    let name = |run: &Run| names.get(&run.job).and_then(Option::as_ref);
    let page = Page {
        items: page
            .runs
            .iter()
            .map(|run| RunSummary::new(run, name(run)))
            .collect(),
        next: page.next.map(|id| listing.encode(&id.to_string())),
    };
    Ok(Json(page).into_response())
}

/// Runs below this id are listed: where the page before ended, or the first id of `until`.
fn before(listing: &Listing, parameters: &Parameters) -> Result<Option<RunId>, Problem> {
    match parameters.text("cursor")? {
        Some(cursor) => Ok(Some(listing.decode(cursor)?.parse()?)),
        None => Ok(parameters.instant("until")?.map(run_ids_from)),
    }
}

async fn filter(
    edge: &Edge,
    principal: &Principal,
    parameters: &Parameters,
) -> Result<RunFilter, Problem> {
    let states = parameters
        .all("state")
        .map(state)
        .collect::<Result<Vec<RunState>, Problem>>()?;
    let mut namespace = principal.narrow(parameters.one("namespace")?)?;
    let mut job: Option<JobId> = parameters.one("job_id")?;
    if let Some(name) = parameters.one::<JobName>("job")? {
        if job.is_some() {
            return Err(Problem::parameter(
                "job",
                "job and job_id exclude each other: give one of them",
            ));
        }
        let home = namespace.unwrap_or_else(|| principal.home());
        let wanted = drumtower_core::engine::JobRef {
            namespace: home.clone(),
            name,
        };
        namespace = Some(home);
        let key = wanted.clone();
        let record = edge
            .read(move |store| store.job_named(&key.namespace, &key.name))
            .await?;
        job = Some(record.ok_or(Refusal::NoSuchJob(wanted))?.row.id);
    }
    let origin = parameters.text("origin")?.map(origin).transpose()?;
    let backfill = parameters.one("backfill")?;
    if let (Some(id), None) = (backfill, job) {
        // Its runs are looked for among those of its job.
        job = Some(backfills::find(edge, principal, id).await?.job);
    }
    let since = parameters.instant("since")?;
    if let (Some(since), Some(until)) = (since, parameters.instant("until")?)
        && since >= until
    {
        return Err(Problem::parameter(
            "until",
            "until: it is not after `since`: give a later `until` or an earlier `since`",
        ));
    }
    Ok(RunFilter {
        namespace,
        job,
        states,
        origin,
        backfill,
        since: since.map(run_ids_from),
    })
}

fn origin(text: &str) -> Result<Origin, Problem> {
    match text {
        "schedule" => Ok(Origin::Schedule),
        "api" => Ok(Origin::Api),
        "backfill" => Ok(Origin::Backfill),
        "after" => Ok(Origin::After),
        _ => Err(Problem::parameter(
            "origin",
            format!("origin: `{text}` is not one of schedule, api, backfill, after"),
        )),
    }
}

fn state(text: &str) -> Result<RunState, Problem> {
    let known = RunState::ALL
        .into_iter()
        .find(|state| state.as_str().eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let names = RunState::ALL.map(RunState::as_str);
        Problem::parameter(
            "state",
            format!("state: `{text}` is not one of {}", names.join(", ")),
        )
    })
}

/// The names of the jobs on a page, each read once.
pub(super) fn names(
    store: &dyn Read,
    runs: &[Run],
) -> Result<BTreeMap<JobId, Option<JobName>>, drumtower_store::Error> {
    let mut names = BTreeMap::new();
    for run in runs {
        if let Entry::Vacant(entry) = names.entry(run.job) {
            entry.insert(store.job(run.job)?.map(|record| record.row.name));
        }
    }
    Ok(names)
}
