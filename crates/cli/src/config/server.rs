//! Where a server keeps things and listens: the keys outside of any section.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use drumtower_server::serve::Options;

use super::{Given, Key, Kind, Settings, Value};
use crate::connect::{DEFAULT_LISTEN, require_data_dir};
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
];

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Flags {
    /// Where everything is kept; ~/.local/share/drumtower unless given
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address and port to listen on, 127.0.0.1:7070 unless given; port 0 takes a free one
    #[arg(long, env = "DRUMTOWER_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Serve other machines although nothing is encrypted
    #[arg(long)]
    insecure: bool,
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
    let data = require_data_dir(settings.path("data"))?;
    // A relative path would change its meaning with the working directory of whoever reads it.
    let data = std::path::absolute(&data).map_err(|error| Failure::file(&data, &error))?;
    let listen = settings
        .address("listen")
        .ok_or_else(|| Failure::usage("there is no address to listen on"))?;
    let mut options = Options::new(data, listen);
    options.insecure = settings.switch("insecure");
    options.tls = super::tls::options(settings)?;
    options.driver.engine.host = drumtower_sdk::host_name();
    super::backup::apply(settings, &mut options)?;
    super::notify::apply(settings, &mut options)?;
    Ok(options)
}
