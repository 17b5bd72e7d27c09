//! Connections to other servers, over TLS where their addresses say https.
//!
//! Requests share a pool of HTTP/1 connections. A worker's stream has a connection of its own: it lives long, and many of
//! them on one would wait for each other.
//!
//! Whoever goes silent while it owes an answer, or the rest of one, is given up ([`Pulses`]).

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response, Uri, header};
use hyper::client::conn::{http1, http2};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

use super::pulse::Pulses;
use super::rest::Rest;

/// A server that is there answers within milliseconds; one whose machine is gone does not at all.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(30);
const SILENT: &str = "it is silent, also to who asks whether it is there";
/// How a worker's stream notices that the other server is gone.
const PING_EVERY: Duration = Duration::from_secs(3);
const WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// Nothing was sent.
    NotReached(String),
    /// The request may have been carried out.
    CutOff(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotReached(why) | Self::CutOff(why) => f.write_str(why),
        }
    }
}

pub struct Links {
    pool: Client<Connector, Body>,
    ca: Option<PathBuf>,
    pulses: Pulses,
}

impl Links {
    pub fn new(ca: Option<PathBuf>) -> Self {
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(Connector {
                ca: ca.clone(),
                protocol: b"http/1.1",
            });
        Self {
            pool,
            ca,
            pulses: Pulses::default(),
        }
    }

    /// Sends a request whose URI names the server.
    pub async fn ask(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let server = request.uri().clone();
        let answer = tokio::select! {
            answer = self.pool.request(request) => answer.map_err(|error| {
                let words = told(&error);
                match error.is_connect() {
                    true => Failure::NotReached(words),
                    false => Failure::CutOff(words),
                }
            })?,
            () = self.silent(&server) => return Err(Failure::CutOff(SILENT.to_owned())),
        };
        Ok(answer.map(|rest| Body::new(Rest::new(rest, self.silent(&server)))))
    }

    /// Until the server does not even say that it is there.
    fn silent(&self, server: &Uri) -> impl Future<Output = ()> + Send + use<> {
        let key = format!("{:?} {:?}", server.scheme_str(), server.authority());
        let (server, ca) = (server.clone(), self.ca.clone());
        self.pulses
            .clone()
            .silent(key, move || is_there(server.clone(), ca.clone()))
    }

    /// Opens a stream to the server that the URI names.
    pub async fn open(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let reached = connect(request.uri().clone(), self.ca.clone(), b"h2").await;
        let socket = reached.map_err(|error| Failure::NotReached(error.to_string()))?;
        let shaken = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_while_idle(true)
            .initial_connection_window_size(WINDOW_BYTES)
            .initial_stream_window_size(WINDOW_BYTES)
            .handshake(socket)
            .await;
        let (mut sender, connection) = shaken.map_err(|error| Failure::NotReached(told(&error)))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a stream to another server ended badly");
            }
        });
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| Failure::CutOff(told(&error)))?;
        Ok(answer.map(Body::new))
    }
}

/// Asks for what every server answers to everybody, whatever it answers.
async fn is_there(server: Uri, ca: Option<PathBuf>) -> bool {
    let host = server.authority().map_or("", |it| it.as_str()).to_owned();
    let asked = async {
        let socket = connect(server, ca, b"http/1.1").await?;
        let shaken = http1::handshake(socket).await.map_err(io::Error::other)?;
        let (mut sender, connection) = shaken;
        let request = Request::get("/healthz").header(header::HOST, host);
        let request = request.body(Body::empty()).map_err(io::Error::other)?;
        tokio::select! {
            answer = sender.send_request(request) => answer.map(drop).map_err(io::Error::other),
            ended = connection => Err(io::Error::other(format!("it hung up: {ended:?}"))),
        }
    };
    asked.await.is_ok()
}

/// An error with what caused it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[derive(Clone)]
struct Connector {
    ca: Option<PathBuf>,
    protocol: &'static [u8],
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(connect(uri, self.ca.clone(), self.protocol))
    }
}

async fn connect(
    uri: Uri,
    ca: Option<PathBuf>,
    protocol: &'static [u8],
) -> io::Result<TokioIo<Socket>> {
    let reached = tokio::time::timeout(CONNECT_WITHIN, reach(uri, ca, protocol)).await;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
    reached.map_err(late)?.map(TokioIo::new)
}

async fn reach(uri: Uri, ca: Option<PathBuf>, protocol: &'static [u8]) -> io::Result<Socket> {
    let is_tls = uri.scheme_str() == Some("https");
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    if !is_tls {
        return Ok(Socket::Plain(socket));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::other(format!("`{host}` is no name that a certificate can hold"))
    })?;
    let tls = TlsConnector::from(config(ca.as_deref(), protocol)?);
    let secured = tls.connect(name, socket).await?;
    Ok(Socket::Secured(Box::new(secured)))
}

/// Read for each connection, so that a renewed file counts.
fn config(ca: Option<&Path>, protocol: &[u8]) -> io::Result<Arc<ClientConfig>> {
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| {
                io::Error::other(format!("{}: {error}", path.display()))
            };
            let text = std::fs::read(path).map_err(|error| wrong(&error))?;
            for found in CertificateDer::pem_slice_iter(&text) {
                let certificate = found.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

enum Socket {
    Plain(TcpStream),
    Secured(Box<TlsStream<TcpStream>>),
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Secured(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Secured(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(context),
            Self::Secured(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Secured(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that takes every connection. It answers to `/healthz` only if it is well, and says `begun` of everything else
    /// where it begins to answer.
    async fn server(is_well: bool, begun: Option<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut read = [0; 1024];
                    while let Ok(count @ 1..) = socket.read(&mut read).await {
                        let answer = match read[..count].starts_with(b"GET /healthz") {
                            true if is_well => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
                            true => "",
                            false => begun.unwrap_or(""),
                        };
                        let _ = socket.write_all(answer.as_bytes()).await;
                    }
                });
            }
        });
        format!("http://{address}/api/v1/runs")
    }

    /// Asks, and reads the answer to its end.
    fn ask(url: &str) -> impl Future<Output = Result<Vec<u8>, Failure>> + use<> {
        let links = Links {
            pulses: Pulses::new(Duration::from_millis(20)),
            ..Links::new(None)
        };
        let request = Request::get(url).body(Body::empty()).expect("a request");
        async move {
            let answer = links.ask(request).await?;
            let read = axum::body::to_bytes(answer.into_body(), 1024).await;
            let read = read.map_err(|error| Failure::CutOff(told(&error)))?;
            Ok(read.to_vec())
        }
    }

    const BEGUN: Option<&str> = Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\none");

    #[tokio::test]
    async fn who_takes_the_request_and_goes_silent_is_given_up() {
        for begun in [None, BEGUN] {
            let failure = ask(&server(false, begun).await).await;
            let failure = failure.expect_err("no whole answer");
            assert!(matches!(failure, Failure::CutOff(_)), "{failure}");
        }
    }

    #[tokio::test]
    async fn who_is_there_may_take_its_time() {
        for begun in [None, BEGUN] {
            let answer = ask(&server(true, begun).await);
            let waited = tokio::time::timeout(Duration::from_millis(500), answer).await;
            assert!(waited.is_err(), "{:?}", waited.ok());
        }
    }
}
