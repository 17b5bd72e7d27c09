//! TLS towards a server: which certificates are believed, and what to say when one is not.
//!
//! [`Trust`] names files and is read when a connection is made, so that a renewed file counts without a restart. [`words`]
//! turns what rustls says into what can be done about it. Who the *server* believes is the server's own.

mod only;
mod open;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use only::Only;
pub use open::in_the_open;
pub use words::{said, words};

/// Which servers are believed, and who we say we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Certificates of authorities, in place of the system's.
    pub ca: Option<PathBuf>,
    /// The one certificate that the server must show, whatever its names and dates. Wins over `ca`.
    pub only: Option<PathBuf>,
    /// A certificate of our own and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether a token may go to another machine over http.
    pub in_the_open: bool,
}

impl Trust {
    /// Reads the files. `protocols` are offered in this order.
    pub fn config(&self, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, String> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match (&self.only, &self.ca) {
            (Some(only), _) => {
                let kept = certificates(only)?.swap_remove(0);
                let verifier = Arc::new(Only::new(kept, &provider));
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(verifier)
            }
            (None, Some(ca)) => builder.with_root_certificates(authorities(ca)?),
            (None, None) => builder.with_root_certificates(system()?),
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => builder
                .with_client_auth_cert(certificates(cert)?, private_key(key)?)
                .map_err(|error| format!("{} and {}: {error}", cert.display(), key.display()))?,
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// Whether a later read could give something else.
    pub(crate) fn names_files(&self) -> bool {
        self != &Self::default()
    }
}

/// The process's own choice, or the one that we are built with.
fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}

fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| {
            format!(
                "{}: not the certificate of an authority: {error}",
                path.display()
            )
        })?;
    }
    Ok(roots)
}

fn system() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(
            "this system knows no certificate authority: give that of the server with --ca FILE"
                .to_owned(),
        );
    }
    Ok(roots)
}

/// At least one certificate, in the order of the file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() {
        return Err(wrong(
            &"there is no certificate in it: it must hold -----BEGIN CERTIFICATE-----",
        ));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        format!(
            "{}: there is no private key in it ({error})",
            path.display()
        )
    })
}
