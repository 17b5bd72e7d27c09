//! Encryption to the server, and whether it must be the one it says it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Error;

/// Which server is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whoever answers: what is sent is encrypted, and that is all.
    Anyone,
    /// One whose certificate comes from a root, of a file or of the system; with `name`, for the host that was dialled.
    Verified { root: Option<PathBuf>, name: bool },
}

pub fn connector(trust: &Trust) -> Result<MakeRustlsConnect, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Anyone => Arc::new(Lenient {
            provider: Arc::clone(&provider),
            chain: None,
        }),
        Trust::Verified { root, name } => {
            let roots = Arc::new(roots(root.as_deref())?);
            let chain = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| Error::Io(format!("no root certificate can be used: {error}")))?;
            match name {
                true => chain,
                false => Arc::new(Lenient {
                    provider: Arc::clone(&provider),
                    chain: Some(chain),
                }),
            }
        }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Io(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        for certificate in rustls_native_certs::load_native_certs().certs {
            // One that cannot be understood is of no use, and no harm.
            let _ = roots.add(certificate);
        }
        return Ok(roots);
    };
    let wrong = |why: String| Error::Io(format!("sslrootcert {}: {why}", file.display()));
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("it holds no certificate".to_owned())),
        false => Ok(roots),
    }
}

/// Less than the whole check: the chain without the name, or nothing at all.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end, others, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
