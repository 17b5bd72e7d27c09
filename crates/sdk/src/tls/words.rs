//! What went wrong in a handshake, and what to do about it.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// An error of TLS in words with a remedy.
pub fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(certificate) => of_certificate(certificate),
        Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | Error::InappropriateMessage { .. } => {
            "the server does not speak TLS on this port: use http:// instead of https://".to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server asks for a certificate of ours: give one with --cert and --key".to_owned()
        }
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied),
        ) => format!(
            "the server does not accept our certificate ({alert:?}): it must be valid and signed by the server's client_ca"
        ),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "the server's certificate is signed by an authority that is not trusted here: give the file of that authority with --ca".to_owned()
        }
        CertificateError::ApplicationVerificationFailure => {
            "the server shows another certificate than the one in its data directory: another program listens there, or the certificate was just renewed; try again".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it there, or set the clock of this machine right".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: the clock of this machine or of the server is wrong".to_owned()
        }
        CertificateError::NotValidForName => {
            "the server's certificate is for another name: use a name that it holds in the address".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "the server's certificate is not for `{}` but for {}: use one of these in the address, or give the server a certificate for it (--tls-name)",
            expected.to_str(),
            presented.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", ")
        ),
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

/// `DnsName("a")` and `IpAddress(1.2.3.4)` without their wrapping.
fn plain(presented: &str) -> String {
    let inner = presented
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"').to_owned()
}

/// As [`words`], if an error of TLS is anywhere in the causes of this one.
pub fn said(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(words(error));
        }
        // The source of an I/O error is that of what it wraps, not what it wraps.
        cause = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_tls_is_found_below_others() {
        let inner = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let outer = io::Error::new(io::ErrorKind::InvalidData, inner);
        let outmost = io::Error::other(outer);
        assert!(said(&outmost).is_some_and(|text| text.contains("--ca")));
        assert_eq!(said(&io::Error::other("refused")), None);
    }

    #[test]
    fn names_are_told_plainly() {
        assert_eq!(plain("DnsName(\"localhost\")"), "localhost");
        assert_eq!(plain("IpAddress(127.0.0.1)"), "127.0.0.1");
    }
}
