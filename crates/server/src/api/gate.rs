//! The gate before every handler: who calls, may it, and may it in the namespace that the path names.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, RawPathParamsRejection};
use axum::extract::{FromRequestParts, Path, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use drumtower_core::engine::JobRef;
use drumtower_core::model::{
    BackfillId, CalendarName, CalendarRef, JobName, LockName, LockRef, NamespaceName, QueueName,
    QueueRef, RunId, SettingKey, TokenId, WorkerName,
};

use super::Edge;
use super::problem::{Kind, Problem};
use super::{body, time, validator};
use crate::auth::{Denied, Operation, Principal};
use crate::cluster::{self, Caller};
use crate::listen::Peer;

/// Puts the gate of `operation` before its handler.
pub fn guard(operation: Operation, handler: MethodRouter<Edge>, edge: &Edge) -> MethodRouter<Edge> {
    handler.route_layer(from_fn_with_state((edge.clone(), operation), gate))
}

async fn gate(
    State((edge, operation)): State<(Edge, Operation)>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    // The query stays out: it can hold what people look for.
    let asked = tracing::enabled!(tracing::Level::DEBUG).then(|| {
        let path = request.uri().path().to_owned();
        (request.method().clone(), path, Instant::now())
    });
    let namespace = match &parameters {
        Ok(parameters) => {
            let mut named = parameters.iter().filter(|(name, _)| *name == "namespace");
            Ok(named.next().map(|(_, namespace)| namespace.to_owned()))
        }
        Err(error) => Err(error.to_string()),
    };
    let response = answer(edge, operation, namespace, request, next).await;
    if let Some((method, path, began)) = asked {
        let (status, ms) = (response.status().as_u16(), began.elapsed().as_millis());
        tracing::debug!(%method, %path, status, ms, "request");
    }
    response
}

/// The namespace that the path names, or why it cannot be read.
type Named = Result<Option<String>, String>;

/// Carries a request out here, or has it carried out where it can be.
async fn answer(
    edge: Edge,
    operation: Operation,
    namespace: Named,
    request: Request,
    next: Next,
) -> Response {
    if let Some(caller) = vouched(request.extensions()) {
        // It was sent on once; the one that did so sends it to another where it cannot be done here.
        let request = match cluster::asks_for_own_part(request.headers()) {
            true => request,
            false => edge.cluster.errand(request, caller.local),
        };
        let request = cluster::named(request);
        let mut response = admitted(edge, operation, namespace, request, next).await;
        cluster::mark_what_was_not_done(&mut response);
        return response;
    }
    if edge.cluster.view().is_none() || !operation.rests_on().may_be_elsewhere() {
        return admitted(edge, operation, namespace, request, next).await;
    }
    let (head, body) = request.into_parts();
    // A body is held for those only who may ask.
    let principal = match admit(&edge, operation, &head).await {
        Ok(principal) => principal,
        Err(problem) => return problem.into_response(),
    };
    let local = principal.is_some_and(|principal| principal.is_local());
    let body = match body::whole(&head.headers, body, body::BATCH).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let here = |request| {
        let (edge, namespace, next) = (edge.clone(), namespace.clone(), next.clone());
        admitted(edge, operation, namespace, request, next)
    };
    let repeats = operation.repeats();
    edge.cluster
        .carry_out(head, body, local, repeats, here)
        .await
}

async fn admitted(
    edge: Edge,
    operation: Operation,
    namespace: Named,
    request: Request,
    next: Next,
) -> Response {
    match pass(edge, operation, namespace, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn pass(
    edge: Edge,
    operation: Operation,
    namespace: Named,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (mut head, body) = request.into_parts();
    if let Some(principal) = admit(&edge, operation, &head).await? {
        let namespace = namespace.map_err(|error| Problem::new(Kind::InvalidParameter, error))?;
        if let Some(namespace) = namespace {
            principal.enter(&NamespaceName::new(&namespace)?)?;
        }
        head.extensions.insert(principal);
    }
    if head.method != Method::GET {
        return Ok(next.run(Request::from_parts(head, body)).await);
    }
    let asked = head.headers.clone();
    let request = Request::from_parts(head, body);
    Ok(validator::tagged(&asked, next.run(request).await).await)
}

/// Who asks, if they may; `None` where nobody has to say who they are.
async fn admit(
    edge: &Edge,
    operation: Operation,
    head: &Parts,
) -> Result<Option<Principal>, Problem> {
    let vouched = vouched(&head.extensions);
    let admit = || match (
        vouched.filter(|caller| caller.local),
        authorization(&head.headers),
    ) {
        (Some(_), _) => edge.authority.admit_local(operation),
        (None, Some(shown)) => edge.authority.admit(operation, Some(shown)),
        (None, None) => edge.authority.admit_by(operation, || {
            let (sessions, authority) = (&edge.sessions, &edge.authority);
            let caller = sessions.caller(authority, &head.method, &head.headers, time::now());
            caller.unwrap_or(Err(Denied::NoToken))
        }),
    };
    let mut admitted = admit();
    // The token of a session, too, may have been made by another server a moment ago.
    let is_unknown = matches!(admitted, Err(Denied::UnknownToken | Denied::SessionEnded));
    if is_unknown && edge.look_for_new_tokens().await {
        admitted = admit();
    }
    match admitted {
        Ok(admitted) => Ok(admitted),
        Err(denied) => {
            let peer = head.extensions.get::<Peer>().copied();
            edge.slow_down(&denied, peer).await?;
            Err(denied.into())
        }
    }
}

/// Who asked the server that sent the request on, if one did.
fn vouched(extensions: &Extensions) -> Option<Caller> {
    extensions.get().copied()
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()
}

/// The job that a path names.
pub struct JobPath(pub JobRef);

/// The job that a path names, and the number of a version.
pub struct VersionPath(pub JobRef, pub u32);

/// The calendar that a path names.
pub struct CalendarPath(pub CalendarRef);

/// The queue that a path names.
pub struct QueuePath(pub QueueRef);

/// The setting that a path names.
pub struct SettingPath(pub SettingKey);

/// The lock that a path names.
pub struct LockPath(pub LockRef);

/// The namespace that a path names.
pub struct NamespacePath(pub NamespaceName);

/// The run that a path names.
pub struct RunPath(pub RunId);

/// The namespace that a path names, and the run.
pub struct LetterPath(pub NamespaceName, pub RunId);

/// The backfill that a path names.
pub struct BackfillPath(pub BackfillId);

/// The worker that a path names.
pub struct WorkerPath(pub WorkerName);

/// The token that a path names.
pub struct TokenPath(pub TokenId);

impl<S: Send + Sync> FromRequestParts<S> for JobPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, name) = pair(parts, state).await?;
        Ok(Self(JobRef {
            namespace: NamespaceName::new(&namespace)?,
            name: JobName::new(&name)?,
        }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for VersionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path((namespace, name, version)) =
            Path::<(String, String, String)>::from_request_parts(parts, state)
                .await
                .map_err(|error| unreadable(&error))?;
        let job = JobRef {
            namespace: NamespaceName::new(&namespace)?,
            name: JobName::new(&name)?,
        };
        match version.parse() {
            Ok(version) => Ok(Self(job, version)),
            Err(_) => {
                let version: String = version.chars().take(64).collect();
                let detail = format!("version: `{version}` is not the number of a version");
                Err(Problem::parameter("version", detail))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CalendarPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, name) = pair(parts, state).await?;
        Ok(Self(CalendarRef {
            namespace: NamespaceName::new(&namespace)?,
            name: CalendarName::new(&name)?,
        }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for QueuePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, name) = pair(parts, state).await?;
        Ok(Self(QueueRef {
            namespace: NamespaceName::new(&namespace)?,
            name: QueueName::new(&name)?,
        }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SettingPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Those of the installation have no namespace in their path.
        let path = Path::<BTreeMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|error| unreadable(&error))?;
        let named = |key: &str| path.get(key).map(String::as_str);
        Self::of(named("namespace"), named("name").unwrap_or_default())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for LockPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, name) = pair(parts, state).await?;
        Ok(Self(LockRef {
            namespace: NamespaceName::new(&namespace)?,
            name: LockName::new(&name)?,
        }))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NamespacePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(NamespaceName::new(&last(parts, state).await?)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RunPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(last(parts, state).await?.parse()?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BackfillPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(last(parts, state).await?.parse()?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for LetterPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (namespace, run) = pair(parts, state).await?;
        Ok(Self(NamespaceName::new(&namespace)?, run.parse()?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WorkerPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(WorkerName::new(&last(parts, state).await?)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TokenPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(last(parts, state).await?.parse()?))
    }
}

/// The namespace and the name of a path.
async fn pair<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<(String, String), Problem> {
    let Path(pair) = Path::<(String, String)>::from_request_parts(parts, state)
        .await
        .map_err(|error| unreadable(&error))?;
    Ok(pair)
}

/// The one parameter of a path.
async fn last<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let Path(text) = Path::<String>::from_request_parts(parts, state)
        .await
        .map_err(|error| unreadable(&error))?;
    Ok(text)
}

fn unreadable(error: &PathRejection) -> Problem {
    match error {
        PathRejection::FailedToDeserializePathParams(inner)
            if matches!(inner.kind(), ErrorKind::InvalidUtf8InPathParam { .. }) =>
        {
            Problem::new(Kind::InvalidParameter, "the path is not UTF-8")
        }
        other => super::internal(other),
    }
}
