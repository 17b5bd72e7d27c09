//! What goes on, in one answer: made from what the servers hold in memory, so that it may be asked every second.

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use drumtower_core::engine::{LineFigures, WorkerView};
use drumtower_core::model::{JobName, NamespaceName, Role, TaskNeed};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::query::Parameters;
use super::time::Time;
use super::workers::Worker;
use super::{Edge, sum};
use crate::auth::Principal;
use crate::cluster::Errand;
use crate::driver::{Health, wall_now};
use crate::metrics::Histogram;

/// Workers that are told of one by one.
const WORKERS: usize = 500;

#[derive(Serialize, JsonSchema)]
pub struct Overview<'a> {
    /// The server's clock.
    now: Time,
    version: &'static str,
    ready: bool,
    uptime_ms: u64,
    caller: Caller<'a>,
    runs: Runs,
    /// Since the server started; two answers make a rate.
    counters: Counters,
    /// From the due time to the start, since the server started: how many starts at or below each bound, in seconds.
    start_delay: Vec<Bucket>,
    /// The longest lines of runs that wait for a worker; at most 100.
    lines: Vec<Line<'a>>,
    /// At most 500.
    workers: Vec<Worker<'a>>,
    workers_total: usize,
    /// Jobs whose last run failed, those with most failures since the start first; at most 100.
    failing: Vec<FailingJob>,
    /// Servers that share the store and did not answer: what is theirs is not counted.
    silent: Vec<String>,
}

/// Whose token was shown.
#[derive(Serialize, JsonSchema)]
struct Caller<'a> {
    name: &'a str,
    role: Role,
    namespace: Option<&'a NamespaceName>,
}

/// What is not over. A caller that is bound to a namespace gets what waits of its own.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunsNow")]
struct Runs {
    live: Option<u64>,
    waiting: u64,
    /// Those of them that limits hold back: no worker could take them yet.
    held: u64,
    parked: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Counters {
    made: Option<u64>,
    started: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    unfired: u64,
}

#[derive(Serialize, JsonSchema)]
struct Bucket {
    /// `null` for what lies above all bounds.
    up_to_s: Option<f64>,
    count: u64,
}

#[derive(Serialize, JsonSchema)]
struct Line<'a> {
    namespace: &'a NamespaceName,
    /// `exec`, `http` or `handler:NAME`.
    need: String,
    weight: u32,
    priority: u32,
    waiting: u64,
    /// Those of them that a limit holds back: no worker could take them yet.
    held: u64,
    /// Whether the store holds more of them.
    parked: bool,
    /// When the oldest of those that wait was made.
    oldest: Option<Time>,
    /// Workers that have room for one of them now.
    workers: u64,
}

#[derive(Serialize, JsonSchema)]
struct FailingJob {
    namespace: NamespaceName,
    job: JobName,
    failed: u64,
    completed: u64,
}

pub async fn show(
    State(edge): State<Edge>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    errand: Option<Extension<Errand>>,
) -> Result<Response, Problem> {
    Parameters::read(&uri, &[])?;
    let (figures, fleet) = edge.handle.figures().await?;
    let everything = principal.namespace.is_none();
    let totals = edge
        .metrics
        .totals(everything, |namespace| principal.sees(namespace));
    let lines: Vec<Line<'_>> = figures
        .lines
        .iter()
        .filter(|line| principal.sees(&line.requirement.namespace))
        .map(Line::from)
        .collect();
    let (waiting, held) = if everything {
        (figures.waiting.iter().sum(), figures.held)
    } else {
        let waiting = lines.iter().map(|line| line.waiting).sum();
        (waiting, lines.iter().map(|line| line.held).sum())
    };
    let seen = |worker: &&WorkerView| {
        let namespace = worker.namespace.as_ref();
        namespace.is_none_or(|namespace| principal.sees(namespace))
    };
    let parked = figures.live_runs.saturating_sub(figures.resident_runs);
    let overview = Overview {
        now: wall_now().into(),
        version: env!("CARGO_PKG_VERSION"),
        ready: *edge.handle.health().borrow() == Health::Ready,
        uptime_ms: u64::try_from(edge.metrics.uptime().as_millis()).unwrap_or(u64::MAX),
        caller: Caller {
            name: &principal.actor.0,
            role: principal.role,
            namespace: principal.namespace.as_ref(),
        },
        runs: Runs {
            live: everything.then_some(figures.live_runs),
            waiting,
            held,
            parked: everything.then_some(parked),
        },
        counters: Counters {
            made: totals.made,
            started: totals.start_delay.count(),
            completed: totals.completed,
            failed: totals.failed,
            cancelled: totals.cancelled,
            unfired: totals.unfired,
        },
        start_delay: buckets(&totals.start_delay),
        workers: fleet
            .iter()
            .filter(seen)
            .take(WORKERS)
            .map(Worker::from)
            .collect(),
        workers_total: fleet.iter().filter(seen).count(),
        lines,
        failing: totals
            .failing
            .into_iter()
            .map(|job| FailingJob {
                namespace: job.namespace,
                job: job.job,
                failed: job.failed,
                completed: job.completed,
            })
            .collect(),
        silent: Vec::new(),
    };
    let Some(Extension(errand)) = errand else {
        return Ok(Json(overview).into_response());
    };
    let parts = sum::same(&edge, Some(&errand)).await;
    Ok(Json(sum::overview(sum::value(&overview)?, parts)).into_response())
}

fn buckets(histogram: &Histogram) -> Vec<Bucket> {
    let bounded = histogram.cumulative().map(|(bound, count)| Bucket {
        up_to_s: Some(bound),
        count,
    });
    let all = Bucket {
        up_to_s: None,
        count: histogram.count(),
    };
    bounded.chain([all]).collect()
}

impl<'a> From<&'a LineFigures> for Line<'a> {
    fn from(line: &'a LineFigures) -> Self {
        let requirement = &line.requirement;
        Self {
            namespace: &requirement.namespace,
            need: match &requirement.need {
                TaskNeed::Exec => "exec".to_owned(),
                TaskNeed::Http => "http".to_owned(),
                TaskNeed::Handler(name) => format!("handler:{name}"),
            },
            weight: requirement.weight,
            priority: requirement.priority,
            waiting: line.waiting,
            held: line.held,
            parked: line.parked,
            oldest: line.oldest.map(Time::from),
            workers: line.workers,
        }
    }
}
