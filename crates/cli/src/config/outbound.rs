//! `[outbound]`: what `http` tasks and webhooks may reach.

use std::path::Path;

use clap::Args;
use drumtower_worker::agent::outbound::{Cidr, Policy};

use super::{Given, Key, Kind, Settings, Value};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new(
        "outbound.allow",
        "DRUMTOWER_OUTBOUND_ALLOW",
        Kind::Texts(network),
    )
    .flag("--allow-outbound")
    .unset("public addresses only"),
    Key::new(
        "outbound.deny",
        "DRUMTOWER_OUTBOUND_DENY",
        Kind::Texts(network),
    ),
    Key::new(
        "outbound.proxy",
        "DRUMTOWER_OUTBOUND_PROXY",
        Kind::Text(proxy),
    ),
    Key::new("outbound.ca", "DRUMTOWER_OUTBOUND_CA", Kind::Path)
        .unset("the certificates of the system"),
];

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Outgoing requests")]
#[group(skip)]
pub struct Flags {
    /// A network or address that is not public and that `http` tasks and webhooks may reach, such as 10.0.0.0/8; may be repeated
    #[arg(long, value_name = "CIDR")]
    allow_outbound: Vec<Cidr>,
}

impl Flags {
    pub fn given(&self, given: Given) -> Given {
        let allow: Vec<String> = self
            .allow_outbound
            .iter()
            .map(ToString::to_string)
            .collect();
        given.set(
            "outbound.allow",
            (!allow.is_empty()).then_some(Value::Texts(allow)),
        )
    }
}

/// What may be reached, from the settings.
pub fn policy(settings: &Settings) -> Result<Policy> {
    let networks = |key: &str| -> Result<Vec<Cidr>> {
        let texts = settings.texts(key).into_iter();
        let read = |text: String| {
            text.parse()
                .map_err(|error| Failure::usage(format!("{key}: {error}")))
        };
        texts.map(read).collect()
    };
    let proxy = settings.text("outbound.proxy").map(|text| {
        text.parse()
            .map_err(|error| Failure::usage(format!("outbound.proxy: `{text}`: {error}")))
    });
    let authorities =
        |path: &Path| std::fs::read(path).map_err(|error| Failure::file(path, &error));
    Ok(Policy {
        allow: networks("outbound.allow")?,
        deny: networks("outbound.deny")?,
        proxy: proxy.transpose()?,
        authorities: settings
            .path("outbound.ca")
            .map(authorities)
            .transpose()?
            .unwrap_or_default(),
    })
}

fn network(text: &str) -> std::result::Result<(), String> {
    match text.parse::<Cidr>() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn proxy(text: &str) -> std::result::Result<(), String> {
    if text.starts_with("http://") && text.len() > "http://".len() {
        return Ok(());
    }
    Err(format!(
        "`{text}` is no proxy: write it as http://host:3128"
    ))
}
