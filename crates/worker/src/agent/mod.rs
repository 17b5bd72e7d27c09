//! The agent: the SDK's runtime with the executors for commands ([`command`]) and for HTTP requests ([`http`]) plugged in.
//!
//! [`run`] dials the servers, takes runs as far as the capacity goes and leaves when told. What the leases are and when
//! something stops is the [session](drumtower_sdk::session)'s; that nothing outlives its lease even when the agent is
//! frozen or dead is the [supervisor](crate::supervisor)'s. Here the two are joined ([`command`]), heartbeats get the load
//! of the machine, and signals become wishes to leave.

mod answer;
mod command;
mod environment;
mod http;
mod judge;
mod notes;
mod scratch;
mod signals;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drumtower_proto::worker::v1 as wire;
use drumtower_sdk::tls::Trust;
use drumtower_sdk::{Builder, Worker};
use tokio::sync::watch;

use crate::exec::Groups;
use crate::load::Sampler;
use crate::supervisor::cgroup;
use command::Commands;
use http::Requests;
use scratch::Scratch;

pub use drumtower_outbound as outbound;
pub use drumtower_sdk::Leave;
pub use signals::leave_on_signals;

/// How limits are enforced, as workers tell it.
const CGROUP2: &str = "cgroup2";
const RLIMITS: &str = "rlimits";
const LOAD_INTERVAL: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Options {
    /// `https://host:port` or `http://host:port` each, of one cluster; tried in turn.
    pub servers: Vec<String>,
    pub token: Option<String>,
    /// Which servers are believed over https.
    pub trust: Trust,
    /// How it is called in listings; the name of the machine by default.
    pub name: Option<String>,
    /// The weight it runs at once.
    pub capacity: u32,
    pub labels: BTreeMap<String, String>,
    /// Holds a directory per command while it runs. Made if it is not there; else it must be ours alone to write to.
    pub scratch_root: PathBuf,
    /// Whether it takes `exec` and `script` tasks.
    pub exec: bool,
    /// Whether it takes `http` tasks, and what they may reach.
    pub http: Option<outbound::Policy>,
    /// Whether commands get a control group of their own where the system allows one.
    pub cgroup: bool,
    /// How long runs may take to end by themselves once the agent is told to leave.
    pub drain_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            servers: vec!["http://127.0.0.1:7070".to_owned()],
            token: None,
            trust: Trust::default(),
            name: None,
            capacity: u32::try_from(cores).unwrap_or(1).saturating_mul(8),
            labels: BTreeMap::new(),
            scratch_root: scratch::standard_root(),
            exec: true,
            http: Some(outbound::Policy::default()),
            cgroup: true,
            drain_timeout: Duration::from_secs(30),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no server is given: name one as https://host:port")]
    NoServer,
    #[error(
        "cannot use scratch directory {path:?}: {why}; choose another with --scratch or worker.scratch"
    )]
    Scratch { path: PathBuf, why: String },
    #[error("outgoing requests: {0}")]
    Outbound(#[from] outbound::Error),
    #[error(transparent)]
    Worker(#[from] drumtower_sdk::Error),
}

/// Runs commands for the servers until told to leave. An error means that going on is of no use.
pub async fn run(options: Options, leave: watch::Receiver<Leave>) -> Result<(), Error> {
    run_with(options, leave, |builder| builder).await
}

/// Like [`run`], with more added to the worker: handlers in this process, for example.
pub async fn run_with(
    options: Options,
    leave: watch::Receiver<Leave>,
    add: impl FnOnce(Builder) -> Builder,
) -> Result<(), Error> {
    let (load, sampled) = watch::channel(wire::Load::default());
    // Outlives the worker, and so all that runs.
    let scratch = options.exec.then(|| scratch_of(&options)).transpose()?;
    let builder = builder(&options, scratch.as_ref())?;
    let worker = add(builder.load(sampled)).build()?;
    tokio::select! {
        ended = worker.run_until(leave) => Ok(ended?),
        () = sample_load(Sampler::new(&options.scratch_root), load) => Ok(()),
    }
}

fn scratch_of(options: &Options) -> Result<Scratch, Error> {
    Scratch::prepare(&options.scratch_root).map_err(|why| Error::Scratch {
        path: options.scratch_root.clone(),
        why,
    })
}

/// Takes commands if there is a place for them.
fn builder(options: &Options, scratch: Option<&Scratch>) -> Result<Builder, Error> {
    let (first, others) = options.servers.split_first().ok_or(Error::NoServer)?;
    let mut builder = Worker::builder(first)
        .capacity(options.capacity)
        .drain_timeout(options.drain_timeout)
        .trust(options.trust.clone());
    for server in others {
        builder = builder.server(server);
    }
    if let Some(token) = &options.token {
        builder = builder.token(token);
    }
    if let Some(name) = &options.name {
        builder = builder.name(name);
    }
    for (key, value) in &options.labels {
        builder = builder.label(key, value);
    }
    if let Some(scratch) = scratch {
        let (groups, enforcement) = enforcement(options.cgroup);
        let commands = Commands {
            scratch_root: scratch.directory().to_owned(),
            cgroup: options.cgroup,
            groups,
        };
        builder = builder.exec(Arc::new(commands), enforcement);
    }
    if let Some(policy) = &options.http {
        let client = outbound::Client::new(policy.clone())?;
        builder = builder.http(Arc::new(Requests { client }));
    }
    Ok(builder)
}

/// How commands are held to their limits here, also in words.
fn enforcement(allowed: bool) -> (Option<Groups>, wire::Enforcement) {
    if !allowed {
        let switched_off = wire::Enforcement {
            by: RLIMITS.to_owned(),
            why: "control groups are switched off".to_owned(),
        };
        return (None, switched_off);
    }
    let (groups, enforcement) = cgroup::prepare();
    let by = if enforcement.by_groups {
        CGROUP2
    } else {
        RLIMITS
    };
    let told = wire::Enforcement {
        by: by.to_owned(),
        why: enforcement.why,
    };
    (groups, told)
}

/// Never ends: whoever waits for the worker drops it.
async fn sample_load(mut sampler: Sampler, load: watch::Sender<wire::Load>) {
    loop {
        let sample = sampler.sample();
        load.send_replace(wire::Load {
            cpu_permille: sample.cpu_permille,
            memory_used_bytes: sample.memory_used_bytes,
            memory_total_bytes: sample.memory_total_bytes,
            disk_used_bytes: sample.disk_used_bytes,
            disk_total_bytes: sample.disk_total_bytes,
            network_received_bytes_per_s: sample.network_rx_bytes_per_s,
            network_sent_bytes_per_s: sample.network_tx_bytes_per_s,
            running_weight: 0,
        });
        tokio::time::sleep(LOAD_INTERVAL).await;
    }
}
