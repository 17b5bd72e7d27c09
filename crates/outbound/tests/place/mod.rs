//! Small real servers: one request a connection, remembered as it came.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use drumtower_outbound::Resolve;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Addresses of names, as a table.
pub struct Names(Vec<(String, SocketAddr)>);

impl Names {
    pub fn new(table: &[(&str, SocketAddr)]) -> Self {
        let row = |(name, address): &(&str, SocketAddr)| ((*name).to_owned(), *address);
        Self(table.iter().map(row).collect())
    }
}

impl Resolve for Names {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        _port: u16,
    ) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<SocketAddr>>> + Send + 'a>> {
        let found = self.0.iter().filter(|(name, _)| name == host);
        let found: Vec<SocketAddr> = found.map(|(_, address)| *address).collect();
        Box::pin(async move { Ok(found) })
    }
}

pub fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub struct Place {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Place {
    fn with(address: SocketAddr) -> Self {
        Self {
            address,
            seen: Arc::default(),
        }
    }

    pub async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Self::with(listener.local_addr().unwrap());
        let (seen, answer) = (Arc::clone(&place.seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&answer)));
            }
        });
        place
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn last(&self) -> String {
        self.seen
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap_or_default()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: Arc<Mutex<Vec<String>>>,
    answer: Arc<impl Fn(&str) -> String>,
) {
    let request = read(&mut stream).await;
    seen.lock().unwrap().push(request.clone());
    let _ = stream.write_all(answer(&request).as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The head, and as much of a body as it says.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                break;
            }
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A proxy that knows CONNECT alone.
pub async fn proxy() -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = Place::with(listener.local_addr().unwrap());
    let seen = Arc::clone(&place.seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read(&mut stream).await;
            seen.lock().unwrap().push(request.clone());
            let to = request.split(' ').nth(1).unwrap().to_owned();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                stream
                    .write_all(b"HTTP/1.1 200 Open\r\n\r\n")
                    .await
                    .unwrap();
                let _ = copy_bidirectional(&mut stream, &mut far).await;
            });
        }
    });
    place
}

/// A server with a certificate for `name`, and that certificate.
pub async fn secure(
    name: &str,
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (Place, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = Place::with(listener.local_addr().unwrap());
    let (seen, answer) = (Arc::clone(&place.seen), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen, answer) =
                (acceptor.clone(), Arc::clone(&seen), Arc::clone(&answer));
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, seen, answer).await;
                }
            });
        }
    });
    (place, made.cert.pem())
}
