//! The server put together: store, driver, logs, doors.
//!
//! Order of a start: the port is bound first, so that a port in use costs nothing; then the store is opened, the driver
//! boots, the two self-made tokens are seen to, and the doors open. Order of an end: no more connections, whoever waits
//! is sent away, the driver commits what it accepted, streams are closed with "dial again", files are withdrawn.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use drumtower_store::{Address, Opened, Read, Store, sqlite};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::{self, Edge, Means};
use crate::auth::first_start::{self, Bootstrap};
use crate::auth::{Authority, Call, DOORS, Guesses, Operation, Secret};
use crate::backup::{self, Backups};
use crate::cluster::{self, Cluster};
use crate::console::session::Sessions;
use crate::driver::{self, Handle, Health, SystemClock};
use crate::grpc;
pub use crate::listen::check_listen;
use crate::listen::{accept, bind};
use crate::logs::{self, Logs};
use crate::metrics::Metrics;
use crate::notify::{self, Notices, Notifier};
use crate::tls::{self, Acceptor};

/// How long connections may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// How long the last commit may take: a disk that is full gets no room by waiting.
const COMMIT_WITHIN: Duration = Duration::from_secs(30);
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of everything that is kept.
    pub data: PathBuf,
    pub listen: SocketAddr,
    /// Whether other machines may be served without encryption.
    pub insecure: bool,
    /// Encrypts every connection.
    pub tls: Option<tls::Options>,
    /// Becomes true when an end under way should wait for nothing more.
    pub hurry: Option<watch::Receiver<bool>>,
    /// How this server is told from others on the same database.
    pub name: String,
    pub driver: driver::Options,
    pub cluster: cluster::Options,
    /// Where the state is kept.
    pub database: Address,
    /// What holds for an embedded database.
    pub store: sqlite::Options,
    pub logs: logs::Options,
    pub backup: backup::Options,
    pub notify: notify::Options,
}

impl Options {
    pub fn new(data: PathBuf, listen: SocketAddr) -> Self {
        let (driver, cluster, store, logs, backup, notify) = Default::default();
        Self {
            data,
            listen,
            insecure: false,
            tls: None,
            hurry: None,
            name: "server".to_owned(),
            driver,
            cluster,
            database: Address::default(),
            store,
            logs,
            backup,
            notify,
        }
    }
}

/// What a server that is up tells whoever started it.
#[derive(Debug)]
pub struct Started {
    pub address: SocketAddr,
    pub url: String,
    /// The secret of the machine's own admin, which also lies in the data directory.
    pub local: Secret,
    pub bootstrap: Bootstrap,
    pub tls: Option<tls::Announced>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0} can be reached from other machines, and what they send would not be encrypted: give a certificate with --tls-cert and --tls-key, have one made with --tls-dev, listen on 127.0.0.1, or accept it with --insecure"
    )]
    NotLoopback(SocketAddr),
    #[error("{0} is in use: stop what listens there, or choose another address with --listen")]
    InUse(SocketAddr),
    #[error(
        "{0}: servers that share a database find each other by it; give each server the URL by which the others reach it, such as https://drumtower-1.example:7070, with --advertise or the key `advertise`"
    )]
    NotAdvertised(String),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("{0}: {1}")]
    Data(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Store(#[from] drumtower_store::Error),
    #[error("the logs cannot be opened: {0}")]
    Logs(#[source] io::Error),
    #[error("a thread could not be started: {0}")]
    Thread(#[source] io::Error),
    #[error("the server could not become ready: {0}")]
    NotReady(String),
    #[error("{0}")]
    Outdated(String),
    #[error(
        "stopped before the last commit had ended: changes that nobody was told of may not be there"
    )]
    Unfinished,
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Notify(#[from] notify::Error),
    #[error(transparent)]
    FirstStart(#[from] first_start::Error),
}

/// Serves until `shutdown` resolves. `started` is called once, when everything is up.
pub async fn run(
    options: Options,
    started: impl FnOnce(Started),
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    check_advertise(&options)?;
    let listener = bind(options.listen, options.insecure || options.tls.is_some()).await?;
    let (store, reader) = open_store(&options).await?;
    run_on(options, listener, store, reader, started, shutdown).await
}

/// Refuses an address for others that means another machine on each of them.
pub fn check_advertise(options: &Options) -> Result<(), Error> {
    let url = options.cluster.advertise.as_deref();
    let fault = match options.database.is_embedded() {
        true => None,
        false => cluster::advertise_fault(options.listen, url),
    };
    fault.map_or(Ok(()), |why| Err(Error::NotAdvertised(why)))
}

/// As [`run`], on a store and a listener that are already open.
pub async fn run_on(
    mut options: Options,
    listener: TcpListener,
    store: Box<dyn Store>,
    reader: Arc<dyn Read>,
    started: impl FnOnce(Started),
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    let address = listener
        .local_addr()
        .map_err(|error| Error::Listen(options.listen, error))?;
    let tls = open_tls(&options, address).await?;
    let url = url_of(address, tls.is_some());
    options.cluster.advertise.get_or_insert_with(|| url.clone());
    let logs = open_logs(&options, store.is_shared()).await?;
    options.driver.home = logs.home();
    let notices = open_notices(&options).await?;
    let handle = start_driver(&options, store, Arc::clone(&reader)).await?;
    let notifier = Notifier::new(
        options.data.clone(),
        &options.notify,
        notices.clone(),
        &handle,
        Arc::clone(&reader),
    );
    let kept = (logs, notices);
    let up = open_doors(&options, &handle, reader, kept, address, tls.as_ref()).await;
    let (edge, announced, stopping) = match up {
        Ok(up) => up,
        Err(error) => {
            handle.stop().await;
            return Err(error);
        }
    };
    let refreshing = tokio::spawn(edge.authority.clone().follow(handle.tokens_changed()));
    let sweeping = tokio::spawn(sweep(edge.logs.clone()));
    let listening = tokio::spawn(edge.cluster.clone().listen(handle.clone()));
    let backups = edge.backups.clone();
    let backing_up = tokio::spawn(backups.clone().follow());
    let notifying = tokio::spawn(notifier.run());
    tracing::info!(
        address = %announced.address,
        data = %options.data.display(),
        store = %options.database,
        tls = tls.is_some(),
        version = env!("CARGO_PKG_VERSION"),
        "started"
    );
    let counting = tokio::spawn(edge.metrics.clone().follow());
    started(announced);
    let renewing = tls.clone().map(|tls| tokio::spawn(tls.follow()));
    let until = async {
        tokio::select! {
            () = shutdown => {}
            () = outdated(handle.outdated()) => {}
        }
    };
    let connections = accept(listener, tls, router(edge), until).await;
    stopping.send_replace(true);
    backing_up.abort();
    backups.stop();
    let ended = end(&options, &handle, connections).await;
    refreshing.abort();
    sweeping.abort();
    listening.abort();
    end_notifying(notifying).await;
    if let Some(renewing) = renewing {
        renewing.abort();
    }
    counting.abort();
    first_start::withdraw(&options.data);
    let outdated = handle.outdated().borrow().clone();
    outdated.map_or(ended, |why| Err(Error::Outdated(why)))
}

/// Resolves when this program may not write to the store any more.
async fn outdated(mut outdated: watch::Receiver<Option<String>>) {
    if outdated.wait_for(Option::is_some).await.is_err() {
        std::future::pending().await
    }
}

/// Waits for the last commit and for connections, says so, and lets nothing take for ever.
async fn end(
    options: &Options,
    handle: &Handle,
    connections: GracefulShutdown,
) -> Result<(), Error> {
    let open = connections.count();
    tracing::info!(connections = open, "stopping: waiting for the last commit");
    let hurry = options.hurry.clone();
    let committed = tokio::select! {
        () = handle.stop() => true,
        () = tokio::time::sleep(COMMIT_WITHIN) => false,
        () = hurried(hurry.clone()) => false,
    };
    if !committed {
        return Err(Error::Unfinished);
    }
    let open = connections.count();
    if open > 0 {
        let within_s = GRACE.as_secs();
        tracing::info!(
            connections = open,
            within_s,
            "stopping: waiting for connections to end"
        );
    }
    let all_ended = tokio::select! {
        () = connections.shutdown() => true,
        () = tokio::time::sleep(GRACE) => false,
        () = hurried(hurry) => false,
    };
    if !all_ended {
        tracing::warn!("some connections did not end by themselves and are cut");
    }
    tracing::info!("stopped");
    Ok(())
}

/// It ends with the driver and keeps its state; what it could not say is said after the next start.
async fn end_notifying(notifying: JoinHandle<()>) {
    let abort = notifying.abort_handle();
    if tokio::time::timeout(GRACE, notifying).await.is_err() {
        abort.abort();
        tracing::warn!(
            "notifications did not end in time; messages may come again after the next start"
        );
    }
}

async fn hurried(hurry: Option<watch::Receiver<bool>>) {
    if let Some(mut hurry) = hurry
        && hurry.wait_for(|hurry| *hurry).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

async fn open_store(options: &Options) -> Result<Opened, Error> {
    let (data, store) = (options.data.clone(), options.store.clone());
    make_private(&data).map_err(|error| Error::Data(data.clone(), error))?;
    let database = options.database.clone();
    Ok(blocking(move || database.open(&data, store)).await??)
}

/// The data directory holds secrets: nobody else looks in.
pub(crate) fn make_private(directory: &std::path::Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

async fn open_tls(options: &Options, listen: SocketAddr) -> Result<Option<Acceptor>, Error> {
    let Some(tls) = options.tls.clone() else {
        return Ok(None);
    };
    let data = options.data.clone();
    let loaded = blocking(move || Acceptor::load(tls, &data, listen)).await?;
    Ok(Some(loaded?))
}

async fn open_notices(options: &Options) -> Result<Notices, Error> {
    let (notify, data) = (options.notify.clone(), options.data.clone());
    Ok(blocking(move || Notices::open(&notify, &data)).await??)
}

async fn open_logs(options: &Options, is_shared: bool) -> Result<Logs, Error> {
    let (directory, logs) = (options.data.join("logs"), options.logs);
    let open = move || match (Logs::open(&directory, logs)?, is_shared) {
        (logs, true) => logs.shared(),
        (logs, false) => Ok(logs),
    };
    blocking(open).await?.map_err(Error::Logs)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::NotReady(error.to_string()))
}

/// Starts the driver and waits until it has the segments.
async fn start_driver(
    options: &Options,
    store: Box<dyn Store>,
    reader: Arc<dyn Read>,
) -> Result<Handle, Error> {
    let mut driver = options.driver.clone();
    driver.name = Some(options.name.clone());
    driver.address = options.cluster.advertise.clone();
    let handle =
        driver::start(driver, store, reader, Arc::new(SystemClock)).map_err(Error::Thread)?;
    let mut health = handle.health();
    let settled = health
        .wait_for(|health| !matches!(health, Health::Starting))
        .await;
    let settled = settled.map_or(Health::Stopped, |health| health.clone());
    match settled {
        Health::Impaired(why) => {
            handle.stop().await;
            Err(Error::NotReady(why))
        }
        Health::Stopped => Err(Error::NotReady("the engine's thread ended".to_owned())),
        Health::Starting | Health::Ready => Ok(handle),
    }
}

/// Sees to the self-made tokens and announces the server.
async fn open_doors(
    options: &Options,
    handle: &Handle,
    reader: Arc<dyn Read>,
    (logs, notices): (Logs, Notices),
    address: SocketAddr,
    tls: Option<&Acceptor>,
) -> Result<(Edge, Started, watch::Sender<bool>), Error> {
    let seen = Arc::clone(&reader);
    let look = move || Ok::<_, drumtower_store::Error>((seen.meta()?, seen.peer_key()?));
    let (meta, peer_key) = blocking(look).await??;
    let cluster = peer_key.map_or_else(Cluster::alone, |key| {
        Cluster::join(&options.cluster, key, handle.health(), Arc::clone(&reader))
    });
    let shared = !options.database.is_embedded();
    let bootstrap = first_start::prepare(&options.data, handle, &reader, shared).await?;
    let local = Secret::draw().map_err(first_start::Error::Random)?;
    let (kept, secret) = (Arc::clone(&reader), local.clone());
    let authority = blocking(move || Authority::load(kept, Some(&secret))).await??;
    let url = url_of(address, tls.is_some());
    first_start::announce(&options.data, &local, &url)?;
    let place = options.data.clone();
    let cursors = match &peer_key {
        Some(secret) => api::cursor::Key::shared(secret),
        None => blocking(move || api::cursor::Key::kept(&place)).await??,
    };
    let (place, key, is_tls) = (options.data.clone(), cursors.of_sessions(), tls.is_some());
    let sessions = blocking(move || Sessions::open(&key, is_tls, &place, driver::wall_now()));
    let sessions = sessions.await?;
    let sessions = sessions.map_err(|error| Error::Data(options.data.clone(), error))?;
    let (stopping, stops) = watch::channel(false);
    let edge = Edge::new(Means {
        handle: handle.clone(),
        cluster,
        reader,
        authority,
        logs,
        notices,
        cursors,
        sessions,
        backups: Backups::new(
            options.data.clone(),
            &options.database,
            meta.cluster,
            options.backup.clone(),
        ),
        metrics: Metrics::new(handle.tap()),
        streams: api::changes::Streams::new().map_err(first_start::Error::Random)?,
        server: Arc::from(options.name.as_str()),
        data: Arc::new(options.data.clone()),
        stopping: stops,
        guesses: Guesses::default(),
        workers_need_certificates: tls.is_some_and(Acceptor::requires_certificates),
    });
    Ok((
        edge,
        Started {
            address,
            url,
            local,
            bootstrap,
            tls: tls.map(Acceptor::announced).transpose()?,
        },
        stopping,
    ))
}

/// Where this machine itself finds the server.
fn url_of(address: SocketAddr, is_tls: bool) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{}", reachable(address))
}

/// The address by which this machine itself reaches the server.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
            SocketAddr::from(([127, 0, 0, 1], v4.port()))
        }
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], v6.port()))
        }
        other => other,
    }
}

/// Everything on one port: REST routes, and the RPCs of the same table.
fn router(edge: Edge) -> Router {
    let cluster = edge.cluster.clone();
    let workers = grpc::service(edge.clone());
    let mut streams = Router::new();
    let mut calls = Router::new();
    for door in DOORS {
        match door.call {
            Call::Rpc(path) if door.operation == Operation::WorkerSession => {
                streams = streams.route_service(path, workers.clone());
            }
            Call::Rpc(path) => calls = calls.route_service(path, workers.clone()),
            Call::Rest(..) => {}
        }
    }
    let to_whom_it_means = from_fn_with_state(cluster.clone(), cluster::forward_rpc);
    let first_of_all = from_fn_with_state(edge.clone(), grpc::guard);
    let facts = cluster::facts(cluster.clone(), edge.handle.clone(), edge.stopping.clone());
    api::router(edge)
        .merge(streams.layer(to_whom_it_means).layer(first_of_all))
        .merge(calls)
        .merge(facts)
        .layer(from_fn_with_state(cluster, cluster::introduce))
}

async fn sweep(logs: Logs) {
    let mut ticks = tokio::time::interval(SWEEP_EVERY);
    loop {
        ticks.tick().await;
        logs.sweep().await;
    }
}
