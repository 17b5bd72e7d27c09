//! Tells another server what this one commits, from when it asks until it goes.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::super::Cluster;
use super::super::proof::{OWN_HEADER, Occasion, Unproven};
use super::{BEAT_EVERY, PATH, Told};
use crate::api::no_such_route;
use crate::driver::Handle;
use crate::driver::tap::{Fact, Heard, Interest, Subscription};

#[derive(Clone)]
struct Teller {
    cluster: Cluster,
    handle: Handle,
    stopping: watch::Receiver<bool>,
}

/// The one route that is not in the policy table: no token opens it, only the proof of a server.
pub fn facts(cluster: Cluster, handle: Handle, stopping: watch::Receiver<bool>) -> Router {
    let teller = Teller {
        cluster,
        handle,
        stopping,
    };
    Router::new().route(PATH, get(tell)).with_state(teller)
}

async fn tell(
    State(teller): State<Teller>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let shown = headers.get(OWN_HEADER);
    let inner = teller.cluster.inner.as_ref();
    let at = Occasion::now(&method, &uri);
    let opened = inner
        .zip(shown)
        .map(|(it, shown)| it.key.open_own(shown, at));
    if opened == Some(Err(Unproven::Untimely)) {
        tracing::warn!("another server's clock lies more than two minutes apart: set them by NTP");
    }
    if opened != Some(Ok(())) {
        return no_such_route(uri).await.into_response();
    }
    // What is committed from here on is told.
    let facts = teller.handle.tap().subscribe(Interest::Committed);
    let (out, lines) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut stopping = teller.stopping;
        tokio::select! {
            () = tell_all(facts, &out) => {}
            () = out.closed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Body::from_stream(ReceiverStream::new(lines).map(Ok::<Bytes, Infallible>)).into_response()
}

async fn tell_all(mut facts: Subscription, out: &mpsc::Sender<Bytes>) {
    let mut line = Told::Beat.write();
    while out.send(line.into()).await.is_ok() {
        line = match tokio::time::timeout(BEAT_EVERY, facts.next()).await {
            Err(_) => Told::Beat.write(),
            Ok(None) => return,
            Ok(Some(Heard::Missed(count))) => Told::Missed(count).write(),
            Ok(Some(Heard::Facts(chunk))) => {
                // Each server has workers of its own.
                let told = chunk.facts.iter();
                let told = told.filter(|fact| !matches!(fact, Fact::Worker(_)));
                Told::Facts(told.collect()).write()
            }
        };
    }
}
