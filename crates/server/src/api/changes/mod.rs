//! The stream of changes: `GET /api/v1/changes`, as server-sent events.
//!
//! A stream is a listener of the driver's tap with a filter, a window that folds what happened between two flushes, and
//! a bound on messages. `wish` reads what the caller wants, `window` folds, `message` writes, `stream` carries it out.
//!
//! An [id](id) stands for the last fact that was folded into what was sent: a client that
//! comes back with it goes on there, as long as the ring of the tap reaches so far back. What it does not reach, and what
//! another life of the server told, is answered by `resync`: read again what matters, then go on listening.

mod id;
mod message;
mod stream;
mod window;
mod wish;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use drumtower_core::model::TokenId;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::Edge;
use super::problem::{Kind, Problem};
use crate::auth::Principal;
use id::Ids;
use stream::Stream;
pub use wish::About;
use wish::{Resume, Wish};

/// Streams that may be open at once.
pub const STREAMS: usize = 256;
/// Streams of one token, so that nobody takes the places of all.
pub const STREAMS_OF_TOKEN: usize = 16;

/// How many streams each token has open; the machine's own has no row.
type Open = BTreeMap<Option<TokenId>, usize>;

/// What all streams of a server share.
#[derive(Clone)]
pub struct Streams {
    ids: Ids,
    open: Arc<Mutex<Open>>,
}

impl Streams {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            ids: Ids::new()?,
            open: Arc::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.lock().values().sum()
    }

    fn enter(&self, token: Option<TokenId>) -> Result<Place, Problem> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(&token).copied().unwrap_or_default();
        let detail = if own >= STREAMS_OF_TOKEN {
            format!(
                "this token has {STREAMS_OF_TOKEN} streams of changes open already: close one, or try again in 5 s"
            )
        } else if all >= STREAMS {
            format!("{STREAMS} streams of changes are open already: close one, or try again in 5 s")
        } else {
            open.insert(token, own + 1);
            return Ok(Place {
                streams: self.clone(),
                token,
            });
        };
        Err(Problem {
            retry_after_s: Some(5),
            ..Problem::new(Kind::TooManyStreams, detail)
        })
    }
}

/// The place of one open stream, given back when it is dropped.
struct Place {
    streams: Streams,
    token: Option<TokenId>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.token);
            }
        }
    }
}

pub async fn follow(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wish = Wish::read(&uri, &principal)?;
    let resume = Resume::read(&headers, &edge.streams.ids)?;
    let place = edge.streams.enter(principal.token)?;
    let bound = principal.namespace.is_some();
    let (out, pieces) = mpsc::channel(1);
    tokio::spawn(Stream::new(edge, wish, resume, out, bound, place).run(principal));
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
