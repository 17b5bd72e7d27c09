//! Where a server keeps things and listens: the keys outside of any section.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use drumtower_core::lease::Terms;
use drumtower_server::serve::{self, Options};

use super::{Given, Key, Kind, Settings, Value};
use crate::connect::{DEFAULT_LISTEN, no_home, own_dir};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new("data", "DRUMTOWER_DATA", Kind::Path)
        .flag("--data")
        .unset("~/.local/share/drumtower"),
    Key::new("listen", "DRUMTOWER_LISTEN", Kind::Address)
        .flag("--listen")
        .default(DEFAULT_LISTEN),
    Key::new("insecure", "DRUMTOWER_INSECURE", Kind::Switch)
        .flag("--insecure")
        .default("false"),
    Key::new("lease", "DRUMTOWER_LEASE", Kind::Duration).default("15s"),
];

/// Shorter, and a busy machine loses work for nothing; longer, and nobody waits for what was lost.
const LEASES: std::ops::RangeInclusive<u128> = 5_000..=300_000;

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Flags {
    /// Where everything is kept; ~/.local/share/drumtower unless given
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address and port to listen on, 127.0.0.1:7070 unless given; port 0 takes a free one
    #[arg(long, env = "DRUMTOWER_LISTEN", value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Serve other machines although nothing is encrypted
    #[arg(long)]
    insecure: bool,
}

fn address(text: &str) -> std::result::Result<SocketAddr, &'static str> {
    let right = "give an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070";
    text.parse().map_err(|_| right)
}

impl Flags {
    pub fn given(&self) -> Given {
        Given::default()
            .path("data", self.data.as_ref())
            .set("listen", self.listen.map(Value::Address))
            .switch("insecure", self.insecure)
    }
}

/// What a server is started with.
pub fn options(settings: &Settings) -> Result<Options> {
    let data = own_dir(settings.path("data")).ok_or_else(no_home)?;
    // A relative path would change its meaning with the working directory of whoever reads it.
    let data = std::path::absolute(&data).map_err(|error| Failure::file(&data, &error))?;
    let listen = settings
        .address("listen")
        .ok_or_else(|| Failure::usage("there is no address to listen on"))?;
    let mut options = Options::new(data, listen);
    options.insecure = settings.switch("insecure");
    options.tls = super::tls::options(settings)?;
    options.driver.engine.host = drumtower_sdk::host_name();
    options.driver.engine.terms = terms(settings)?;
    super::logs::apply(settings, &mut options);
    super::backup::apply(settings, &mut options)?;
    super::notify::apply(settings, &mut options)?;
    Ok(options)
}

/// Five heartbeats fit into a lease: four may be lost.
fn terms(settings: &Settings) -> Result<Terms> {
    let Some(lease) = settings.duration("lease") else {
        return Ok(Terms::default());
    };
    if !LEASES.contains(&lease.as_millis()) {
        let words = format!("lease: `{lease:?}` is not between 5s and 5m: leave it out for 15s");
        return Err(Failure::usage(words));
    }
    let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    Ok(Terms {
        lease_ms,
        heartbeat_ms: lease_ms / 5,
        ..Terms::default()
    })
}

/// Refuses what a server would refuse before it opens its store.
pub fn check(settings: &Settings) -> Result<()> {
    let options = options(settings)?;
    serve::check_listen(options.listen, options.insecure || options.tls.is_some())
        .map_err(crate::serve::failure)?;
    match &options.tls {
        Some(tls) => {
            drumtower_server::tls::check(tls).map_err(|error| crate::serve::failure(error.into()))
        }
        None => Ok(()),
    }
}
