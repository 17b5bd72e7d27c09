//! Sends a request on to the server that owns what it is about.
//!
//! A request is held whole, so that it can be sent again where nothing was done: to a server that is not there any more,
//! or that answers that it does not own. While nobody owns, it waits: a take-over is a delay and not an error. One that was
//! cut off after it was sent is sent again only if to do it twice is as good as once.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::link::Failure;
use super::proof::{Caller, HEADER};
use super::{Cluster, Inner};
use crate::api::{Kind, Problem};
use crate::driver::Health;
use crate::listen::Peer;

/// Longer than a take-over takes.
const OWNER_WITHIN: Duration = Duration::from_secs(15);
/// Between two tries while the view stays as it is.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// The largest body that any route takes.
const BODY_BYTES: usize = 8 << 20;

/// Says that nothing was done because the server that was asked does not own.
const NOT_MINE: HeaderName = HeaderName::from_static("drumtower-not-mine");

/// What becomes of a request here.
pub enum Way {
    /// This server answers it.
    Here(Request),
    /// It has been answered.
    Answered(Response),
}

impl Cluster {
    /// Sends a request to the owner if that is another server; `local` says that it comes from the machine's own admin.
    pub async fn forward(&self, request: Request, local: bool) -> Way {
        let Some(inner) = self.away() else {
            return Way::Here(request);
        };
        if self.asks_for_own_part(request.headers()) {
            return Way::Here(request);
        }
        if self.vouched(request.headers()).is_some() {
            return Way::Answered(not_mine());
        }
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Peer>().copied();
        let body = match axum::body::to_bytes(body, BODY_BYTES).await {
            Ok(body) => body,
            Err(_) => {
                let detail = format!("the body is larger than {BODY_BYTES} bytes, or was cut off");
                return Way::Answered(Problem::new(Kind::TooLarge, detail).into_response());
            }
        };
        let held = Held {
            method: head.method.clone(),
            path: head.uri.clone(),
            headers: carried(&head.headers, inner, caller, local),
            body,
        };
        match held.send(inner).await {
            Some(answer) => Way::Answered(answer),
            // Ownership came here while it waited.
            None => Way::Here(Request::from_parts(head, Body::from(held.body))),
        }
    }
}

/// The layer of RPCs: streams of workers go to the owner.
pub async fn forward_rpc(State(cluster): State<Cluster>, request: Request, next: Next) -> Response {
    let Some(inner) = cluster.away() else {
        return next.run(request).await;
    };
    if cluster.vouched(request.headers()).is_some() {
        return unavailable("this server does not own the segments: dial again");
    }
    let caller = request.extensions().get::<Peer>().copied();
    let Some(owner) = inner.owner_elsewhere() else {
        return unavailable("no server owns the segments at the moment: dial again");
    };
    let (head, body) = request.into_parts();
    let headers = carried(&head.headers, inner, caller, false);
    let sent = addressed(&owner, &head.method, &head.uri, headers, body);
    match inner.links.open(sent).await {
        Ok(answer) => returned(answer),
        Err(Failure::NotReached(why) | Failure::CutOff(why)) => {
            tracing::debug!(%owner, %why, "a worker's stream could not be passed on");
            unavailable("the server that owns the segments cannot be reached: dial again")
        }
    }
}

impl Inner {
    /// The address of the owner, if it is another server.
    fn owner_elsewhere(&self) -> Option<String> {
        let view = self.view.borrow();
        let address = view.owner()?.member.address.clone()?;
        (Some(&address) != self.own.as_ref()).then_some(address)
    }
}

/// A request that can be sent more than once.
struct Held {
    method: Method,
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Held {
    /// The owner's answer; `None` when this server has become the owner.
    async fn send(&self, inner: &Inner) -> Option<Response> {
        let until = Instant::now() + OWNER_WITHIN;
        let mut health = inner.health.clone();
        let mut why = "no server owns the segments at the moment".to_owned();
        while Instant::now() < until {
            match &*health.borrow_and_update() {
                Health::Standby | Health::Starting => {}
                _ => return None,
            }
            if let Some(owner) = inner.owner_elsewhere() {
                match self.try_at(inner, &owner).await {
                    Ok(answer) => return Some(answer),
                    Err(reason) => why = reason,
                }
            }
            tokio::select! {
                _ = health.changed() => {}
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
        Some(Problem::new(Kind::NotReady, format!("{why}: try again")).into_response())
    }

    /// Whether to be carried out twice is as good as once: it only reads, it says how something is to be whatever it was
    /// before, or it triggers runs under a key by which the second is known for a repetition.
    fn may_be_repeated(&self) -> bool {
        let has = |name: &HeaderName| self.headers.contains_key(name);
        let unconditional = !has(&header::IF_MATCH) && !has(&header::IF_NONE_MATCH);
        let path = self.path.path();
        let triggers = path.ends_with("/runs") || path.ends_with("/runs:batch");
        self.method.is_safe()
            || (self.method == Method::PUT && unconditional)
            || (triggers && has(&HeaderName::from_static("idempotency-key")))
    }

    /// The answer of a server, or why it can be asked again.
    async fn try_at(&self, inner: &Inner, owner: &str) -> Result<Response, String> {
        let body = Body::from(self.body.clone());
        let sent = addressed(owner, &self.method, &self.path, self.headers.clone(), body);
        match inner.links.ask(sent).await {
            Ok(answer) if answer.headers().contains_key(NOT_MINE) => {
                Err(format!("{owner} has just given up what it owned"))
            }
            Ok(answer) => Ok(returned(answer)),
            Err(Failure::NotReached(error)) => Err(format!("{owner} cannot be reached ({error})")),
            Err(Failure::CutOff(error)) if self.may_be_repeated() => {
                Err(format!("{owner} did not answer ({error})"))
            }
            Err(Failure::CutOff(error)) => {
                tracing::warn!(%owner, %error, "a request that was sent on has no answer");
                let detail = "the server that was to carry it out did not answer: read before you repeat it, or repeat it with the same Idempotency-Key";
                Ok(Problem::new(Kind::OutcomeUnknown, detail).into_response())
            }
        }
    }
}

/// The request as the other server gets it.
pub(super) fn addressed(
    server: &str,
    method: &Method,
    path: &Uri,
    headers: HeaderMap,
    body: Body,
) -> Request {
    let path = path.path_and_query().map_or("/", |path| path.as_str());
    let uri = format!("{}{path}", server.trim_end_matches('/'));
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.headers_mut() = headers;
    // An address that is no URL leads nowhere, which is told as any other server that cannot be reached.
    *request.uri_mut() = uri.parse().unwrap_or_default();
    request
}

/// Headers that belong to one connection and not to what is asked.
const OF_A_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    header::UPGRADE,
    header::TRANSFER_ENCODING,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
];

fn carried(headers: &HeaderMap, inner: &Inner, caller: Option<Peer>, local: bool) -> HeaderMap {
    let mut headers = headers.clone();
    for name in OF_A_CONNECTION {
        headers.remove(name);
    }
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(HEADER);
    if let Some(peer) = caller {
        let caller = Caller {
            address: peer.address.ip(),
            certified: peer.certified,
            local,
        };
        headers.insert(HEADER, inner.key.seal(caller));
    }
    headers
}

/// Whoever asks through another server is taken for who it is.
pub async fn introduce(
    State(cluster): State<Cluster>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(caller) = cluster.vouched(request.headers()) {
        request.extensions_mut().insert(Peer {
            address: SocketAddr::new(caller.address, 0),
            certified: caller.certified,
        });
    }
    next.run(request).await
}

fn returned(answer: http::Response<Incoming>) -> Response {
    let mut answer = answer.map(Body::new);
    for name in OF_A_CONNECTION {
        answer.headers_mut().remove(name);
    }
    answer
}

fn not_mine() -> Response {
    let problem = Problem::new(Kind::NotReady, "this server does not own the segments");
    let mut response = problem.into_response();
    mark_what_was_not_done(&mut response);
    response
}

/// Tells the server that sent a request on when nothing came of it and it may be sent to another.
pub fn mark_what_was_not_done(response: &mut Response) {
    let kind = response.extensions().get::<Kind>();
    if matches!(kind, Some(Kind::NotReady | Kind::Stopping)) {
        let mark = HeaderValue::from_static("1");
        response.headers_mut().insert(NOT_MINE, mark);
    }
}

/// What gRPC calls unavailable: dial again.
fn unavailable(why: &'static str) -> Response {
    let mut response = StatusCode::OK.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    headers.insert("grpc-status", HeaderValue::from_static("14"));
    headers.insert("grpc-message", HeaderValue::from_static(why));
    response
}
