//! `drumtower dev`: server and worker in one process, to try things out.

use std::path::Path;

use clap::Args;
use drumtower_sdk::tls::Trust;
use drumtower_server::serve::{self, Started};
use drumtower_server::tls::SERVER_CERTIFICATE;
use drumtower_worker::agent::{self, leave_on_signals};
use tokio::sync::oneshot;
use tokio::task::JoinError;

use crate::apply::put_all;
use crate::client::Client;
use crate::config::{self, Settings};
use crate::connect::Target;
use crate::failure::{Failure, Result};
use crate::manifest::{self, Document, Source};
use crate::output::line;
use crate::serve::{Place, announcement, failure, hurry, run_to_end, runtime};
use crate::work::{self, no_signals};

const DEMO: &str = include_str!("demo.yaml");

/// Run a server and one worker in one process
///
/// The way to try things out: everything is kept as by `drumtower serve`, and tasks run on
/// this machine, as you.
///
///     drumtower dev --demo
///     drumtower dev --data /tmp/try --listen 127.0.0.1:7071
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Dev {
    /// Apply a few small jobs to look at
    #[arg(long)]
    demo: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    outbound: config::outbound::Flags,
}

impl Dev {
    pub fn run(self) -> Result<()> {
        let (settings, options) = self.place.settle_with(|given| self.outbound.given(given))?;
        run_to_end(runtime()?, self.live(&settings, options))
    }

    async fn live(self, settings: &Settings, mut options: serve::Options) -> Result<()> {
        let leave = leave_on_signals().map_err(no_signals)?;
        options.hurry = Some(hurry(leave.clone()));
        let data = options.data.clone();
        let (tell, told) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let announce = move |started| {
            let _ = tell.send(started);
        };
        let shutdown = async {
            let _ = stopped.await;
        };
        let mut server = tokio::spawn(serve::run(options, announce, shutdown));
        // A server that fails drops the sender without a word and says why by its end.
        let Ok(started) = told.await else {
            return ended(server.await);
        };
        let standard = agent::Options {
            servers: vec![started.url.clone()],
            token: Some(started.local.text().to_owned()),
            trust: trust_in(&data),
            scratch_root: data.join("scratch"),
            http: Some(config::outbound::policy(settings)?),
            ..agent::Options::default()
        };
        let worker = config::worker::offer(settings, standard);
        work::warn_of_shortage(&worker);
        if self.demo {
            apply_demo(&started, &data).await?;
        }
        line(&format!(
            "{}\n\n{}",
            announcement(&started, &data),
            next_steps(self.demo)
        ))?;
        // A signal makes the worker leave; when it has, the server follows.
        tokio::select! {
            end = agent::run(worker, leave) => {
                let _ = stop.send(());
                end.map_err(work::failure).and(ended(server.await))
            }
            end = &mut server => ended(end),
        }
    }
}

fn ended(end: std::result::Result<std::result::Result<(), serve::Error>, JoinError>) -> Result<()> {
    match end {
        Ok(end) => end.map_err(failure),
        Err(error) => Err(Failure::failed(format!("the server broke down: {error}"))),
    }
}

/// The demo goes through the front door, like any other job.
async fn apply_demo(started: &Started, data: &Path) -> Result<()> {
    let target = Target {
        url: started.url.clone(),
        token: Some(started.local.text().to_owned()),
        trust: trust_in(data),
    };
    let apply = move || -> Result<()> {
        let client = Client::to(target);
        put_all(&client, demo_jobs())
    };
    let applied = tokio::task::spawn_blocking(apply).await;
    applied.unwrap_or_else(|error| {
        Err(Failure::failed(format!(
            "the demo could not be applied: {error}"
        )))
    })
}

/// The server of this process is known by its certificate, and what is sent to it leaves the machine at no address.
fn trust_in(data: &Path) -> Trust {
    Trust {
        only: Some(data.join(SERVER_CERTIFICATE)),
        in_the_open: true,
        ..Trust::default()
    }
}

fn demo_jobs() -> Vec<Document> {
    manifest::parse(&Source {
        name: "demo.yaml".to_owned(),
        text: DEMO.to_owned(),
    })
    .0
}

fn next_steps(demo: bool) -> &'static str {
    if demo {
        "\
Try, in another terminal:
  drumtower job list
  drumtower run list
  drumtower job trigger greet --params '{\"name\": \"Ada\"}' --wait
  drumtower run list --job fails --state failed
  drumtower run logs -f RUN
Ctrl-C stops it; a second Ctrl-C does not wait for what runs."
    } else {
        "\
Try, in another terminal:
  drumtower job create hello --every 10s -- echo hello
  drumtower run list
  drumtower job create --help
Ctrl-C stops it; a second Ctrl-C does not wait for what runs."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_what_it_says() {
        let (jobs, faults) = manifest::parse(&Source {
            name: "demo.yaml".to_owned(),
            text: DEMO.to_owned(),
        });
        assert_eq!(faults, []);
        let titles: Vec<String> = jobs.iter().map(Document::title).collect();
        let expected = ["hello", "minutely", "fails", "greet"];
        assert_eq!(titles, expected.map(|name| format!("job default/{name}")));
    }
}
