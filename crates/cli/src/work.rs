//! `drumtower work`: a worker alone.

use clap::Args;
use drumtower_worker::agent::{self, Error, Options, leave_on_signals};
use drumtower_worker::open_files;

use crate::config;
use crate::config::log::Log;
use crate::connect::Connect;
use crate::failure::{Exit, Failure, Result};
use crate::logging;
use crate::serve::runtime;

/// Run a worker
///
/// It dials the server, so it needs no open port, and runs commands, scripts and HTTP requests
/// from this machine, as the user it runs as. When the server restarts it comes back by
/// itself. Ctrl-C or SIGTERM takes no more work and lets what runs end; a second one does not
/// wait, a third one kills.
///
///     drumtower work
///     drumtower work --url http://127.0.0.1:7070 --token drt_... --name build-1 --capacity 16
///     drumtower work --url https://scheduler:7070 --ca ca.pem --token-file worker.token
///     drumtower work --config /etc/drumtower/drumtower.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Work {
    #[command(flatten)]
    source: config::Source,
    #[command(flatten)]
    worker: config::worker::Flags,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    log: config::log::Flags,
    #[command(flatten)]
    outbound: config::outbound::Flags,
}

impl Work {
    pub fn run(self) -> Result<()> {
        let given = self.log.given(self.worker.given(&self.connect));
        let given = self.outbound.given(given);
        let settings = self.source.settle(given)?;
        logging::start(&Log::of(&settings));
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }
        let target = config::worker::connect(&settings)?.target()?;
        let standard = Options {
            servers: vec![target.url],
            token: target.token,
            trust: config::worker::trust(&settings, target.trust)?,
            http: Some(config::outbound::policy(&settings)?),
            ..Options::default()
        };
        let options = config::worker::offer(&settings, standard);
        warn_of_shortage(&options);
        runtime()?.block_on(async {
            let leave = leave_on_signals().map_err(no_signals)?;
            agent::run(options, leave).await.map_err(failure)
        })
    }
}

/// Said once the limit of open files has been raised as far as it goes.
pub fn warn_of_shortage(options: &Options) {
    if let Some(shortage) = open_files::shortage(options.capacity) {
        tracing::warn!("{shortage}");
    }
}

pub fn no_signals(error: std::io::Error) -> Failure {
    Failure::failed(format!("signals cannot be received: {error}"))
}

/// Why a worker gives up.
pub fn failure(error: Error) -> Failure {
    let exit = match &error {
        Error::NoServer => Exit::Usage,
        Error::Outbound(_) => Exit::Usage,
        Error::Scratch { .. } => Exit::Failed,
        Error::Worker(_) => Exit::Refused,
    };
    let unknown = matches!(&error, Error::Worker(error) if error.is_unauthorized());
    let failure = Failure::new(exit, error.to_string());
    match unknown {
        true => failure.remedy(
            "beside the server `drumtower token create NAME --role worker > worker.token`, then here --token-file worker.token",
        ),
        false => failure,
    }
}
