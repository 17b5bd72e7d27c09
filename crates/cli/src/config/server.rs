//! Where a server keeps things and listens: the keys outside of any section.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use drumtower_core::lease::Terms;
use drumtower_server::serve::{self, Options};
use drumtower_store::Address;

use super::{Given, Key, Kind, Settings, Value};
use crate::connect::{DEFAULT_LISTEN, no_home, own_dir};
use crate::failure::{Failure, Result};

pub const KEYS: &[Key] = &[
    Key::new("data", "DRUMTOWER_DATA", Kind::Path)
        .flag("--data")
        .unset("~/.local/share/drumtower"),
    Key::new("store", "DRUMTOWER_STORE", Kind::Text(store))
        .flag("--store")
        .default("sqlite")
        .secret(),
    Key::new("listen", "DRUMTOWER_LISTEN", Kind::Address)
        .flag("--listen")
        .default(DEFAULT_LISTEN),
    Key::new("insecure", "DRUMTOWER_INSECURE", Kind::Switch)
        .flag("--insecure")
        .default("false"),
    Key::new("name", "DRUMTOWER_NAME", Kind::Text(named)).unset("the host's name"),
    Key::new("advertise", "DRUMTOWER_ADVERTISE", Kind::Text(advertised)).flag("--advertise"),
    Key::new("peer_ca", "DRUMTOWER_PEER_CA", Kind::Path),
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
    /// Where the state is kept: `sqlite`, in the data directory, or postgres://USER:PASSWORD@HOST:PORT/DATABASE
    #[arg(
        long,
        env = "DRUMTOWER_STORE",
        hide_env_values = true,
        value_name = "STORE"
    )]
    store: Option<String>,
    /// The address and port to listen on, 127.0.0.1:7070 unless given; port 0 takes a free one
    #[arg(long, env = "DRUMTOWER_LISTEN", value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Serve other machines although nothing is encrypted
    #[arg(long)]
    insecure: bool,
    /// The URL by which other servers on the same database reach this one; made of --listen unless given
    #[arg(long, env = "DRUMTOWER_ADVERTISE", value_name = "URL", value_parser = advertise)]
    advertise: Option<String>,
}

/// It stands in tables, log lines and messages to people.
fn named(text: &str) -> std::result::Result<(), String> {
    const MOST: usize = 64;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    match (1..=MOST).contains(&text.len()) && text.chars().all(fits) {
        true => Ok(()),
        false => Err(format!(
            "`{}` is no name for a server: give up to {MOST} letters, digits, `.`, `_` and `-`",
            text.chars().take(MOST).collect::<String>()
        )),
    }
}

/// Scheme, host and port, and nothing behind them.
fn advertised(text: &str) -> std::result::Result<(), String> {
    let rest = text
        .strip_prefix("https://")
        .or(text.strip_prefix("http://"));
    let place = rest.map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    let strange = |letter: char| letter.is_whitespace() || "/?#@".contains(letter);
    match place.is_some_and(|place| !place.is_empty() && !place.contains(strange)) {
        true => Ok(()),
        false => Err(format!(
            "`{text}` is not where a server is reached: give https://HOST:PORT"
        )),
    }
}

fn advertise(text: &str) -> std::result::Result<String, String> {
    advertised(text).map(|()| text.to_owned())
}

fn address(text: &str) -> std::result::Result<SocketAddr, &'static str> {
    let right = "give an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070";
    text.parse().map_err(|_| right)
}

/// The parser of flags would repeat what it refuses, and it may hold a password; so a flag is looked at with the rest.
fn store(text: &str) -> std::result::Result<(), String> {
    text.parse::<Address>().map(drop)
}

/// Where the state is kept that belongs to a data directory.
pub fn database_of(data: &std::path::Path) -> Result<Address> {
    let given = Given::default().path("data", Some(&data.to_owned()));
    database(&super::Source::default().settle(given)?)
}

fn database(settings: &Settings) -> Result<Address> {
    let text = settings.text("store").unwrap_or_default();
    text.parse()
        .map_err(|why| Failure::usage(format!("store: {why}")))
}

impl Flags {
    pub fn given(&self) -> Given {
        Given::default()
            .path("data", self.data.as_ref())
            .text("store", self.store.as_ref())
            .set("listen", self.listen.map(Value::Address))
            .switch("insecure", self.insecure)
            .text("advertise", self.advertise.as_ref())
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
    options.database = database(settings)?;
    options.tls = super::tls::options(settings)?;
    options.cluster.advertise = settings.text("advertise");
    options.cluster.ca = settings.path("peer_ca").map(ToOwned::to_owned);
    options.driver.engine.host = drumtower_sdk::host_name();
    // The name of a machine may be anything; the one that is given was looked at.
    let host = Some(options.driver.engine.host.clone()).filter(|host| !host.is_empty());
    if let Some(name) = settings.text("name").or(host) {
        options.name = name;
    }
    options.driver.engine.terms = terms(settings)?;
    super::logs::apply(settings, &mut options);
    super::backup::apply(settings, &mut options)?;
    if options.backup.every.is_some() && !options.database.is_embedded() {
        return Err(Failure::usage(
            "backup.every: backups are made of an embedded store only; back up PostgreSQL with its own means, and leave the key out",
        ));
    }
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
    serve::check_advertise(&options).map_err(crate::serve::failure)?;
    match &options.tls {
        Some(tls) => {
            drumtower_server::tls::check(tls).map_err(|error| crate::serve::failure(error.into()))
        }
        None => Ok(()),
    }
}
