//! The REST API: a thin edge between HTTP and the driver.
//!
//! A request is admitted by the policy table, its parts are parsed strictly, a command goes to the driver or a read to the
//! store, and the answer is shaped as JSON. Nothing is decided here. The router is built from the policy table: each row
//! names its handler in [`handler_of`], and the compiler misses no row.

mod audit;
mod backfill_view;
mod backfills;
mod backups;
mod batch;
mod body;
mod bulk;
mod calendar_view;
mod calendars;
pub mod changes;
mod cluster;
pub mod cursor;
mod explain;
mod explain_run;
mod explain_view;
mod gate;
mod health;
mod job_view;
mod jobs;
mod letters;
mod locks;
mod log_lines;
mod log_text;
mod logs;
mod maintenance;
mod metrics;
mod next;
mod notifications;
pub mod openapi;
mod overview;
mod page;
mod parts;
mod patch;
mod precondition;
mod problem;
mod problem_pages;
mod query;
mod queue_view;
mod queues;
mod rerun;
mod rollups;
mod run_view;
mod runs;
mod session;
mod settings;
mod spread;
mod sum;
mod tell;
pub(crate) mod time;
mod tokens;
mod trigger;
mod upcoming;
mod validate;
mod validator;
mod versions;
mod workers;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use drumtower_core::model::{QueueRef, SegmentId};
use drumtower_store::Read;
use tokio::sync::watch;

use crate::auth::{Authority, Call, DOORS, Denied, Door, Guesses, Operation, TooMany, Verb};
use crate::backup::Backups;
use crate::cluster::{Cluster, Next};
use crate::console::{self, session::Sessions};
use crate::driver::Handle;
use crate::listen::Peer;
use crate::logs::Logs;
use crate::notify::Notices;

pub use problem::{Kind, Problem};

/// What every handler works with. Each request has several copies of it, which share one.
#[derive(Clone)]
pub struct Edge(Arc<Means>);

impl Edge {
    pub fn new(means: Means) -> Self {
        Self(Arc::new(means))
    }
}

impl Deref for Edge {
    type Target = Means;

    fn deref(&self) -> &Means {
        &self.0
    }
}

pub struct Means {
    pub handle: Handle,
    /// The other servers of a shared store.
    pub cluster: Cluster,
    pub reader: Arc<dyn Read>,
    pub authority: Authority,
    pub logs: Logs,
    pub notices: Notices,
    /// What seals the cursors of listings.
    pub cursors: cursor::Key,
    pub backups: Backups,
    pub streams: changes::Streams,
    pub metrics: crate::metrics::Metrics,
    /// How this server is called.
    pub server: Arc<str>,
    /// The data directory, for the file of the bootstrap token.
    pub data: Arc<PathBuf>,
    /// Becomes true when the server ends: whoever waits for something gives up then.
    pub stopping: watch::Receiver<bool>,
    /// What was seen of wrong tokens.
    pub guesses: Guesses,
    /// Who is signed in to the console.
    pub sessions: Sessions,
    /// Whether a worker without a certificate of its own is sent away.
    pub workers_need_certificates: bool,
}

impl Edge {
    /// Runs a read of the store away from the runtime's threads.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Read) -> Result<T, drumtower_store::Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let reader = Arc::clone(&self.reader);
        match tokio::task::spawn_blocking(move || read(&*reader)).await {
            Ok(result) => result.map_err(Problem::from),
            Err(error) => Err(internal(&error)),
        }
    }

    /// Refuses what only the owner of a segment can tell, where that is another server.
    fn at_owner(&self, segment: SegmentId) -> Result<(), Problem> {
        match self.cluster.owner(segment) {
            Next::Here => Ok(()),
            Next::At(_) | Next::Nobody => Err(Problem::elsewhere([segment].into_iter().collect())),
        }
    }

    /// Has the tokens that any server made before the call; false where there are no other servers, or the store cannot be read.
    pub async fn look_for_new_tokens(&self) -> bool {
        if self.cluster.view().is_none() {
            return false;
        }
        let authority = self.authority.clone();
        let read = tokio::task::spawn_blocking(move || authority.refresh_if_changed()).await;
        matches!(read, Ok(Ok(())))
    }

    /// Makes a caller with a wrong token wait for its answer.
    pub async fn slow_down(&self, denied: &Denied, peer: Option<Peer>) -> Result<(), TooMany> {
        if *denied != Denied::UnknownToken {
            return Ok(());
        }
        let from = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.address.ip());
        tokio::select! {
            waited = self.guesses.wrong(from) => waited,
            () = self.stopped() => Ok(()),
        }
    }

    /// Returns when the server ends.
    async fn stopped(&self) {
        let mut stopping = self.stopping.clone();
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}

/// How many runs of each queue wait in the store only; none when it cannot be read.
pub async fn parked_in_queues(edge: &Edge) -> BTreeMap<QueueRef, u64> {
    let parked = edge.read(queue_view::parked).await.unwrap_or_default();
    let counts = parked
        .into_iter()
        .map(|(queue, parked)| (queue, parked.runs));
    counts.collect()
}

fn internal(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "a request could not be answered");
    Problem::new(
        Kind::Internal,
        "the server could not answer; its own log says why",
    )
}

/// Every REST route of the policy table.
pub fn router(edge: Edge) -> Router {
    let mut router = Router::new();
    for Door {
        operation, call, ..
    } in DOORS
    {
        if let Call::Rest(verb, path) = call
            && let Some(handler) = handler_of(*operation, filter(*verb))
        {
            router = router.route(path, gate::guard(*operation, handler, &edge));
        }
    }
    router
        .fallback(elsewhere)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(edge.clone(), metrics::count_refusals))
        .layer(from_fn(body::arrive))
        .with_state(edge)
}

fn filter(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Put => MethodFilter::PUT,
        Verb::Patch => MethodFilter::PATCH,
        Verb::Post => MethodFilter::POST,
        Verb::Delete => MethodFilter::DELETE,
    }
}

/// The handler of an operation; `None` for what is not REST.
fn handler_of(operation: Operation, verb: MethodFilter) -> Option<MethodRouter<Edge>> {
    Some(match operation {
        Operation::PutJob => on(verb, jobs::put),
        Operation::PatchJob => on(verb, patch::job),
        Operation::ShowJob => on(verb, jobs::show),
        Operation::DeleteJob => on(verb, jobs::delete),
        Operation::PauseJob => on(verb, jobs::pause),
        Operation::ResumeJob => on(verb, jobs::resume),
        Operation::ResetBreaker => on(verb, jobs::reset_breaker),
        Operation::PauseJobs => on(verb, bulk::pause),
        Operation::ResumeJobs => on(verb, bulk::resume),
        Operation::DeleteJobs => on(verb, bulk::delete),
        Operation::ListJobVersions => on(verb, versions::list),
        Operation::ShowJobVersion => on(verb, versions::show),
        Operation::DiffJob => on(verb, versions::difference),
        Operation::RestoreJob => on(verb, versions::restore),
        Operation::ListNamespaceJobs => on(verb, jobs::list_namespace),
        Operation::ListJobs => on(verb, jobs::list),
        Operation::ValidateJob => on(verb, validate::job),
        Operation::NextTimes => on(verb, next::of_job),
        Operation::PreviewSchedule => on(verb, next::preview),
        Operation::ExplainJob => on(verb, explain::explain),
        Operation::PutCalendar => on(verb, calendars::put),
        Operation::ShowCalendar => on(verb, calendars::show),
        Operation::DeleteCalendar => on(verb, calendars::delete),
        Operation::ListCalendarVersions => on(verb, calendars::versions),
        Operation::ListNamespaceCalendars => on(verb, calendars::list_namespace),
        Operation::ListCalendars => on(verb, calendars::list),
        Operation::PutQueue => on(verb, queues::put),
        Operation::ShowQueue => on(verb, queues::show),
        Operation::DeleteQueue => on(verb, queues::delete),
        Operation::PauseQueue => on(verb, queues::pause),
        Operation::ResumeQueue => on(verb, queues::resume),
        Operation::ListNamespaceQueues => on(verb, queues::list_namespace),
        Operation::ListQueues => on(verb, queues::list),
        Operation::TriggerRun => on(verb, trigger::trigger),
        Operation::TriggerBatch => on(verb, batch::trigger),
        Operation::ListRuns => on(verb, runs::list),
        Operation::ShowRun => on(verb, runs::show),
        Operation::WaitRun => on(verb, runs::wait),
        Operation::ExplainRun => on(verb, explain_run::show),
        Operation::CancelRun => on(verb, runs::cancel),
        Operation::RerunRun => on(verb, rerun::rerun),
        Operation::ListLetters => on(verb, letters::list),
        Operation::ListAllLetters => on(verb, letters::list_all),
        Operation::ShowLetter => on(verb, letters::show),
        Operation::RequeueLetters => on(verb, letters::requeue),
        Operation::DiscardLetters => on(verb, letters::discard),
        Operation::CreateBackfill => on(verb, backfills::create),
        Operation::PreviewBackfill => on(verb, backfills::preview),
        Operation::ListJobBackfills => on(verb, backfills::list_of_job),
        Operation::ListBackfills => on(verb, backfills::list),
        Operation::ShowBackfill => on(verb, backfills::show),
        Operation::PauseBackfill => on(verb, backfills::pause),
        Operation::ResumeBackfill => on(verb, backfills::resume),
        Operation::CancelBackfill => on(verb, backfills::cancel),
        Operation::ReadLogs => on(verb, logs::read),
        Operation::ShowOverview => on(verb, overview::show),
        Operation::ShowMetrics => on(verb, metrics::show),
        Operation::FollowChanges => on(verb, changes::follow),
        Operation::ShowRollups => on(verb, rollups::show),
        Operation::ListUpcoming => on(verb, upcoming::list),
        Operation::ShowCluster => on(verb, cluster::show),
        Operation::ListWorkers => on(verb, workers::list),
        Operation::ShowWorker => on(verb, workers::show),
        Operation::DrainWorker => on(verb, maintenance::drain),
        Operation::ResumeWorker => on(verb, maintenance::resume),
        Operation::ResetWorker => on(verb, maintenance::reset),
        Operation::CreateToken => on(verb, tokens::create),
        Operation::ListTokens => on(verb, tokens::list),
        Operation::RevokeToken => on(verb, tokens::revoke),
        Operation::ListAudit => on(verb, audit::list),
        Operation::PutSetting => on(verb, settings::put),
        Operation::ShowSetting => on(verb, settings::show),
        Operation::DeleteSetting => on(verb, settings::delete),
        Operation::ListSettings => on(verb, settings::list),
        Operation::PutInstallationSetting => on(verb, settings::put),
        Operation::ShowInstallationSetting => on(verb, settings::show),
        Operation::DeleteInstallationSetting => on(verb, settings::delete),
        Operation::ListInstallationSettings => on(verb, settings::list_of_installation),
        Operation::AcquireLock => on(verb, locks::acquire),
        Operation::RenewLock => on(verb, locks::renew),
        Operation::ReleaseLock => on(verb, locks::release),
        Operation::BreakLock => on(verb, locks::delete),
        Operation::ShowLock => on(verb, locks::show),
        Operation::ListLocks => on(verb, locks::list),
        Operation::ListNotifications => on(verb, notifications::list),
        Operation::TestNotification => on(verb, notifications::test),
        Operation::ShowJobSchema => on(verb, jobs::schema),
        Operation::ShowCalendarSchema => on(verb, calendars::schema),
        Operation::ShowQueueSchema => on(verb, queues::schema),
        Operation::ShowOpenapi => on(verb, openapi::show),
        Operation::ShowProblem => on(verb, problem_pages::show),
        Operation::MakeBackup => on(verb, backups::make),
        Operation::ListBackups => on(verb, backups::list),
        Operation::SignIn => on(verb, session::sign_in),
        Operation::ShowSession => on(verb, session::show),
        Operation::SignOut => on(verb, session::sign_out),
        Operation::ShowConsole => on(verb, console::page),
        Operation::ShowConsoleFile => on(verb, console::file),
        Operation::Health => on(verb, health::health),
        Operation::Readiness => on(verb, health::readiness),
        Operation::WorkerSession | Operation::FetchCheckpoint => return None,
    })
}

/// An address of the console, for a browser that was sent to one; nothing for anybody else.
async fn elsewhere(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    match console::wants_page(&method, &uri, &headers) {
        true => console::page(headers).await,
        false => no_such_route(uri).await.into_response(),
    }
}

pub async fn no_such_route(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(Kind::NoSuchRoute, format!("there is nothing at `{path}`"))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(
        Kind::MethodNotAllowed,
        format!("`{path}` does not take {method}: see the header `Allow`"),
    )
}

/// The known name closest to `given`, if any is close.
fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(given, name);
    known
        .map(|name| (distance(name), name))
        .filter(|(far, name)| *far <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}
