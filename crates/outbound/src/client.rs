//! The client: one connection a request, redirects followed by hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::body;
use crate::dial::{Connection, Dialler};
use crate::error::Error;
use crate::guard::Policy;
use crate::redirect;
use crate::resolve::{Resolve, System};
use crate::target::Target;

/// Headers of one answer, and the bytes they may have.
const ANSWER_HEADERS: usize = 128;
const ANSWER_HEAD_BYTES: usize = 64 * 1024;
const AGENT: &str = concat!("drumtower/", env!("CARGO_PKG_VERSION"));

/// Makes requests within a [`Policy`]. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    dialler: Arc<Dialler>,
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// How much one request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For each connection: resolving, dialling, TLS.
    pub connect: Duration,
    /// For everything, redirects included.
    pub total: Duration,
    /// Bytes of the answer's body that are kept.
    pub body_bytes: usize,
    /// Redirects that are followed; with 0 a redirect is the answer.
    pub redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            total: Duration::from_secs(30),
            body_bytes: 1 << 20,
            redirects: 5,
        }
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The body had more than was kept.
    pub truncated: bool,
    /// Where it came from, after redirects.
    pub url: String,
}

impl Client {
    pub fn new(policy: Policy) -> Result<Self, Error> {
        Self::with_resolver(policy, Arc::new(System))
    }

    /// Takes the addresses of names from elsewhere. They are checked like any others.
    pub fn with_resolver(policy: Policy, resolver: Arc<dyn Resolve>) -> Result<Self, Error> {
        if let Some(proxy) = &policy.proxy
            && (proxy.scheme_str() != Some("http") || proxy.host().is_none())
        {
            let message = format!("the proxy `{proxy}` is not an address such as http://host:3128");
            return Err(Error::Setup(message));
        }
        let tls = Arc::new(tls(&policy.authorities)?);
        Ok(Self {
            dialler: Arc::new(Dialler {
                policy,
                resolver,
                tls,
            }),
        })
    }

    /// Sends the request and follows redirects. An answer is an answer, whatever its status.
    pub async fn send(&self, request: Request, limits: Limits) -> Result<Response, Error> {
        match tokio::time::timeout(limits.total, self.exchange(request, limits)).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Timeout {
                after: limits.total,
            }),
        }
    }

    async fn exchange(&self, mut request: Request, limits: Limits) -> Result<Response, Error> {
        let mut target = Target::parse(&request.url)?;
        let mut followed = 0;
        loop {
            let answer = self.once(&request, &target, limits).await?;
            let next = redirect::location(answer.status, &answer.headers);
            let Some(location) = next.filter(|_| limits.redirects > 0) else {
                return Ok(answer);
            };
            let to = redirect::follow(&mut request, &target, answer.status, location)?;
            if followed == limits.redirects {
                return Err(Error::TooManyRedirects {
                    most: limits.redirects,
                    url: to.to_string(),
                });
            }
            followed += 1;
            target = to;
        }
    }

    async fn once(
        &self,
        request: &Request,
        target: &Target,
        limits: Limits,
    ) -> Result<Response, Error> {
        let broke = |error: hyper::Error| Error::Exchange {
            host: target.host.clone(),
            why: whole(&error),
        };
        let connection: Connection = self.dialler.dial(target, limits.connect).await?;
        let (mut sender, driver) = http1::Builder::new()
            .max_headers(ANSWER_HEADERS)
            .max_buf_size(ANSWER_HEAD_BYTES)
            .handshake(TokioIo::new(connection))
            .await
            .map_err(broke)?;
        // It ends with the sender; what goes wrong is told there too.
        let driving = tokio::spawn(driver);
        let answer = async {
            let answer = sender
                .send_request(compose(request, target)?)
                .await
                .map_err(broke)?;
            let (head, body) = answer.into_parts();
            let body = body::read(body, limits.body_bytes).await.map_err(broke)?;
            Ok(Response {
                status: head.status,
                headers: head.headers,
                body: body.bytes,
                truncated: body.truncated,
                url: target.to_string(),
            })
        };
        let _ends = AbortOnDrop(driving);
        answer.await
    }
}

/// A connection does not outlive the request that it was made for.
struct AbortOnDrop(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn compose(request: &Request, target: &Target) -> Result<http::Request<Full<Bytes>>, Error> {
    let odd = |why: String| Error::Address {
        url: target.to_string(),
        why,
    };
    let host =
        HeaderValue::from_str(&target.host_header()).map_err(|error| odd(error.to_string()))?;
    let mut composed = http::Request::builder()
        .method(request.method.clone())
        .uri(target.path())
        .body(Full::new(Bytes::from(request.body.clone())))
        .map_err(|error| odd(error.to_string()))?;
    *composed.headers_mut() = request.headers.clone();
    let headers = composed.headers_mut();
    headers.insert(HOST, host);
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(AGENT));
    Ok(composed)
}

/// An error with its causes: hyper's own words alone say little.
fn whole(error: &hyper::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// The certificates of the system, and those configured. A system without any still speaks http.
fn tls(authorities: &[u8]) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let setup = |why: String| Error::Setup(format!("a certificate cannot be read: {why}"));
        let certificate = certificate.map_err(|error| setup(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| setup(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
