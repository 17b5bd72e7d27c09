//! Hands a checkpoint to the worker that is to go on from it: to the holder of the current attempt, and to nobody else.

use drumtower_core::model::{Fence, ProcessId, RunId};
use drumtower_proto::worker::v1 as wire;
use tonic::Status;

use crate::api::Edge;
use crate::auth::Principal;

pub async fn fetch(
    edge: &Edge,
    principal: &Principal,
    request: wire::FetchCheckpointRequest,
) -> Result<wire::FetchedCheckpoint, Status> {
    let attempt = request
        .attempt
        .ok_or_else(|| Status::invalid_argument("the request names no attempt"))?;
    let (id, reader) = (RunId(attempt.run), edge.reader.clone());
    let read = move || Ok((reader.checkpoint(id)?, reader.run(id)?));
    let read: Result<_, drumtower_store::Error> = tokio::task::spawn_blocking(read)
        .await
        .map_err(|_| Status::unavailable("the store could not be read: try again"))?;
    let (checkpoint, run) = read.map_err(|error| Status::unavailable(error.to_string()))?;
    let holds = run.is_some_and(|run| {
        let current = run.current_attempt();
        principal.sees(&run.namespace)
            && current.is_some_and(|current| {
                (current.number, current.fence) == (attempt.attempt, Fence(attempt.fence))
                    && current.process == ProcessId(request.process)
            })
    });
    if !holds {
        return Err(Status::aborted("the attempt is not this worker's any more"));
    }
    match checkpoint {
        Some(checkpoint) => Ok(wire::FetchedCheckpoint {
            number: checkpoint.number,
            body: checkpoint.body.to_vec(),
        }),
        None => Err(Status::not_found("the run has no checkpoint")),
    }
}
