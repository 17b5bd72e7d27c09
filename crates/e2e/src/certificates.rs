//! Certificates as an operator would have them from an authority of their own.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// An authority whose certificate is a file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub file: PathBuf,
}

/// A certificate and its key, as files.
#[derive(Clone, Debug)]
pub struct Issued {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new(directory: &Path, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, format!("{name} of a test"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).expect("signed");
        let file = directory.join(format!("{name}.ca.pem"));
        std::fs::write(&file, certificate.pem()).expect("written");
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// Writes a certificate for these names, in place of one that lies there; `until` is a year.
    pub fn issue(&self, directory: &Path, file: &str, names: &[&str], until: i32) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let issued = Issued {
            cert: directory.join(format!("{file}.pem")),
            key: directory.join(format!("{file}.key")),
        };
        std::fs::write(&issued.key, key.serialize_pem()).expect("written");
        std::fs::write(&issued.cert, certificate.pem()).expect("written");
        issued
    }
}
