//! The port: taken, and connections accepted on it, over TLS or not, HTTP/1 and HTTP/2 alike.
//!
//! Every request learns from whom it comes ([`Peer`]). Connections are bounded ([`places`]): beyond it they wait in the
//! system's queue. Whoever says nothing is let go soon, before it takes a place among the handshakes.

mod first_byte;
mod places;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::Service;

use crate::serve::Error;
use crate::tls::{Acceptor, Secured};

use first_byte::FirstByte;
use places::{Place, Places};

/// How long a connection may say nothing between two requests, or take over the head of one.
const HEADERS_WITHIN: Duration = Duration::from_secs(60);
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a new connection may say nothing.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(5);
const HANDSHAKES: usize = 512;
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// Whether it showed a certificate that the server's `client_ca` vouches for.
    pub certified: bool,
}

/// Refuses an address that would carry secrets in the open.
pub fn check_listen(listen: SocketAddr, may_be_remote: bool) -> Result<(), Error> {
    match listen.ip().is_loopback() || may_be_remote {
        true => Ok(()),
        false => Err(Error::NotLoopback(listen)),
    }
}

/// Takes the port, if it may be taken.
pub async fn bind(listen: SocketAddr, may_be_remote: bool) -> Result<TcpListener, Error> {
    check_listen(listen, may_be_remote)?;
    TcpListener::bind(listen)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(listen),
            _ => Error::Listen(listen, error),
        })
}

/// Takes connections until `shutdown`.
pub async fn accept(
    listener: TcpListener,
    tls: Option<Acceptor>,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> GracefulShutdown {
    let connections = GracefulShutdown::new();
    // Dropped at the end: whoever still shakes hands then is let go.
    let (_open, closing) = watch::channel(());
    let door = Door {
        server: builder(),
        router,
        tls,
        handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
        places: Places::for_this_process(),
        closing,
    };
    let mut complained: Option<tokio::time::Instant> = None;
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = door.next(&listener) => accepted,
            () = &mut shutdown => return connections,
        };
        match accepted {
            Ok((socket, address, place)) => door.serve(&connections, socket, address, place),
            Err(error) => {
                // Out of descriptors, mostly: others must close before more can be opened.
                if complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
                    tracing::warn!(%error, "connections cannot be accepted");
                    complained = Some(tokio::time::Instant::now());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    server
}

struct Door {
    server: auto::Builder<TokioExecutor>,
    router: Router,
    tls: Option<Acceptor>,
    handshakes: Arc<Semaphore>,
    places: Places,
    closing: watch::Receiver<()>,
}

impl Door {
    /// The next connection and its place; one beyond its address's share is dropped.
    async fn next(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr, Place)> {
        loop {
            self.places.wait().await;
            let (socket, address) = listener.accept().await?;
            match self.places.take(address.ip()).await {
                Some(place) => return Ok((socket, address, place)),
                None => drop(socket),
            }
        }
    }

    fn serve(&self, open: &GracefulShutdown, socket: TcpStream, address: SocketAddr, place: Place) {
        let _ = socket.set_nodelay(true);
        let (server, watcher) = (self.server.clone(), open.watcher());
        let mut service = Introduced {
            router: self.router.clone(),
            peer: Peer {
                address,
                certified: false,
            },
        };
        let Some(tls) = self.tls.clone() else {
            tokio::spawn(async move {
                converse(server, watcher, socket, service).await;
                drop(place);
            });
            return;
        };
        let mut closing = self.closing.clone();
        let handshakes = Arc::clone(&self.handshakes);
        tokio::spawn(async move {
            let secured = tokio::select! {
                secured = shake_hands(tls, handshakes, socket) => secured,
                _ = closing.changed() => None,
            };
            if let Some(secured) = secured {
                service.peer.certified = secured.certified;
                converse(server, watcher, secured.stream, service).await;
            }
            drop(place);
        });
    }
}

/// A turn among the handshakes is taken only by those who have begun one.
async fn shake_hands(
    tls: Acceptor,
    handshakes: Arc<Semaphore>,
    socket: TcpStream,
) -> Option<Secured> {
    let spoke = tokio::time::timeout(FIRST_BYTE_WITHIN, socket.peek(&mut [0])).await;
    if !matches!(spoke, Ok(Ok(1..))) {
        return None;
    }
    let _turn = handshakes.acquire().await.ok()?;
    tls.secure(socket).await
}

async fn converse(
    server: auto::Builder<TokioExecutor>,
    watcher: Watcher,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Introduced,
) {
    let connection = server
        .serve_connection(
            TokioIo::new(FirstByte::new(stream, FIRST_BYTE_WITHIN)),
            TowerToHyperService::new(service),
        )
        .into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// The routes, told who asks.
#[derive(Clone)]
struct Introduced {
    router: Router,
    peer: Peer,
}

impl<B> Service<Request<B>> for Introduced
where
    Router: Service<Request<B>>,
{
    type Response = <Router as Service<Request<B>>>::Response;
    type Error = <Router as Service<Request<B>>>::Error;
    type Future = <Router as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<B>>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.router.call(request)
    }
}
