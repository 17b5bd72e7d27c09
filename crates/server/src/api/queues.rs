//! Routes of queues.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{Command, QueueView, Refusal, Reply};
use drumtower_core::model::{NamespaceName, QueueName, QueueRef, QueueRow, QueueSpec, SegmentId};

use super::Edge;
use super::body::{self, Bounded};
use super::gate::{NamespacePath, QueuePath};
use super::jobs::unexpected;
use super::page::{self, Page};
use super::precondition::QUEUE;
use super::problem::Problem;
use super::query::Parameters;
use super::queue_view::{self, Parked, Queue};
use crate::auth::Principal;

pub async fn put(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    QueuePath(queue): QueuePath,
    uri: Uri,
    headers: HeaderMap,
    Bounded(bytes): Bounded<{ body::ORDINARY }>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = QUEUE.condition(&headers)?;
    let (namespace, name) = (queue.namespace.as_str(), queue.name.as_str());
    let spec: QueueSpec = body::manifest(&bytes, "Queue", namespace, name)?;
    spec.limits()?;
    change(&edge, principal, Command::PutQueue { spec, condition }).await
}

pub async fn pause(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    QueuePath(queue): QueuePath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = QUEUE.condition_on_existing(&headers)?;
    change(&edge, principal, Command::PauseQueue { queue, condition }).await
}

pub async fn resume(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    QueuePath(queue): QueuePath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = QUEUE.condition_on_existing(&headers)?;
    change(&edge, principal, Command::ResumeQueue { queue, condition }).await
}

async fn change(edge: &Edge, principal: Principal, command: Command) -> Result<Response, Problem> {
    match edge.handle.command(principal.actor, command).await?? {
        Reply::Queue { row, created } => {
            let status = match created {
                true => StatusCode::CREATED,
                false => StatusCode::OK,
            };
            // It is done: an answer without figures is better than one that would have it done again elsewhere.
            let now = Seen::here(edge).await.unwrap_or_default();
            Ok((status, now.shown(&row)).into_response())
        }
        other => Err(unexpected(&other)),
    }
}

/// How full queues are. Jobs in queues are together, with the owner of the first segment.
#[derive(Default)]
struct Seen {
    views: Vec<QueueView>,
    parked: BTreeMap<QueueRef, Parked>,
}

impl Seen {
    async fn of(edge: &Edge) -> Result<Self, Problem> {
        edge.at_owner(SegmentId::HOME)?;
        Self::here(edge).await
    }

    async fn here(edge: &Edge) -> Result<Self, Problem> {
        let views = edge.handle.queues().await?;
        let parked = edge.read(queue_view::parked).await?;
        Ok(Self { views, parked })
    }

    fn shown(&self, row: &QueueRow) -> Response {
        let queue = row.queue();
        // It may have been deleted since.
        let gone = QueueView::empty(queue.clone());
        let view = self.views.iter().find(|view| view.queue == queue);
        let body = Queue::new(view.unwrap_or(&gone), row, self.parked.get(&queue));
        let tag = [(header::ETAG, QUEUE.etag(row.revision))];
        (tag, Json(body)).into_response()
    }
}

pub async fn show(
    State(edge): State<Edge>,
    QueuePath(queue): QueuePath,
    uri: Uri,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let seen = Seen::of(&edge).await?;
    let mut views = seen.views.iter();
    let row = views.find(|view| view.queue == queue);
    match row.and_then(|view| view.row.as_ref()) {
        Some(row) => Ok(seen.shown(row)),
        None => Err(Refusal::NoSuchQueue(queue).into()),
    }
}

pub async fn delete(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    QueuePath(queue): QueuePath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    Parameters::read(&uri, &[])?;
    let condition = QUEUE.condition_on_existing(&headers)?;
    let command = Command::DeleteQueue { queue, condition };
    edge.handle.command(principal.actor, command).await??;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn list(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["namespace", "limit", "cursor"])?;
    let namespace = principal.narrow(parameters.one("namespace")?)?;
    listed(&edge, namespace, &uri, &parameters).await
}

pub async fn list_namespace(
    State(edge): State<Edge>,
    NamespacePath(namespace): NamespacePath,
    uri: Uri,
) -> Result<Response, Problem> {
    let parameters = Parameters::read(&uri, &["limit", "cursor"])?;
    listed(&edge, Some(namespace), &uri, &parameters).await
}

async fn listed(
    edge: &Edge,
    namespace: Option<NamespaceName>,
    uri: &Uri,
    parameters: &Parameters,
) -> Result<Response, Problem> {
    let listing = page::listing(edge, uri, parameters);
    let after = parameters.text("cursor")?;
    let after = after
        .map(|cursor| place(&listing.decode(cursor)?))
        .transpose()?;
    let limit = parameters.limit()?;
    let seen = Seen::of(edge).await?;
    let asked_for = |view: &&QueueView| {
        let of = |namespace: &NamespaceName| *namespace == view.queue.namespace;
        let behind = |after: &QueueRef| view.queue > *after;
        namespace.as_ref().is_none_or(of) && after.as_ref().is_none_or(behind)
    };
    let views = seen.views.iter().filter(asked_for);
    let mut defined: Vec<(&QueueView, &QueueRow)> = views
        .filter_map(|view| Some((view, view.row.as_ref()?)))
        .collect();
    let more = defined.len() > limit;
    defined.truncate(limit);
    let next = defined.last().filter(|_| more).map(|(view, _)| {
        let QueueRef { namespace, name } = &view.queue;
        listing.encode(&format!("{namespace}/{name}"))
    });
    let items: Vec<Queue<'_>> = defined
        .into_iter()
        .map(|(view, row)| Queue::new(view, row, seen.parked.get(&view.queue)))
        .collect();
    Ok(Json(Page { items, next }).into_response())
}

/// The place in the order of queues that a cursor stands for. It chooses no namespace: the filter does.
fn place(place: &str) -> Result<QueueRef, Problem> {
    let (namespace, name) = place.split_once('/').unwrap_or_default();
    Ok(QueueRef {
        namespace: NamespaceName::new(namespace)?,
        name: QueueName::new(name)?,
    })
}

static SCHEMA: LazyLock<String> =
    LazyLock::new(|| schemars::schema_for!(QueueSpec).as_value().to_string());

/// The JSON schema of the manifest.
pub async fn schema(uri: Uri) -> Result<impl IntoResponse, Problem> {
    Parameters::read(&uri, &[])?;
    let kind = HeaderValue::from_static("application/schema+json");
    Ok(([(header::CONTENT_TYPE, kind)], SCHEMA.as_str()))
}
