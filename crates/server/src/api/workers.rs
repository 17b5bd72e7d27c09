//! The fleet: what this server knows of it, put together with what the others do. A worker keeps a stream to each server that
//! has work to give, and each knows only the attempts that it gave.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Load, WorkerState, WorkerView};
use drumtower_core::model::{JobName, NamespaceName, RunId, RunState, WorkerName};
use drumtower_store::Read;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::gate::WorkerPath;
use super::maintenance::Maintenance;
use super::page::Page;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::Time;
use super::{Edge, sum};
use crate::auth::Principal;
use crate::cluster::Errand;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Worker")]
pub struct Worker<'a> {
    name: &'a WorkerName,
    state: WorkerState,
    /// What the state rests on, in words.
    why: Option<&'a str>,
    /// The drain that is in force, if it is drained.
    maintenance: Option<Maintenance>,
    /// How often its name was lost within the last ten minutes.
    losses: usize,
    /// Until when it gets no work because it was lost again and again.
    faulty_until: Option<Time>,
    /// Whether it gets one run at a time until one has ended.
    probation: bool,
    host: &'a str,
    version: &'a str,
    labels: &'a BTreeMap<String, String>,
    namespace: Option<&'a NamespaceName>,
    exec: bool,
    http: bool,
    handlers: &'a [String],
    capacity: u32,
    credit: u64,
    attempts: usize,
    load: LoadView,
    skew_ms: i64,
    connected: Time,
    last_heartbeat: Option<Time>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Load")]
struct LoadView {
    cpu_permille: u32,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
    network_received_bytes_per_s: u64,
    network_sent_bytes_per_s: u64,
    running_weight: u32,
}

/// Workers that serve every namespace belong to none, and everyone sees them.
pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let fleet = edge.handle.workers().await?;
    let seen = fleet.iter().filter(|worker| {
        worker
            .namespace
            .as_ref()
            .is_none_or(|namespace| principal.sees(namespace))
    });
    let page = Page::whole(seen.map(Worker::from));
    let Some(Extension(errand)) = errand else {
        return Ok(Json(page).into_response());
    };
    let mut others = sum::same(&edge, Some(&errand)).await.told;
    let mut lists = vec![sum::items(&mut sum::value(&page)?, "items")];
    lists.extend(others.iter_mut().map(|part| sum::items(part, "items")));
    let page = Page::whole(sum::workers(lists).into_iter());
    Ok(Json(page).into_response())
}

/// What is told of one worker beyond its line in the list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorkerInFull")]
pub struct Full<'a> {
    #[serde(flatten)]
    worker: Worker<'a>,
    executors: Vec<&'static str>,
    /// How commands are held to their limits, and why so.
    limits: Option<Limits<'a>>,
    /// The runs it holds, oldest first, of those the caller may see; at most 100.
    running: Vec<Running>,
    /// Other processes of the same name.
    others: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Enforcement")]
struct Limits<'a> {
    by: &'a str,
    why: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HeldRun")]
struct Running {
    run: RunId,
    namespace: NamespaceName,
    job: Option<JobName>,
    state: RunState,
    created: Time,
}

/// One worker. Of several processes with one name it is the one that connected last.
pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    WorkerPath(name): WorkerPath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let errand = errand.map(|Extension(errand)| errand);
    let told = sum::same(&edge, errand.as_ref()).await.told;
    let seen = told.into_iter().reduce(|mut sum, part| {
        sum::worker(&mut sum, &part);
        sum
    });
    let full = match (own_part(&edge, &principal, &name).await?, seen) {
        (Some(mut full), Some(seen)) => {
            sum::worker(&mut full, &seen);
            full
        }
        (Some(full), None) | (None, Some(full)) => full,
        (None, None) => {
            let detail = format!(
                "there is no worker `{name}`: `drumtower worker list` shows those connected or lost lately"
            );
            return Err(Problem::new(Kind::NoSuchWorker, detail));
        }
    };
    Ok(Json(full).into_response())
}

/// What this server knows of a worker.
async fn own_part(
    edge: &Edge,
    principal: &Principal,
    name: &WorkerName,
) -> Result<Option<Value>, Problem> {
    let mut fleet = edge.handle.workers().await?;
    let sees = |worker: &WorkerView| {
        let namespace = worker.namespace.as_ref();
        namespace.is_none_or(|namespace| principal.sees(namespace))
    };
    fleet.retain(|worker| worker.name == *name && sees(worker));
    let others = fleet.len().saturating_sub(1);
    let newest = fleet
        .into_iter()
        .max_by_key(|worker| (worker.linked, worker.alive, worker.connected));
    let Some(view) = newest else {
        return Ok(None);
    };
    let ids = view.running.clone();
    let found = edge.read(move |store| running(store, &ids)).await?;
    let running = found
        .into_iter()
        .filter(|it| principal.sees(&it.namespace))
        .collect();
    let mut executors = Vec::new();
    if view.exec {
        executors.extend(["exec", "script"]);
    }
    if view.http {
        executors.push("http");
    }
    let full = Full {
        worker: Worker::from(&view),
        executors,
        limits: (!view.enforcement.by.is_empty()).then_some(Limits {
            by: &view.enforcement.by,
            why: &view.enforcement.why,
        }),
        running,
        others,
    };
    sum::value(&full).map(Some)
}

fn running(store: &dyn Read, ids: &[RunId]) -> Result<Vec<Running>, drumtower_store::Error> {
    let mut found = Vec::new();
    for id in ids {
        let Some(run) = store.run(*id)? else {
            continue;
        };
        found.push(Running {
            run: run.id,
            job: store.job(run.job)?.map(|record| record.row.name),
            namespace: run.namespace,
            state: run.state,
            created: run.created.into(),
        });
    }
    Ok(found)
}

impl<'a> From<&'a WorkerView> for Worker<'a> {
    fn from(view: &'a WorkerView) -> Self {
        Self {
            name: &view.name,
            state: view.state,
            why: view.why.as_deref(),
            maintenance: view.drain.as_ref().map(Maintenance::from),
            losses: view.losses,
            faulty_until: view.faulty_until.map(Time),
            probation: view.probation,
            host: &view.host,
            version: &view.version,
            labels: &view.labels,
            namespace: view.namespace.as_ref(),
            exec: view.exec,
            http: view.http,
            handlers: &view.handlers,
            capacity: view.capacity,
            credit: view.credit,
            attempts: view.attempts,
            load: view.load.into(),
            skew_ms: view.skew_ms,
            connected: view.connected.into(),
            last_heartbeat: view.last_heartbeat.map(Time),
        }
    }
}

impl From<Load> for LoadView {
    fn from(load: Load) -> Self {
        Self {
            cpu_permille: load.cpu_permille,
            memory_used_bytes: load.memory_used_bytes,
            memory_total_bytes: load.memory_total_bytes,
            disk_used_bytes: load.disk_used_bytes,
            disk_total_bytes: load.disk_total_bytes,
            network_received_bytes_per_s: load.network_received_bytes_per_s,
            network_sent_bytes_per_s: load.network_sent_bytes_per_s,
            running_weight: load.running_weight,
        }
    }
}
