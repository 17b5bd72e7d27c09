//! From a target to a connection: resolve, check, dial what was checked, and speak TLS where asked for.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::Error;
use crate::guard::{Policy, Refusal};
use crate::resolve::{MOST, Resolve};
use crate::target::Target;

/// The most that a proxy may say before the tunnel is open.
const PROXY_ANSWER_BYTES: usize = 8 * 1024;

pub struct Dialler {
    pub policy: Policy,
    pub resolver: Arc<dyn Resolve>,
    pub tls: Arc<rustls::ClientConfig>,
}

pub enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Dialler {
    pub async fn dial(&self, target: &Target, within: Duration) -> Result<Connection, Error> {
        let connecting = async {
            let addresses = self.checked(target).await?;
            let stream = self.connect(target, &addresses).await?;
            // Without it a small request waits for the answer to the packet before.
            let _ = stream.set_nodelay(true);
            if target.https {
                self.secure(target, stream).await
            } else {
                Ok(Connection::Plain(stream))
            }
        };
        match tokio::time::timeout(within, connecting).await {
            Ok(connection) => connection,
            Err(_) => Err(Error::ConnectTimeout {
                host: target.host.clone(),
                after: within,
            }),
        }
    }

    /// The addresses that may be dialled; an error when there is none. A name with one refused address among good ones
    /// reaches the good ones.
    async fn checked(&self, target: &Target) -> Result<Vec<SocketAddr>, Error> {
        let unresolved = |why: String| Error::Unresolved {
            host: target.host.clone(),
            why,
        };
        let found = match target.ip() {
            Some(ip) => vec![SocketAddr::new(ip, target.port)],
            None => self
                .resolver
                .resolve(&target.host, target.port)
                .await
                .map_err(|error| unresolved(error.to_string()))?,
        };
        let mut refused: Option<Refusal> = None;
        let mut passed = Vec::new();
        for address in found.into_iter().take(MOST) {
            match self.policy.check(address) {
                Ok(address) => passed.push(address),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match (passed.is_empty(), refused) {
            (false, _) => Ok(passed),
            (true, Some(refusal)) => Err(Error::Refused {
                host: target.host.clone(),
                refusal,
            }),
            (true, None) => Err(unresolved("it has no address".to_owned())),
        }
    }

    async fn connect(&self, target: &Target, checked: &[SocketAddr]) -> Result<TcpStream, Error> {
        let mut last = None;
        for address in checked {
            let dialled = match &self.policy.proxy {
                None => TcpStream::connect(address)
                    .await
                    .map_err(|error| Error::Connect {
                        host: target.host.clone(),
                        why: format!("{address}: {error}"),
                    }),
                Some(proxy) => through(proxy, target, *address).await,
            };
            match dialled {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::Connect {
            host: target.host.clone(),
            why: "it has no address".to_owned(),
        }))
    }

    async fn secure(&self, target: &Target, stream: TcpStream) -> Result<Connection, Error> {
        let failed = |why: String| Error::Tls {
            host: target.host.clone(),
            why,
        };
        let name =
            ServerName::try_from(target.host.clone()).map_err(|error| failed(error.to_string()))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Connection::Tls(Box::new(stream))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Asks the proxy for a tunnel to a checked address.
async fn through(
    proxy: &http::Uri,
    target: &Target,
    address: SocketAddr,
) -> Result<TcpStream, Error> {
    let failed = |why: String| Error::Proxy {
        host: target.host.clone(),
        why,
    };
    let host = proxy.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = proxy.port_u16().unwrap_or(80);
    let mut stream = TcpStream::connect((host, port))
        .await
        .map_err(|error| failed(format!("{host}:{port}: {error}")))?;
    let ask = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let io = |error: io::Error| failed(error.to_string());
    stream.write_all(ask.as_bytes()).await.map_err(io)?;
    // Byte by byte: what follows the head belongs to the tunnel.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_ANSWER_BYTES {
            return Err(failed("its answer is too long".to_owned()));
        }
        head.push(stream.read_u8().await.map_err(io)?);
    }
    let status = String::from_utf8_lossy(&head);
    let status = status.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some(code) if code.len() == 3 && code.starts_with('2') => Ok(stream),
        _ => Err(failed(format!("it answered `{}`", status.trim()))),
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
