//! A job as callers see it.

use std::collections::BTreeMap;

use drumtower_core::model::{
    Actor, AfterRow, BreakerRow, JobId, JobName, JobRecord, JobSpec, NamespaceName, Pause, RunId,
    RunState, Unfired, UnfiredReason,
};
use drumtower_core::schedule::Language;
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::JobManifest;
use super::time::{self, Time};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct Job<'a> {
    id: JobId,
    namespace: &'a NamespaceName,
    name: &'a JobName,
    version: u32,
    revision: u64,
    paused: Option<Deed<'a>>,
    created: Time,
    updated: Time,
    actor: &'a Actor,
    /// When it is due, for people; `None` when it cannot be read any more.
    words: Option<String>,
    words_zh: Option<String>,
    next_nominal: Option<Time>,
    next_due: Option<Time>,
    fired_through: Time,
    fires: u64,
    live_scheduled: u32,
    /// Runs that wait for their turn because others have not ended.
    queued: u32,
    /// Where it has one.
    breaker: Option<BreakerView>,
    /// What has come of the jobs that it runs after, where it runs after any.
    waits: Option<Waits<'a>>,
    last_unfired: Option<UnfiredRange>,
    #[schemars(with = "JobManifest")]
    spec: &'a JobSpec,
}

/// Something that someone did at some time.
#[derive(Serialize, JsonSchema)]
pub struct Deed<'a> {
    pub at: Time,
    pub actor: &'a Actor,
}

/// What has come of the jobs that a job runs after.
#[derive(Serialize, JsonSchema)]
struct Waits<'a> {
    /// The newest end of each job that counts and that no run was made of; others have yet to come.
    arrived: BTreeMap<&'a JobName, ArrivedView>,
    /// Ends that should have made a run and did not, of which the last is told.
    unmade: Option<UnmadeView>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Arrived")]
struct ArrivedView {
    run: RunId,
    state: RunState,
    at: Time,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Unmade")]
struct UnmadeView {
    count: u64,
    /// The run whose end it was.
    run: RunId,
    at: Time,
    reason: UnfiredReason,
}

impl<'a> Waits<'a> {
    fn of(row: Option<&'a AfterRow>) -> Self {
        let arrived = row.into_iter().flat_map(|row| &row.arrived);
        let arrived = arrived.map(|(name, it)| {
            let at = it.at.into();
            let (run, state) = (it.run, it.state);
            (name, ArrivedView { run, state, at })
        });
        Self {
            arrived: arrived.collect(),
            unmade: row.and_then(|row| row.unmade).map(|it| UnmadeView {
                count: it.count,
                run: it.run,
                at: it.at.into(),
                reason: it.reason,
            }),
        }
    }
}

/// The circuit breaker of a job.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BreakerState")]
struct BreakerView {
    #[schemars(extend("enum" = ["closed", "open", "half_open"]))]
    state: &'static str,
    /// Runs in a row that failed for good.
    failures: u32,
    /// When it opened first.
    opened: Option<Time>,
    /// Nothing is let through before then.
    until: Option<Time>,
    /// The run that is let through to see whether all is well again.
    probe: Option<RunId>,
}

impl BreakerView {
    fn of(row: Option<&BreakerRow>) -> Self {
        let open = row.and_then(|row| row.open.as_ref());
        Self {
            state: BreakerRow::state(row, time::now()),
            failures: row.map_or(0, |row| row.failures),
            opened: open.map(|open| Time(open.since)),
            until: open.map(|open| Time(open.until())),
            probe: open.and_then(|open| open.probe),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct UnfiredRange {
    first: Time,
    last: Time,
    count: u64,
    version: u32,
    reason: UnfiredReason,
}

impl<'a> From<&'a JobRecord> for Job<'a> {
    fn from(record: &'a JobRecord) -> Self {
        let JobRecord {
            row,
            version,
            schedule,
            live_scheduled,
            tallies,
            breaker,
            waits,
            followed: _,
            last_unfired,
        } = record;
        let words = |language| version.spec.words(language);
        Self {
            id: row.id,
            namespace: &row.namespace,
            name: &row.name,
            version: row.version,
            revision: row.revision,
            paused: row.paused.as_ref().map(|Pause { at, actor }| Deed {
                at: (*at).into(),
                actor,
            }),
            created: row.created.into(),
            updated: row.updated.into(),
            actor: &row.actor,
            words: words(Language::English),
            words_zh: words(Language::Chinese),
            next_nominal: schedule.next_nominal.map(Time),
            next_due: schedule.next_due.map(Time),
            fired_through: schedule.fired_through.into(),
            fires: schedule.fires,
            live_scheduled: *live_scheduled,
            queued: tallies.queued(),
            breaker: version
                .spec
                .breaker
                .as_ref()
                .map(|_| BreakerView::of(breaker.as_ref())),
            waits: version
                .spec
                .after
                .as_ref()
                .map(|_| Waits::of(waits.as_ref())),
            last_unfired: last_unfired.as_ref().map(UnfiredRange::from),
            spec: &version.spec,
        }
    }
}

impl From<&Unfired> for UnfiredRange {
    fn from(range: &Unfired) -> Self {
        Self {
            first: range.first.into(),
            last: range.last.into(),
            count: range.count,
            version: range.version,
            reason: range.reason,
        }
    }
}
