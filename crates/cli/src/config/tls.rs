//! `[tls]`: the certificate of a server, or that one is made for it.

use std::path::PathBuf;

use clap::Args;
use drumtower_server::tls::{Identity, Options};

use super::{Given, Key, Kind, Settings, Value};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new("tls.cert", "DRUMTOWER_TLS_CERT", Kind::Path).flag("--tls-cert"),
    Key::new("tls.key", "DRUMTOWER_TLS_KEY", Kind::Path).flag("--tls-key"),
    Key::new("tls.dev", "DRUMTOWER_TLS_DEV", Kind::Switch)
        .flag("--tls-dev")
        .default("false"),
    Key::new("tls.names", "DRUMTOWER_TLS_NAMES", Kind::Texts(name))
        .flag("--tls-name")
        .unset("this machine's own"),
    Key::new("tls.client_ca", "DRUMTOWER_TLS_CLIENT_CA", Kind::Path).flag("--tls-client-ca"),
];

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "TLS")]
pub struct Flags {
    /// The server's certificate, with what leads to its authority, in PEM; read again when it changes
    #[arg(long, env = "DRUMTOWER_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, env = "DRUMTOWER_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Make a certificate authority in DIR/tls and sign a certificate with it
    #[arg(long)]
    tls_dev: bool,
    /// Another name or address by which clients reach a server with --tls-dev; may be repeated
    #[arg(long = "tls-name", value_parser = parse_name, value_name = "NAME")]
    tls_names: Vec<String>,
    /// Authorities of workers' certificates; given, every worker needs one of theirs
    #[arg(long, env = "DRUMTOWER_TLS_CLIENT_CA", value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
}

impl Flags {
    pub fn given(&self, given: Given) -> Given {
        let names = (!self.tls_names.is_empty()).then(|| Value::Texts(self.tls_names.clone()));
        given
            .path("tls.cert", self.tls_cert.as_ref())
            .path("tls.key", self.tls_key.as_ref())
            .switch("tls.dev", self.tls_dev)
            .set("tls.names", names)
            .path("tls.client_ca", self.tls_client_ca.as_ref())
    }
}

/// Whether and how a server speaks TLS.
pub fn options(settings: &Settings) -> Result<Option<Options>> {
    let file = |key| settings.path(key).map(PathBuf::from);
    let names = settings.texts("tls.names");
    let identity = match (
        file("tls.cert"),
        file("tls.key"),
        settings.switch("tls.dev"),
    ) {
        (Some(_), _, true) | (_, Some(_), true) => {
            return Err(Failure::usage(
                "tls.dev makes a certificate, and tls.cert or tls.key names one: give only one of the two",
            ));
        }
        (Some(cert), Some(key), false) => Identity::Files { cert, key },
        (Some(_), None, false) => {
            return Err(Failure::usage("tls.cert needs tls.key: give its key"));
        }
        (None, Some(_), false) => {
            return Err(Failure::usage(
                "tls.key needs tls.cert: give the certificate",
            ));
        }
        (None, None, true) => Identity::Development {
            names: names.clone(),
        },
        (None, None, false) => {
            return match file("tls.client_ca") {
                Some(_) => Err(Failure::usage(
                    "tls.client_ca needs TLS: give tls.cert and tls.key, or tls.dev",
                )),
                None => Ok(None),
            };
        }
    };
    if !names.is_empty() && matches!(identity, Identity::Files { .. }) {
        return Err(Failure::usage(
            "tls.names are for the certificate that tls.dev makes: your own holds its names",
        ));
    }
    Ok(Some(Options {
        identity,
        client_ca: file("tls.client_ca"),
    }))
}

fn name(text: &str) -> std::result::Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-.:*".contains(c);
    if text.is_empty() || text.len() > 253 || !text.chars().all(fits) {
        return Err(format!(
            "`{}` is neither a host name nor an address",
            text.escape_debug()
        ));
    }
    Ok(())
}

fn parse_name(text: &str) -> std::result::Result<String, String> {
    name(text).map(|()| text.to_owned())
}
