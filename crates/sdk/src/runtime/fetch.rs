//! Fetches the checkpoint that an attempt begins with.
//!
//! It asks until it has it, over the link on which the attempt was assigned or whatever other there is: a lease that
//! ends stops it, as it stops everything. What the server refuses for good is told at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumtower_core::model::Limits;
use drumtower_proto::worker::v1 as wire;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use wire::worker_service_client::WorkerServiceClient;

use crate::executor::Event;
use crate::session::{Attempt, LinkId};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);

/// The connections that are open.
pub(super) type Channels = BTreeMap<LinkId, Channel>;

/// What is needed to ask.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) channels: watch::Receiver<Channels>,
    pub(super) prefers: Option<LinkId>,
    pub(super) token: Option<MetadataValue<Ascii>>,
    pub(super) process: u64,
}

impl Source {
    /// Ends with an [`Event::Fetched`].
    pub(super) async fn fetch(
        mut self,
        attempt: wire::AttemptRef,
        number: u64,
        events: mpsc::UnboundedSender<Event>,
    ) {
        let fetched = loop {
            let channel = match self.channels.wait_for(|open| !open.is_empty()).await {
                Ok(open) => self
                    .prefers
                    .and_then(|link| open.get(&link).cloned())
                    .or_else(|| open.values().next().cloned()),
                Err(_) => return,
            };
            let Some(channel) = channel else { continue };
            match timeout(ANSWER_WITHIN, self.ask(channel, attempt)).await {
                Ok(Ok(found)) if found.number >= number => break Ok(Arc::from(found.body)),
                Ok(Ok(_)) => break Err("the server has an older checkpoint only".to_owned()),
                Ok(Err(status)) if is_final(&status) => break Err(status.message().to_owned()),
                Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
            }
        };
        let _ = events.send(Event::Fetched(Attempt::from(attempt), fetched));
    }

    async fn ask(
        &self,
        channel: Channel,
        attempt: wire::AttemptRef,
    ) -> Result<wire::FetchedCheckpoint, Status> {
        let mut request = Request::new(wire::FetchCheckpointRequest {
            attempt: Some(attempt),
            process: self.process,
        });
        if let Some(token) = &self.token {
            request
                .metadata_mut()
                .insert("authorization", token.clone());
        }
        let mut client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(Limits::CHECKPOINT_FRAME_BYTES);
        client
            .fetch_checkpoint(request)
            .await
            .map(tonic::Response::into_inner)
    }
}

fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Aborted
            | Code::NotFound
            | Code::InvalidArgument
            | Code::Unimplemented
            | Code::PermissionDenied
            | Code::Unauthenticated
    )
}
