//! A request that is held whole, so that it can be carried out here, sent to another server, and sent again.
//!
//! Where nothing can have come of it, it may be sent again: the other could not be reached, or says that it lacks what the
//! request takes. One that was cut off after it was sent is sent again only if to do it twice is as good as once, or if the
//! second time is known for a repetition: by its caller's key, or by the number that it got before it was first sent.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::join_all;

use super::Cluster;
use super::link::Failure;
use super::missing::Missing;
use super::numbered::{self, Numbered};
use super::proof::{Caller, HEADER, Occasion};
use crate::api::{Kind, Problem};
use crate::auth::Repeats;
use crate::listen::Peer;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What another server said, or why nothing came of it.
pub enum Said {
    Answer(Response),
    NotMine(Missing),
    /// It can be asked again.
    Nothing(String),
    /// The same, but it may have been carried out.
    CutOff(String),
}

#[derive(Clone)]
pub struct Held {
    head: Parts,
    body: Bytes,
    /// As other servers get them, but for the proof of who asks, which goes with one request at one time.
    headers: HeaderMap,
    caller: Option<Caller>,
    /// What it is called, if it may have to be recognised by that.
    numbered: Option<Numbered>,
}

impl Held {
    /// `local` says that it comes from the machine's own admin. `None` for a server that is alone.
    pub fn new(cluster: &Cluster, head: Parts, body: Bytes, local: bool) -> Option<Self> {
        cluster.inner.as_ref()?;
        let mut headers = head.headers.clone();
        for name in OF_A_CONNECTION {
            headers.remove(name);
        }
        headers.remove(header::CONTENT_LENGTH);
        // What only a server says, and what the caller may not be taken for.
        for name in [&HEADER, &numbered::HEADER, &super::part::OWN_PART] {
            headers.remove(name);
        }
        let peer = head.extensions.get::<Peer>();
        let caller = peer.map(|peer| Caller {
            address: peer.address.ip(),
            certified: peer.certified,
            local,
        });
        Some(Self {
            head,
            body,
            headers,
            caller,
            numbered: None,
        })
    }

    /// The request for this server's own handler.
    pub fn here(&self) -> Request {
        let mut request = Request::from_parts(self.head.clone(), Body::from(self.body.clone()));
        if let Some(numbered) = self.numbered {
            request.extensions_mut().insert(numbered);
        }
        request
    }

    /// What another server is shown of it at this moment.
    pub fn headers(&self, cluster: &Cluster) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let (Some(inner), Some(caller)) = (&cluster.inner, self.caller) {
            let at = Occasion::now(&self.head.method, &self.head.uri);
            headers.insert(HEADER, inner.key.seal(caller, at));
        }
        if let Some(numbered) = self.numbered {
            headers.insert(numbered::HEADER, numbered.to_header());
        }
        headers
    }

    /// Another request of the same caller to the same route: a part of what this one asks, under the keys of its items.
    pub fn part(&self, body: Vec<u8>) -> Self {
        let mut part = self.own_part();
        part.body = Bytes::from(body);
        part.headers.remove(&IDEMPOTENCY_KEY);
        part
    }

    /// Has it recognised should it have to be sent again, if that is how it `repeats`. What is tried here from then on has
    /// the number too: what the other made of it may come to this server.
    pub fn number(&mut self, repeats: Repeats) {
        if repeats == Repeats::Numbered && self.numbered.is_none() {
            self.numbered = Numbered::draw();
        }
    }

    /// The same of what the other itself has: it asks nobody else.
    pub fn own_part(&self) -> Self {
        let mut part = self.clone();
        super::part::mark(&mut part.headers);
        part
    }

    /// Reads what the other itself has at `path`, in the same caller's name.
    pub fn own_part_of(&self, path: &'static str) -> Self {
        let mut part = self.own_part();
        part.head.method = Method::GET;
        part.head.uri = Uri::from_static(path);
        part.body = Bytes::new();
        part
    }

    /// Whether to send it twice is as good as once, for an operation that `repeats` so.
    pub fn may_be_repeated(&self, repeats: Repeats) -> bool {
        let has = |name: &HeaderName| self.headers.contains_key(name);
        let by_nature = match repeats {
            Repeats::Harmlessly => true,
            Repeats::Unconditionally => !has(&header::IF_MATCH) && !has(&header::IF_NONE_MATCH),
            Repeats::Numbered => self.numbered.is_some() || has(&IDEMPOTENCY_KEY),
            Repeats::UnderKey => has(&IDEMPOTENCY_KEY),
            Repeats::Never => false,
        };
        self.only_reads() || by_nature
    }

    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    pub fn only_reads(&self) -> bool {
        self.head.method.is_safe()
    }

    /// Asks the server at `address`; `again` says that to do it twice is as good as once.
    pub async fn send(&self, cluster: &Cluster, address: &str, again: bool) -> Said {
        let Some(inner) = cluster.inner.as_ref() else {
            return Said::Nothing("there are no other servers".to_owned());
        };
        let (method, headers) = (&self.head.method, self.headers(cluster));
        let body = Body::from(self.body.clone());
        let sent = addressed(address, method, &self.head.uri, headers, body);
        match inner.links.ask(sent).await {
            Ok(answer) => match Missing::in_header(&answer) {
                Some(missing) => Said::NotMine(missing),
                None => Said::Answer(returned(answer)),
            },
            Err(Failure::NotReached(error)) => {
                Said::Nothing(format!("{address} cannot be reached ({error})"))
            }
            Err(Failure::CutOff(error)) if again => {
                Said::CutOff(format!("{address} did not answer ({error})"))
            }
            Err(Failure::CutOff(error)) => {
                tracing::warn!(%address, %error, "a request that was sent on has no answer");
                Said::Answer(unanswered().into_response())
            }
        }
    }
}

/// What is told of a request that another server may have carried out.
pub fn unanswered() -> Problem {
    let detail = "the server that was to carry it out did not answer: read before you repeat it, or repeat it with the same Idempotency-Key";
    Problem::new(Kind::OutcomeUnknown, detail)
}

/// The request that a handler carries out, for what it has to ask of others in the same caller's name. One that asks for
/// a part has none: it asks nobody else.
#[derive(Clone)]
pub struct Errand(pub Arc<Held>);

/// How long another server may take to tell its part.
const PART_WITHIN: Duration = Duration::from_secs(2);
const PART_BYTES: usize = 32 << 20;

impl Errand {
    /// What each other server answers to `held`, by its address; `None` for one that does not, or not with a success.
    pub async fn ask_others(&self, cluster: &Cluster, held: &Held) -> Vec<(String, Option<Bytes>)> {
        let asked = cluster.peers().into_iter().map(async |address| {
            let asking = async {
                match held.send(cluster, &address, true).await {
                    Said::Answer(response) if response.status().is_success() => {
                        axum::body::to_bytes(response.into_body(), PART_BYTES)
                            .await
                            .ok()
                    }
                    // It says that there is no such thing, which is its part of the answer.
                    Said::Answer(response) if response.status() == StatusCode::NOT_FOUND => {
                        Some(Bytes::new())
                    }
                    Said::Answer(_) | Said::NotMine(_) | Said::Nothing(_) | Said::CutOff(_) => None,
                }
            };
            let told = tokio::time::timeout(PART_WITHIN, asking).await;
            (address, told.ok().flatten())
        });
        join_all(asked).await
    }
}

impl Cluster {
    /// Gives a request that another server sent on whole what its handler needs to ask others for their parts.
    pub fn errand(&self, request: Request, local: bool) -> Request {
        let (head, body) = request.into_parts();
        let held = Held::new(self, head.clone(), Bytes::new(), local);
        let mut request = Request::from_parts(head, body);
        if let Some(held) = held {
            request.extensions_mut().insert(Errand(Arc::new(held)));
        }
        request
    }
}

/// The request as the other server gets it.
pub fn addressed(
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

pub fn returned(mut answer: Response) -> Response {
    for name in OF_A_CONNECTION {
        answer.headers_mut().remove(name);
    }
    answer
}
