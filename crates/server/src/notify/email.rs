//! E-mail, handed to the one SMTP server of the configuration.
//!
//! A mail goes to one address. Nothing that users write gets into a header except a job's name, whose alphabet is small, and
//! what they give as an address, which is parsed; the builder encodes both.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::message::Message;
use super::outbox::Outcome;

const TIMEOUT: Duration = Duration::from_secs(20);

/// How the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Begins in the clear and must become TLS.
    StartTls,
    /// TLS from the first byte.
    Implicit,
    /// None; only to this machine.
    None,
}

impl Encryption {
    pub fn port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

#[derive(Clone)]
pub struct Options {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    /// Name and password.
    pub login: Option<(String, String)>,
    pub from: String,
    /// Certificates in PEM form, trusted beside those of the system.
    pub authorities: Vec<u8>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smtp {}:{} {:?}", self.host, self.port, self.encryption)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("smtp.from: `{0}` is not an address such as drumtower@example.com")]
    From(String),
    #[error(
        "smtp.tls: `none` is for a mail server on this machine, and `{0}` is another one: use `starttls` or `implicit`"
    )]
    Open(String),
    #[error("the mail server cannot be set up: {0}")]
    Setup(lettre::transport::smtp::Error),
}

pub struct Email {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Email {
    pub fn new(options: &Options) -> Result<Self, Error> {
        let from: Mailbox = options
            .from
            .parse()
            .map_err(|_| Error::From(options.from.clone()))?;
        let tls = match options.encryption {
            Encryption::None if !is_here(&options.host) => {
                return Err(Error::Open(options.host.clone()));
            }
            Encryption::None => Tls::None,
            Encryption::StartTls => Tls::Required(trust(options)?),
            Encryption::Implicit => Tls::Wrapper(trust(options)?),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&options.host)
            .port(options.port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if let Some((name, password)) = &options.login {
            builder = builder.credentials(Credentials::new(name.clone(), password.clone()));
        }
        Ok(Self {
            transport: builder.build(),
            from,
        })
    }

    pub async fn send(&self, address: &str, message: &Message) -> Outcome {
        let mail = match compose(&self.from, address, message) {
            Ok(mail) => mail,
            Err(why) => return Outcome::Never(why),
        };
        match tokio::time::timeout(2 * TIMEOUT, self.transport.send(mail)).await {
            Ok(Ok(_)) => Outcome::Delivered,
            Ok(Err(error)) if error.is_permanent() => Outcome::Never(whole(&error)),
            Ok(Err(error)) => Outcome::Again(whole(&error)),
            Err(_) => Outcome::Again("the mail server did not answer in time".to_owned()),
        }
    }
}

fn compose(from: &Mailbox, address: &str, message: &Message) -> Result<lettre::Message, String> {
    let to: Address = address
        .parse()
        .map_err(|error| format!("`{address}` is not an e-mail address: {error}"))?;
    let host = from.email.domain();
    let builder: MessageBuilder = lettre::Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to))
        .message_id(Some(format!("<{}@{host}>", message.id)))
        .subject(format!("[drumtower] {}", message.summary()))
        .header(ContentType::TEXT_PLAIN);
    builder
        .body(message.text())
        .map_err(|error| error.to_string())
}

fn trust(options: &Options) -> Result<TlsParameters, Error> {
    let mut builder = TlsParameters::builder(options.host.clone());
    if !options.authorities.is_empty() {
        let authorities = Certificate::from_pem(&options.authorities).map_err(Error::Setup)?;
        builder = builder.add_root_certificate(authorities);
    }
    builder.build().map_err(Error::Setup)
}

/// Whether a host is this machine, by its name alone.
pub fn is_here(host: &str) -> bool {
    let ip: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

/// An error with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !words.contains(&next) {
            words = format!("{words}: {next}");
        }
        cause = error.source();
    }
    words.chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(host: &str, encryption: Encryption) -> Options {
        Options {
            host: host.to_owned(),
            port: 25,
            encryption,
            login: None,
            from: "Drumtower <drumtower@example.com>".to_owned(),
            authorities: Vec::new(),
        }
    }

    #[test]
    fn nothing_leaves_the_machine_in_the_clear() {
        for host in ["localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"] {
            assert!(
                Email::new(&options(host, Encryption::None)).is_ok(),
                "{host}"
            );
        }
        for host in ["mail.example.com", "10.0.0.1", "localhost.example.com"] {
            let refused = Email::new(&options(host, Encryption::None));
            assert!(matches!(refused, Err(Error::Open(_))), "{host}");
        }
    }

    #[test]
    fn no_text_of_users_makes_a_header() {
        use super::super::tests_support::failure;
        let from: Mailbox = "drumtower@example.com".parse().unwrap();
        let mut message = failure("nightly");
        let digest = message.digest.as_mut().unwrap();
        digest.examples[0].error = Some("boom\r\nBcc: thief@example.com\r\n\r\nhello".to_owned());
        let mail = compose(&from, "ops@example.com", &message).unwrap();
        let text = String::from_utf8(mail.formatted()).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("Bcc") && !head.contains("thief"), "{head}");
        assert!(
            head.contains("Subject: [drumtower] default/nightly failed"),
            "{head}"
        );
        for address in [
            "a@b.c\r\nBcc: thief@example.com",
            "a@b.c, thief@example.com",
            "\"x\r\n\"@b.c",
            "a@b.c>\r\nRCPT TO:<thief@example.com",
        ] {
            assert!(compose(&from, address, &message).is_err(), "{address:?}");
        }
    }
}
