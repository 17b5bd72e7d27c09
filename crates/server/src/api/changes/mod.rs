//! The stream of changes: `GET /api/v1/changes`, as server-sent events.
//!
//! A stream is a listener of the driver's tap with a filter, a window that folds what happened between two flushes, and
//! a bound on messages. `wish` reads what the caller wants, `window` folds, `message` writes, `stream` carries it out.
//!
//! An id is the life of this server and the number of the last fact that was folded into what was sent: a client that
//! comes back with it goes on there, as long as the ring of the tap reaches so far back. What it does not reach, and what
//! another life of the server told, is answered by `resync`: read again what matters, then go on listening.

mod message;
mod stream;
mod window;
mod wish;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::Edge;
use super::problem::{Kind, Problem};
use crate::auth::Principal;
use stream::Stream;
use wish::{Resume, Wish};

/// Streams that may be open at once.
pub const STREAMS: usize = 256;

/// What all streams of a server share.
#[derive(Clone)]
pub struct Streams {
    /// Drawn anew for each life of the server.
    life: Arc<str>,
    free: Arc<Semaphore>,
}

impl Streams {
    pub fn new() -> std::io::Result<Self> {
        let life = getrandom::u32().map_err(std::io::Error::other)?;
        Ok(Self {
            life: Arc::from(format!("{life:08x}")),
            free: Arc::new(Semaphore::new(STREAMS)),
        })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        STREAMS.saturating_sub(self.free.available_permits())
    }

    fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.free)
            .try_acquire_owned()
            .map_err(|_| Problem {
                retry_after_s: Some(5),
                ..Problem::new(
                    Kind::TooManyStreams,
                    format!("{STREAMS} streams of changes are open already: close one, or try again in 5 s"),
                )
            })
    }
}

pub async fn follow(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = Wish::read(&uri, &principal)?;
    let resume = Resume::read(&headers, &edge.streams.life)?;
    let place = edge.streams.enter()?;
    let (out, pieces) = mpsc::channel(1);
    tokio::spawn(Stream::new(edge, wish, resume, out, place).run(principal));
    let body = Body::from_stream(ReceiverStream::new(pieces).map(Ok::<Bytes, Infallible>));
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}
