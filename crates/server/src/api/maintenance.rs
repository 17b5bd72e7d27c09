//! Routes that take workers out of service, put them back, and forget what is held against them.

use axum::extract::State;
use axum::http::Uri;
use axum::{Extension, Json};
use drumtower_core::engine::{Command, Reply, WorkerView};
use drumtower_core::model::{Actor, DrainRow, NamespaceName, WorkerName, WorkerRef};
use drumtower_core::schedule::parse_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{self, Bounded};
use super::gate::WorkerPath;
use super::jobs::unexpected;
use super::problem::{Kind, Problem};
use super::query::Parameters;
use super::time::Time;
use super::{Edge, sum};
use crate::auth::Principal;
use crate::cluster::Errand;

/// A drain that is in force.
#[derive(Serialize, JsonSchema)]
pub struct Maintenance {
    since: Time,
    /// Who asked for it.
    actor: Actor,
    /// Of which namespace's workers; of all that have the name when there is none.
    namespace: Option<NamespaceName>,
    /// When what still runs is stopped; without one it ends by itself.
    deadline: Option<Time>,
    /// When the deadline came and what still ran was asked to stop.
    forced: Option<Time>,
}

impl From<&DrainRow> for Maintenance {
    fn from(row: &DrainRow) -> Self {
        Self {
            since: row.since.into(),
            actor: row.actor.clone(),
            namespace: row.worker.namespace.clone(),
            deadline: row.deadline.map(Time),
            forced: row.forced.map(Time),
        }
    }
}

impl Standing {
    /// Of workers that this server knows nothing of.
    fn of_nobody(name: WorkerName) -> Self {
        Self {
            name,
            maintenance: None,
            processes: 0,
            attempts: 0,
        }
    }
}

/// Where workers of one name stand after a request.
#[derive(Serialize, JsonSchema)]
pub struct Standing {
    name: WorkerName,
    /// The drain that is in force; null when they are in service.
    maintenance: Option<Maintenance>,
    /// Processes of that name that are connected or whose lease has not ended.
    processes: usize,
    /// Attempts that they hold. A drain is done when there are none.
    attempts: usize,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// How long what runs may take to end, such as `10m`, up to 30 days; `0s` stops it at once. For ever unless given.
    deadline: Option<String>,
}

pub async fn drain(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    WorkerPath(name): WorkerPath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Json<Standing>, Problem> {
    let worker = meant(&edge, &principal, name, &uri).await?;
    let asked: Drain = match bytes.is_empty() {
        true => Drain::default(),
        false => body::parse(&bytes)?,
    };
    let deadline = asked.deadline.as_deref().map(parse_duration).transpose();
    let deadline_ms =
        deadline.map_err(|error| Problem::field("deadline", format!("deadline: {error}")))?;
    let name = worker.name.clone();
    let command = Command::DrainWorker {
        worker,
        deadline_ms,
    };
    carry_out(&edge, principal, name, command, errand).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    WorkerPath(name): WorkerPath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Json<Standing>, Problem> {
    let worker = meant(&edge, &principal, name, &uri).await?;
    let name = worker.name.clone();
    let command = Command::ResumeWorker { worker };
    carry_out(&edge, principal, name, command, errand).await
}

pub async fn reset(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    WorkerPath(name): WorkerPath,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Json<Standing>, Problem> {
    let worker = meant(&edge, &principal, name, &uri).await?;
    let name = worker.name.clone();
    // Each server holds against it what it saw itself.
    let known = match &errand {
        Some(Extension(errand)) => !sum::same(&edge, Some(errand)).await.told.is_empty(),
        None => false,
    };
    let command = Command::ResetWorker { worker };
    match carry_out(&edge, principal, name.clone(), command, errand.clone()).await {
        Err(problem) if problem.kind == Kind::NoSuchWorker && known => Ok(Json(Standing {
            attempts: elsewhere(&edge, errand.map(|Extension(errand)| errand), &name).await,
            ..Standing::of_nobody(name)
        })),
        told => told,
    }
}

/// Whom a request means: the workers of a namespace, or all that have the name. A token that is bound to a namespace has no
/// say in workers that serve others too.
async fn meant(
    edge: &Edge,
    principal: &Principal,
    name: WorkerName,
    uri: &Uri,
) -> Result<WorkerRef, Problem> {
    let parameters = Parameters::read(uri, &["namespace"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    let workers = WorkerRef { name, namespace };
    if let Some(own) = &workers.namespace {
        let fleet = edge.handle.workers().await?;
        let mut named = fleet.iter().filter(|it| it.name == workers.name);
        let shared = named.clone().any(|it| it.namespace.is_none());
        if shared && !named.any(|it| it.namespace.as_ref() == Some(own)) {
            let detail = format!(
                "worker `{}` serves every namespace: use a token that is not bound to one, and leave `namespace` out",
                workers.name
            );
            return Err(Problem::new(Kind::ForbiddenNamespace, detail));
        }
    }
    Ok(workers)
}

async fn carry_out(
    edge: &Edge,
    principal: Principal,
    name: WorkerName,
    command: Command,
    errand: Option<Extension<Errand>>,
) -> Result<Json<Standing>, Problem> {
    let errand = errand.map(|Extension(errand)| errand);
    let sees = |worker: &WorkerView| {
        let namespace = worker.namespace.as_ref();
        namespace.is_none_or(|namespace| principal.sees(namespace))
    };
    let told = edge
        .handle
        .command(principal.actor.clone(), command)
        .await??;
    // It is done: an answer without the fleet is better than one that would have it done again elsewhere.
    let mut fleet = edge.handle.workers().await.unwrap_or_default();
    fleet.retain(|worker| worker.name == name && sees(worker));
    let maintenance = match &told {
        Reply::Drain(row) => row.as_deref().map(Maintenance::from),
        Reply::Reset { .. } => fleet
            .iter()
            .find_map(|worker| worker.drain.as_ref())
            .map(Maintenance::from),
        other => return Err(unexpected(other)),
    };
    let own: usize = fleet.iter().map(|worker| worker.attempts).sum();
    Ok(Json(Standing {
        maintenance,
        processes: fleet.iter().filter(|worker| worker.alive).count(),
        attempts: own + elsewhere(edge, errand, &name).await,
        name,
    }))
}

/// Attempts of other servers that workers of a name hold.
async fn elsewhere(edge: &Edge, errand: Option<Errand>, name: &WorkerName) -> usize {
    let Some(errand) = errand else {
        return 0;
    };
    let held = errand.0.own_part_of("/api/v1/workers");
    let mut told = sum::of(edge, &errand, &held).await.told;
    let workers = told.iter_mut().flat_map(|part| sum::items(part, "items"));
    let named = workers.filter(|worker| worker["name"] == name.as_str());
    let held: u64 = named.filter_map(|worker| worker["attempts"].as_u64()).sum();
    usize::try_from(held).unwrap_or(usize::MAX)
}
