//! Streams of workers: served here, or passed on to the server that the worker means, with their bytes unchanged.
//!
//! A worker that keeps a stream to each owner names the one that it means in its metadata. One that names none is served by
//! whichever owns something.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use drumtower_core::model::SegmentId;
use drumtower_proto::SERVER_HEADER;

use super::held::{Held, addressed, returned};
use super::link::Failure;
use super::proof::{Caller, HEADER, Occasion, Unproven};
use super::{Cluster, View};
use crate::api::{Kind, Problem};
use crate::listen::Peer;

const UNTIMELY: &str = "drumtower-forwarded: it was sealed more than two minutes ago or ahead: set the clocks of the servers by NTP";

/// Where a stream belongs.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    Here,
    At(String),
    /// Nowhere for now, in words for the worker.
    Nowhere(&'static str),
}

fn way(view: &View, own: Option<&str>, meant: Option<&str>, owns: bool) -> Way {
    let addresses = |server: &super::Server| server.member.address.clone();
    match meant {
        Some(meant) if Some(meant) == own => Way::Here,
        // Only servers of the same store are dialled, whatever a worker names.
        Some(meant) => match view
            .servers
            .iter()
            .filter_map(addresses)
            .find(|it| it == meant)
        {
            Some(address) => Way::At(address),
            None => Way::Nowhere("the server that is meant is not there: dial again"),
        },
        None if owns => Way::Here,
        None => {
            let home = view.owner_of(SegmentId::HOME).into_iter();
            let others = view.servers.iter().filter(|it| !it.segments.is_empty());
            let mut owners = home.chain(others).filter_map(addresses);
            match owners.find(|it| Some(it.as_str()) != own) {
                Some(address) => Way::At(address),
                None => Way::Nowhere("no server owns the segments at the moment: dial again"),
            }
        }
    }
}

/// The layer of RPCs that are streams of workers.
pub async fn forward_rpc(State(cluster): State<Cluster>, request: Request, next: Next) -> Response {
    let Some(inner) = &cluster.inner else {
        return next.run(request).await;
    };
    // It was sent to this server by another, which knows that it is the one.
    if request.extensions().get::<Caller>().is_some() {
        return next.run(request).await;
    }
    let meant = request.headers().get(SERVER_HEADER);
    let meant = meant.and_then(|value| value.to_str().ok());
    let owns = !cluster.owns_nothing();
    let way = way(&inner.view.borrow(), inner.own.as_deref(), meant, owns);
    let address = match way {
        Way::Here => return next.run(request).await,
        Way::Nowhere(why) => return unavailable(why),
        Way::At(address) => address,
    };
    let (head, body) = request.into_parts();
    let Some(held) = Held::new(&cluster, head.clone(), Bytes::new(), false) else {
        return unavailable("there are no other servers");
    };
    let sent = addressed(
        &address,
        &head.method,
        &head.uri,
        held.headers(&cluster),
        body,
    );
    match inner.links.open(sent).await {
        Ok(answer) => returned(answer),
        Err(Failure::NotReached(why) | Failure::CutOff(why)) => {
            tracing::debug!(%address, %why, "a worker's stream could not be passed on");
            unavailable("the server that owns the segments cannot be reached: dial again")
        }
    }
}

/// The layer of everything: whoever asks through another server is taken for who it is. What that server proves is left to
/// the layers below as a [`Caller`].
pub async fn introduce(
    State(cluster): State<Cluster>,
    mut request: Request,
    next: Next,
) -> Response {
    let shown = request.headers().get(HEADER).zip(cluster.inner.as_ref());
    let at = Occasion::now(request.method(), request.uri());
    match shown.map(|(seal, inner)| inner.key.open(seal, at)) {
        Some(Ok(caller)) => {
            let extensions = request.extensions_mut();
            extensions.insert(caller);
            extensions.insert(Peer {
                address: SocketAddr::new(caller.address, 0),
                certified: caller.certified,
            });
        }
        // Taken for any other request it would be sent on once more, perhaps to where it came from.
        Some(Err(Unproven::Untimely)) => {
            tracing::warn!("a request was sent on at another time by the other server's clock");
            return Problem::new(Kind::NotReady, UNTIMELY).into_response();
        }
        Some(Err(Unproven::Forged)) | None => {}
    }
    next.run(request).await
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

#[cfg(test)]
mod tests {
    use drumtower_core::model::{Member, SegmentSet, SessionId, WallMs};

    use super::super::Server;
    use super::*;

    fn view() -> View {
        let server = |number: u64, segments: &[u16]| Server {
            session: SessionId(number),
            member: Member {
                address: Some(format!("http://{number}")),
                ..Member::alone("server")
            },
            expires: WallMs(0),
            segments: segments
                .iter()
                .copied()
                .map(SegmentId)
                .collect::<SegmentSet>(),
        };
        View {
            servers: vec![server(1, &[]), server(2, &[7]), server(3, &[0])],
            ..View::default()
        }
    }

    #[test]
    fn a_stream_goes_to_the_server_that_it_names() {
        let goes = |meant| way(&view(), Some("http://2"), Some(meant), true);
        assert_eq!(goes("http://2"), Way::Here);
        assert_eq!(goes("http://1"), Way::At("http://1".to_owned()));
        assert!(matches!(goes("http://elsewhere.example"), Way::Nowhere(_)));
        let idle = way(&view(), Some("http://1"), Some("http://1"), false);
        assert_eq!(idle, Way::Here, "it owns nothing and is meant all the same");
    }

    #[test]
    fn one_that_names_none_goes_to_an_owner() {
        assert_eq!(way(&view(), Some("http://2"), None, true), Way::Here);
        let idle = way(&view(), Some("http://1"), None, false);
        assert_eq!(idle, Way::At("http://3".to_owned()));
        let alone = way(&View::default(), Some("http://1"), None, false);
        assert!(matches!(alone, Way::Nowhere(_)));
    }
}
