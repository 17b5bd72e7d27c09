//! The wire protocol between servers and workers, generated from `proto/`.

pub mod worker {
    //! One stream between a worker and a server.

    #[allow(clippy::all)]
    pub mod v1 {
        tonic::include_proto!("drumtower.worker.v1");
    }
}

/// The protocol versions that this build speaks. A hello carries a range; the highest common one is used.
pub const PROTOCOL_MIN: u32 = 1;
pub const PROTOCOL_MAX: u32 = 1;

/// The feature of a worker that keeps a stream to each server, in a hello.
pub const LINKS: &str = "links";

/// The metadata by which a worker names the server it means.
pub const SERVER_HEADER: &str = "drumtower-server";

/// The feature of both ends that tell of progress and save checkpoints, in a hello and in a welcome.
pub const CHECKPOINTS: &str = "checkpoints";
