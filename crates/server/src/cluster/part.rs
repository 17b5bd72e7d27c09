//! Asks another server for what it has of an attempt's output.
//!
//! It is the request for output that anyone may make, in the name of the caller who made it here, with a mark that only
//! what lies in the other's own files is meant. The other judges the caller by its own policy table; without the
//! [`proof`](super::proof) of a server the mark means nothing.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use bytes::Bytes;
use drumtower_core::model::Home;

use super::proof::{Caller, HEADER, Occasion};
use super::{Cluster, Server};
use crate::listen::Peer;
use crate::logs::Source;

/// On a request that means what the other itself has.
pub(super) const OWN_PART: HeaderName = HeaderName::from_static("drumtower-own-part");
/// Parts that are held in memory at a time, for all callers.
pub(super) const AT_ONCE: usize = 8;
/// More than an attempt may write, with the heads of its records.
const PART_BYTES: usize = 32 << 20;
const WITHIN: Duration = Duration::from_secs(10);

/// Who reads, as another server needs to know it.
#[derive(Clone)]
pub struct InTheNameOf {
    headers: HeaderMap,
    caller: Caller,
}

impl InTheNameOf {
    /// `local` says that it is the machine's own admin.
    pub fn new(headers: &HeaderMap, peer: Peer, local: bool) -> Self {
        let mut shown = HeaderMap::new();
        for name in [header::AUTHORIZATION, header::COOKIE] {
            // A browser may send its cookies in several lines.
            for value in headers.get_all(&name) {
                shown.append(name.clone(), value.clone());
            }
        }
        mark(&mut shown);
        let caller = Caller {
            address: peer.address.ip(),
            certified: peer.certified,
            local,
        };
        Self {
            headers: shown,
            caller,
        }
    }
}

/// Whether a request that is vouched for asks for what this server has.
pub fn asks_for_own_part(headers: &HeaderMap) -> bool {
    headers.contains_key(OWN_PART)
}

impl Cluster {
    /// The server that has these files, if it is there.
    pub fn at_home(&self, home: Home) -> Option<Server> {
        let mut servers = self.view()?.servers.into_iter();
        servers.find(|server| server.member.home == Some(home))
    }

    /// What the server at `address` has of an attempt's output, or why it cannot be had.
    pub async fn part(
        &self,
        address: &str,
        source: Source,
        shown: &InTheNameOf,
    ) -> Result<Bytes, String> {
        let inner = self.inner.as_ref().ok_or("there are no other servers")?;
        let _turn = inner.parts.acquire().await.map_err(|_| "it ends")?;
        let Source { run, attempt } = source;
        let path: Uri = format!("/api/v1/runs/{run}/logs?attempt={attempt}")
            .parse()
            .map_err(|_| "it has no such path")?;
        let mut headers = shown.headers.clone();
        let at = Occasion::now(&Method::GET, &path);
        headers.insert(HEADER, inner.key.seal(shown.caller, at));
        let sent = super::held::addressed(address, &Method::GET, &path, headers, Body::empty());
        let asking = ask(inner, sent);
        let answered = tokio::time::timeout(WITHIN, asking).await;
        answered.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }
}

/// Only what the other itself has is meant.
pub(super) fn mark(headers: &mut HeaderMap) {
    headers.insert(OWN_PART, HeaderValue::from_static("1"));
}

async fn ask(inner: &super::Inner, request: Request) -> Result<Bytes, String> {
    let answer = inner.links.ask(request).await;
    let answer = answer.map_err(|failure| failure.to_string())?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("it answered with {status}"));
    }
    let body = axum::body::to_bytes(answer.into_body(), PART_BYTES).await;
    body.map_err(|error| format!("its answer was cut off: {error}"))
}
