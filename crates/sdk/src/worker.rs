//! A worker: its settings, and its life.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drumtower_core::model::{Limits, ProcessId, WorkerName};
use drumtower_proto::worker::v1 as wire;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tonic::metadata::MetadataValue;

use crate::executor::Executor;
use crate::handler::{Context, HandlerError, Handlers};
use crate::runtime::{Parts, Server};
use crate::session::{Config, Session};
use crate::shutdown::{Once, Watched};
use crate::tls::{Trust, in_the_open};
use crate::{Error, Leave, host};

const DEFAULT_CAPACITY: u32 = 16;
const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// A worker that is ready to run.
pub struct Worker {
    parts: Parts,
}

/// The settings of a worker.
pub struct Builder {
    servers: Vec<String>,
    token: Option<String>,
    trust: Trust,
    name: Option<String>,
    capacity: u32,
    labels: BTreeMap<String, String>,
    handlers: Handlers,
    exec: Option<Arc<dyn Executor>>,
    http: Option<Arc<dyn Executor>>,
    enforcement: wire::Enforcement,
    load: Option<watch::Receiver<wire::Load>>,
    drain: Duration,
}

impl Worker {
    /// Begins the settings of a worker of the server at `url`, `https://host:port` or
    /// `http://host:port`.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder {
            servers: vec![url.into()],
            token: None,
            trust: Trust::default(),
            name: None,
            capacity: DEFAULT_CAPACITY,
            labels: BTreeMap::new(),
            handlers: Handlers::default(),
            exec: None,
            http: None,
            enforcement: wire::Enforcement::default(),
            load: None,
            drain: DEFAULT_DRAIN,
        }
    }

    /// Takes and carries out runs until `shutdown` resolves, then lets what runs end and leaves. A server that cannot be
    /// reached is dialled again and again; an error means that dialling is of no use.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), Error> {
        self.parts.run(Once::new(shutdown)).await
    }

    /// Like [`Worker::run`], for a caller that may become impatient.
    pub async fn run_until(self, leave: watch::Receiver<Leave>) -> Result<(), Error> {
        self.parts
            .run(Watched {
                leave,
                heard: Leave::No,
            })
            .await
    }
}

impl Builder {
    /// Another server of the same cluster, dialled when the one before cannot be reached.
    pub fn server(mut self, url: impl Into<String>) -> Self {
        self.servers.push(url.into());
        self
    }

    /// A token with the role worker.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Which servers are believed; those that the system's authorities vouch for by default. Only for https; over http a
    /// token goes to this machine alone unless [`Trust::in_the_open`] is set.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// How the worker is called in listings; the name of the machine by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How much weight runs at once; a run weighs 1 unless its job says otherwise.
    pub fn capacity(mut self, weight: u32) -> Self {
        self.capacity = weight;
        self
    }

    /// A label, shown in listings.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Registers a handler. Parameters are read from JSON (none is `null`), the answer is written as JSON.
    pub fn handler<P, R, F, A>(mut self, name: impl Into<String>, handler: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + 'static,
        F: Fn(Context, P) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        self.handlers.add(name.into(), handler);
        self
    }

    /// Takes `exec` and `script` tasks too, and runs them by `executor`, which holds them to their limits like this.
    pub fn exec(mut self, executor: Arc<dyn Executor>, enforcement: wire::Enforcement) -> Self {
        self.exec = Some(executor);
        self.enforcement = enforcement;
        self
    }

    /// Takes `http` tasks too, and makes their requests by `executor`.
    pub fn http(mut self, executor: Arc<dyn Executor>) -> Self {
        self.http = Some(executor);
        self
    }

    /// What heartbeats tell of the machine; the latest value counts.
    pub fn load(mut self, load: watch::Receiver<wire::Load>) -> Self {
        self.load = Some(load);
        self
    }

    /// How long runs may take to end by themselves once the worker is told to stop.
    pub fn drain_timeout(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Checks the settings.
    pub fn build(self) -> Result<Worker, Error> {
        self.check()?;
        let servers = self
            .servers
            .iter()
            .map(|url| Server::new(url, &self.trust))
            .collect::<Result<_, _>>()?;
        let seed = getrandom::u64().map_err(|error| {
            Error::configuration(format!("the system gives no random numbers: {error}"))
        })?;
        let name = match self.name {
            Some(name) => {
                WorkerName::new(&name).map_err(|error| Error::configuration(error.to_string()))?
            }
            None => host::worker_name(),
        };
        let token = match self.token {
            None => None,
            Some(token) => Some(MetadataValue::try_from(format!("Bearer {token}")).map_err(
                |_| {
                    Error::configuration(
                        "the token holds a character that no token has: copy it again",
                    )
                },
            )?),
        };
        let mut config = Config::new(name.as_str(), ProcessId(seed), self.capacity);
        config.host = host::name();
        config.labels = self.labels;
        config.exec = self.exec.is_some();
        config.http = self.http.is_some();
        config.enforcement = self.enforcement;
        config.handlers = self.handlers.names().cloned().collect();
        Ok(Worker {
            parts: Parts {
                session: Session::new(config),
                servers,
                token,
                trust: self.trust,
                handlers: Arc::new(self.handlers),
                exec: self.exec,
                http: self.http,
                load: self.load,
                drain: self.drain,
                seed,
            },
        })
    }

    fn check(&self) -> Result<(), Error> {
        if self.capacity == 0 || self.capacity > Config::CAPACITY_MAX {
            let (given, most) = (self.capacity, Config::CAPACITY_MAX);
            return Err(Error::configuration(format!(
                "capacity {given} is not between 1 and {most}: choose another"
            )));
        }
        let open = |url: &&String| !self.trust.in_the_open && in_the_open(url);
        if self.token.is_some()
            && let Some(url) = self.servers.iter().find(open)
        {
            return Err(Error::configuration(format!(
                "the token would go to {url} unencrypted: use https://, or accept it with Trust::in_the_open"
            )));
        }
        if self.exec.is_none() && self.http.is_none() && self.handlers.names().next().is_none() {
            return Err(Error::configuration(
                "the worker has nothing to run: register a handler",
            ));
        }
        if let Some(name) = self
            .handlers
            .names()
            .find(|name| name.is_empty() || name.len() > Limits::NAME_CHARS)
        {
            return Err(Error::configuration(format!(
                "handler name `{name}` has not 1 to 128 characters: rename it"
            )));
        }
        if self.labels.len() > Limits::LABELS {
            let (given, most) = (self.labels.len(), Limits::LABELS);
            return Err(Error::configuration(format!(
                "{given} labels are more than {most}: drop some"
            )));
        }
        Ok(())
    }
}
