//! `drumtower serve`: the server alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use drumtower_sdk::Leave;
use drumtower_server::auth::first_start::{BOOTSTRAP_FILE, Bootstrap};
use drumtower_server::serve::{self, Error, Options, Started};
use drumtower_worker::agent::leave_on_signals;
use tokio::runtime::{Builder, Runtime};

use crate::connect::{DEFAULT_LISTEN, require_data_dir};
use crate::failure::{Exit, Failure, Result};
use crate::output::line;
use crate::work::no_signals;

/// Run a server
///
/// Keeps everything in one directory. The first start prints a bootstrap token and leaves it
/// in DIR/bootstrap.token; it dies when the first admin token is made with `drumtower token
/// create NAME --role admin`. Workers join with `drumtower work`. Ctrl-C or SIGTERM stops it
/// in good order.
///
///     drumtower serve
///     drumtower serve --data /var/lib/drumtower --listen 127.0.0.1:7070
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Serve {
    #[command(flatten)]
    pub place: Place,
}

#[derive(Args, Debug)]
pub struct Place {
    /// Where everything is kept; ~/.local/share/drumtower unless given
    #[arg(long, env = "DRUMTOWER_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address and port to listen on; port 0 takes a free one
    #[arg(long, env = "DRUMTOWER_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Serve other machines although nothing is encrypted
    #[arg(long)]
    insecure: bool,
}

impl Place {
    pub fn options(&self) -> Result<Options> {
        let data = require_data_dir(self.data.as_deref())?;
        // A relative path would change its meaning with the working directory of whoever reads it.
        let data = std::path::absolute(&data).map_err(|error| Failure::file(&data, &error))?;
        let mut options = Options::new(data, self.listen);
        options.insecure = self.insecure;
        options.driver.engine.host = drumtower_sdk::host_name();
        Ok(options)
    }
}

impl Serve {
    pub fn run(self) -> Result<()> {
        let options = self.place.options()?;
        runtime()?.block_on(async {
            let mut leave = leave_on_signals().map_err(no_signals)?;
            let data = options.data.clone();
            let announce = move |started: Started| {
                // Nobody reading along is no reason not to serve.
                let _ = line(&announcement(&started, &data));
            };
            let shutdown = async move {
                let _ = leave.wait_for(|wish| *wish != Leave::No).await;
            };
            serve::run(options, announce, shutdown)
                .await
                .map_err(failure)
        })
    }
}

/// The threads that server and worker run on.
pub fn runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.map_err(|error| Failure::failed(format!("threads cannot be started: {error}")))
}

/// What whoever starts a server wants to know.
pub fn announcement(started: &Started, data: &std::path::Path) -> String {
    let mut text = format!("drumtower serves {} from {}", started.url, data.display());
    match &started.bootstrap {
        Bootstrap::Made(secret) => {
            let secret = secret.text();
            text.push_str(&format!(
                "\nbootstrap token, until the first admin token is made: {secret}"
            ));
        }
        Bootstrap::Waiting => {
            let file = data.join(BOOTSTRAP_FILE);
            text.push_str(&format!(
                "\nthe bootstrap token still lies in {}",
                file.display()
            ));
        }
        Bootstrap::NotNeeded => {}
    }
    text
}

/// Why a server could not start, or could not go on.
pub fn failure(error: Error) -> Failure {
    let exit = match error {
        Error::NotLoopback(_) => Exit::Usage,
        Error::Store(drumtower_store::Error::Locked(_)) | Error::InUse(_) | Error::NotReady(_) => {
            Exit::Unavailable
        }
        _ => Exit::Failed,
    };
    Failure::new(exit, error.to_string())
}
