//! TLS on the one port.
//!
//! The certificate is the operator's own, or one that a development authority of the data directory signs
//! ([`development`]). It is read again on SIGHUP and when its file changes; one that cannot be used is told and the former
//! stays. Whoever speaks plain HTTP on the port is told so ([`plain`]). Connections that were made before a change keep
//! what they have.

mod addresses;
mod development;
mod expiry;
mod plain;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::auth::first_start;

pub use development::fingerprint;
pub use expiry::not_after;

/// The certificate that the server shows, for clients on this machine.
pub const SERVER_CERTIFICATE: &str = "server.pem";
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// From here on the log says that a certificate will expire.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 86_400);
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[derive(Clone, Debug)]
pub struct Options {
    pub identity: Identity,
    /// Authorities of workers' certificates. Given, a worker needs one of theirs.
    pub client_ca: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub enum Identity {
    /// A chain and its key, in PEM.
    Files { cert: PathBuf, key: PathBuf },
    /// Made and signed here, for these names besides the machine's own.
    Development { names: Vec<String> },
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("{0}: {1}")]
    Content(PathBuf, String),
    #[error("{cert} and {key} cannot be used together: {why}")]
    Pair {
        cert: PathBuf,
        key: PathBuf,
        why: String,
    },
    #[error("a certificate could not be made: {0}")]
    Made(String),
}

/// What whoever starts a server wants to know of its certificate.
#[derive(Clone, Debug)]
pub struct Announced {
    /// The file of the development authority, and its SHA-256.
    pub authority: Option<(PathBuf, String)>,
    pub requires_certificates: bool,
}

/// Makes connections secret. Clones share one certificate.
#[derive(Clone)]
pub struct Acceptor {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    data: PathBuf,
    listen: std::net::SocketAddr,
    cert: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

/// A connection that is secret now.
pub struct Secured {
    pub stream: Box<TlsStream<TcpStream>>,
    /// Whether the other side showed a certificate of `client_ca`.
    pub certified: bool,
}

impl Acceptor {
    /// Reads or makes the certificate. Blocks on files.
    pub fn load(
        options: Options,
        data: &Path,
        listen: std::net::SocketAddr,
    ) -> Result<Self, Error> {
        let (cert, key) = match &options.identity {
            Identity::Files { cert, key } => (cert.clone(), key.clone()),
            Identity::Development { names } => development::prepare(data, names, listen)?,
        };
        let config = read(&cert, &key, options.client_ca.as_deref())?;
        let acceptor = Self {
            shared: Arc::new(Shared {
                options,
                data: data.to_owned(),
                listen,
                cert,
                key,
                config: RwLock::new(config),
            }),
        };
        acceptor.show_to_this_machine()?;
        acceptor.tell_of_expiry();
        Ok(acceptor)
    }

    pub fn announced(&self) -> Result<Announced, Error> {
        let authority = match &self.shared.options.identity {
            Identity::Files { .. } => None,
            Identity::Development { .. } => {
                let file = development::authority(&self.shared.data);
                let fingerprint = fingerprint(&file)?;
                Some((file, fingerprint))
            }
        };
        Ok(Announced {
            authority,
            requires_certificates: self.requires_certificates(),
        })
    }

    /// Whether workers need a certificate.
    pub fn requires_certificates(&self) -> bool {
        self.shared.options.client_ca.is_some()
    }

    /// Shakes hands. `None` when the other side did not, or not in time.
    pub async fn secure(&self, socket: TcpStream) -> Option<Secured> {
        let shaken = tokio::time::timeout(HANDSHAKE_WITHIN, self.shake_hands(socket)).await;
        match shaken {
            Ok(Ok(secured)) => secured,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }

    async fn shake_hands(&self, socket: TcpStream) -> io::Result<Option<Secured>> {
        if !plain::is_tls(&socket).await? {
            plain::refuse(socket).await?;
            return Ok(None);
        }
        let config = Arc::clone(
            &self
                .shared
                .config
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let stream = TlsAcceptor::from(config).accept(socket).await?;
        let certified = stream.get_ref().1.peer_certificates().is_some();
        Ok(Some(Secured {
            stream: Box::new(stream),
            certified,
        }))
    }

    /// Reads the files again. Blocks on them.
    pub fn reload(&self) -> Result<(), Error> {
        let config = read(
            &self.shared.cert,
            &self.shared.key,
            self.shared.options.client_ca.as_deref(),
        )?;
        *self
            .shared
            .config
            .write()
            .unwrap_or_else(PoisonError::into_inner) = config;
        self.show_to_this_machine()?;
        self.tell_of_expiry();
        Ok(())
    }

    /// Reloads on SIGHUP and when a file changes. Never ends.
    pub async fn follow(self) {
        let mut hangups = hangups();
        let mut seen = self.stamp();
        loop {
            let asked = tokio::select! {
                () = next(&mut hangups) => true,
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            self.renew();
            let stamp = self.stamp();
            if !asked && stamp == seen {
                continue;
            }
            seen = stamp;
            let acceptor = self.clone();
            match tokio::task::spawn_blocking(move || acceptor.reload()).await {
                Ok(Ok(())) => {
                    tracing::info!(certificate = %self.shared.cert.display(), "the certificate was read again")
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "the certificate cannot be used; the former one stays in force")
                }
                Err(error) => tracing::error!(%error, "reading the certificate was cut short"),
            }
        }
    }

    /// A certificate made here is made anew before it expires.
    fn renew(&self) {
        let Identity::Development { names } = &self.shared.options.identity else {
            return;
        };
        if !expires_within(&self.shared.cert, development::RENEW_BEFORE) {
            return;
        }
        if let Err(error) = development::prepare(&self.shared.data, names, self.shared.listen) {
            tracing::error!(%error, "the certificate could not be renewed");
        }
    }

    fn stamp(&self) -> Vec<Option<(SystemTime, u64)>> {
        let files = [
            Some(&self.shared.cert),
            Some(&self.shared.key),
            self.shared.options.client_ca.as_ref(),
        ];
        let stamp = |path: &PathBuf| {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.len()))
        };
        files.into_iter().flatten().map(stamp).collect()
    }

    /// Clients on this machine believe this certificate and no other.
    fn show_to_this_machine(&self) -> Result<(), Error> {
        let leaf = certificates(&self.shared.cert)?.swap_remove(0);
        first_start::write_private(
            &self.shared.data.join(SERVER_CERTIFICATE),
            &development::pem(&leaf),
        )
        .map_err(|error| Error::Made(error.to_string()))
    }

    fn tell_of_expiry(&self) {
        if expires_within(&self.shared.cert, WARN_BEFORE) {
            let file = self.shared.cert.display();
            tracing::warn!(certificate = %file, "the certificate expires within 14 days or has expired: renew it");
        }
    }
}

fn expires_within(cert: &Path, span: Duration) -> bool {
    let leaf = certificates(cert)
        .ok()
        .map(|mut chain| chain.swap_remove(0));
    let end = leaf.and_then(|leaf| expiry::not_after(&leaf));
    let limit = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        + span;
    end.is_some_and(|end| end <= i64::try_from(limit.as_secs()).unwrap_or(i64::MAX))
}

/// Reads what a server would, and makes nothing.
pub fn check(options: &Options) -> Result<(), Error> {
    match (&options.identity, &options.client_ca) {
        (Identity::Files { cert, key }, ca) => read(cert, key, ca.as_deref()).map(|_| ()),
        (Identity::Development { .. }, Some(ca)) => authorities(ca).map(|_| ()),
        (Identity::Development { .. }, None) => Ok(()),
    }
}

fn read(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Arc<ServerConfig>, Error> {
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Made(error.to_string()))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = Arc::new(authorities(ca)?);
            // People need none: whether a caller does is decided at its door, by what it asks for.
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| Error::Content(ca.to_owned(), error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(certificates(cert)?, private_key(key)?)
        .map_err(|error| Error::Pair {
            cert: cert.to_owned(),
            key: key.to_owned(),
            why: error.to_string(),
        })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| Error::Content(path.to_owned(), error.to_string()))?;
    }
    Ok(roots)
}

/// At least one, in the order of the file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = std::fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
    let wrong = |why: String| Error::Content(path.to_owned(), why);
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong(
            "there is no certificate in it: it must hold -----BEGIN CERTIFICATE-----".to_owned(),
        ));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = std::fs::read(path).map_err(|error| Error::File(path.to_owned(), error))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        Error::Content(
            path.to_owned(),
            format!(
                "there is no private key in it ({error}): it must hold -----BEGIN PRIVATE KEY-----"
            ),
        )
    })
}

#[cfg(unix)]
type Hangups = Option<tokio::signal::unix::Signal>;
#[cfg(not(unix))]
type Hangups = Option<()>;

#[cfg(unix)]
fn hangups() -> Hangups {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::hangup()).ok()
}

#[cfg(not(unix))]
fn hangups() -> Hangups {
    None
}

async fn next(hangups: &mut Hangups) {
    #[cfg(unix)]
    if let Some(hangups) = hangups
        && hangups.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}
