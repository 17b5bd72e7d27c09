//! Where the server is, and how to get there: `postgres://user:password@host:port/database?sslmode=…`.
//!
//! Whatever is shown of it leaves the password out.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};

use super::tls::{self, Trust};
use crate::Error;

/// The address of a database.
#[derive(Clone)]
pub struct Target {
    config: Box<Config>,
    trust: Trust,
    shown: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// What in the address is wrong. It never repeats the address, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTarget(String);

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = |why: String| BadTarget(format!("the store's address {why}"));
        let scheme = ["postgres://", "postgresql://"];
        if !scheme.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(bad("does not begin with postgres://".to_owned()));
        }
        let (rest, ssl) = split_ssl(text);
        let mut config = Config::from_str(&rest).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let cause = cause.unwrap_or_else(|| error.to_string());
            bad(format!(
                "is not a PostgreSQL URL: {cause}; it is written as postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full"
            ))
        })?;
        if config.get_hosts().is_empty() {
            return Err(bad("names no host".to_owned()));
        }
        if config.get_dbname().is_none() {
            return Err(bad("names no database".to_owned()));
        }
        let (mode, trust) = ssl.resolve().map_err(bad)?;
        config.ssl_mode(mode);
        if config.get_application_name().is_none() {
            config.application_name("drumtower");
        }
        config.keepalives(true);
        config.keepalives_idle(Duration::from_secs(15));
        // A server that is gone without a word is noticed before a session would be over.
        config.tcp_user_timeout(Duration::from_secs(10));
        Ok(Self {
            shown: shown(&config),
            config: Box::new(config),
            trust,
        })
    }
}

/// What the address says about encryption, in libpq's words.
#[derive(Default)]
struct Ssl {
    mode: Option<String>,
    root: Option<String>,
}

/// Takes out the parameters that the library does not know as libpq does.
fn split_ssl(text: &str) -> (String, Ssl) {
    let mut ssl = Ssl::default();
    let Some((base, query)) = text.split_once('?') else {
        return (text.to_owned(), ssl);
    };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => ssl.mode = Some(mode.to_owned()),
            Some(("sslrootcert", root)) => ssl.root = Some(unescaped(root)),
            _ => kept.push(pair),
        }
    }
    let rest = match kept.is_empty() {
        true => base.to_owned(),
        false => format!("{base}?{}", kept.join("&")),
    };
    (rest, ssl)
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Ssl {
    fn resolve(self) -> Result<(SslMode, Trust), String> {
        let root = match self.root.as_deref() {
            None | Some("system") => None,
            Some(path) => Some(PathBuf::from(path)),
        };
        let verified = |name| Trust::Verified {
            root: root.clone(),
            name,
        };
        match self.mode.as_deref() {
            Some("disable") => Ok((SslMode::Disable, Trust::Anyone)),
            None | Some("prefer") => Ok((SslMode::Prefer, Trust::Anyone)),
            // As libpq does: a root that was given is used.
            Some("require") if self.root.is_some() => Ok((SslMode::Require, verified(false))),
            Some("require") => Ok((SslMode::Require, Trust::Anyone)),
            Some("verify-ca") => Ok((SslMode::Require, verified(false))),
            Some("verify-full") => Ok((SslMode::Require, verified(true))),
            Some(other) => Err(format!(
                "has sslmode={other}: it is one of disable, prefer, require, verify-ca, verify-full"
            )),
        }
    }
}

fn shown(config: &Config) -> String {
    let hosts: Vec<String> = (config.get_hosts().iter().enumerate())
        .map(|(n, host)| {
            let ports = config.get_ports();
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => path.display().to_string(),
            }
        })
        .collect();
    let user = config.get_user().map(|user| format!("{user}@"));
    format!(
        "postgres://{}{}/{}",
        user.unwrap_or_default(),
        hosts.join(","),
        config.get_dbname().unwrap_or_default()
    )
}

impl Target {
    /// Connects; what drives the connection is left running on the current runtime.
    pub(super) async fn connect(&self) -> Result<Client, Error> {
        let failed = |error: tokio_postgres::Error| {
            let why = match Error::from(error) {
                Error::Io(why) | Error::Busy(why) => why,
                other => other.to_string(),
            };
            Error::Io(format!("cannot connect to {}: {why}", self.shown))
        };
        if self.config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.config.connect(NoTls).await.map_err(failed)?;
            tokio::spawn(drive(connection));
            return Ok(client);
        }
        let tls = tls::connector(&self.trust)?;
        let (client, connection) = self.config.connect(tls).await.map_err(failed)?;
        tokio::spawn(drive(connection));
        Ok(client)
    }
}

/// Whoever waits on the client is told when the connection ends, so its end is nothing to report here.
async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Target::from_str(text)
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn passwords_are_not_shown() {
        let target = Target::from_str("postgres://ann:geheim@db.example:6543/jobs?sslmode=require");
        let target = target.expect("it is taken");
        assert_eq!(target.to_string(), "postgres://ann@db.example:6543/jobs");
        assert_eq!(format!("{target:?}"), "postgres://ann@db.example:6543/jobs");
        for wrong in [
            "postgres://ann:geheim@db/jobs?sslmode=always",
            "postgres://ann:geheim@db:port/jobs",
            "postgres://ann:geheim@/jobs",
            "postgres://ann:geheim@db",
            "mysql://ann:geheim@db/jobs",
        ] {
            let said = refused(wrong);
            assert!(!said.contains("geheim"), "{said}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(refused("postgres://ann@db/jobs?sslmode=always").contains("sslmode=always"));
        assert!(refused("postgres://ann@db").contains("names no database"));
        assert!(refused("mysql://db/jobs").contains("postgres://"));
    }

    #[test]
    fn encryption_is_as_libpq_has_it() {
        let of = |query: &str| {
            let target = Target::from_str(&format!("postgres://ann@db/jobs{query}"));
            let target = target.expect("it is taken");
            (target.config.get_ssl_mode(), target.trust)
        };
        let verified = |root: Option<&str>, name| Trust::Verified {
            root: root.map(PathBuf::from),
            name,
        };
        assert_eq!(of(""), (SslMode::Prefer, Trust::Anyone));
        assert_eq!(of("?sslmode=disable").0, SslMode::Disable);
        assert_eq!(of("?sslmode=require"), (SslMode::Require, Trust::Anyone));
        assert_eq!(
            of("?sslmode=require&sslrootcert=/a%20b.pem").1,
            verified(Some("/a b.pem"), false)
        );
        assert_eq!(
            of("?connect_timeout=3&sslmode=verify-full&sslrootcert=system").1,
            verified(None, true)
        );
        assert_eq!(of("?sslmode=verify-ca").1, verified(None, false));
    }
}
