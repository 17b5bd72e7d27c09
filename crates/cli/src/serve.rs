//! `drumtower serve`: the server alone.

use clap::Args;
use drumtower_sdk::Leave;
use drumtower_server::auth::first_start::{BOOTSTRAP_FILE, Bootstrap};
use drumtower_server::serve::{self, Error, Options, Started};
use drumtower_worker::agent::leave_on_signals;
use tokio::runtime::{Builder, Runtime};

use crate::config::log::Log;
use crate::config::{self, Settings};
use crate::failure::{Exit, Failure, Result};
use crate::logging;
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
///     drumtower serve --config /etc/drumtower/drumtower.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Serve {
    #[command(flatten)]
    pub place: Place,
}

#[derive(Args, Debug)]
pub struct Place {
    #[command(flatten)]
    source: config::Source,
    #[command(flatten)]
    server: config::server::Flags,
    #[command(flatten)]
    log: config::log::Flags,
}

impl Place {
    /// Puts the configuration together and begins to log as it says.
    pub fn settle(&self) -> Result<(Settings, Options)> {
        let given = self.log.given(self.server.given());
        let settings = self.source.settle(given)?;
        logging::start(&Log::of(&settings));
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }
        let options = config::server::options(&settings)?;
        Ok((settings, options))
    }
}

impl Serve {
    pub fn run(self) -> Result<()> {
        let (_, options) = self.place.settle()?;
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
