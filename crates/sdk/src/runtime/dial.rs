//! The way to a server: TCP, and TLS where the address says https.
//!
//! A server whose certificate is not believed may get another one, so it is dialled again like one that is not there.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::Error;
use crate::tls::{Trust, said};

const WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const PROTOCOLS: &[&[u8]] = &[b"h2"];
const WITHIN: Duration = Duration::from_secs(5);

/// A server's address and how it is believed.
#[derive(Clone)]
pub(crate) struct Server {
    endpoint: Endpoint,
    trust: Trust,
    /// What the files said when the worker was made; `None` without TLS.
    tls: Option<Arc<ClientConfig>>,
    complaint: Complaint,
}

/// What TLS last said on a connection. A certificate of ours is refused only after the handshake, and the layers above
/// would tell no more than that the connection is gone.
#[derive(Clone, Default)]
pub(crate) struct Complaint(Arc<Mutex<Option<String>>>);

impl Complaint {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<String> {
        self.lock().take()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Server {
    pub(crate) fn new(url: &str, trust: &Trust) -> Result<Self, Error> {
        let is_tls = url.starts_with("https://");
        if !is_tls && !url.starts_with("http://") {
            return Err(Error::configuration(format!(
                "server `{url}` begins with neither http:// nor https://: give https://host:port"
            )));
        }
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| {
            Error::configuration(format!(
                "server `{url}` is not a URL ({error}): give https://host:port"
            ))
        })?;
        let tls = match is_tls {
            true => Some(trust.config(PROTOCOLS).map_err(Error::configuration)?),
            false => None,
        };
        let endpoint = endpoint
            .connect_timeout(WITHIN)
            .http2_keep_alive_interval(Duration::from_secs(3))
            .keep_alive_timeout(Duration::from_secs(5))
            .keep_alive_while_idle(true)
            .initial_connection_window_size(WINDOW_BYTES)
            .initial_stream_window_size(WINDOW_BYTES);
        Ok(Self {
            endpoint,
            trust: trust.clone(),
            tls,
            complaint: Complaint::default(),
        })
    }

    /// Host and port, for people.
    pub(crate) fn place(&self) -> String {
        let authority = self.endpoint.uri().authority();
        authority.map_or_else(String::new, |it| match it.port() {
            Some(port) => format!("{}:{port}", it.host()),
            None => it.host().to_owned(),
        })
    }

    pub(crate) fn complaint(&self) -> Complaint {
        self.complaint.clone()
    }

    pub(crate) async fn connect(self) -> Result<Channel, tonic::transport::Error> {
        let Self {
            endpoint,
            trust,
            tls,
            complaint,
        } = self;
        let connector = tower::service_fn(move |uri: Uri| {
            let tls = tls.clone().map(|known| refreshed(&trust, known));
            reach(uri, tls, complaint.clone())
        });
        endpoint.connect_with_connector(connector).await
    }
}

/// A renewed file counts from the next connection on; one that cannot be read just now does not.
fn refreshed(trust: &Trust, known: Arc<ClientConfig>) -> Arc<ClientConfig> {
    if !trust.names_files() {
        return known;
    }
    trust.config(PROTOCOLS).unwrap_or(known)
}

async fn reach(
    uri: Uri,
    tls: Option<Arc<ClientConfig>>,
    complaint: Complaint,
) -> io::Result<TokioIo<Box<dyn Stream>>> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri
        .port_u16()
        .unwrap_or(if tls.is_some() { 443 } else { 80 });
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(TokioIo::new(Box::new(socket)));
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::other(format!("`{host}` is no name that a certificate can hold"))
    })?;
    let secured = TlsConnector::from(tls).connect(name, socket).await;
    let secured = secured.map_err(|error| match said(&error) {
        Some(words) => io::Error::new(error.kind(), words),
        None => error,
    })?;
    Ok(TokioIo::new(Box::new(Overheard {
        stream: secured,
        complaint,
    })))
}

/// A stream that notes what TLS complains of while it is read.
struct Overheard {
    stream: TlsStream<TcpStream>,
    complaint: Complaint,
}

impl AsyncRead for Overheard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &polled
            && let Some(words) = said(error)
        {
            *self.complaint.lock() = Some(words);
        }
        polled
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
