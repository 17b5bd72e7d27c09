//! Workers' streams: the protocol's edge.
//!
//! A worker dials, shows its token, says hello and keeps one stream. Everything it sends is checked and turned into the
//! engine's words here ([`incoming`]), and everything the engine has for it into the protocol's ([`outgoing`]). Log chunks
//! do not reach the engine: they go to the logs, and their place is attached to the end of the attempt.
//!
//! ```text
//! dialled ──hello──► open ──goodbye──► over
//!    │ bad hello      │ bad message, token revoked, server's close, broken stream
//!    ▼                ▼
//!  Close            Close, and the engine is told `Disconnected`
//! ```
//!
//! Whatever happens, an opened stream is reported to the engine as ended, once.

mod checkpoints;
pub mod greeting;
pub mod incoming;
pub mod outgoing;
mod session;
mod task;

use axum::extract::State;
use axum::middleware::Next;
use drumtower_core::model::Limits;
use drumtower_proto::worker::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use drumtower_proto::worker::v1::{
    FetchCheckpointRequest, FetchedCheckpoint, ServerFrame, WorkerFrame,
};
use tokio::sync::mpsc;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use crate::api::Edge;
use crate::auth::{Denied, Operation, Principal};
use crate::listen::Peer;

use outgoing::Outgoing;
use session::Session;

const NO_CERTIFICATE: &str = "workers of this server need a certificate that its client_ca has signed: give one with --cert and --key";

/// Acknowledgements that wait for a worker to read them; past that nothing more is taken from it.
const OWN_QUEUE: usize = 1024;
const TOO_MANY: &str = "too many wrong tokens are shown at once: check yours and try again";

/// The service, ready to be put into a router.
pub fn service(edge: Edge) -> WorkerServiceServer<Workers> {
    WorkerServiceServer::new(Workers { edge })
        .max_decoding_message_size(Limits::CHECKPOINT_FRAME_BYTES)
}

pub struct Workers {
    edge: Edge,
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type SessionStream = Outgoing;

    async fn session(
        &self,
        request: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Outgoing>, Status> {
        let (metadata, peer) = (request.metadata(), peer_of(&request));
        let principal = admit(&self.edge, Operation::WorkerSession, metadata, peer).await?;
        let (own, messages) = mpsc::channel(OWN_QUEUE);
        let (outgoing, ended) = Outgoing::new(messages);
        // Answered at once: a worker may wait for the answer before it says hello.
        tokio::spawn(
            Session::new(self.edge.clone(), principal, own).run(request.into_inner(), ended),
        );
        Ok(Response::new(outgoing))
    }

    async fn fetch_checkpoint(
        &self,
        request: Request<FetchCheckpointRequest>,
    ) -> Result<Response<FetchedCheckpoint>, Status> {
        let (metadata, peer) = (request.metadata(), peer_of(&request));
        let principal = admit(&self.edge, Operation::FetchCheckpoint, metadata, peer).await?;
        checkpoints::fetch(&self.edge, &principal, request.into_inner())
            .await
            .map(Response::new)
    }
}

/// The gate before the streams of workers: a stream that is passed on to another server costs this one a connection, which
/// nobody gets who may not have a stream.
pub async fn guard(
    State(edge): State<Edge>,
    request: axum::extract::Request,
    next: Next,
) -> axum::response::Response {
    let metadata = MetadataMap::from_headers(request.headers().clone());
    let peer = request.extensions().get::<Peer>().copied();
    match admit(&edge, Operation::WorkerSession, &metadata, peer).await {
        Ok(_) => next.run(request).await,
        Err(status) => status.into_http(),
    }
}

/// Who calls, if it may.
async fn admit(
    edge: &Edge,
    operation: Operation,
    metadata: &MetadataMap,
    peer: Option<Peer>,
) -> Result<Principal, Status> {
    if edge.workers_need_certificates && peer.is_none_or(|peer| !peer.certified) {
        return Err(Status::failed_precondition(NO_CERTIFICATE));
    }
    let authorization = metadata
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let mut admitted = edge.authority.admit(operation, authorization);
    if matches!(admitted, Err(Denied::UnknownToken)) && edge.look_for_new_tokens().await {
        admitted = edge.authority.admit(operation, authorization);
    }
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(why) => {
            let slowed = edge.slow_down(&why, peer).await;
            slowed.map_err(|_| Status::resource_exhausted(TOO_MANY))?;
            return Err(denied(why));
        }
    };
    admitted.ok_or_else(|| denied(Denied::NoToken))
}

fn peer_of<T>(request: &Request<T>) -> Option<Peer> {
    request.extensions().get::<Peer>().copied()
}

fn denied(denied: Denied) -> Status {
    match denied {
        Denied::NoToken | Denied::UnknownToken | Denied::SessionEnded => {
            Status::unauthenticated(denied.to_string())
        }
        Denied::Role { .. } | Denied::Namespace { .. } | Denied::OtherSite => {
            Status::permission_denied(denied.to_string())
        }
    }
}

/// The type of what is sent, spelled out once.
type Sent = Result<ServerFrame, Status>;
