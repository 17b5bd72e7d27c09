//! The port: taken, and connections accepted on it, over TLS or not, HTTP/1 and HTTP/2 alike.
//!
//! Every request learns from whom it comes ([`Peer`]). Handshakes at once are bounded: beyond it connections wait in the
//! system's queue.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::Service;

use crate::serve::Error;
use crate::tls::Acceptor;

/// How long a connection may say nothing between two requests, or take over the head of one.
const HEADERS_WITHIN: Duration = Duration::from_secs(60);
const PING_EVERY: Duration = Duration::from_secs(20);
const HANDSHAKES: usize = 512;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// Whether it showed a certificate that the server's `client_ca` vouches for.
    pub certified: bool,
}

/// Takes the port, unless it would carry secrets in the open.
pub async fn bind(listen: SocketAddr, may_be_remote: bool) -> Result<TcpListener, Error> {
    if !listen.ip().is_loopback() && !may_be_remote {
        return Err(Error::NotLoopback(listen));
    }
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
        closing,
    };
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = door.next(&listener) => accepted,
            () = &mut shutdown => return connections,
        };
        match accepted {
            Ok((socket, address, turn)) => door.serve(&connections, socket, address, turn),
            Err(error) => {
                // Out of descriptors, mostly: others must close before more can be opened.
                tracing::warn!(%error, "a connection could not be accepted");
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
    closing: watch::Receiver<()>,
}

type Turn = Option<OwnedSemaphorePermit>;

impl Door {
    /// The next connection, and a place among those that shake hands if it must.
    async fn next(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr, Turn)> {
        let turn = match &self.tls {
            // The semaphore is never closed.
            Some(_) => Arc::clone(&self.handshakes).acquire_owned().await.ok(),
            None => None,
        };
        let (socket, address) = listener.accept().await?;
        Ok((socket, address, turn))
    }

    fn serve(&self, open: &GracefulShutdown, socket: TcpStream, address: SocketAddr, turn: Turn) {
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
            tokio::spawn(converse(server, watcher, socket, service));
            return;
        };
        let mut closing = self.closing.clone();
        tokio::spawn(async move {
            let secured = tokio::select! {
                secured = tls.secure(socket) => secured,
                _ = closing.changed() => None,
            };
            drop(turn);
            if let Some(secured) = secured {
                service.peer.certified = secured.certified;
                converse(server, watcher, secured.stream, service).await;
            }
        });
    }
}

async fn converse(
    server: auto::Builder<TokioExecutor>,
    watcher: Watcher,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Introduced,
) {
    let connection = server
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
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
