//! `drumtower serve`: the server alone.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use drumtower_sdk::Leave;
use drumtower_server::auth::first_start::{BOOTSTRAP_FILE, Bootstrap};
use drumtower_server::serve::{self, Error, Options, Started};
use drumtower_server::tls::Announced;
use drumtower_worker::agent::leave_on_signals;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::config::log::Log;
use crate::config::{self, Given, Settings};
use crate::failure::{Exit, Failure, Result};
use crate::logging;
use crate::output::line;
use crate::work::no_signals;

/// Run a server
///
/// Keeps everything in one directory. The first start prints a bootstrap token and leaves it
/// in DIR/bootstrap.token; it dies when the first admin token is made with `drumtower token
/// create NAME --role admin`. Workers join with `drumtower work`. Ctrl-C or SIGTERM stops it
/// in good order and says what it waits for; a second one waits no longer, a third one kills.
///
///     drumtower serve
///     drumtower serve --data /var/lib/drumtower --listen 127.0.0.1:7070
///     drumtower serve --listen 0.0.0.0:7070 --tls-dev
///     drumtower serve --config /etc/drumtower/drumtower.toml
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Serve {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    outbound: config::outbound::Flags,
}

#[derive(Args, Debug)]
pub struct Place {
    #[command(flatten)]
    source: config::Source,
    #[command(flatten)]
    server: config::server::Flags,
    #[command(flatten)]
    tls: config::tls::Flags,
    #[command(flatten)]
    backup: config::backup::Flags,
    #[command(flatten)]
    log: config::log::Flags,
}

impl Place {
    /// Puts the configuration together, with flags of more than a place, and begins to log as it says.
    pub fn settle_with(&self, add: impl FnOnce(Given) -> Given) -> Result<(Settings, Options)> {
        let given = self.tls.given(self.server.given());
        let given = add(self.log.given(self.backup.given(given)));
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
        let (_, mut options) = self.place.settle_with(|given| self.outbound.given(given))?;
        run_to_end(runtime()?, async {
            let mut leave = leave_on_signals().map_err(no_signals)?;
            options.hurry = Some(hurry(leave.clone()));
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

/// Becomes true with the second signal.
pub fn hurry(mut leave: watch::Receiver<Leave>) -> watch::Receiver<bool> {
    let (hurry, hurried) = watch::channel(false);
    tokio::spawn(async move {
        if leave.wait_for(|wish| *wish == Leave::AtOnce).await.is_ok() {
            hurry.send_replace(true);
        }
        // A sender that is gone would look like a wish withdrawn.
        hurry.closed().await;
    });
    hurried
}

/// The threads that server and worker run on.
pub fn runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.map_err(|error| Failure::failed(format!("threads cannot be started: {error}")))
}

/// How long work that cannot be broken off, such as a sync of a slow disk, may hold up the end of the process.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Runs `work`, and waits for what it left behind on other threads only as long as that is of use: signals are not heard
/// any more by then.
pub fn run_to_end<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(END_WITHIN);
    done
}

/// What whoever starts a server wants to know.
pub fn announcement(started: &Started, data: &std::path::Path) -> String {
    let mut text = format!("drumtower serves {} from {}", started.url, data.display());
    match &started.bootstrap {
        Bootstrap::Made(secret) => {
            // What is not a terminal is a log, which more people read than the file.
            let where_or_what = if std::io::stdout().is_terminal() {
                secret.text().to_owned()
            } else {
                data.join(BOOTSTRAP_FILE).display().to_string()
            };
            text.push_str(&format!(
                "\nbootstrap token, until the first admin token is made: {where_or_what}"
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
    if let Some(tls) = &started.tls {
        text.push_str(&how_to_trust(tls, started.address.port()));
    }
    text
}

/// How a worker or a command line elsewhere comes to believe the certificate.
fn how_to_trust(tls: &Announced, port: u16) -> String {
    let mut text = String::new();
    if let Some((file, fingerprint)) = &tls.authority {
        let file = file.display();
        text.push_str(&format!(
            "\nits certificate is signed by {file}, SHA-256 {fingerprint}\n\
             elsewhere: copy that file, then give --url https://HOST:{port} --ca ca.pem"
        ));
    }
    if tls.requires_certificates {
        text.push_str("\nworkers need a certificate of client_ca: --cert FILE --key FILE");
    }
    text
}

/// Why a server could not start, or could not go on.
pub fn failure(error: Error) -> Failure {
    let exit = match error {
        Error::NotLoopback(_) | Error::NotAdvertised(_) | Error::Tls(_) => Exit::Usage,
        Error::Store(drumtower_store::Error::Locked(_)) | Error::InUse(_) | Error::NotReady(_) => {
            Exit::Unavailable
        }
        _ => Exit::Failed,
    };
    match error {
        // The store's own words are for a server that runs.
        Error::Store(drumtower_store::Error::Full(why)) => Failure::failed(format!(
            "there is no room on the disk of the data directory: {why}"
        ))
        .remedy("free some space, then start again; or choose another directory with --data"),
        Error::Store(damaged @ drumtower_store::Error::Corrupt(_)) => {
            Failure::failed(damaged.to_string())
                .remedy("`drumtower restore BACKUP --data DIR` puts a backup in its place")
        }
        Error::NotReady(why) => match of_the_store(&why) {
            Some(fault) => failure(Error::Store(fault)),
            None => Failure::new(exit, Error::NotReady(why).to_string()),
        },
        other => Failure::new(exit, other.to_string()),
    }
}

/// The fault of the store that a server could not become ready for: its words have come a long way.
fn of_the_store(why: &str) -> Option<drumtower_store::Error> {
    let faults: [fn(String) -> drumtower_store::Error; 2] = [
        drumtower_store::Error::Full,
        drumtower_store::Error::Corrupt,
    ];
    faults.into_iter().find_map(|fault| {
        let words = fault("\0".to_owned()).to_string();
        let (before, after) = words.split_once('\0')?;
        let (_, inner) = why.split_once(before)?;
        Some(fault(inner.strip_suffix(after)?.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_end_does_not_keep_the_process() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            run_to_end(runtime().unwrap(), async move {
                tokio::task::spawn_blocking(move || released.recv());
            });
            tell.send(()).unwrap();
        });
        let ended = told.recv_timeout(12 * END_WITHIN);
        drop(release);
        assert!(ended.is_ok(), "it waits for ever");
    }

    #[test]
    fn a_store_that_cannot_be_used_is_told_alike_however_late_it_is_found_out() {
        for fault in [
            drumtower_store::Error::Full("no room".to_owned()),
            drumtower_store::Error::Corrupt("page 4: torn".to_owned()),
        ] {
            let met = format!("the server is not ready: {fault}");
            assert_eq!(
                failure(Error::NotReady(met)).to_string(),
                failure(Error::Store(fault)).to_string()
            );
        }
        let other = failure(Error::NotReady("the engine's thread ended".to_owned()));
        assert!(other.to_string().contains("could not become ready"));
    }
}
