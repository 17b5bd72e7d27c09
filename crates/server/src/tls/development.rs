//! A certificate authority of one data directory.
//!
//! `DIR/tls` holds `ca.pem`, `ca.key`, `server.pem`, `server.key`. The authority is made once and kept; the server's
//! certificate is made anew at each start, for the names and addresses of that start, and before it expires. What the
//! authority is called is drawn from its key, so that key and name are all that is needed to sign again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Span, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use super::{Error, addresses, certificates, expires_within};
use crate::auth::first_start;

const DIRECTORY: &str = "tls";
const AUTHORITY_DAYS: i64 = 3650;
/// As long as clients commonly accept.
const SERVER_DAYS: i64 = 397;
pub(super) const RENEW_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// The certificate that other machines need.
pub(super) fn authority(data: &Path) -> PathBuf {
    data.join(DIRECTORY).join("ca.pem")
}

/// Sees to authority and certificate; where the latter and its key are.
pub(super) fn prepare(
    data: &Path,
    names: &[String],
    listen: SocketAddr,
) -> Result<(PathBuf, PathBuf), Error> {
    let directory = data.join(DIRECTORY);
    crate::serve::make_private(&directory)
        .map_err(|error| Error::File(directory.clone(), error))?;
    let issuer = issuer(&directory)?;
    let key = KeyPair::generate().map_err(made)?;
    let certificate = server_params(&all_names(names, listen))?
        .signed_by(&key, &issuer)
        .map_err(made)?;
    let (cert_file, key_file) = (directory.join("server.pem"), directory.join("server.key"));
    // The key first: a reader between the two finds a pair that does not fit, and reads again.
    write(&key_file, &key.serialize_pem())?;
    write(&cert_file, &certificate.pem())?;
    Ok((cert_file, key_file))
}

fn issuer(directory: &Path) -> Result<Issuer<'static, KeyPair>, Error> {
    let (cert_file, key_file) = (directory.join("ca.pem"), directory.join("ca.key"));
    let kept = cert_file.exists() && key_file.exists();
    if kept && !expires_within(&cert_file, Duration::ZERO) {
        let text = std::fs::read_to_string(&key_file)
            .map_err(|error| Error::File(key_file.clone(), error))?;
        let key = KeyPair::from_pem(&text).map_err(|error| {
            Error::Content(
                key_file.clone(),
                format!(
                    "{error}: delete {} to have a new authority",
                    directory.display()
                ),
            )
        })?;
        return Ok(Issuer::new(authority_params(&key)?, key));
    }
    let key = KeyPair::generate().map_err(made)?;
    let params = authority_params(&key)?;
    let certificate = params.self_signed(&key).map_err(made)?;
    write(&key_file, &key.serialize_pem())?;
    write(&cert_file, &certificate.pem())?;
    tracing::info!(file = %cert_file.display(), "made a development certificate authority");
    Ok(Issuer::new(params, key))
}

fn authority_params(key: &KeyPair) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    let id = hex(&Sha256::digest(key.der_bytes())[..4], "");
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, format!("Drumtower development CA {id}"));
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_dates(&mut params, AUTHORITY_DAYS)?;
    Ok(params)
}

fn server_params(names: &[String]) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names.to_vec())
        .map_err(|error| Error::Made(format!("{error}: the names are {}", names.join(", "))))?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "Drumtower server");
    params.distinguished_name = name;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_dates(&mut params, SERVER_DAYS)?;
    Ok(params)
}

/// From yesterday, for clocks that are a little behind.
fn set_dates(params: &mut CertificateParams, days: i64) -> Result<(), Error> {
    let day = |offset: i64| {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        let date = today
            .checked_add(Span::new().days(offset))
            .map_err(|error| Error::Made(error.to_string()))?;
        Ok(date_time_ymd(
            date.year().into(),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        ))
    };
    params.not_before = day(-1)?;
    params.not_after = day(days)?;
    Ok(())
}

/// How the machine may be called: by loopback, its name, the address it listens on, and what was asked for.
fn all_names(extra: &[String], listen: SocketAddr) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        Ipv4Addr::LOCALHOST.to_string(),
        Ipv6Addr::LOCALHOST.to_string(),
    ];
    let addresses = match listen.ip() {
        ip if ip.is_unspecified() => addresses::of_this_machine(),
        ip => vec![ip],
    };
    names.extend(addresses.iter().map(IpAddr::to_string));
    names.extend(addresses::host_name());
    names.extend(extra.iter().cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    first_start::write_private(path, text.trim_end())
        .map_err(|error| Error::Made(error.to_string()))
}

fn made(error: rcgen::Error) -> Error {
    Error::Made(error.to_string())
}

/// The SHA-256 of the first certificate of a file, as other tools print it.
pub fn fingerprint(path: &Path) -> Result<String, Error> {
    let certificate = certificates(path)?.swap_remove(0);
    Ok(hex(&Sha256::digest(&certificate), ":"))
}

fn hex(bytes: &[u8], between: &str) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(between)
}

/// One certificate as text.
pub(super) fn pem(certificate: &CertificateDer<'_>) -> String {
    const WIDTH: usize = 64;
    let text = base64(certificate);
    let lines: Vec<&str> = (0..text.len())
        .step_by(WIDTH)
        .filter_map(|at| text.get(at..(at + WIDTH).min(text.len())))
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----",
        lines.join("\n")
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN: &str = "127.0.0.1:7070";

    #[test]
    fn the_authority_stays_and_the_certificate_is_new_at_each_start() {
        let data = tempfile::tempdir().unwrap();
        let listen = LISTEN.parse().unwrap();
        let (cert, key) = prepare(data.path(), &[], listen).unwrap();
        let first = (
            fingerprint(&authority(data.path())).unwrap(),
            fingerprint(&cert).unwrap(),
        );
        prepare(data.path(), &["scheduler.example".to_owned()], listen).unwrap();
        let second = (
            fingerprint(&authority(data.path())).unwrap(),
            fingerprint(&cert).unwrap(),
        );
        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
        assert!(!expires_within(&cert, RENEW_BEFORE));
        assert!(expires_within(&cert, Duration::from_secs(400 * 86_400)));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for file in [key, data.path().join("tls/ca.key")] {
                let mode = std::fs::metadata(&file).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", file.display());
            }
        }
    }

    #[test]
    fn a_damaged_key_of_the_authority_is_told_with_a_remedy() {
        let data = tempfile::tempdir().unwrap();
        let listen = LISTEN.parse().unwrap();
        prepare(data.path(), &[], listen).unwrap();
        std::fs::write(data.path().join("tls/ca.key"), "nothing").unwrap();
        let error = prepare(data.path(), &[], listen).unwrap_err().to_string();
        assert!(
            error.contains("ca.key") && error.contains("delete"),
            "{error}"
        );
    }

    #[test]
    fn text_of_a_certificate_reads_as_the_certificate() {
        use rustls::pki_types::pem::PemObject;
        for length in [1, 2, 3, 47, 48, 49, 500] {
            let bytes: Vec<u8> = (0..length).map(|at: u32| (at * 7 % 256) as u8).collect();
            let text = pem(&CertificateDer::from(bytes.clone()));
            let read = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
            assert_eq!(read.as_ref(), bytes);
        }
    }
}
